"""Plots for papers, with matplotlib, all called in one way: ``plot_…(model, X, y, *, further, ax=None)``.

The model comes first: a fitted estimator, or a pipeline or search that ends in one. X, rows as they were given to its
``fit``, may be left out where the training rows will do. y belongs to plots that judge predictions, which need rows
that were not used to fit. All else goes by its name: ``feature`` is an input by position or column name (behind the
steps of a pipeline), ``ax`` the axes to draw into and to return, a new figure's if None.

Colours are from Okabe and Ito's palette, which colour-blind readers can tell apart; bands differ in lightness too, so
that they survive a black-and-white print.
"""

from errorband.plots.functions import plot_band, plot_map, plot_partial_dependence, plot_relevance
from errorband.plots.predictions import plot_calibration, plot_predicted_vs_actual, plot_residuals, plot_trace
from errorband.plots.probabilities import plot_error_reject, plot_reliability
from errorband.plots.spectra import plot_scree, plot_spectrum

__all__ = [
    "plot_band",
    "plot_calibration",
    "plot_error_reject",
    "plot_map",
    "plot_partial_dependence",
    "plot_predicted_vs_actual",
    "plot_relevance",
    "plot_reliability",
    "plot_residuals",
    "plot_scree",
    "plot_spectrum",
    "plot_trace",
]
