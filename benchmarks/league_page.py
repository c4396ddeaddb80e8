"""The page of the league, from the scores of every test row."""

from __future__ import annotations

import numpy as np

from league_models import LABELS, LEVEL, SEARCHED_ROWS
from league_sets import CLASSIFICATION, REGRESSION, TUNED

Results = dict[str, dict[str, list[dict]]]
BASELINES = ("linear", "forest", "boosting", "svm", "sklearn_gp", "ngboost")
OURS = ("auto", "default")


def page(results: Results, kind: str, sets: list[str], rows: int, splits: int, more: Results | None = None) -> str:
    """Markdown about the sets of a kind: ranks, coverage and times in both halves of them, then each set.

    ``more`` are results with further splits, for further standings.
    """
    models = [m for m in LABELS if any(m in found for found in results.values())]
    longest = max((len(scores) for found in (more or {}).values() for scores in found.values()), default=0)
    asked = f"--more {longest} " if more else ""
    parts = [
        f"# The league: {kind}",
        f'Our plain defaults and `"auto"` beside other models: at most {rows} rows to learn from, {splits} '
        f"split{'s' if splits > 1 else ''}.",
        f"Made by `python benchmarks/league.py --kind {kind} --rows {rows} --splits {splits} --models "
        f"{' '.join(models)} {asked}--page`, from the {len(results)} sets computed so far, of {len(sets)}.",
        *unfinished(results, models, sets, rows, splits),
        "Defaults were tuned on one half of the sets; the other half was left alone. *Rank*: mean place among all "
        "models of the table, 1 is best. *Wins or ties*: the share of sets on which no baseline is better by more than "
        f"two standard errors of the paired difference. *Inside*: share of test targets in {100 * LEVEL:.0f} % bands. "
        "The score beside the log density is the CRPS for numbers and the Brier score for classes. Times are processor "
        "seconds of a whole fit with its predictions, compilation included; others computed beside, which makes them "
        "longer. The wines have whole numbers for targets and repeated rows: a density can be very high there, and "
        "says little.",
        "Models that predict a number only have the band of their errors: of rows out of the bag for the forest, in "
        "five-fold cross-validation for the others. scikit-learn's Gaussian process learns its hyperparameters from at "
        f"most {SEARCHED_ROWS} rows and its posterior from all; with more its search outlasts everything else.",
    ]
    for title, names in (("Regression", REGRESSION), ("Classification", CLASSIFICATION)):
        here = {name: results[name] for name in names if name in results}
        if not here:
            continue
        halves = (("sets used for tuning", TUNED), ("sets left alone", set(names) - TUNED))
        for half, chosen in halves:
            part = {name: found for name, found in here.items() if name in chosen}
            if part:
                parts += [f"## {title}: {len(part)} {half}", *tables(part, models, title == "Regression")]
        for half, chosen in halves:
            part = {name: found for name, found in (more or {}).items() if name in chosen and name in here}
            longer = [
                f"{name} {len(found[models[0]])}" for name, found in part.items() if more_splits(found, here[name])
            ]
            if longer:
                told = f"The same, with more splits where there are some (as of {', '.join(longer)})."
                parts += [
                    f"## {title}: {len(part)} {half}, more splits",
                    told,
                    *tables(part, models, title == "Regression"),
                ]
        parts += [f"## {title}: negative log predictive density of each set", each_set(here, models, "nlpd", "{:.3f}")]
        second = "CRPS" if title == "Regression" else "Brier score"
        parts += [f"## {title}: {second} of each set", each_set(here, models, "crps", "{:.4g}")]
    return "\n\n".join(parts) + "\n"


def more_splits(found: dict[str, list[dict]], than: dict[str, list[dict]]) -> bool:
    """Whether a set has more splits in one result than in another."""
    return min(map(len, found.values())) > min(map(len, than.values()))


def unfinished(results: Results, models: list[str], sets: list[str], rows: int, splits: int) -> list[str]:
    """A paragraph about what has not been computed, if something has not."""
    gone = [LABELS[m] for m in LABELS if m not in models]
    gone += [f"{len(set(sets) - set(results))} sets"] * bool(set(sets) - set(results))
    fewer = [name for name, found in results.items() if min(map(len, found.values())) < splits]
    gone += [
        f"some of the {splits} splits of {len(fewer)} sets (*splits* in the last tables says how many they have)"
    ] * bool(fewer)
    gone += ["1500 rows and three splits, which is what the league is meant to have"] * ((rows, splits) != (1500, 3))
    return [f"**Not computed yet, so nothing is claimed of it:** {', '.join(gone)}."] if gone else []


def tables(results: Results, models: list[str], regression: bool) -> list[str]:
    """Standings of the models that all sets have; then, on fewer sets, of all models."""
    whole = [m for m in models if all(m in found for found in results.values())]
    rest = [m for m in models if m not in whole and any(m in found for found in results.values())]
    parts = [standings(results, whole, regression)] if whole else []
    if rest:
        some = {name: found for name, found in results.items() if all(m in found for m in rest)}
        told = f"{', '.join(LABELS[m] for m in rest)} computed on {len(some)} of these {len(results)} sets"
        parts += [f"### With {told}: {', '.join(some)}", standings(some, models, regression)]
    return parts


def standings(results: Results, models: list[str], regression: bool) -> str:
    """Mean ranks of all models over the sets on which all of them ended."""
    models = [m for m in models if any(m in found for found in results.values())]
    complete = {n: f for n, f in results.items() if all(m in f and ended(f[m]) for m in models)}
    if not complete:
        return "No set was finished by all models."
    header = ["model", "rank, log density", f"rank, {'CRPS' if regression else 'Brier'}", "rank, error", "wins or ties"]
    header += ["mean inside", "sets with 92 % inside"] * regression + ["seconds, median"]
    ranks = {key: rank(complete, models, key) for key in ("nlpd", "crps", "error")}
    lines = []
    for m in models:
        line = [LABELS[m], *(f"{ranks[key][m]:.2f}" for key in ranks)]
        others = [b for b in models if b in BASELINES and b != m]
        line.append(f"{100 * np.mean([not beaten(f, m, others) for f in complete.values()]):.0f} %")
        if regression:
            inside = [average(f[m], "inside") for f in complete.values()]
            line += [f"{100 * np.mean(inside):.1f} %", f"{100 * np.mean(np.array(inside) >= 0.92):.0f} %"]
        line.append(f"{np.median([np.mean([s['seconds'] for s in f[m]]) for f in complete.values()]):.1f}")
        lines.append(line)
    left_out = sorted(set(results) - set(complete))
    told = f"\n\nNot finished by all models: {', '.join(left_out)}." if left_out else ""
    worst = "\n\n" + far_behind(complete, "linear") if "linear" in models and "default" in models else ""
    hoped = goals(complete, models, regression)
    return table(header, lines) + told + worst + ("\n\n" + hoped if hoped else "")


def goals(results: Results, models: list[str], regression: bool) -> str:
    """What was hoped for of our models, each as met or not met on these sets."""
    others = [b for b in models if b in BASELINES]
    lines = []
    for m in (m for m in OURS if m in models):
        rivals = {k: rank(results, [m, *others], k)[m] for k in ("nlpd", "crps")}
        words = {"nlpd": "log density", "crps": "CRPS" if regression else "Brier score"}
        checks = [
            (f"mean rank among it and the {len(others)} baselines at most 1.5 in {words[k]}", v <= 1.5, f"{v:.2f}")
            for k, v in rivals.items()
        ]
        ties = float(np.mean([not beaten(f, m, others) for f in results.values()]))
        checks.append(("wins or ties on 80 % of the sets", ties >= 0.8, f"{100 * ties:.0f} %"))
        if regression:
            inside = np.array([average(f[m], "inside") for f in results.values()])
            share, mean = float(np.mean(inside >= 0.92)), float(np.mean(inside))
            checks.append(("mean coverage between 94 and 96 %", 0.94 <= mean <= 0.96, f"{100 * mean:.1f} %"))
            checks.append(("at least 92 % inside on nine sets of ten", share >= 0.9, f"{100 * share:.0f} %"))
        lines += [f"- {LABELS[m]}: {what}: **{'met' if met else 'not met'}** ({value})." for what, met, value in checks]
    return "\n".join(lines)


def far_behind(results: Results, reference: str) -> str:
    """Where the default is worse than the reference by more than 0.02 nats and two standard errors."""
    found = []
    for name, scores in results.items():
        gain, error = difference(scores["default"], scores[reference])
        if gain > max(0.02, 2 * error):
            found.append(f"{name} ({gain:.3f} ± {error:.3f})")
    told = ", ".join(found) or "none"
    behind = f"Sets on which the default is behind {LABELS[reference]} by more than 0.02 nats and two standard errors"
    return f"{behind}: {told}."


def each_set(results: Results, models: list[str], key: str, form: str) -> str:
    header = ["set", "splits", *(LABELS[m] for m in models)]
    lines = []
    for name, found in results.items():
        values = {m: average(found[m], key) for m in models if m in found and ended(found[m])}
        best = min(values.values(), default=np.nan)
        line = [f"{name}{'' if name in TUNED else ' *'}", f"{max(map(len, found.values()))}"]
        for m in models:
            cell = form.format(values[m]) if m in values else ("failed" if m in found else "")
            line.append(f"**{cell}**" if m in values and values[m] == best else cell)
        lines.append(line)
    return table(header, lines) + "\n\n\\* left alone while defaults were tuned."


# ----------------------------------------------------------------------------------------------------------- figures
def ended(scores: list[dict]) -> bool:
    return not any("failed" in s for s in scores)


def average(scores: list[dict], key: str) -> float:
    """Mean over the rows of each split, then over splits."""
    return float(np.mean([np.mean(s[key]) for s in scores]))


def rank(results: Results, models: list[str], key: str) -> dict[str, float]:
    """Mean place of each model; equal scores share a place."""
    places = []
    for found in results.values():
        values = np.array([average(found[m], key) for m in models])
        places.append([np.mean(values < v) * len(values) + 0.5 * (np.sum(values == v) + 1) for v in values])
    return dict(zip(models, np.mean(places, axis=0), strict=True))


def difference(a: list[dict], b: list[dict]) -> tuple[float, float]:
    """Mean of nlpd of a less that of b over the same rows, and its standard error."""
    rows = np.concatenate([np.subtract(x["nlpd"], y["nlpd"]) for x, y in zip(a, b, strict=False)])
    return float(np.mean(rows)), float(np.std(rows) / np.sqrt(len(rows)))


def beaten(found: dict[str, list[dict]], model: str, others: list[str]) -> bool:
    """Whether one of the others is better by more than two standard errors."""
    gaps = [difference(found[model], found[other]) for other in others]
    return any(gap > 2 * error for gap, error in gaps)


def table(header: list[str], lines: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(line) + " |" for line in [header, ["---"] * len(header), *lines])
