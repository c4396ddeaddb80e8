"""The card a notebook shows."""

import numpy as np
import sklearn
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from errorband import LBFGS, GPClassifier, GPRegressor
from errorband.reporting.card import card_html
from errorband.reporting.parts.describe import describe


def test_card_says_what_was_fitted(frame):
    card = card_html(frame.model)
    for text in ("GPRegressor", "Matern", "Gaussian", "110 rows, 4 inputs", "converged (", "data units"):
        assert text in card
    assert f"{frame.model.log_evidence_:.2f}".replace("-", "−") in card
    assert "<script>" not in card
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in card


def test_card_warns_in_words(sinc):
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = GPRegressor(optimizer=LBFGS(max_iter=1)).fit(sinc.X_train, sinc.y_train)
    model.jitter_ = 1e-9
    card = card_html(model)
    assert "not converged" in card
    assert "added to the diagonal" in card


def test_notebook_shows_diagram_before_fit_and_card_after(sinc):
    fresh = clone(sinc.model)
    assert "eb-card" not in fresh._repr_html_()
    assert "sk-container" in fresh._repr_html_()
    assert sinc.model._repr_html_() == card_html(sinc.model)
    bundle = sinc.model._repr_mimebundle_()
    assert bundle["text/html"] == card_html(sinc.model)
    assert bundle["text/plain"] == "GPRegressor()"


def test_scikit_learn_decides_whether_to_show_html(sinc):
    with sklearn.config_context(display="text"):
        assert not hasattr(sinc.model, "_repr_html_")
        assert "text/html" not in sinc.model._repr_mimebundle_()


def test_diagram_of_a_pipeline_still_works(sinc):
    pipe = make_pipeline(StandardScaler(), GPRegressor()).fit(sinc.X_train, sinc.y_train)
    assert "GPRegressor" in pipe._repr_html_()


def test_a_mixture_of_kernels_is_called_one():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    model = GPClassifier("auto", random_state=0).fit(X, X[:, 0] + 0.5 * rng.normal(size=60) > 0)
    kernel = describe(model)["Kernel"]
    assert kernel.startswith("mixture of ")
    shares = [round(100 * share) for share in model.candidates_.share if share > 0]
    assert all(f"({share} %)" in kernel for share in shares)
    assert kernel.replace(" %", "\u202f%") in card_html(model)
