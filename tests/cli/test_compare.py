"""``errorband compare``: the same folds for all, differences with standard errors, and nothing lost on Ctrl-C."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning

from cli.sentences import check_one_sentence
from errorband.cli import candidates
from errorband.cli.candidates import Choices, Method, listed, settings_of
from errorband.cli.cross_validation import cross_validate, splits
from errorband.cli.settings import Settings
from errorband.predictive import GaussianPredictive
from errorband.tables import TableEncoder

RNG = np.random.default_rng(0)
y = RNG.normal(size=40)
X = y[:, None] + 0.1 * RNG.normal(size=(40, 1))


def method(name, shift=0.0, std=1.0, calls=None, stop=None):
    """Predicts x + shift, and presses Ctrl-C in call number ``stop``."""

    def predict(X, y, X_new, weights=None):
        if calls is not None:
            calls.append(name)
            if len(calls) == stop:
                raise KeyboardInterrupt
        return GaussianPredictive(np.asarray(X_new)[:, 0] + shift, np.full(len(X_new), std))

    return Method(name, predict)


def test_differences_have_paired_standard_errors():
    near = Method(
        "near", lambda X, y, new, weights: GaussianPredictive(new[:, 0] + np.sin(50 * new[:, 0]) / 20, np.ones(10))
    )
    found = cross_validate([method("far", 3.0), near, method("best")], X, y, splits(y, 4, 0, False)).rows
    assert [r.within_chance for r in found] == [True, True, False]
    losses = {r.method.name: r.scores.losses["nlpd"] for r in found}
    difference = losses["far"] - losses[found[0].method.name]
    assert found[2].behind.difference == pytest.approx(difference.mean())
    assert found[2].behind.standard_error == pytest.approx(difference.std(ddof=1) / np.sqrt(40))
    assert found[2].behind.standard_error < found[2].standard_error + found[0].standard_error


@pytest.mark.parametrize(("stop", "folds", "names"), [(2, 1, ["a"]), (5, 2, ["a", "b"]), (6, 2, ["a", "b"])])
def test_after_an_interrupt_all_have_the_same_folds(stop, folds, names):
    calls = []
    methods = [method("a", calls=calls, stop=stop), method("b", 2.0, calls=calls, stop=stop)]
    found = cross_validate(methods, X, y, splits(y, 4, 0, False))
    assert found.interrupted
    assert (found.folds, [r.method.name for r in found.rows]) == (folds, names)
    assert {len(r.scores.losses["nlpd"]) for r in found.rows} == {10 * folds}
    with pytest.raises(KeyboardInterrupt, match="nothing to compare"):
        cross_validate([method("a", calls=[], stop=1)], X, y, splits(y, 4, 0, False))


def test_methods_that_fail_come_last_and_say_why():
    def predict(X, y, X_new, weights=None):
        raise ValueError("Too few rows.")

    found = cross_validate([Method("none", predict), method("some")], X, y, splits(y, 2, 0, False))
    assert [(r.method.name, r.failure) for r in found.rows] == [("some", ""), ("none", "Too few rows.")]
    alone = cross_validate([Method("none", predict)], X, y, splits(y, 2, 0, False))
    assert [r.failure for r in alone.rows] == ["Too few rows."]


def test_what_is_compared():
    assert listed("fitc(5, init=random), vfe(5),se([1, 2])") == ["fitc(5, init=random)", "vfe(5)", "se([1, 2])"]
    encoder = TableEncoder.fit(pd.DataFrame({"x": X[:, 0], "y": y}), target="y")
    base = Settings()
    names = [m.name for m in candidates.processes(settings_of(Choices(), encoder, y, base), encoder)]
    robust = ["GP, se, student-t", "GP, se, outlier-mixture", "GP, se, twinned"]
    assert names == ["GP, se", "GP, matern32", "GP, matern52", "GP, se+linear", *robust]
    others = candidates.processes(settings_of(Choices("se", "", "bcm, rvm"), encoder, y, base), encoder)
    assert [m.name for m in others] == ["GP, se", "bcm", "rvm, se"]  # a committee has no kernel of its own
    assert [m.options for m in others][1:] == ["--model bcm", "--kernel se --model rvm"]
    counts = settings_of(Choices("rq", None, "fitc(3)"), encoder, np.arange(40.0) % 5, base)
    methods = candidates.processes(counts, encoder)
    assert [m.name for m in methods] == ["GP, rq", "GP, rq, poisson", "GP, rq, negative-binomial", "GP, rq, fitc(3)"]
    assert methods[-1].options == '--kernel rq --model "fitc(3)"'


def test_exposures_weights_and_transforms_are_as_in_fit():
    frame = pd.DataFrame({"x": X[:, 0], "time": np.linspace(1, 3, 40), "y": np.arange(40) % 5})
    encoder, counts = TableEncoder.fit(frame, target="y"), np.arange(40.0) % 5
    rates = settings_of(Choices("se,rq"), encoder, counts, Settings(exposure="time"))
    assert [(s.kernel, s.likelihood) for s in rates] == [
        ("se", "poisson"), ("rq", "poisson"), ("se", "negative-binomial")
    ]  # fmt: skip
    methods = candidates.processes(rates, encoder)
    assert methods[0].options == "--kernel se --likelihood poisson --exposure time"
    scaled = settings_of(Choices("linear"), encoder, counts, Settings(target_transform="yeo-johnson", weight="w"))
    assert {s.target_transform for s in scaled} == {"yeo-johnson"}
    assert "poisson" not in {s.likelihood for s in scaled}
    plain, *_ = candidates.processes(scaled, encoder)
    assert plain.options == "--kernel linear --target-transform yeo-johnson --weight w"
    inputs, weights = frame[["x", "time"]], np.where(np.arange(40) < 20, 1.0, 1e-6)
    half = plain.predict(inputs[:20], counts[:20], inputs, None)
    whole = plain.predict(inputs, counts, inputs, weights)
    np.testing.assert_allclose(whole.quantile(0.5), half.quantile(0.5), atol=0.05)


def test_weights_are_those_of_the_rows_of_a_fold_and_searches_that_ended_early_are_counted():
    seen = []

    def predict(X, y, X_new, weights=None):
        seen.append(weights)
        np.testing.assert_array_equal(weights, y)
        warnings.warn("did not converge", ConvergenceWarning, stacklevel=1)
        return GaussianPredictive(np.zeros(len(X_new)), np.ones(len(X_new)))

    (found,) = cross_validate([Method("m", predict, searches=1)], X, y, splits(y, 4, 0, False), weights=y).rows
    assert (len(seen), found.unfinished) == (4, 4)


def test_the_table_is_written_and_a_command_is_given(run, tmp_path, monkeypatch):
    pd.DataFrame({"x": X[:, 0], "y": y}).to_csv(tmp_path / "t.csv", index=False)
    calls = []

    def stopping(settings, encoder, max_seconds=None):
        return [method(s.kernel, calls=calls, stop=3) for s in settings]

    monkeypatch.setattr(candidates, "baselines", lambda n_classes: [])
    monkeypatch.setattr(candidates, "processes", lambda *args: [dataclass_with_options(m) for m in stopping(*args)])
    args = ("--target", "y", "--kernels", "se,linear", "--likelihoods", "gaussian", "--max-rows", 40)
    result = run("compare", tmp_path / "t.csv", *args, "-o", tmp_path / "s.csv")
    assert result.exit_code == 0, result.stderr
    assert "Warning: Interrupted: the figures are from 1 of 5 folds." in result.stderr
    assert "could be chance" in result.stdout
    assert f": errorband fit {tmp_path / 't.csv'} --target y --kernel" in result.stdout
    written = pd.read_csv(tmp_path / "s.csv")
    assert {"method", "nlpd", "standard_error", "behind", "options"} <= set(written)
    assert len(written) >= 2


def dataclass_with_options(made):
    return Method(made.name, made.predict, f"--kernel {made.name}", 1)


def test_wrong_names_are_refused_at_once(run, tmp_path):
    for options in (("--kernels", "se,matrn52"), ("--likelihoods", "poison"), ("--models", "forest")):
        check_one_sentence(run("compare", tmp_path / "none.csv", "--target", "y", *options), 2)
