"""The section about basis functions."""

from collections.abc import Sequence

import numpy as np

from errorband.reporting.page.document import Plot, Section
from errorband.reporting.page.figure import Figure, hover, layout, line
from errorband.reporting.page.markup import Html
from errorband.reporting.parts.basis.content import BasisContent
from errorband.reporting.text import count, listing, number, percent


def basis_section(content: BasisContent | None) -> Section | None:
    """The section on basis functions, if the model is made of them."""
    if content is None:
        return None
    c = content
    what = "learned with the hyperparameters" if c.learned else "drawn once and held"
    lead = f"{c.kind}: the function is a sum of {count(c.number, 'basis function')}, {what}."
    if c.bounded:
        lead += " The noise was not allowed to fall below that found with held basis functions."
    if c.members > 1:
        lead += f" The model is a mixture of {c.members} such, trained from different seeds"
        if c.disagreement is not None:
            lead += f": {percent(c.disagreement)} of the variance at held-out rows is disagreement between them"
        lead += "."
        if c.noises:
            lead += f" Noise that each found (standard deviation): {listing([number(s) for s in c.noises])}."
    blocks: list[Html | Plot | Sequence[Plot]] = []
    if c.spectrum is not None:
        blocks.append(Plot(_spectrum(c.spectrum), "Amplitude at each frequency with its 95 % interval."))
    if c.retained is not None:
        text = "Share of the input weights that so many directions of the inputs keep: a knee says how many matter."
        blocks.append(Plot(_retained(c.retained), text))
    return Section("basis", "The basis functions", lead, blocks)


def _spectrum(spectrum: tuple[np.ndarray, ...]) -> Figure:
    order = np.argsort(spectrum[0])
    x, amplitude, low, high = (a[order] for a in spectrum)
    bars = {"type": "data", "symmetric": False, "array": high - amplitude, "arrayminus": amplitude - low}
    data = [
        {"type": "scatter", "mode": "markers", "x": x, "y": amplitude, "error_y": bars,
         "marker": {"size": 5, "color": "@model"}, "hovertemplate": hover("frequency %{x:.4g}", "amplitude %{y:.4g}")}
    ]  # fmt: skip
    top = int(np.argmax(amplitude))
    alt = f"Amplitudes of {len(x)} frequencies; the largest, {number(amplitude[top])}, at {number(x[top])}."
    return Figure(data, layout("frequency (cycles per unit)", "amplitude"), alt, height=280)


def _retained(retained: np.ndarray) -> Figure:
    x = 1 + np.arange(len(retained))
    data = [line(x, retained, "@model", mode="lines+markers", hovertemplate=hover("%{x} directions", "%{y:.3f}"))]
    alt = "Information kept by directions: " + listing(
        [f"{v:.2f} by {k}" for k, v in zip(x, retained, strict=True)], most=12
    )
    return Figure(data, layout("directions", "information kept", yaxis={"range": [0, 1.05]}), f"{alt}.", height=240)
