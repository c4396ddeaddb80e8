"""What the reproduction scripts share: data, pages and pictures."""

import os
import sys
import time
from pathlib import Path

import numpy as np

DOCS = Path(__file__).parents[2] / "docs" / "reproductions"


def load(name: str, how: str) -> dict[str, np.ndarray]:
    """Arrays of ``$ERRORBAND_DATA/NAME.npz``; without that file, say how to make it."""
    folder = os.environ.get("ERRORBAND_DATA")
    if folder is None or not (Path(folder) / f"{name}.npz").exists():
        sys.exit(f"Set ERRORBAND_DATA to a folder with {name}.npz. {how}")
    with np.load(Path(folder) / f"{name}.npz") as arrays:
        return dict(arrays)


def write_page(name: str, command: str, began: float, text: str) -> None:
    """Write docs/reproductions/NAME.md with the command that made it."""
    DOCS.mkdir(exist_ok=True)
    made = f"Made by `{command}` in {time.perf_counter() - began:.0f} s."
    title, rest = text.strip().split("\n", 1)
    (DOCS / f"{name}.md").write_text(f"{title}\n\n{made}\n{rest}\n")
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
