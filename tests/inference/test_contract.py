"""Every registered rule keeps the contract, with every kind of structure and likelihood.

Rules that work through sites are listed in :data:`RULES`; those that are closed forms are reached by
``inference="auto"`` and are compared with NumPy in ``tests/approximations/test_contract.py``.
"""

import functools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

import dense_reference as dense
from errorband import GPClassifier, means
from errorband.approximations import FITC, PIC, PITC, VFE, Exact, Nystrom, PowerEP
from errorband.inference import EP, INFERENCES, KL, Laplace
from errorband.kernels import Matern
from errorband.likelihoods import (
    Bernoulli,
    DoubleExponential,
    Gaussian,
    HeteroscedasticGaussian,
    OutlierMixture,
    Softmax,
    StudentT,
)
from sparse_reference import KERNEL, fixed

ROUGH = Matern([0.8, 1.3], 1.44, nu=1.5)
DATA_X, DATA_Y, X_NEW = dense.formula_data()
X, Y = DATA_X[:16], DATA_Y[:16]
Z = X[::4] + 0.05
CENTRES = np.array([[-1.0, -1.0], [1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [50.0, 50.0]])  # the last has no rows
SWEEPS, BOUND, HALF = EP(tolerance=1e-9), KL(tolerance=1e-9), EP(power=0.5, tolerance=1e-9)

# A newcomer adds itself here: what is to be tried of each rule with sites.
RULES = {
    "Laplace": {"Laplace": Laplace()},
    "EP": {
        "EP": SWEEPS,
        "EP sequential": EP(mode="sequential", tolerance=1e-9),
        "EP double loop": EP(mode="double_loop", tolerance=1e-9),
        "EP fractional": HALF,
        "EP fractional, sequential": EP(mode="sequential", power=0.5, tolerance=1e-9),
        "EP fractional, double loop": EP(mode="double_loop", power=0.5, tolerance=1e-9),
    },
    "KL": {"KL": BOUND},
    "MCMC": {},  # has another rule for evidence and sites; tests/test_samplers.py
}
EACH = {name: rule for rules in RULES.values() for name, rule in rules.items()}
STRUCTURES = {
    "dense": Exact(),
    "low rank": FITC(inducing_inputs=Z),
    "blocks": PITC(inducing_inputs=Z, centres=CENTRES),
    "residual": PowerEP(power=0.5, inducing_inputs=Z),
}


def model(likelihood, approximation="exact", inference="auto", kernel=KERNEL, **options):
    return fixed(approximation, kernel, likelihood, inference=inference, **options)


def targets(likelihood, y=Y):
    """As the likelihood has them."""
    if isinstance(likelihood, Bernoulli):
        return np.where(y > 0.1, 1.0, -1.0)
    return np.digitize(y, [-0.3, 0.4]).astype(float) if isinstance(likelihood, Softmax) else y


def test_every_registered_rule_is_tested():
    closed = {type(model(Gaussian(0.0625), a).fit(X, Y).inference_).__name__ for a in STRUCTURES.values()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        closed |= {type(model(Gaussian(0.0625), Nystrom(4)).fit(X, Y).inference_).__name__}
    assert not closed & set(RULES)
    assert closed | set(RULES) == set(INFERENCES), "add the new rule to RULES"
    for name, rules in RULES.items():
        assert all(type(rule) is INFERENCES[name] for rule in rules.values())


# -------------------------------------------------------------------------------------------------- Gaussian noise
@pytest.mark.parametrize(
    ("structure", "rule"),
    # EP on the other structures: every approximation does it in tests/approximations/test_contract.py.
    [("dense", rule) for rule in EACH if "," not in rule]
    + [(s, rule) for s in ("low rank", "blocks") for rule in ("Laplace", "KL")]
    + [
        ("blocks", "EP sequential"),
        ("residual", "EP fractional, sequential"),
        ("residual", "EP fractional, double loop"),
    ],
)
def test_a_gaussian_likelihood_gives_the_closed_form(structure, rule):
    """Evidence, gradient, predictions and leave-one-out."""
    closed, swept = (
        model(Gaussian(0.0625), STRUCTURES[structure], inference, mean="linear") for inference in ("auto", EACH[rule])
    )
    theirs, ours = (m.objective(X, Y) for m in (closed, swept))
    theta = theirs.theta0 + 0.05 * np.cos(np.arange(len(theirs.theta0)))
    value, gradient = ours.value_and_gradient(theta)
    expected, expected_gradient = theirs.value_and_gradient(theta)
    assert_allclose(value, expected, rtol=1e-8)
    assert_allclose(gradient, expected_gradient, rtol=1e-6, atol=1e-7)
    for m in (closed, swept):
        m.fit(X, Y)
    assert swept.inference_status_.converged
    assert_allclose(swept.log_evidence_, closed.log_evidence_, rtol=1e-8)
    for options in ({"return_std": True}, {"return_cov": True, "latent": True}):
        for got, want in zip(*(m.predict(X_NEW, **options) for m in (swept, closed)), strict=True):
            assert_allclose(got, want, rtol=1e-7, atol=1e-8)
    got, want = (m.loo().predictive for m in (swept, closed))
    assert_allclose(got.mean, want.mean, rtol=1e-6, atol=1e-8)
    assert_allclose(got.variance, want.variance, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------- gradients
BIASED, MIXTURE = Bernoulli("logit", bias=0.2), OutlierMixture(0.09, 20.0, 0.1)
GRADIENTS = {
    **{f"dense, {name}, classes": (Exact(), rule, BIASED) for name, rule in EACH.items() if "," not in name},
    "low rank, EP, classes": (STRUCTURES["low rank"], SWEEPS, BIASED),
    **{
        f"low rank, {name}, {kind}": (STRUCTURES["low rank"], EACH[name], likelihood)
        for name in ("Laplace", "EP", "KL")
        for kind, likelihood in (("two latents", HeteroscedasticGaussian(0.1)), ("three classes", Softmax(3)))
    },
    "blocks, EP, classes": (STRUCTURES["blocks"], SWEEPS, BIASED),
    "blocks, Laplace, heavy tails": (PIC(inducing_inputs=Z, centres=CENTRES), Laplace(), StudentT(3.0, 0.3)),
    "blocks, Laplace, three classes": (PIC(inducing_inputs=Z, centres=CENTRES), Laplace(), Softmax(3)),
    "residual, KL, heavy tails": (VFE(inducing_inputs=Z), BOUND, StudentT(4.0, 0.2)),
    "residual, KL, two latents": (VFE(inducing_inputs=Z), BOUND, HeteroscedasticGaussian(0.1)),
    "residual, KL, kink": (VFE(inducing_inputs=Z), BOUND, DoubleExponential(0.3)),
    "residual, power EP, classes": (PowerEP(power=0.5, inducing_inputs=Z), HALF, BIASED),
    "residual, power EP, mixture": (PowerEP(power=0.5, inducing_inputs=Z), HALF, MIXTURE),
}


@pytest.mark.parametrize("case", GRADIENTS)
def test_gradient_against_reconverged_finite_differences(case):
    """In kernel, likelihood and inducing inputs: nothing is differentiated through sweeps."""
    approximation, rule, likelihood = GRADIENTS[case]
    objective = model(likelihood, approximation, rule).objective(X, targets(likelihood))
    theta = objective.theta0
    _, gradient = objective.value_and_gradient(theta)
    # KL ends where its bound no longer rises: round-off of the bound leaves the sites, and so the gradient, uncertain.
    precision = 1e-6 if "KL" in case else 1e-7
    along = dense.random_directions(theta, 1 if "double loop" in case else 2)
    assert_allclose(along @ gradient, dense.precise_differences(objective, theta, along), rtol=1e-6, atol=precision)


# --------------------------------------------------------------------------------------------- several latent functions
@functools.cache
def three_classes(approximation_id, rule_id):
    made = {"dense": Exact(), "FITC": FITC(inducing_inputs=X), "VFE": VFE(inducing_inputs=X)}
    return model(Softmax(3), made[approximation_id], EACH[rule_id], ROUGH).fit(X, targets(Softmax(3)))


@pytest.mark.slow
@pytest.mark.parametrize(("approximation", "rule"), [("FITC", "EP"), ("VFE", "KL")])
def test_three_classes_with_an_inducing_input_at_each_row_are_those_of_the_dense_model(approximation, rule):
    """To about 1e-6, as K_uu has 1e-8 more on its diagonal."""
    sparse, whole = three_classes(approximation, rule), three_classes("dense", rule)
    assert_allclose(sparse.log_evidence_, whole.log_evidence_, rtol=1e-6)
    for got, want in zip(*(m.posterior_.marginals(X_NEW) for m in (sparse, whole)), strict=True):
        assert_allclose(got, want, atol=1e-5)


# -------------------------------------------------------------------------------------------------------- last word
def test_the_last_word_is_that_of_the_other_rule():
    likelihood = StudentT(4.0, 0.2)
    found, want = (model(likelihood, inference=rule).fit(X, Y) for rule in (Laplace(last_word=SWEEPS), SWEEPS))
    assert found.inference_ == SWEEPS
    assert_allclose(found.log_evidence_, want.log_evidence_, rtol=1e-8)
    assert_allclose(found.predict(X_NEW), want.predict(X_NEW), rtol=1e-6)


@pytest.mark.parametrize("rule", ["EP", "KL"])
def test_the_last_word_on_three_classes(rule):
    found = GPClassifier(
        ROUGH, inference=Laplace(last_word=EACH[rule]), optimizer=None, normalize=False, multi_class="joint"
    )
    found.fit(X, targets(Softmax(3)))
    assert type(found.inference_) is type(EACH[rule])
    assert_allclose(found.log_evidence_, three_classes("dense", rule).log_evidence_, rtol=1e-7)


def test_the_last_word_in_closed_form():
    last = INFERENCES["Conjugate"]()
    found, want = (
        model(Gaussian(0.0625), STRUCTURES["low rank"], inference).fit(X, Y)
        for inference in (Laplace(last_word=last), "auto")
    )
    assert found.inference_ == last
    assert_allclose(found.log_evidence_, want.log_evidence_, rtol=1e-10)
    assert_allclose(found.predict(X_NEW), want.predict(X_NEW), rtol=1e-8)


# --------------------------------------------------------------------------------------------------------- refusals
KNOWN, FLAT = np.full(len(Y), 0.1), means.Constant(marginalize=True)
REFUSED = {
    "no curvature": ((DoubleExponential(0.3), Exact(), Laplace()), {}, "has no curvature.*EP"),
    "no curvature, last word": ((DoubleExponential(0.3), Exact(), Laplace(last_word=EP())), {}, "no curvature.*EP"),
    "the last word cannot": ((StudentT(), VFE(4), Laplace(last_word=KL())), {}, r"VFE goes with inference=KL\(\)"),
    "not the rule of VFE": ((StudentT(), VFE(4), Laplace()), {}, r"VFE goes with inference=KL\(\), .*FITC goes with"),
    "not the power": ((StudentT(), PowerEP(4), EP()), {}, r"PowerEP goes with inference=EP\(power=0.5\), .*FITC"),
    "no structure": ((StudentT(), Nystrom(4), EP()), {}, "FITC goes with every likelihood"),
    "no structure, auto": ((StudentT(), Nystrom(4), "auto"), {}, "FITC goes with every likelihood"),
    **{
        f"noise per row, {name}": ((Gaussian(), Exact(), rule), {"noise_variance": KNOWN}, "noise_variance per row")
        for name, rule in EACH.items()
    },
    **{f"flat mean, {name}": ((Gaussian(), Exact(), rule), {}, "marginalize=False") for name, rule in EACH.items()},
    "flat mean, inducing points": ((Gaussian(), FITC(4), "auto"), {}, "marginalize=False"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_makes_no_sense_is_refused_in_a_sentence(case):
    arguments, fit, sentence = REFUSED[case]
    mean = FLAT if "flat mean" in case else "zero"
    with pytest.raises(ValueError, match=sentence) as refusal:
        model(*arguments, mean=mean).fit(X, Y, **fit)
    assert str(refusal.value).endswith(".")


def test_what_auto_takes():
    assert model(StudentT(), PowerEP(4, power=0.3)).objective(X, Y).inference == EP(power=0.3)
    assert model(StudentT(), PowerEP(4, power=0.0)).objective(X, Y).inference == KL()
    assert model(StudentT(), VFE(4)).objective(X, Y).inference == KL()
    assert model(StudentT(), FITC(4)).objective(X, Y).inference == Laplace(last_word=EP())
    assert model(Bernoulli(), FITC(4)).objective(X, targets(Bernoulli())).inference == EP()
    assert model(Softmax(3), FITC(4)).objective(X, targets(Softmax(3))).inference == Laplace()
