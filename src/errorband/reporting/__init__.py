"""A report on a fitted model: one HTML file, with plots, that opens anywhere and needs no network.

>>> from errorband.reporting import report  # doctest: +SKIP
>>> report(model, X_test, y_test, title="House prices").save("report.html")  # doctest: +SKIP
"""

import html
import os
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sklearn.base import is_classifier, is_regressor
from sklearn.utils.validation import check_is_fitted

from errorband.metrics.scorers import inside

if TYPE_CHECKING:
    from errorband.inputs import Input
    from errorband.missing import Donors

__all__ = ["Report", "assess", "report"]


class Report:
    """A report that can be saved or shown in a notebook.

    Attributes
    ----------
    content : RegressionContent or ClassificationContent
        The numbers and words, for those who want them without the page.
    html : str
        The page, complete in itself.
    """

    def __init__(self, content: Any):
        self.content = content

    @cached_property
    def html(self) -> str:
        """The page, put together when first asked for."""
        from errorband.reporting.classification.sections import class_header, class_sections
        from errorband.reporting.page.document import page
        from errorband.reporting.parts.sections import footer
        from errorband.reporting.regression.content import RegressionContent
        from errorband.reporting.regression.sections import regression_header, regression_sections

        c = self.content
        if isinstance(c, RegressionContent):
            parts = regression_header(c), regression_sections(c)
        else:
            parts = class_header(c), class_sections(c)
        return page(c.title, *parts, footer(c))

    def save(self, path: str | os.PathLike) -> None:
        """Write the page to a file; an interrupted write leaves what was there before."""
        from errorband.files import atomic_write

        with atomic_write(path) as file:
            file.write(self.html.encode("utf-8"))

    def _repr_html_(self) -> str:
        page = html.escape(self.html)
        return f'<iframe srcdoc="{page}" title="{html.escape(self.content.title)}" style="width:100%;height:720px;border:0"></iframe>'  # noqa: E501

    def __repr__(self) -> str:
        return f"Report({self.content.title!r}: {' '.join(self.content.verdict)})"


def report(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    title: str | None = None,
    data_notes: str | Sequence[str] = (),
    baselines: bool = True,
    target: str | None = None,
    random_state: int = 0,
    class_names: Sequence[str] | None = None,
    assessment: Any = None,
    automatic: str = "",
    columns: "Sequence[Input] | None" = None,
    donors: "Donors | None" = None,
    incomplete: Sequence[object] = (),
) -> Report:
    """Report on a fitted regressor or classifier, from its predictions of held-out rows.

    What only a Gaussian process knows of itself (hyperparameters, evidence, bands of average effects, surprising
    training rows) is left out for a model of another kind.

    Parameters
    ----------
    model : estimator of errorband
        A fitted model, or a pipeline or search that ends in one. The report then speaks of inputs as the model sees
        them, behind the steps of the pipeline.
    X_test, y_test : arrays, DataFrame and Series, or the like
        Rows that were not used to fit.
    X_train, y_train : optional
        The training rows; the model remembers them, but a DataFrame also knows what its rows are called.
    title : str, optional
        Heading of the page.
    data_notes : str or sequence of str
        What was done to the data before: columns encoded, rows dropped, and so on.
    baselines : bool
        Compare with the training mean, linear regression and gradient boosting; a classifier with the class
        frequencies, logistic regression and gradient boosting.
    target : str, optional
        What is predicted; by default the name of ``y_test`` if it has one.
    random_state : int
        Which rows are drawn where there are too many.
    class_names : sequence of str, optional
        What to call the classes, in the order of ``classes_``; by default the labels themselves.
    assessment : optional
        The result of :func:`assess` for the same rows, if there is one already: nothing of it is computed again.
    automatic : str
        Why the approximation was chosen, if a program around the estimator chose it; the estimator knows why if it did.
    columns : sequence of Input, optional
        The columns of the table, where one became several features of the model; by default each feature is an input.
    donors : Donors, optional
        Training rows from which missing cells of ``X_test`` (NaN) are drawn; without it there may be none.
    incomplete : sequence
        Names of the rows of the table that have missing cells.

    Returns
    -------
    Report
        Save it with ``save("report.html")``, or let a notebook show it.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(0, 10, (60, 1))
    >>> y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=60)
    >>> made = report(GPRegressor().fit(X[:40], y[:40]), X[40:], y[40:], title="A sine", baselines=False)
    >>> made.content.scores[0].values["r2"] > 0.9
    True
    """
    model, X_test, X_train = inside(model, X_test, X_train)
    _check_model(model)
    target = target or str(getattr(y_test, "name", None) or "target")
    options: dict[str, Any] = {
        "X_train": X_train,
        "y_train": y_train,
        "title": title or f"A report on {target}",
        "data_notes": (data_notes,) if isinstance(data_notes, str) else tuple(data_notes),
        "baselines": baselines,
        "target": target,
        "random_state": random_state,
        "assessment": assessment,
        "automatic": automatic,
        "columns": columns,
        "donors": donors,
        "incomplete": incomplete,
    }
    if is_classifier(model):
        from errorband.reporting.classification.build import build_classification

        return Report(build_classification(model, X_test, y_test, class_names=class_names, **options))
    from errorband.reporting.regression.build import build_regression

    return Report(build_regression(model, X_test, y_test, **options))


def assess(
    model: Any,
    X_test: Any,
    y_test: Any,
    *,
    X_train: Any = None,
    y_train: Any = None,
    baselines: bool = True,
    target: str | None = None,
    donors: "Donors | None" = None,
    class_names: Sequence[str] | None = None,
) -> Any:
    """Judge a fitted regressor or classifier on held-out rows: the part of a report that trains the baselines.

    Parameters
    ----------
    model, X_test, y_test, X_train, y_train, baselines, target, donors, class_names
        As in :func:`report`.

    Returns
    -------
    RegressionAssessment or ClassificationAssessment
        ``scores`` of the model and of the baselines, ``comparisons``, a ``verdict`` in sentences, and predictions.

    Examples
    --------
    >>> import numpy as np
    >>> from errorband import GPRegressor
    >>> x = np.linspace(0, 6, 60)[:, None]
    >>> y = np.sin(x[:, 0]) + 0.1 * np.random.default_rng(0).normal(size=60)
    >>> found = assess(GPRegressor().fit(x[::2], y[::2]), x[1::2], y[1::2], target="height")
    >>> [s.name for s in found.scores]
    ['GPRegressor', 'Training mean', 'Linear regression', 'Gradient boosting']
    >>> found.scores[0].values["rmse"] < found.scores[1].values["rmse"]
    True
    """
    model, X_test, X_train = inside(model, X_test, X_train)
    _check_model(model)
    options: dict[str, Any] = {
        "X_train": X_train,
        "y_train": y_train,
        "baselines": baselines,
        "target": target or str(getattr(y_test, "name", None) or "target"),
        "donors": donors,
    }
    if is_classifier(model):
        from errorband.reporting.classification.assessment import assess_classification

        return assess_classification(model, X_test, y_test, class_names=class_names, **options)
    from errorband.reporting.regression.assessment import assess_regression

    return assess_regression(model, X_test, y_test, **options)


def _check_model(model: Any) -> None:
    predicts = (is_regressor(model) and hasattr(model, "predictive")) or (
        is_classifier(model) and hasattr(model, "predict_proba")
    )
    if not (predicts and hasattr(model, "training_data")):
        raise TypeError(f"A report takes a fitted errorband regressor or classifier; got {type(model).__name__}.")
    check_is_fitted(model)
