"""What the reproduction scripts share: data, pages and pictures."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

DOCS = Path(__file__).parents[2] / "docs" / "reproductions"
KEPT = Path(__file__).parent / "results"  # results that are in the repository, for pages whose experiments take long


def load(name: str, how: str) -> dict[str, np.ndarray]:
    """Arrays of ``$ERRORBAND_DATA/NAME.npz``; without that file, say how to make it."""
    folder = os.environ.get("ERRORBAND_DATA")
    if folder is None or not (Path(folder) / f"{name}.npz").exists():
        sys.exit(f"Set ERRORBAND_DATA to a folder with {name}.npz. {how}")
    with np.load(Path(folder) / f"{name}.npz") as arrays:
        return dict(arrays)


def results_folder() -> Path:
    """Where results wait for a page: ``$ERRORBAND_RESULTS``, else a folder among the temporary files."""
    folder = Path(os.environ.get("ERRORBAND_RESULTS") or Path(tempfile.gettempdir()) / "errorband-reproduce")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def arguments(description: str | None, seconds: str = "begin nothing new after this time", **lists: Any) -> Any:
    """The command line of a script that does its work in parts: ``--seconds``, and for each of ``lists`` an option.

    An option whose default is a number takes a number; one whose default is a collection takes some of its entries.
    """
    parser = argparse.ArgumentParser(description=description)
    for name, default in lists.items():
        if isinstance(default, int):
            parser.add_argument(f"--{name}", type=int, default=default)
        else:
            entries = list(default)
            parser.add_argument(f"--{name}", type=type(entries[0]), nargs="+", choices=entries, default=entries)
    parser.add_argument("--seconds", type=float, default=np.inf, help=seconds)
    return parser.parse_args()


class Results:
    """Results of an experiment, kept piece by piece in a file: a run that was stopped goes on where it was.

    Several runs may go on with the same file: what one has computed the others do not.

    Parameters
    ----------
    name : str
        Of the file.
    seconds : float
        No new piece is begun after this time.
    kept : bool
        Keep them in the repository, rounded, each with the state of the library that it is of, unless
        ``ERRORBAND_RESULTS`` names a folder: a run on another machine goes on from there.
    """

    def __init__(self, name: str, seconds: float = np.inf, *, kept: bool = False):
        self.kept = kept
        in_repository = kept and not os.environ.get("ERRORBAND_RESULTS")
        self.file = (KEPT if in_repository else results_folder()) / f"{name}.json"
        self.pieces = self._read()
        self.deadline = time.perf_counter() + seconds

    def _read(self) -> dict[str, dict[str, Any]]:
        return json.loads(self.file.read_text()) if self.file.exists() else {}

    def once(self, key: str, compute: Callable[[], dict[str, Any]]) -> None:
        """Compute a piece unless it is there or time is up."""
        self.pieces = self._read()
        if key in self.pieces or time.perf_counter() > self.deadline:
            return
        began = time.process_time()  # of the processor: runs often share a machine
        found = compute()
        self.pieces = self._read()
        self.pieces[key] = found | {"seconds": time.process_time() - began}
        if self.kept:
            self.pieces[key] = rounded(self.pieces[key] | {"state": state()})
        whole = self.file.with_suffix(f".{os.getpid()}")
        lines = ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in sorted(self.pieces.items()))
        whole.write_text(f"{{\n{lines}\n}}\n")
        whole.replace(self.file)
        told = {k: v for k, v in self.pieces[key].items() if not isinstance(v, list)}
        print(key, {k: round(v, 4) if isinstance(v, float) else v for k, v in told.items()}, flush=True)

    def under(self, prefix: str) -> list[dict[str, Any]]:
        """The pieces whose key begins so."""
        return [piece for key, piece in self.pieces.items() if key.startswith(prefix)]

    def spent(self, prefix: str = "") -> float:
        """Seconds of the processor that the pieces took whose key begins so."""
        return sum(piece["seconds"] for piece in self.under(prefix))

    @property
    def began(self) -> float:
        """When the experiment would have begun, had it been run at once on a processor of its own."""
        return time.perf_counter() - sum(piece["seconds"] for piece in self.pieces.values())


def rounded(value: Any) -> Any:
    """Floats to five digits, also within lists and dictionaries."""
    if isinstance(value, dict):
        return {key: rounded(v) for key, v in value.items()}
    if isinstance(value, list):
        return [rounded(v) for v in value]
    return float(f"{value:.5g}") if isinstance(value, float) else value


def state() -> str:
    """Git's short name of the library's source as it was committed last: it changes with every change there."""
    asked = ["git", "-C", str(Path(__file__).parent), "rev-parse", "--short=8", "HEAD:src/errorband"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def class_scores(model: Any, X: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """Error rate and negative log probability of the true of two classes, mean over rows, with its scatter."""
    p = model.predict_proba(X)[:, 1]
    of_true = np.where(y == model.classes_[1], p, 1 - p)
    log_p = np.log(np.maximum(of_true, 1e-300))
    return {"error": float(np.mean(of_true <= 0.5)), "nlp": float(-np.mean(log_p)), "nlp_sd": float(np.std(log_p))}


def write_page(name: str, command: str, began: float, text: str) -> None:
    """Write docs/reproductions/NAME.md with the command that made it."""
    DOCS.mkdir(exist_ok=True)
    made = f"Made by `{command}` in {time.perf_counter() - began:.0f} s."
    title, rest = text.strip().split("\n", 1)
    (DOCS / f"{name}.md").write_text(f"{title}\n\n{made}\n{rest}\n")
    print(f"wrote docs/reproductions/{name}.md")


def write_sections(name: str, head: str, made: dict[str, tuple[str, str]], order: list[str]) -> None:
    """Write docs/reproductions/NAME.md, of which each section is an experiment of its own.

    Parameters
    ----------
    name, head : str
        Of the page, and what is above its sections.
    made : dict
        For the title of each section that was made now how it was made, and its text.
    order : list of str
        Titles of all sections. Those not made now stay as they are on the page.
    """
    page = DOCS / f"{name}.md"
    there = dict(part.split("\n", 1) for part in page.read_text().split("\n## ")[1:]) if page.exists() else {}
    there |= {title: f"\n{how}\n\n{text.strip()}\n" for title, (how, text) in made.items()}
    parts = [f"## {title}\n{there[title].rstrip()}\n" for title in order if title in there]
    page.write_text("\n".join([head.strip() + "\n", *parts]))
    print(f"wrote docs/reproductions/{name}.md")


def picture(figure, name: str) -> str:
    """Save a picture beside the pages; what Markdown shows it with."""
    (DOCS / "images").mkdir(parents=True, exist_ok=True)
    figure.savefig(DOCS / "images" / f"{name}.png", dpi=110, bbox_inches="tight")
    return f"![{name}](images/{name}.png)"


def table(header: list[str], rows: list[list[object]]) -> str:
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)
