"""The page of a report: complete, safe, and readable for those who do not see the plots."""

import json
import re
from html.parser import HTMLParser

import numpy as np
import plotly.graph_objects as go
import pytest

from errorband.reporting import report
from errorband.reporting.page.document import Plot, Section, page
from errorband.reporting.page.figure import Figure
from errorband.reporting.page.markup import Html, el, join
from errorband.reporting.text import number, percent

VOID = {"meta", "link", "br", "img", "hr", "input"}


class Reader(HTMLParser):
    """Elements of a page, with their attributes and text; complains about tags that do not match."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.open, self.text = [], [], ""
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text += data

    def all(self, tag):
        return [attrs for name, attrs in self.elements if name == tag]


@pytest.fixture(scope="module")
def hostile(frame):
    return report(
        frame.model,
        frame.X_test,
        frame.y_test,
        title="A & B </title><script>alert(2)</script>",
        data_notes=["column <i>x</i> was dropped"],
    )


@pytest.fixture(scope="module")
def read(hostile):
    return Reader(hostile.html)


def figures_of(html):
    return json.loads(re.search(r'<script type="application/json" id="figures">(.*?)</script>', html, re.S)[1])


def test_has_every_section(read):
    anchors = [a["id"] for a in read.all("section")]
    assert anchors == [
        "findings", "data", "metrics", "predictions", "residuals", "relevance", "effects", "surprises", "search",
        "hyperparameters",
    ]  # fmt: skip
    assert [a["href"] for a in read.all("a")] == [f"#{anchor}" for anchor in anchors]


def test_numbers_of_the_content_are_on_the_page(hostile, read):
    c, text = hostile.content, read.text.replace("\u202f", " ")
    for scores in c.scores:
        assert number(scores.values["rmse"]) in text
        assert number(scores.values["nlpd"], decimals=3) in text
    for at in c.calibration.at:
        assert percent(at.observed) in text
    for surprise in c.surprises:
        assert number(surprise.z_score, decimals=2) in text
    for row in c.hyperparameters:
        assert number(row.value, 4) in text
    for sentence in c.verdict:
        assert sentence in text


def test_hostile_names_stay_text(hostile, read):
    assert len(read.all("script")) == 3  # figures, plotting library, ours
    assert "<script>alert(1)</script>" in read.text
    assert "A & B </title><script>alert(2)</script>" in read.text
    assert "yield <b>" in read.text
    assert "column <i>x</i> was dropped" in read.text
    assert not read.all("i")
    data = re.search(r'id="figures">(.*?)</script>', hostile.html, re.S)[1]
    assert "<" not in data
    labels = [f["layout"]["xaxis"]["title"]["text"] for f in figures_of(hostile.html).values()]
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in labels
    assert "50 &#37; of &#37;{x}" in labels  # else Plotly would put a value there


def test_needs_no_network(hostile, read):
    addresses = [
        a.get(key, "") for _, a in read.elements for key in ("src", "href", "srcset", "data", "action", "poster")
    ]
    assert all(not a or a.startswith(("#", "data:")) for a in addresses)
    style = re.search(r"<style>(.*?)</style>", hostile.html, re.S)[1]
    assert "url(" not in style
    assert "@import" not in style
    policy = next(a["content"] for a in read.all("meta") if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in policy
    assert "http" not in policy


def test_plotting_library_is_there_once_and_the_file_is_small(hostile):
    assert hostile.html.count("plotly.js v") == 1
    assert len(hostile.html.encode()) < 6e6


def test_every_plot_has_words(read, hostile):
    plots = [a for a in read.all("div") if a.get("class") == "plot"]
    assert sorted(a["id"] for a in plots) == sorted(figures_of(hostile.html))
    assert len(plots) == 2 + 6 + 1 + 3 + 1
    for plot in plots:
        assert plot["role"] == "img"
        assert len(plot["aria-label"]) > 40
        assert re.search(r"\d", plot["aria-label"])
    assert len(read.all("figcaption")) == len(plots)


@pytest.mark.parametrize("name", ["sinc", "bump", "frame"])
def test_figures_are_valid_and_their_colours_known(name, request):
    case = request.getfixturevalue(name)
    html = report(case.model, case.X_test, case.y_test, baselines=False).html
    style = re.search(r"<style>(.*?)</style>", html, re.S)[1]
    light, dark = re.findall(r":root[^{]*{([^}]*)}", style)
    used = set()

    def paint(value, key=""):
        if isinstance(value, dict):
            return {k: paint(v, k) for k, v in value.items()}
        if isinstance(value, list):
            return [paint(v, key) for v in value]
        if isinstance(value, str) and "color" in key and value.startswith("@"):
            token, _, alpha = value[1:].partition("/")
            assert not alpha or 0 < float(alpha) < 1
            used.add(token)
            return "#123456"
        return value

    for figure in figures_of(html).values():
        go.Figure(paint(figure))  # raises for anything Plotly does not know
    assert {"model", "ink", "grid", "line"} <= used
    for token in used:
        assert re.search(rf"--{token}: #[0-9a-f]{{6}};", light), token
        assert re.search(rf"--{token}: #[0-9a-f]{{6}};", dark), token


def test_bands_of_the_curve_are_quantiles(sinc):
    made = report(sinc.model, sinc.X_test, sinc.y_test)
    figure = next(f for name, f in figures_of(made.html).items() if "function" in name)
    traces = {t.get("name"): t for t in figure["data"]}
    grid = made.content.curve.grid
    for level in (0.5, 0.8, 0.95):
        lower, upper = sinc.model.predict_interval(grid[:, None], level)
        band = traces[f"{100 * level:.0f} % band"]
        np.testing.assert_allclose(band["y"], np.concatenate([lower, upper[::-1]]), rtol=1e-4)
    assert {"mean", "training rows", "held-out rows", "draws of the function"} <= set(traces)
    assert len(traces["training rows"]["x"]) == 80


def test_figures_of_two_inputs(bump):
    html = report(bump.model, bump.X_test, bump.y_test, baselines=False).html
    kinds = [t["type"] for name, f in figures_of(html).items() if "function" in name for t in f["data"]]
    assert kinds == ["heatmap", "scatter", "heatmap", "scatter"]


def test_thinned_rows_are_owned_up_to(sinc):
    X = np.linspace(-10, 10, 900)[:, None]
    html = report(sinc.model, X, np.sin(X[:, 0]), baselines=False).html
    assert "500 of 900 held-out rows, chosen at random" in html


def test_save_is_complete_and_replaces(hostile, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    hostile.save(path)
    assert path.read_text(encoding="utf-8") == hostile.html
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(OSError, match="nowhere"):
        hostile.save(tmp_path / "nowhere" / "report.html")


def test_notebook_shows_the_page_in_a_frame(hostile):
    frames = Reader(hostile._repr_html_()).all("iframe")
    assert len(frames) == 1
    assert frames[0]["srcdoc"] == hostile.html
    assert repr(hostile).startswith("Report('A & B")


def test_markup_escapes_all_but_markup():
    assert el("a", "<&>", Html("<br>"), title='"x"') == '<a title="&quot;x&quot;">&lt;&amp;&gt;<br></a>'
    assert join(["95 %", None]) == "95\u202f%None"


def test_page_of_another_kind_of_report():
    figure = Figure([{"type": "scatter", "x": [1.0], "y": [float("nan")]}], {"xaxis": {}}, "A point, 1 in all.")
    html = page("Other", el("header", "hello"), [Section("s", "S", "lead", [Plot(figure, "caption")])], "end")
    assert figures_of(html) == {
        "plot-s-0": {"data": [{"type": "scatter", "x": [1.0], "y": [None]}], "layout": {"xaxis": {}}}
    }
    assert "A point, 1 in all." in html
