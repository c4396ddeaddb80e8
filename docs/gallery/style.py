"""Colours and figure settings that all gallery scripts share."""

import io
from pathlib import Path

import matplotlib
from PIL import Image

matplotlib.use("Agg")
import matplotlib.pyplot as plt

IMAGES = Path(__file__).parent / "images"

# The palette of Okabe and Ito, which people with any of the common colour-vision deficiencies can tell apart.
BLUE, VERMILION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, BLACK, GREY = "#56B4E9", "#CC79A7", "#000000", "#7F7F7F"

plt.rcParams.update(
    {
        "figure.dpi": 110,
        "figure.constrained_layout.use": True,
        "font.size": 10,
        "axes.titlesize": 10.5,
        "axes.labelsize": 10,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
        "legend.fontsize": 9,
        "lines.linewidth": 1.6,
    }
)


def band(axes, x, mean, std, colour, label=None):
    """A mean and the band of two standard deviations around it."""
    axes.fill_between(x, mean - 2 * std, mean + 2 * std, color=colour, alpha=0.18, linewidth=0)
    axes.plot(x, mean, color=colour, label=label)


def save(figure, name):
    """Write a small PNG: 256 colours, no date or version in it, so that the same figure gives the same file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, metadata={"Software": None})
    plt.close(figure)
    IMAGES.mkdir(exist_ok=True)
    Image.open(buffer).convert("RGB").quantize(256).save(IMAGES / name, optimize=True)
