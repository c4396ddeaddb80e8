"""Plots for papers, with matplotlib. Each draws into ``ax`` (a new figure if None) and returns the axes.

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
