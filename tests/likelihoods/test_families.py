"""What is particular to each likelihood: values from the literature, limits, identities."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, stats

from errorband.likelihoods import (
    Bernoulli,
    Beta,
    Binomial,
    DoubleExponential,
    Gamma,
    Gaussian,
    HeteroscedasticGaussian,
    Huber,
    NegativeBinomial,
    Ordinal,
    OutlierMixture,
    Poisson,
    RobustThreshold,
    Softmax,
    StudentT,
)
from errorband.likelihoods.base import ClassLikelihood, Likelihood
from errorband.likelihoods.softmax import _lattice_average
from errorband.parameters import Parameter, check, entries, pack, vector_names

pytestmark = pytest.mark.usefixtures("x64")


@jax.jit
def log_tilted(likelihood, y, mean, cov):
    return likelihood.log_tilted(y, mean, cov)


@jax.jit
def expected_log_prob(likelihood, y, mean, cov):
    return likelihood.expected_log_prob(y, mean, cov)


@jax.jit
def moments(likelihood, y, mean, variance):
    """Z, mean and variance of the tilted distribution, from derivatives of log Z in the cavity mean."""

    def gradient(m):
        value, g = jax.value_and_grad(lambda m: likelihood.log_tilted(y, m, variance))(m)
        return g, (value, g)

    h, (value, g) = jax.jacfwd(gradient, has_aux=True)(mean)
    return jnp.stack([jnp.exp(value), mean + variance * g, variance + variance**2 * h])


# ----------------------------------------------------------------------------------------------------------- classes
def test_figure_3_4_of_rasmussen_and_williams():
    assert_allclose(moments(Bernoulli(), 1.0, 1.0, 9.0), [0.62409, 2.73059, 4.44753], atol=5e-6)


def test_step_with_latent_noise_is_the_probit():
    """Noise of variance 1 on the latent value, then a threshold (Rasmussen & Williams 2006, exercise 3.10.1)."""
    step, probit = RobustThreshold(1e-300), Bernoulli()
    for y in (-1.0, 1.0):
        for mean in (-7.0, -0.3, 2.0):
            for variance in (0.1, 4.0):
                assert_allclose(
                    log_tilted(step, y, mean, variance + 1), log_tilted(probit, y, mean, variance), rtol=1e-12
                )


def test_probit_far_in_the_tail():
    value, by_f, by_ff = (float(d(-40.0)) for d in (lambda f: Bernoulli().log_prob(1.0, f), *_derivatives(Bernoulli())))
    assert_allclose(value, stats.norm.logcdf(-40.0), rtol=1e-14)
    assert_allclose(by_f, 40.024968847207, rtol=1e-12)  # φ/Φ
    assert_allclose(by_ff, -40.024968847207 * 0.024968847207, rtol=1e-9)


def _derivatives(likelihood):
    first = jax.grad(lambda f: likelihood.log_prob(1.0, f))
    return first, jax.grad(first)


def test_label_noise_and_bias():
    plain, noisy = Bernoulli("logit"), Bernoulli("logit", label_noise=0.1)
    for f in (-3.0, 0.5):
        assert_allclose(jnp.exp(noisy.log_prob(1.0, f)), 0.1 + 0.8 * jnp.exp(plain.log_prob(1.0, f)))
        assert_allclose(Bernoulli(bias=0.7).log_prob(-1.0, f), Bernoulli().log_prob(-1.0, f + 0.7))
    assert plain.log_concave
    assert not noisy.log_concave
    assert Bernoulli(label_noise=0.0).label_noise is None  # zero is none
    assert vector_names(Bernoulli(bias=0.0, label_noise=0.1)) == ["bias", "label_noise"]
    assert vector_names(Bernoulli()) == []
    fixed = Bernoulli(label_noise=Parameter(0.1, fixed=True))
    assert len(pack(fixed)) == 0
    assert not fixed.log_concave
    learned = Bernoulli(bias=Parameter(), label_noise=Parameter()).initialised(np.array([1.0, 1.0, -1.0]))
    check(learned)
    assert [float(e.value) > 0 for e in entries(learned)] == [True, True]
    with pytest.raises(ValueError, match="label_noise"):
        check(Bernoulli(label_noise=0.6))


def test_logit_at_any_width():
    """Against adaptive integration; and wide as the prior may be, the nodes find the step."""
    for y, m, v in [(1.0, 0.5, 2.0), (-1.0, 30.0, 9.0), (1.0, -40.0, 100.0)]:
        f = lambda f: np.exp(-np.logaddexp(0, -y * f) - 0.5 * (f - m) ** 2 / v)  # noqa: B023, E731
        width = 12 * np.sqrt(v)
        right, _ = integrate.quad(f, m - width, m + 3 * width, epsabs=0, epsrel=1e-12, limit=2000, points=[0.0, m])
        found = log_tilted(Bernoulli("logit"), y, m, v)
        assert_allclose(found, np.log(right / np.sqrt(2 * np.pi * v)), rtol=1e-9)
    assert_allclose(log_tilted(Bernoulli("logit"), 1.0, 0.0, 1e8), np.log(0.5), rtol=1e-7)


def test_softmax_of_two_is_the_logit_of_the_difference():
    softmax, logit = Softmax(2), Bernoulli("logit")
    mean, cov = jnp.array([0.3, -0.9]), jnp.array([[2.0, 0.4], [0.4, 1.0]])
    for y, sign in ((0, -1.0), (1, 1.0)):
        assert_allclose(softmax.log_prob(y, mean), logit.log_prob(sign, mean[1] - mean[0]))
        difference = mean[1] - mean[0], cov[0, 0] + cov[1, 1] - 2 * cov[0, 1]
        assert_allclose(log_tilted(softmax, y, mean, cov), log_tilted(logit, sign, *difference), rtol=1e-12)
        assert_allclose(
            expected_log_prob(softmax, y, mean, cov), expected_log_prob(logit, sign, *difference), rtol=1e-12
        )


@pytest.mark.parametrize(("C", "finer"), [(3, 0.1), (4, 0.3)])
def test_errors_of_predicted_softmax_probabilities(C, finer):
    """As the docstring states them, against many more nodes; where integrals of each class are accurate, as these."""
    rng = np.random.default_rng(0)
    likelihood, n = Softmax(C), 16
    errors = {3: (1e-8, 1e-7, 1e-4, 2e-3), 4: (1e-6, 1e-4, 1e-2, 3e-2)}[C]
    for std, error in zip((1.0, 2.0, 4.0, 8.0), errors, strict=True):
        root = std * rng.normal(size=(n, C, C)) / np.sqrt(C)
        mean, cov = std * rng.normal(size=(n, C)), root @ root.transpose(0, 2, 1)
        p = likelihood.class_probabilities(mean, cov)
        truth = _lattice_average(mean, cov, finer, 8.0)
        assert_allclose(p.sum(axis=1), 1.0)
        assert_allclose(p, truth, atol=error, rtol=0)
        if std == 1:
            assert_allclose(p, ClassLikelihood.class_probabilities(likelihood, mean, cov), atol=2e-6)
    certain = likelihood.class_probabilities(1e4 * np.eye(C), np.zeros((C, C, C)))  # no overflow
    assert_allclose(certain, np.eye(C), atol=1e-12)


def test_softmax_of_many_classes():
    rng = np.random.default_rng(0)
    mean, A = rng.normal(size=(3, 6)), rng.normal(size=(3, 6, 6))
    cov = 0.3 * np.eye(6) + A @ A.transpose(0, 2, 1) / 3
    p = Softmax(6).class_probabilities(mean, cov)
    assert_allclose(p.sum(1), 1.0)
    f = mean[:, None] + rng.normal(size=(3, 100_000, 6)) @ np.linalg.cholesky(cov).transpose(0, 2, 1)
    e = np.exp(f - f.max(2, keepdims=True))
    assert_allclose(p, (e / e.sum(2, keepdims=True)).mean(1), atol=4e-3)
    tilted = np.exp(np.stack([Softmax(6).log_density(np.full(3, c), mean, cov) for c in range(6)], 1))
    assert_allclose(tilted, p, atol=2e-3)


def test_ordinal_of_two_is_the_probit():
    for f in (-3.0, 0.2):
        assert_allclose(Ordinal(2, [0.4]).log_prob(1, f), Bernoulli(bias=-0.4).log_prob(1.0, f), rtol=1e-12)
    with pytest.raises(ValueError, match="thresholds"):
        Ordinal(3, [0.4])
    with pytest.raises(ValueError, match="increasing"):
        check(Ordinal(3, [0.4, 0.1]))
    start = Ordinal(3).initialised(np.array([0.0] * 10 + [1.0] * 80 + [2.0] * 10)).thresholds
    assert_allclose(start[0], -start[1], rtol=1e-9)


@pytest.mark.parametrize(
    "make", [lambda: Softmax(1), lambda: Ordinal(2.5), lambda: Binomial(0), lambda: Bernoulli("x")]
)
def test_wrong_arguments(make):
    with pytest.raises(ValueError, match=r"give a whole number|choose 'probit'"):
        make()


# ------------------------------------------------------------------------------------------------------------- noise
def test_scipys_densities():
    y, f = 0.7, -0.4
    pairs = [
        (StudentT(4.0, 0.2), stats.t(4, f, 0.2).logpdf(y)),
        (DoubleExponential(0.3 / np.sqrt(2)), stats.laplace(f, 0.3 / np.sqrt(2)).logpdf(y)),  # standard deviation 0.3
        (Gaussian(0.3), stats.norm(f, np.sqrt(0.3)).logpdf(y)),
        (Gamma(2.5), stats.gamma(2.5, scale=np.exp(f) / 2.5).logpdf(y)),
        (Beta(5.0), stats.beta(5 / (1 + np.exp(-f)), 5 / (1 + np.exp(f))).logpdf(y)),
    ]
    for likelihood, right in pairs:
        assert_allclose(likelihood.log_prob(y, f), right, rtol=1e-12)
    mu = np.exp(f)
    counts = [
        (Poisson(), stats.poisson(mu)),
        (NegativeBinomial(0.4), stats.nbinom(2.5, 2.5 / (2.5 + mu))),
        (Binomial(7), stats.binom(7, 1 / (1 + np.exp(-f)))),
    ]
    for likelihood, right in counts:
        for k in (0.0, 3.0):
            assert_allclose(likelihood.log_prob(k, f), right.logpmf(k), rtol=1e-12)
            assert_allclose(likelihood.conditional_cdf(np.array(k), np.array(f)), right.cdf(k), rtol=1e-12)
        assert_allclose(likelihood.conditional_variance(np.array(f)), right.var(), rtol=1e-12)


def test_student_t_tends_to_a_gaussian():
    for df, accuracy in ((1e8, 1e-6), (1e16, 1e-12)):
        t, normal = StudentT(df, 0.5), Gaussian(0.25)
        for y in (0.3, 3.0):
            assert_allclose(t.log_prob(y, 0.0), normal.log_prob(y, 0.0), rtol=accuracy)
            assert_allclose(log_tilted(t, y, 0.1, 2.0), log_tilted(normal, y, 0.1, 2.0), rtol=accuracy)
    # an outlier is let go, or not
    assert moments(StudentT(4.0, 0.1), 20.0, 0.0, 1.0)[1] < 0.5
    assert moments(StudentT(1e8, 0.1), 20.0, 0.0, 1.0)[1] > 19


def test_student_t_with_two_modes():
    """A target five standard deviations off and a narrow likelihood: both ends of the integrand count."""
    _, mean, variance = moments(StudentT(2.0, 0.02), 5.0, 0.0, 1.0)
    assert_allclose([mean, variance], [1.87, 4.35], atol=0.01)
    y, m, v = 5.0, 0.0, 1.0
    density = lambda f: stats.t.pdf(y - f, 2.0, scale=0.02) * stats.norm.pdf(f)  # noqa: E731
    Z, _ = integrate.quad(density, -9, 14, points=[0.0, 4.9, 5.0, 5.1], epsabs=0, epsrel=1e-12, limit=5000)
    assert_allclose(log_tilted(StudentT(2.0, 0.02), y, m, v), np.log(Z), rtol=1e-10)


def test_infinite_variance_is_said():
    p = StudentT(1.5, 0.3).predictive(np.zeros((2, 1)), np.ones((2, 1, 1))).rescaled(2.0, 1.0)
    assert np.isinf(p.std).all()
    assert np.isfinite(p.quantile([0.01, 0.99])).all()


def test_hubers_constant_is_the_corrected_one():
    """Loss ξ²/(2s) up to s, |ξ| − s/2 beyond: Z = √(2πs) erf(√(s/2)) + 2 exp(−s/2)."""
    for s in (0.3, 1.0, 4.0):
        likelihood = Huber(np.sqrt(s), np.sqrt(s))
        Z = np.sqrt(2 * np.pi * s) * jax.scipy.special.erf(np.sqrt(s / 2)) + 2 * np.exp(-s / 2)
        for r in (0.1, 0.9 * s, 3 * s):
            loss = r**2 / (2 * s) if r <= s else r - s / 2
            assert_allclose(likelihood.log_prob(r, 0.0), -loss - np.log(Z), rtol=1e-12)
    assert_allclose(log_tilted(Huber(0.5, 1e3), 0.7, 0.1, 0.4), log_tilted(Gaussian(0.25), 0.7, 0.1, 0.4), rtol=1e-10)
    assert_allclose(Huber(1e-3, 1e-3).log_prob(0.7, 0.1), DoubleExponential(1.0).log_prob(0.7, 0.1), rtol=1e-3)


def test_double_exponential_where_its_factors_overflow():
    """exp(v/2b²) is beyond any number and Φ beyond any digit; the product is neither."""
    found = log_tilted(DoubleExponential(1e-3), 0.3, 0.0, 4.0)
    assert_allclose(found, stats.norm.logpdf(0.3, scale=2.0), rtol=1e-6)  # nearly noise-free
    narrow = log_tilted(DoubleExponential(2.0), 5.0, 0.0, 1e-12)
    assert_allclose(narrow, DoubleExponential(2.0).log_prob(5.0, 0.0), rtol=1e-9)


def test_outlier_probability():
    likelihood = OutlierMixture(0.01, 100.0, 0.1)
    y, mean, variance = np.array([0.05, 3.0]), np.zeros(2), np.array([0.02, 0.02])
    regular, outlier = (stats.norm.pdf(y, 0, np.sqrt(0.02 + v)) for v in (0.01, 1.0))
    right = 0.1 * outlier / (0.1 * outlier + 0.9 * regular)
    assert_allclose(likelihood.outlier_probability(y, mean, variance), right)
    assert_allclose(likelihood.outlier_variance, 1.0)


def test_negative_binomial_tends_to_poisson():
    for dispersion, accuracy in ((1e-8, 1e-5), (1e-16, 1e-12)):
        for y, f in ((0.0, 0.5), (20.0, 2.0)):
            found = NegativeBinomial(dispersion).log_prob(y, f)
            assert_allclose(found, Poisson().log_prob(y, f), rtol=accuracy)
    p = NegativeBinomial(1e-12).conditional_cdf(np.array([3.0]), np.array([1.0]))
    assert_allclose(p, stats.poisson(np.e).cdf(3), rtol=1e-9)


def test_large_counts():
    p = Poisson().predictive(np.array([[14.0]]), np.array([[[0.01]]]))
    assert_allclose(p.quantile(0.5), np.exp(14.0), rtol=1e-2)
    lower, upper = p.interval(0.95)
    assert_allclose([lower[0], upper[0]], np.exp(14.0 + 1.96 * np.array([-0.1, 0.1])), rtol=1e-2)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(1e-6)], ids=["Poisson", "NegativeBinomial"])
@pytest.mark.parametrize(("mean", "std"), [(30.0, 3.0), (100.0, 1.0), (300.0, 30.0), (0.0, 30.0)])
def test_quantiles_of_counts_of_any_size(likelihood, mean, std):
    """There the count is e^f: noise of its own is nothing beside what is not known of f."""
    p = likelihood.predictive(np.full((2, 1), mean), np.full((2, 1, 1), std**2))
    levels = np.array([0.7, 0.9, 0.975])
    assert_allclose(p.quantile(levels), np.tile(np.exp(mean + std * stats.norm.ppf(levels)), (2, 1)), rtol=2e-3)
    assert np.all(p.quantile(0.5) >= 1)


def test_a_negative_binomial_of_a_huge_mean_is_a_gamma_distribution():
    dispersion, ratio = 100.0, np.array([1e-8, 0.3, 2.0, 30.0])
    for mean in (1e10, 1e17, 1e200):
        found = NegativeBinomial(dispersion).conditional_cdf(mean * ratio, np.full(4, np.log(mean)))
        assert_allclose(found, stats.gamma(1 / dispersion, scale=dispersion).cdf(ratio), rtol=1e-4)


def test_ratios_beyond_all_numbers_are_certain():
    with np.errstate(over="raise"):
        assert Gamma(2.0).conditional_cdf(np.array([1e300]), np.array([-300.0])) == 1.0


def test_heteroscedastic_with_known_variance_is_gaussian():
    mean, cov = jnp.array([0.4, np.log(2.0)]), jnp.array([[0.7, 0.0], [0.0, 1e-12]])
    found = log_tilted(HeteroscedasticGaussian(0.25), 1.3, mean, cov)
    assert_allclose(found, log_tilted(Gaussian(0.5), 1.3, 0.4, 0.7), rtol=1e-9)
    fully_correlated = jnp.array([[1.0, 1.0], [1.0, 1.0]])
    assert np.isfinite(log_tilted(HeteroscedasticGaussian(0.25), 1.3, mean, fully_correlated))


def test_location_scale_families_may_be_standardised():
    """p(a·y + b | a·f + b) of the scaled likelihood is p(y | f)/a, so predictives may be rescaled."""
    for likelihood in (Gaussian(0.3), StudentT(4.0, 0.2), DoubleExponential(0.3), Huber(0.3, 1.0)):
        assert likelihood.location_scale
        p = likelihood.predictive(np.array([[0.3]]), np.array([[[0.2]]]))
        q = p.rescaled(3.0, -1.0)
        assert_allclose(q.cdf(3 * 0.7 - 1), p.cdf(0.7))
        assert_allclose(q.log_density(3 * 0.7 - 1), p.log_density(0.7) - np.log(3.0))
        assert_allclose(q.mean, 3 * p.mean - 1)
    for likelihood in (Poisson(), Gamma(2.0), Beta(3.0), Bernoulli(), Binomial(3), NegativeBinomial(0.3)):
        assert not likelihood.location_scale


# ------------------------------------------------------------------------------------------------- what users bring
class Logistic(Likelihood):
    """Regression with logistic noise of scale 0.3: a newcomer that gives its log_prob only."""

    def log_prob(self, y, f):
        z = (y - f) / 0.3
        return -jnp.abs(z) - 2 * jnp.log1p(jnp.exp(-jnp.abs(z))) - jnp.log(0.3)


class LogNormal(Likelihood):
    """Positive targets."""

    support = "positive"
    log_concave = True

    def log_prob(self, y, f):
        return -0.5 * ((jnp.log(y) - f) / 0.5) ** 2 - jnp.log(y * 0.5 * np.sqrt(2 * np.pi))


class Geometric(Likelihood):
    """Counts."""

    support = "count"

    def log_prob(self, y, f):
        return -y * jax.nn.softplus(-f) - jax.nn.softplus(f)


class LogitNormal(Likelihood):
    """Fractions."""

    support = "unit"

    def log_prob(self, y, f):
        z = jnp.log(y) - jnp.log1p(-y)
        return -0.5 * ((z - f) / 0.5) ** 2 - jnp.log(y * (1 - y) * 0.5 * np.sqrt(2 * np.pi))


class Two(Likelihood):
    """Two latents of which the sum matters."""

    n_latents = 2

    def log_prob(self, y, f):
        return -0.5 * ((y - f[0] - f[1]) ** 2 / 0.1 + jnp.log(0.1 * 2 * np.pi))


def test_a_log_prob_is_enough():
    likelihood = Logistic()
    noise = stats.logistic(scale=0.3)
    for y, m, v in ((0.4, 0.0, 1.0), (8.0, 0.0, 0.5)):
        f = np.linspace(m - 14 * np.sqrt(v), m + 14 * np.sqrt(v), 40001)
        w = stats.norm.pdf(f, m, np.sqrt(v)) * (f[1] - f[0])
        p = w * noise.pdf(y - f)
        assert_allclose(log_tilted(likelihood, y, m, v), np.log(p.sum()), rtol=1e-9)
        assert_allclose(moments(likelihood, y, m, v)[1:], [p @ f / p.sum(), np.cov(f, aweights=p, ddof=0)], rtol=1e-7)
        assert_allclose(expected_log_prob(likelihood, y, m, v), w @ noise.logpdf(y - f), rtol=1e-8)
    mean, cov = np.array([[0.5], [-2.0]]), np.array([[[0.09]], [[4.0]]])
    p = likelihood.predictive(mean, cov)
    assert_allclose(p.mean, mean[:, 0], atol=1e-6)
    assert_allclose(p.variance, cov[:, 0, 0] + noise.var(), rtol=1e-5)
    z = np.linspace(-14, 14, 4001)
    for at in (-3.0, 0.2, 0.9):
        right = [
            np.sum(noise.cdf(at - m - s * z) * stats.norm.pdf(z)) * (z[1] - z[0]) for m, s in ((0.5, 0.3), (-2, 2))
        ]
        assert_allclose(p.cdf(at), right, atol=1e-6)
    assert_allclose(p.cdf(p.quantile(0.9)), 0.9, atol=1e-9)
    assert_allclose(p.sample(4000, random_state=0).mean(0), p.mean, atol=0.2)
    f = np.array([[0.3, -1.0]])
    assert_allclose(likelihood.conditional_mean(f), f, atol=1e-6)
    assert_allclose(likelihood.conditional_variance(f), noise.var(), rtol=1e-5)
    assert_allclose(likelihood.conditional_cdf(np.array(0.5), f), noise.cdf(0.5 - f), atol=1e-6)
    assert likelihood.conditional_sample(f, np.random.default_rng(0)).shape == (1, 2)
    assert likelihood.initialised(np.zeros(3)) is likelihood


@pytest.mark.slow
@pytest.mark.parametrize(
    ("likelihood", "right"),
    [
        (LogNormal(), stats.lognorm(np.sqrt(0.25 + 0.36), scale=np.exp(0.4))),
        (LogitNormal(), None),
        (Geometric(), None),
        (Two(), stats.norm(0.8, np.sqrt(0.1 + 0.72))),
    ],
)
def test_other_supports_of_a_likelihood_with_log_prob_only(likelihood, right):
    L = likelihood.n_latents
    p = likelihood.predictive(np.full((1, L), 0.4), 0.36 * np.eye(L)[None])
    if right is not None:
        assert_allclose([p.mean[0], p.std[0]], [right.mean(), right.std()], rtol=1e-5)
        for q in (0.05, 0.6, 0.99):
            assert_allclose(p.quantile(q), right.ppf(q), rtol=1e-5)
            assert_allclose(p.cdf(right.ppf(q)), q, atol=1e-6)
            assert_allclose(p.log_density(right.ppf(q)), right.logpdf(right.ppf(q)), rtol=1e-7)
    draws = p.sample(4000, random_state=1)
    assert_allclose(draws.mean(), p.mean[0], atol=0.1 * (1 + p.std[0]))
    low, high = p.interval(0.5)
    assert (p.cdf(high) - p.cdf(low - 1e-9) > 0.49).all()
    with pytest.raises(ValueError, match=r"needs") if likelihood.support != "real" else _nothing():
        likelihood.check_targets(np.array([-1.0]))


class _nothing:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


def test_the_cdf_of_shares_at_the_ends_of_their_range():
    """Where nothing is known of the latent value the outer quantiles are 0 and 1 to rounding."""
    predictive = Beta(395.5).predictive(np.zeros((2, 1)), np.array([4.8e4, 0.01])[:, None, None])
    for y in (predictive.quantile(0.025), predictive.quantile(0.975), [0.0, 0.0], [5e-309, 0.5], [1.0, 1.0]):
        found = predictive.cdf(y)
        assert np.all((found >= 0.0) & (found <= 1.0))
    assert_allclose(predictive.cdf([1.0, 1.0]), 1.0)


def test_quantiles_are_in_order_however_little_is_known_of_the_log_noise():
    """The widest members of the mixture decide on its variance, and are no place to look for quantiles."""
    cov = np.array([np.diag([1.0, 30.0**2]), np.diag([1e-4, 8.0**2])])
    predictive = HeteroscedasticGaussian(0.5).predictive(np.array([[0.0, 2.0], [5.0, -3.0]]), cov)
    levels = np.array([0.01, 0.025, 0.25, 0.5, 0.75, 0.975, 0.99])
    found = predictive.quantile(levels)
    assert np.all(np.diff(found, axis=1) > 0)
    for level, y in zip(levels, found.T, strict=True):
        assert_allclose(predictive.cdf(y), level, atol=1e-6)


@pytest.mark.parametrize("likelihood", [Poisson(), NegativeBinomial(0.4), Gamma(2.5)])
def test_moments_of_positive_targets_are_numbers_however_little_is_known(likelihood):
    """Infinite where they overflow, and never 0 · ∞."""
    mean, variance = np.array([0.0, -1000.0, 900.0, 0.3]), np.array([2000.0, 1500.0, 0.0, 0.5])
    found = likelihood.predictive(mean[:, None], variance[:, None, None])
    assert not np.any(np.isnan(found.mean))
    assert not np.any(np.isnan(found.variance))
    assert np.isinf(found.variance[0])
    assert np.isfinite(found.variance[3])
