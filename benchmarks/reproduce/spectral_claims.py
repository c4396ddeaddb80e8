"""Verdicts on the claims C2 to C13 and C16 of Lázaro-Gredilla (2010), from the results of ``spectral.py``."""

from typing import Any

import numpy as np
from common import Results, table

NOT_RUN = "not run"


def claims(results: Results) -> str:
    """The table of claims."""

    def sizes(name: str, method: str) -> set[int]:
        return {int(k.split("/")[2]) for k in results.pieces if k.startswith(f"{name}/{method}/")}

    def compare(
        name: str, a: str, b: str, key: str = "nmse", margin: float = 0.0, least: int = 0
    ) -> tuple[str, bool | None]:
        """Whether a is below b plus a margin: medians over seeds at the largest number that both were run with.

        A full GP has none. Nothing is said if that number is below ``least``.
        """
        common = [m for m in sizes(name, a) | sizes(name, b) if all(sizes(name, k) & {0, m} for k in (a, b))]
        if not common or max(common) < least:
            return f"{a} or {b} {NOT_RUN}" + (f" at m = {least}" if least else ""), None
        pieces = [results.under(f"{name}/{k}/{max(sizes(name, k) & {0, max(common)})}/") for k in (a, b)]
        x, y = (float(np.median([f[key] for f in found])) for found in pieces)
        return f"{a} {x:.4g}, {b} {y:.4g} (m = {max(common)})", x < y + margin

    def verdict(*tests: tuple[str, bool | None]) -> tuple[str, str]:
        told = "; ".join(text for text, _ in tests)
        outcomes = [outcome for _, outcome in tests if outcome is not None]
        if not outcomes:
            return NOT_RUN, told
        found = "as claimed" if all(outcomes) else "in part" if any(outcomes) else "not"
        return found + (", as far as it was run" if len(outcomes) < len(tests) else ""), told

    def singular(name: str, share: float = 0.95) -> str:
        pieces = [p for p in results.under(f"{name}/BN-MCN/") if "singular" in p]
        if not pieces:
            return NOT_RUN
        s = np.asarray(pieces[-1]["singular"])
        kept = np.sqrt(np.cumsum(s**2) / np.sum(s**2))
        return f"{1 + int(np.searchsorted(kept, share))} of {len(s)} directions keep {100 * share:.0f} %"

    lines: list[tuple[str, str, tuple[str, str]]] = [
        ("C2", "Elevators: SSGP better than SPGP in NMSE and MNLP", verdict(
            compare("elevators", "SSGP", "SPGP"), compare("elevators", "SSGP", "SPGP", "mnlp"))),
        ("C3", "Elevators: BN-MCN and MCNmix better than SSGP; MCNmix than the full GP", verdict(
            compare("elevators", "BN-MCN", "SSGP"), compare("elevators", "MCNmix", "SSGP"),
            compare("elevators", "MCNmix", "GP on 2000 rows"))),
        ("C4", "Pole: SSGP's NMSE far below SPGP's", verdict(compare("pol", "SSGP", "SPGP"))),
        ("C5", "Pole: MCN over-fits at m = 500, MCNmix and BN-MCN do not", verdict(
            compare("pol", "BN-MCN", "MCN", "mnlp", least=500), compare("pol", "MCNmix", "MCN", "mnlp", least=500))),
        ("C6", "Pole: BN-MCN better than SPGP in NMSE, not in MNLP", verdict(
            compare("pol", "BN-MCN", "SPGP"), compare("pol", "SPGP", "BN-MCN", "mnlp"))),
        ("C7", "Kin-40k: SSGP better than SPGP in NMSE", verdict(compare("kin40k", "SSGP", "SPGP"))),
        ("C8", "Kin-40k: MCNmix better than SSGP and than SPGP in MNLP", verdict(
            compare("kin40k", "MCNmix", "SSGP", "mnlp"), compare("kin40k", "MCNmix", "SPGP", "mnlp"))),
        ("C9", "32 inputs: SSGP with m = 25 at the level of a full GP (2,000 rows here)", verdict(
            compare("robot", "SSGP", "GP on 2000 rows"))),
        ("C10", "Pendulum: SSGP's and BN-MCN's MNLP much worse than a full GP's, MCNmix' within 1 nat of it", verdict(
            compare("pendulum", "GP on 2000 rows", "SSGP", "mnlp", -1.0),
            compare("pendulum", "GP on 2000 rows", "BN-MCN", "mnlp", -1.0),
            compare("pendulum", "MCNmix", "GP on 2000 rows", "mnlp", 1.0))),
        ("C11", "FIFGP and TFIFGP better than SPGP in NMSE on Elevators and Pole; good MNLP on Pendulum", verdict(
            compare("elevators", "FIFGP", "SPGP"), compare("elevators", "TFIFGP", "SPGP"),
            compare("pol", "FIFGP", "SPGP"), compare("pol", "TFIFGP", "SPGP"),
            compare("pendulum", "FIFGP", "SSGP", "mnlp"))),
        ("C12", "BN-MMLP better than SPGP in NMSE on Elevators and Pole, best on Kin-40k; SPGP-MLP better than "
         "BN-MMLP on Pole", verdict(
            compare("elevators", "BN-MMLP", "SPGP"), compare("pol", "BN-MMLP", "SPGP"),
            compare("kin40k", "BN-MMLP", "SPGP"), compare("pol", "SPGP-MLP", "BN-MMLP"))),
        ("C13", "MMLPmix better than BN-MMLP in MNLP", verdict(
            compare("pol", "MMLPmix", "BN-MMLP", "mnlp"), compare("kin40k", "MMLPmix", "BN-MMLP", "mnlp"),
            compare("pendulum", "MMLPmix", "BN-MMLP", "mnlp"))),
    ]  # fmt: skip
    said = {"elevators": "8 of 17", "pendulum": "4 of 9", "robot": "4 of 32 (Pumadyn)"}
    kept = "; ".join(f"{name}: {singular(name)} (thesis {text})" for name, text in said.items())
    rows: list[list[Any]] = [[number, text, outcome, told] for number, text, (outcome, told) in lines]
    rows.append(["C16", "Effective dimension of BN-MCN's input weights", "see figures", kept])
    elsewhere = {
        "C1": ("The sinc toy", "spectral-toy.md"),
        "C14": ("Robust networks", "spectral-toy.md"),
        "C15": ("Classification, table 5.1", "table-5-1.md"),
        "C17": ("Covariances from few spectral points", "spectral-toy.md"),
        "C18": ("Speed", "spectral-speed.md"),
    }
    rows += [[number, text, f"[page]({page})", ""] for number, (text, page) in elsewhere.items()]
    rows.sort(key=lambda row: int(row[0][1:]))
    note = "Each comparison is at the largest m that both were run with; smaller is better throughout."
    return f"{note}\n\n{table(['', 'claim', 'here', 'figures'], rows)}"
