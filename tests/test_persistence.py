"""Model files: faithful, versioned, harmless."""

import hashlib
import io
import json
import os
import pickle
import re
import subprocess
import sys
import zipfile

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import errorband
from errorband import LBFGS, GPRegressor, Parameter, means
from errorband.kernels import KERNELS, Diffusion, Matern, Projection, SquaredExponential
from errorband.persistence import ModelFileError
from errorband.priors import LogNormal


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=30)


@pytest.fixture(scope="module")
def model(data):
    kernel = SquaredExponential(Parameter(1.0, prior=LogNormal(0.0, 1.0))) + 2.0 * Projection(Matern(nu=0.5), 1)
    return GPRegressor(kernel, mean=means.Linear(marginalize=True), optimizer=LBFGS(max_iter=5)).fit(*data)


@pytest.fixture
def path(model, tmp_path):
    path = tmp_path / "model.eb"
    model.save(path)
    return path


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_round_trip(model, path, data):
    X, _ = data
    twin = errorband.load(path)
    assert repr(twin) == repr(model)
    assert np.array_equal(twin.predict(X, return_cov=True)[1], model.predict(X, return_cov=True)[1])
    assert np.array_equal(twin.sample_posterior(X, 2, 0), model.sample_posterior(X, 2, 0))
    assert np.array_equal(twin.loo().z_score, model.loo().z_score)
    assert twin.fit_result_.trace == model.fit_result_.trace
    assert twin.log_evidence_ == model.log_evidence_
    assert repr(twin.fit(*data).kernel_) == repr(model.kernel_)  # priors and settings came along


def test_arrays_of_a_kernel_and_feature_names_come_along(tmp_path):
    import pandas as pd

    ring = np.roll(np.eye(6), 1, 0) + np.roll(np.eye(6), -1, 0)
    frame = pd.DataFrame({"node": np.arange(6.0)})
    model = GPRegressor(Diffusion(ring, 1.0, 1.0, active_dims="node"), optimizer=None).fit(frame, np.arange(6.0))
    model.save(tmp_path / "m.eb")
    twin = errorband.load(tmp_path / "m.eb")
    assert list(twin.feature_names_in_) == ["node"]
    assert np.array_equal(twin.predict(frame), model.predict(frame))


def test_loads_in_another_process(path, model, data):
    code = (
        "import sys, errorband, numpy as np; print(repr(float(errorband.load(sys.argv[1]).predict([[0.1, 0.2]])[0])))"
    )
    out = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert float(out.stdout) == model.predict([[0.1, 0.2]])[0]


def test_unfitted_models_and_unknown_kernels_are_refused(tmp_path, data):
    with pytest.raises(ModelFileError, match="Fit the GPRegressor"):
        GPRegressor().save(tmp_path / "m.eb")

    class Mine(SquaredExponential):
        pass

    model = GPRegressor(Mine(1.0, 1.0), optimizer=None).fit(*data)
    with pytest.raises(ModelFileError, match="KERNELS"):
        model.save(tmp_path / "m.eb")
    assert not list(tmp_path.iterdir())
    KERNELS["Mine"] = Mine
    try:
        model.save(tmp_path / "m.eb")
        assert isinstance(errorband.load(tmp_path / "m.eb").kernel_, Mine)
    finally:
        del KERNELS["Mine"]
    with pytest.raises(ModelFileError, match="'Mine', which is not a registered kernel"):
        errorband.load(tmp_path / "m.eb")


def rewrite(path, change):
    """Write the file again with its JSON document changed, checksum included."""
    entries = entries_of(path)
    document = json.loads(entries["model.json"])
    change(document)
    entries["model.json"] = json.dumps(document).encode()
    entries["model.sha256"] = hashlib.sha256(entries["model.json"]).hexdigest().encode()
    write_entries(path, entries)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(version=99), "version 99.*Upgrade"),
        (lambda d: d.update(version=1), "version 1 of the format.*so fit the model again"),
        (lambda d: d.update(version="1"), "its version is '1', not a whole number"),
        (lambda d: d["fitted"].pop("posterior_"), "damaged or was altered"),
        (lambda d: d.update(format="other"), "not an errorband model"),
        (lambda d: d.update(estimator="os.system"), "not an estimator"),
        (lambda d: d["fitted"]["kernel_"].update({"class": "Popen"}), "'Popen'"),
        (lambda d: d["fitted"]["kernel_"]["fields"].update(evil=1), "fields it does not have"),
        (lambda d: d["fitted"]["kernel_"].update(table="builtins"), "damaged or was altered"),
        (lambda d: d["checksums"].__setitem__(0, "0" * 64), "does not match its checksum"),
    ],
)
def test_altered_files_are_refused(path, change, message):
    rewrite(path, change)
    with pytest.raises(ModelFileError, match=message) as refused:
        errorband.load(path)
    assert re.search(", so |Upgrade", str(refused.value))  # what to do


def entries_of(path):
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write_entries(path, entries, compression=zipfile.ZIP_STORED):
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def test_what_would_unpack_to_more_than_the_file_holds_is_not_read(path):
    """Six megabytes of compressed zeros are six gigabytes in memory."""
    entries = entries_of(path)
    write_entries(path, entries | {"arrays/0.npy": bytes(20_000_000)}, zipfile.ZIP_DEFLATED)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(ModelFileError, match=r"damaged or was altered: it holds compressed entries.*, so name a file"):
        errorband.load(path)
    write_entries(path, entries)
    content = path.read_bytes()
    directory = content.index(b"PK\x01\x02")
    size = slice(directory + 24, directory + 28)  # of the first entry, unpacked
    path.write_bytes(content[: size.start] + (2**31).to_bytes(4, "little") + content[size.stop :])
    with pytest.raises(ModelFileError, match="more than the file holds"):
        errorband.load(path)


def test_a_header_that_promises_more_numbers_than_there_are(path):
    entries = entries_of(path)
    name = next(n for n in entries if n.endswith(".npy") and b"(30, 2)" in entries[n])
    entries[name] = entries[name].replace(b"(30, 2)", b"(3000000000, 2)").replace(b" " * 8 + b"\n", b"\n")
    rechecked(path, entries)
    with pytest.raises(ModelFileError, match="does not hold the numbers that its header promises"):
        errorband.load(path)


def rechecked(path, entries):
    """Write entries with the checksums that belong to them: a checksum is no signature."""
    document = json.loads(entries["model.json"])
    names = [f"arrays/{i}.npy" for i in range(len(document["checksums"]))]
    document["checksums"] = [hashlib.sha256(entries[name]).hexdigest() for name in names]
    entries["model.json"] = json.dumps(document).encode()
    entries["model.sha256"] = hashlib.sha256(entries["model.json"]).hexdigest().encode()
    write_entries(path, entries)


ALTERED = {
    "one more row": lambda a: np.concatenate([a, a[:1]]) if a.ndim else a[None],
    "one row less": lambda a: a[:-1] if a.ndim else np.zeros(2),
    "another axis": lambda a: a[..., None],
    "words": lambda a: np.full(a.shape, "x"),
    "complex": lambda a: a + 1j,
    "not finite": lambda a: np.full(a.shape, np.nan),
    "infinite": lambda a: np.full(a.shape, np.inf),
    "negative": lambda a: -np.abs(a) - 1.0,
    "empty": lambda a: np.zeros((0, *a.shape[1:])),
}


@pytest.mark.parametrize("change", ALTERED)
def test_altered_arrays_with_right_checksums(path, model, data, change):
    """They are refused, or cannot be told from right ones: then the model predicts numbers, and nothing fails later."""
    original = entries_of(path)
    number = sum(name.endswith(".npy") for name in original)
    refused = 0
    for i in range(number):
        array = np.lib.format.read_array(io.BytesIO(original[f"arrays/{i}.npy"]))
        buffer = io.BytesIO()
        np.lib.format.write_array(buffer, ALTERED[change](array))
        rechecked(path, original | {f"arrays/{i}.npy": buffer.getvalue()})
        try:
            twin = errorband.load(path)
        except ModelFileError:
            refused += 1
            continue
        try:
            mean, std = twin.predict(data[0], return_std=True)
        except np.linalg.LinAlgError as told:  # of other rows than were tried
            assert "Raise the noise" in str(told)  # noqa: PT017
            continue
        assert np.all(np.isfinite(mean))
        assert np.all(std >= 0)
    assert refused >= number // 3


def test_nothing_in_a_file_takes_the_place_of_a_method(path):
    rewrite(path, lambda d: d["fitted"].update(predict=1))
    with pytest.raises(ModelFileError, match=r"sets predict of a GPRegressor.*, so name a file"):
        errorband.load(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_what_is_no_file_is_refused_at_once(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for place in (tmp_path / "pipe", tmp_path, "/dev/zero"):
        with pytest.raises(ModelFileError, match="is not a file"):
            errorband.load(place)


def test_foreign_and_missing_files(tmp_path):
    (tmp_path / "text").write_text("hello")
    with pytest.raises(ModelFileError, match="not an errorband model"):
        errorband.load(tmp_path / "text")
    with zipfile.ZipFile(tmp_path / "zip", "w") as archive:
        archive.writestr("a", "b")
    with pytest.raises(ModelFileError):
        errorband.load(tmp_path / "zip")
    (tmp_path / "pickle").write_bytes(pickle.dumps(print))
    with pytest.raises(ModelFileError):
        errorband.load(tmp_path / "pickle")
    with pytest.raises(FileNotFoundError, match="no model file"):
        errorband.load(tmp_path / "none")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(cut=st.floats(0, 1, exclude_max=True), flip=st.integers(0, 255))
def test_truncated_or_corrupted_bytes_never_load_wrongly(path, cut, flip, tmp_path, data, model):
    content = path.read_bytes()
    broken = tmp_path / "broken.eb"
    broken.write_bytes(content[: int(cut * len(content))])
    with pytest.raises(ModelFileError):
        errorband.load(broken)
    position = int(cut * len(content))
    broken.write_bytes(content[:position] + bytes([content[position] ^ (flip or 1)]) + content[position + 1 :])
    try:
        twin = errorband.load(broken)
    except ModelFileError:
        return
    # Bytes of the zip's own bookkeeping may not matter; then everything read is what was written.
    assert np.array_equal(twin.predict(data[0]), model.predict(data[0]))


def test_an_interrupted_save_keeps_the_old_file(path, model, monkeypatch):
    before = path.read_bytes()
    monkeypatch.setattr("errorband.files.os.fsync", lambda fd: (_ for _ in ()).throw(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        model.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in path.parent.iterdir()] == ["model.eb"]


def test_a_document_goes_with_the_estimator(tmp_path):
    from errorband.persistence import ModelFileError, load_with_table, save

    model = GPRegressor(optimizer=None).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5])
    path = tmp_path / "model.eb"
    save(model, path, table={"level": 0.1, "name": "ä"})
    assert load_with_table(path)[1] == {"level": 0.1, "name": "ä"}
    assert isinstance(errorband.load(path), GPRegressor)
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"level": 0.1', b'"level": 0.2'))
    with pytest.raises(ModelFileError):
        load_with_table(path)
    model.save(path)
    assert load_with_table(path)[1] is None
