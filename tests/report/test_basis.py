"""What a report says about basis functions."""

import numpy as np
import pytest

from errorband import GPClassifier, GPRegressor, Mixture
from errorband.features import Network, SparseSpectrum
from errorband.reporting import report
from errorband.reporting.parts.basis.content import basis, basis_findings
from errorband.reporting.parts.basis.sections import basis_section
from errorband.reporting.parts.coverage import TOO_NARROW, CoverageAt
from errorband.reporting.text import number
from errorband.training import LBFGS

RNG = np.random.default_rng(0)
X = RNG.uniform(0, 10, (40, 2))
Y = np.sin(X[:, 0]) + 0.1 * RNG.standard_normal(40)
BRIEF = {"optimizer": LBFGS(max_iter=4)}
pytestmark = pytest.mark.filterwarnings("ignore:The search for hyper")


def test_a_spectrum_and_directions():
    one = GPRegressor(approximation=SparseSpectrum(5), random_state=0, **BRIEF).fit(X[:, :1], Y)
    content = basis(one, X[:, :1])
    assert content.number == 10
    assert len(content.spectrum[0]) == 5
    assert content.retained is None
    page = basis_section(content)
    assert "10 basis functions, drawn once and held" in page.lead
    two = basis(GPRegressor(approximation=Network(6), random_state=0, **BRIEF).fit(X, Y), X)
    assert two.spectrum is None
    assert two.retained[-1] == pytest.approx(1.0)
    assert basis(GPRegressor(optimizer=None).fit(X, Y), X) is None
    assert basis_section(None) is None


def test_classes():
    labels = np.where(Y > 0, "up", "down")
    model = GPClassifier(approximation=SparseSpectrum(5), random_state=0, **BRIEF).fit(X[:, :1], labels)
    page = report(model, X[:, :1], labels, baselines=False).html
    assert "10 basis functions, drawn once and held" in page
    assert "Amplitude at each frequency" in page


def test_members_that_disagree():
    mixture = Mixture(GPRegressor(approximation=Network(6), **BRIEF), n=2, random_state=0).fit(X, Y)
    content = basis(mixture.model_, X)
    assert content.members == 2
    assert len(content.noises) == 2
    assert 0 < content.disagreement < 1
    assert "mixture of 2" in basis_section(content).lead


def test_over_confidence_is_a_finding():
    model = GPRegressor(approximation=Network(6), optimizer=None, random_state=0).fit(X, Y)
    narrow = [CoverageAt(0.95, 0.6, 1.0, 0.9, 0.99, 0.85, 1.0)]
    assert narrow[0].verdict == TOO_NARROW
    predictive = model.predictive(X)
    (found,) = basis_findings(model, narrow, Y, predictive)
    assert found.level == "warning"
    assert "bound_noise=True" in found.text
    assert "mixture(mcn(50))" in found.text
    assert f"Errors there are {number(float(np.sqrt(np.mean((Y - predictive.mean) ** 2))))} " in found.text
    assert f"noise of {number(float(np.sqrt(model.likelihood_.noise_variance)))} " in found.text
    held = GPRegressor(approximation=Network(6, learn=False), optimizer=None, random_state=0).fit(X, Y)
    (found,) = basis_findings(held, narrow, Y, held.predictive(X))
    assert "Held basis functions cannot follow noise" in found.text
    assert "bound_noise" not in found.text
    assert basis_findings(GPRegressor(optimizer=None).fit(X, Y), narrow, Y, predictive) == []
