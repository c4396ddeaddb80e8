"""Draws of several chains, and what they say about themselves."""

import dataclasses
from typing import Any

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

MIXED, ENOUGH = 1.05, 100.0  # chains count as mixed below this R̂ and above this effective number of draws


@dataclasses.dataclass(frozen=True)
class Chains:
    """Draws (C, S, P) of P quantities from C chains.

    Parameters
    ----------
    draws : array (C, S, P)
    names : tuple of str
        Of the quantities; empty if they have none.
    divergences : int
        Transitions of NUTS that broke off because the density bends too sharply.
    interrupted : bool
        Whether Ctrl-C ended the chains.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> same = Chains(rng.normal(size=(4, 500, 1)))
    >>> apart = Chains(rng.normal(size=(4, 500, 1)) + np.arange(4)[:, None, None])
    >>> bool(same.rhat[0] < 1.01), bool(apart.rhat[0] > 1.5)
    (True, True)
    """

    draws: np.ndarray
    names: tuple[str, ...] = ()
    divergences: int = 0
    interrupted: bool = False

    @property
    def rhat(self) -> np.ndarray:
        """Split R̂ of each quantity, from ranks (Vehtari et al. 2021): 1 where the chains agree."""
        return np.sqrt(_variance_ratio(_normal_scores(_split(self.draws))))

    @property
    def effective(self) -> np.ndarray:
        """Effective number of draws of each quantity, by Geyer's initial monotone sequence over all chains."""
        return _effective(_normal_scores(_split(self.draws)))

    @property
    def mixed(self) -> bool:
        """Whether every R̂ is below 1.05 and every effective number of draws above 100."""
        if self.draws.shape[1] < 4:
            return False
        return bool(np.all(self.rhat < MIXED) and np.all(self.effective > ENOUGH))

    @property
    def message(self) -> str:
        """What there is and whether to trust it, in a sentence or two."""
        C, S, _ = self.draws.shape
        text = f"{C} chains of {S} draws"
        if S >= 4 and self.draws.shape[2]:
            worst, fewest = float(np.max(self.rhat)), float(np.min(self.effective))
            text += f"; largest R̂ {worst:.3f}, fewest effective draws {fewest:.0f}"
        text += f"; {self.divergences} divergent transitions." if self.divergences else "."
        if self.interrupted:
            text += " Interrupted; the draws so far were kept."
        if not self.mixed:
            text += " The chains have not mixed: raise draws and warmup, or look at their starts and at the model."
        return text

    def thinned(self, n: int) -> np.ndarray:
        """About n draws at equal distances, (n, P), of all chains alike; all of them if there are fewer."""
        C, S, P = self.draws.shape
        each = min(S, max(1, -(-n // C)))
        chosen = np.linspace(S - 1, 0, each).round().astype(int)[::-1]
        return self.draws[:, chosen].reshape(-1, P)

    def to_arviz(self) -> Any:
        """The draws as ArviZ keeps them: ``arviz.InferenceData``, from its version 1 a ``DataTree``. Imported here."""
        import arviz  # pyright: ignore[reportMissingImports]

        names = self.names or tuple(f"x[{i}]" for i in range(self.draws.shape[2]))
        draws = {name: self.draws[:, :, i] for i, name in enumerate(names)}
        old = int(arviz.__version__.split(".")[0]) == 0
        return arviz.from_dict(posterior=draws) if old else arviz.from_dict({"posterior": draws})


def _split(draws: np.ndarray) -> np.ndarray:
    """Each chain as two halves."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, draws.shape[1] - half :]])


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    ranks = rankdata(draws.reshape(-1, draws.shape[2]), axis=0)
    return ndtri((ranks - 0.375) / (len(ranks) + 0.25)).reshape(draws.shape)


def _variance_ratio(z: np.ndarray) -> np.ndarray:
    """Variance over all chains as a ratio to that within them."""
    S = z.shape[1]
    within = np.mean(np.var(z, axis=1, ddof=1), axis=0)
    between = np.var(np.mean(z, axis=1), axis=0, ddof=1)
    return ((S - 1) / S * within + between) / np.where(within > 0, within, 1.0)


def _effective(z: np.ndarray) -> np.ndarray:
    C, S, P = z.shape
    off = z - z.mean(axis=1, keepdims=True)
    size = 2 ** int(np.ceil(np.log2(2 * S)))
    spectrum = np.fft.rfft(off, size, axis=1)
    covariance = np.fft.irfft(spectrum * np.conj(spectrum), size, axis=1)[:, :S] / S
    within = np.mean(covariance[:, 0], axis=0) * S / (S - 1)
    total = within * _variance_ratio(z)
    found = np.empty(P)
    for p in range(P):
        rho = 1 - (within[p] - np.mean(covariance[:, :, p], axis=0)) / max(total[p], 1e-300)
        pairs = rho[: S - S % 2].reshape(-1, 2).sum(axis=1)
        positive = np.argmax(pairs < 0) if np.any(pairs < 0) else len(pairs)
        time = 2 * np.sum(np.minimum.accumulate(pairs[:positive])) - 1
        found[p] = C * S / max(time, 1 / np.log10(C * S))
    return found
