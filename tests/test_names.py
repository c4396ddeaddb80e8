"""Short names: every registered class has one, text becomes the object it stands for, and nothing else."""

import dataclasses

import numpy as np
import pytest

from errorband import GPClassifier, GPRegressor
from errorband.approximations import APPROXIMATIONS, FITC, VFE, PowerEP, SubsetOfData
from errorband.cli.models import MODEL_NAMES
from errorband.estimators import spec
from errorband.estimators.spec import APPROXIMATION_NAMES, INFERENCE_NAMES, KERNEL_NAMES, NOISE_NAMES
from errorband.features import FEATURES, MultiScale, SparseSpectrum
from errorband.inference import EP, INFERENCES
from errorband.kernels import KERNELS, Linear, Matern, Periodic, Projection, SquaredExponential
from errorband.likelihoods import LIKELIHOODS, ClassLikelihood, Ordinal, Poisson, Softmax, StudentT, Twinned
from errorband.names import LONGEST, Names, folded, short_names

CLASS_NAMES = spec.class_likelihood_names(3)
ALL_NAMES = (KERNEL_NAMES, NOISE_NAMES, CLASS_NAMES, APPROXIMATION_NAMES, INFERENCE_NAMES, MODEL_NAMES)
X = np.linspace(0, 4, 20)[:, None]
y = np.round(2 + 2 * np.sin(X[:, 0]))


@pytest.mark.parametrize(
    ("text", "kernel"),
    [
        ("matern52", Matern(nu=2.5)),
        ("SE", SquaredExponential()),
        ("rbf", SquaredExponential()),
        ("Matern(nu=1.5)", Matern(nu=1.5)),
        ("matern52+linear", Matern(nu=2.5) + Linear()),
        ("se*linear + matern12", SquaredExponential() * Linear() + Matern(nu=0.5)),
        ("se * (linear + matern12)", SquaredExponential() * (Linear() + Matern(nu=0.5))),
        ("2.5*se", 2.5 * SquaredExponential()),
        ("periodic(period=1,column=date)", Periodic(period=1.0, active_dims="date")),
        ("periodic(period=1,column='sold on')", Periodic(period=1.0, active_dims="sold on")),
        ("se(0.5, columns=[a, 'b c', 3])", SquaredExponential(0.5, active_dims=["a", "b c", 3])),
        ("se([1, 2e-1], 3, ard=False)", SquaredExponential([1.0, 0.2], 3.0, ard=False)),
        ("projection(se(), rank=2)", Projection(SquaredExponential(), 2)),
    ],
)
def test_kernels(text, kernel):
    assert repr(KERNEL_NAMES(text)) == repr(kernel)


def test_other_parts():
    assert NOISE_NAMES("student-t") == NOISE_NAMES("StudentT") == NOISE_NAMES("student_t") == StudentT()
    assert repr(NOISE_NAMES("student-t(df=4)")) == "StudentT(df=4)"
    assert CLASS_NAMES("ordinal") == Ordinal(3)
    assert CLASS_NAMES("softmax") == Softmax(3)
    assert repr(APPROXIMATION_NAMES("vfe(200)")) == repr(VFE(200))
    assert APPROXIMATION_NAMES("fitc(auto)") == FITC("auto")
    assert repr(APPROXIMATION_NAMES("power-ep(50, power=0.25)")) == repr(PowerEP(50, 0.25))
    assert repr(APPROXIMATION_NAMES("fitc(20, features=multi-scale())")) == repr(FITC(20, features=MultiScale()))
    assert APPROXIMATION_NAMES("subset-of-data(100)") == SubsetOfData(100)
    assert repr(APPROXIMATION_NAMES("sparse-spectrum(30)")) == repr(SparseSpectrum(30))
    assert INFERENCE_NAMES("ep(power=0.5)") == EP(power=0.5)


@pytest.mark.parametrize(
    ("names", "text", "message"),
    [
        (KERNEL_NAMES, "mattern52", "no kernel 'mattern52' (closest: 'matern52'), so choose from additive, arc-sine, "),
        (KERNEL_NAMES, "sum(se(), se())", "no kernel 'sum'"),
        (KERNEL_NAMES, "", "it ends where 'a name' should be"),
        (KERNEL_NAMES, "se+", "it ends where"),
        (KERNEL_NAMES, "3", "3 is a number"),
        (KERNEL_NAMES, "se+2", "these cannot be added"),
        (KERNEL_NAMES, "se linear", "'linear' is not expected there"),
        (KERNEL_NAMES, "se(", "it ends where"),
        (KERNEL_NAMES, "se(1,2,3,4,5,6,7)", "no argument ''"),
        (KERNEL_NAMES, "se(sold on)", "where ',' should be"),
        (KERNEL_NAMES, "periodic(perod=1)", "no argument 'perod', so choose from lengthscale, variance"),
        (KERNEL_NAMES, "projection(se())", "needs more to be said, so write projection(rank=...)"),
        (KERNEL_NAMES, "se(lengthscale=wide)", "must be a number"),
        (KERNEL_NAMES, "se; import os", "';' has no meaning there"),
        (KERNEL_NAMES, "se.__class__", "no kernel 'se.__class__'"),
        (KERNEL_NAMES, "se(lengthscale=open('x'))", "no kernel 'open'"),
        (KERNEL_NAMES, "(" * (LONGEST + 1), "at most 1,000"),
        (NOISE_NAMES, "poison", "closest: 'poisson'"),
        (NOISE_NAMES, "probit", "no likelihood 'probit'"),
        (NOISE_NAMES, "binomial", "write binomial(n_trials=...)"),
        (NOISE_NAMES, "poisson+gamma", "cannot be added"),
        (CLASS_NAMES, "poisson", "choose from probit, logit, "),
        (APPROXIMATION_NAMES, "fitc(0)", "n_inducing"),
        (APPROXIMATION_NAMES, "points", "no approximation 'points'"),
        (APPROXIMATION_NAMES, "sparse", "choose from auto, exact, "),
    ],
)
def test_what_is_wrong_is_said(names, text, message):
    with pytest.raises(ValueError, match=r"^[A-Za-z]") as told:
        names(text)
    assert message in str(told.value)


def test_robust_noise_is_what_the_comparison_chose():
    """docs/reproductions/robust-bursts.md: the only one as good as the oracle with outliers alone and in bursts."""
    assert type(NOISE_NAMES("robust")) is type(NOISE_NAMES("twinned")) is Twinned


@pytest.mark.parametrize("deep", ["(" * LONGEST, "se(" * (LONGEST // 3), "[" * LONGEST])
def test_deep_nesting_is_an_error_in_words(deep):
    with pytest.raises(ValueError, match=r"cannot be read|no argument"):
        KERNEL_NAMES(deep)


@pytest.mark.parametrize("names", ALL_NAMES, ids=lambda names: names.what)
def test_names_are_told_apart_and_lead_to_their_classes(names):
    choices = [choice.split("(")[0] for choice in names.choices()]
    assert len({folded(name) for name in choices}) == len(choices)
    assert all(names.find(name) for name in choices if name not in ("auto",))


@pytest.mark.parametrize(
    ("names", "registry"),
    [
        (KERNEL_NAMES, KERNELS),
        (NOISE_NAMES, {name: cls for name, cls in LIKELIHOODS.items() if not issubclass(cls, ClassLikelihood)}),
        (CLASS_NAMES, {name: cls for name, cls in LIKELIHOODS.items() if issubclass(cls, ClassLikelihood)}),
        (APPROXIMATION_NAMES, {**APPROXIMATIONS, **{n: c for n, c in FEATURES.items() if c.weight_space}}),
        (INFERENCE_NAMES, INFERENCES),
    ],
    ids=lambda item: getattr(item, "what", ""),
)
def test_a_line_in_the_registry_is_a_name(names, registry):
    """Only classes that say so have none: sums are written +, and the like."""
    nameless = {"Sum", "Product", "Scaled", "Diffusion"}
    for class_name, cls in registry.items():
        assert bool(short_names(class_name, cls)) == (class_name not in nameless)
        if class_name not in nameless:
            assert names.find(class_name)[0] is cls


def test_a_class_added_later_has_a_name(monkeypatch):
    class HalfCosine(SquaredExponential):
        """Of a user's own."""

    monkeypatch.setitem(KERNELS, "HalfCosine", HalfCosine)
    assert "half-cosine" in KERNEL_NAMES.choices()
    assert type(KERNEL_NAMES("half-cosine(2.0)")) is HalfCosine
    assert type(KERNEL_NAMES("se")) is SquaredExponential  # names that a parent declared are not inherited


def test_arguments_can_be_converted():
    names = dataclasses.replace(KERNEL_NAMES, converted={"active_dims": lambda name: f"{name} [days]"})
    assert names("linear(column=day)").active_dims == ("day [days]",)


def test_estimators_take_names():
    model = GPRegressor("matern32", likelihood="poisson", approximation="fitc(5)", inference="laplace", optimizer=None)
    model.fit(X, y)
    assert repr(model.kernel_).startswith("Matern")
    assert type(model.likelihood_) is Poisson
    assert len(model.approximation_.inducing_inputs) == 5
    same = model.set_params(kernel=Matern(), likelihood=Poisson(), approximation=FITC(5), inference="Laplace")
    assert same.fit(X, y).log_evidence_ == pytest.approx(model.log_evidence_)
    ordered = GPClassifier("se", likelihood="ordinal", optimizer=None).fit(X, np.digitize(X[:, 0], [1.0, 2.5]))
    assert type(ordered.likelihood_) is Ordinal


def test_a_registry_may_be_empty():
    assert Names("thing", ({},)).choices() == []
