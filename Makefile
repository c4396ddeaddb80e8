# Two commands do everything on a machine with Python >= 3.11 and make: `make demo` and `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test fuzz lint bench docs clean

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $(STAMP)

demo: $(STAMP)  ## fit the demonstration data, print held-out figures, write a picture
	$(BIN)/errorband demo --output out

test: $(STAMP)  ## the test suite without what is marked slow; machine code is not optimised, most of the time is compilation
	XLA_FLAGS="--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1" OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 \
	  $(BIN)/python -m pytest -n 3 --dist worksteal

fuzz: $(STAMP)  ## random draws of models, data and arguments, added to those of earlier runs: docs/fuzz.md
	$(BIN)/python tests/fuzz/run.py --draws 100000

lint: $(STAMP)  ## style, types and the layer rule
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(STAMP)  ## speed against peers, each in its own environment; writes docs/benchmarks/
	$(BIN)/python benchmarks/run.py exact
	$(BIN)/python benchmarks/run.py exact-fit
	$(BIN)/python benchmarks/run.py first-use
	$(BIN)/python benchmarks/run.py classification
	$(BIN)/python benchmarks/run.py sparse

docs: $(STAMP)  ## draw the gallery again
	$(BIN)/python docs/gallery/make.py

clean:
	rm -rf $(VENV) out .pytest_cache .ruff_cache .hypothesis
