"""The league: our defaults and ``"auto"`` beside other models on many tables.

    ERRORBAND_DATA=FOLDER python benchmarks/league.py --rows 1500 --splits 3

Every (set, split, model) is kept in ``benchmarks/.raw/league/ROWS``; a run that was stopped goes on where it was, and
``--page`` computes nothing and writes the pages, of numbers and of classes, from what is there. To try something out:

    python benchmarks/league.py --rows 300 --splits 1 --kind numbers --half tuned --models default
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from league_models import MODELS, scored
from league_page import page
from league_sets import CLASSIFICATION, REGRESSION, TUNED, split

HERE = Path(__file__).resolve().parent
PAGES = HERE.parent / "docs" / "benchmarks"
KINDS = {"numbers": (REGRESSION, "league"), "classes": (CLASSIFICATION, "league-classes")}  # sets, name of the page


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1500, help="most rows to learn from")
    parser.add_argument("--splits", type=int, default=3)
    names = [*REGRESSION, *CLASSIFICATION]
    parser.add_argument("--sets", nargs="+", choices=names, default=names)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    parser.add_argument("--kind", choices=list(KINDS), help="only tables with such targets")
    parser.add_argument("--half", choices=["tuned", "untouched"], help="sets that defaults were (not) tuned on")
    parser.add_argument("--seconds", type=float, default=np.inf, help="begin nothing new after this time")
    parser.add_argument("--again", action="store_true", help="compute anew what is there")
    parser.add_argument("--more", type=int, default=0, help="further standings of the page: with so many splits")
    parser.add_argument("--page", action="store_true", help="write the pages, from what is there")
    options = parser.parse_args()
    sets = [s for s in options.sets if options.half is None or (s in TUNED) == (options.half == "tuned")]
    kinds = {kind: KINDS[kind] for kind in ([options.kind] if options.kind else KINDS)}
    sets = [s for s in sets if any(s in members for members, _ in kinds.values())]
    began = time.perf_counter()
    for number in range(options.splits):
        for name in sets:
            for model in options.models:
                if not options.page and time.perf_counter() - began < options.seconds:
                    piece(options.rows, name, number, model, options.again)
    for kind, (members, name) in kinds.items():
        asked = [s for s in sets if s in members]
        results = collected(options.rows, asked, options.splits, options.models)
        more = collected(options.rows, asked, options.more, options.models)
        text = page(results, kind, asked, options.rows, options.splits, more)
        if options.page:
            path = PAGES / f"{name}{'' if options.rows == 1500 else f'-{options.rows}'}.md"
            path.write_text(text)
            print(f"wrote {path}")
        else:
            print(text)


def file_of(rows: int, name: str, number: int, model: str) -> Path:
    return HERE / ".raw" / "league" / str(rows) / f"{name}-{number}-{model}.json"


def piece(rows: int, name: str, number: int, model: str, again: bool = False) -> None:
    """Compute and keep the scores of one model on one split, unless they are there. A failure is kept too."""
    file = file_of(rows, name, number, model)
    if file.exists() and not again:
        return
    began = time.process_time()
    try:
        scores: dict[str, Any] = scored(MODELS[model], split(name, number, rows))
    except ImportError as missing:
        print(f"{model} is left out: {missing}", file=sys.stderr)
        return
    except Exception as failure:
        scores = {"failed": f"{type(failure).__name__}: {failure}"[:300]}
    kept = {k: [float(f"{x:.6g}") for x in v] if isinstance(v, np.ndarray) else v for k, v in scores.items()}
    kept["seconds"] = round(time.process_time() - began, 2)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.with_suffix(".part").write_text(json.dumps(kept))
    file.with_suffix(".part").replace(file)
    told = scores.get("failed") or " ".join(f"{k} {np.mean(scores[k]):.4f}" for k in ("nlpd", "crps"))
    print(f"{name}-{number}-{model}: {told}, {kept['seconds']} s", flush=True)


def collected(rows: int, sets: list[str], splits: int, models: list[str]) -> dict[str, dict[str, list[dict]]]:
    """Scores by set and model: of the splits that all models have ended, or if there is none of each that is there."""
    found: dict[str, dict[str, list[dict]]] = {}
    for name in sets:
        there = {}
        for number in range(splits):
            files = {model: file_of(rows, name, number, model) for model in models}
            there[number] = {m: json.loads(f.read_text()) for m, f in files.items() if f.exists()}
        whole = [t for t in there.values() if len(t) == len(models) and not any("failed" in s for s in t.values())]
        for model in models:
            if scores := [t[model] for t in whole or there.values() if model in t]:
                found.setdefault(name, {})[model] = scores
    return found


if __name__ == "__main__":
    main()
