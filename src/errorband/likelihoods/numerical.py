"""Predictive distributions by numerical integration over the latent value or over the target."""

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.interpolate import CubicSpline

from errorband.parameters.checks import generator
from errorband.predictive import TRANSFORMS, CategoricalPredictive, QuantilesFromCdf
from errorband.quadrature import REACH, panel_rule

MAX_COUNT = 4096  # largest table of counts, for a likelihood that implements log_prob only


class ConditionalPredictive(QuantilesFromCdf):
    """Conditional distributions of the target given one latent value, averaged over its N(mean, variance).

    Parameters
    ----------
    likelihood : Likelihood
        Implements ``predictive_moments``, ``conditional_cdf``, ``conditional_sample``, ``log_density`` and ``feature``.
    mean, variance : arrays (n,)
        Mean and variance of the latent value.
    """

    def __init__(self, likelihood: Any, mean: np.ndarray, variance: np.ndarray):
        self.likelihood, self.support, self.upper = likelihood, likelihood.support, likelihood.upper
        self.latent_mean, self.latent_std = np.asarray(mean, float), np.sqrt(variance)
        self.mean, moment = likelihood.predictive_moments(self.latent_mean, self.latent_std**2)
        self.std = np.sqrt(moment)

    def _cdf(self, y, rows):
        """∫ P(target ≤ y | f) N(f) df, with more nodes where the conditional changes from 0 to 1."""
        lowest, highest = {"unit": (0.0, 1.0), "real": (-np.inf, np.inf)}.get(self.support, (0.0, self.upper))
        inside = (y >= lowest) & (y < highest)
        safe = np.where(inside, y, self._start(rows)[0])
        m, s = self.latent_mean[rows, None], self.latent_std[rows, None]
        low, high = m - REACH * s, m + REACH * s
        centres, widths = m, s
        if (feature := self.likelihood.feature_array(safe)) is not None:
            centre, width = (np.broadcast_to(a, y.shape)[:, None] for a in feature)
            # A target at the end of its range changes the conditional infinitely far away: nothing to resolve.
            centres = np.concatenate([m, np.clip(centre, low, high)], axis=1)
            widths = np.concatenate([s, np.where(np.isfinite(centre), np.minimum(width, s), s)], axis=1)
        f, w = panel_rule(centres, widths, low[:, 0], high[:, 0], panels=12, xp=np)
        density = np.exp(-0.5 * ((f - m) / s) ** 2) / (s * np.sqrt(2 * np.pi))
        found = np.sum(w * density * self.likelihood.conditional_cdf(safe[:, None], f), axis=1)
        return np.where(inside, np.clip(found, 0.0, 1.0), (y >= highest).astype(float))

    def log_density(self, y):
        return self.likelihood.log_density(
            self._targets(y), self.latent_mean[:, None], self.latent_std[:, None, None] ** 2
        )

    def sample(self, n_samples=1, random_state=None):
        rng = generator(random_state)
        f = self.latent_mean + self.latent_std * rng.standard_normal((n_samples, len(self)))
        return self.likelihood.conditional_sample(f, rng)

    def _start(self, rows):
        centre, std = self.likelihood.conditional_mean(self.latent_mean[rows]), self.std[rows]
        return centre, np.where(np.isfinite(std), std, 10 * self.latent_std[rows])


class TabulatedPredictive(QuantilesFromCdf):
    """A distribution given by its log density: tabulated, normalised and integrated by a cubic spline.

    Parameters
    ----------
    log_density : callable
        Maps targets (n, G), G of them at each of n inputs, to their log density (n, G).
    centre, width : arrays (n,)
        First guess of centre and width of the distribution, in unbounded coordinates.
    support : {"real", "positive", "unit", "count"}
    """

    def __init__(self, log_density: Callable[[np.ndarray], np.ndarray], centre: Any, width: Any, support: str = "real"):
        self._log_density, self.support = log_density, support
        self.mean = np.asarray(centre, float)  # replaced below; its shape is used before that
        if support == "count":
            self._tabulate_counts()
        else:
            self._tabulate(np.broadcast_to(np.asarray(width, float), self.mean.shape))

    # ------------------------------------------------------------------ counts
    def _tabulate_counts(self) -> None:
        size, probability = 64, np.zeros((len(self.mean), 1))
        while size <= MAX_COUNT:
            y = np.broadcast_to(np.arange(float(size)), (len(self.mean), size))
            probability = np.exp(self._log_density(y))
            if np.all(np.abs(probability.sum(axis=1) - 1) < 1e-8):
                break
            size *= 4
        total = probability.sum(axis=1, keepdims=True)
        if not np.all(np.abs(total - 1) < 1e-4):
            raise ValueError(
                f"The probabilities of 0 … {probability.shape[1] - 1} should sum to one; they sum to "
                f"{total.min():.3g} … {total.max():.3g}. Check log_prob, or write conditional_mean, "
                "conditional_variance, conditional_cdf and conditional_sample, which work for counts of any size, "
                "and declare closed_conditionals = True."
            )
        self._table = CategoricalPredictive(probability / total, np.arange(probability.shape[1]))
        self.mean, self.std = self._table.mean, self._table.std

    # ------------------------------------------------------------------ densities
    def _tabulate(self, width: np.ndarray) -> None:
        forward, _ = TRANSFORMS[self.support]
        t, scale, reach = self._find_bulk(self.mean, width)
        u = np.linspace(-reach, reach, 2 * int(np.ceil(reach / 0.06)) + 1)
        nodes = t[:, None] + scale[:, None] * np.sinh(u)
        density = np.exp(self._log_in_t(nodes)) * scale[:, None] * np.cosh(u)
        self._spline = CubicSpline(u, density, axis=1).antiderivative()
        total = self._spline(u[-1])
        if not np.all((total > 0) & np.isfinite(total)):
            raise ValueError("log_prob is not a density of the target: it has no finite, positive integral over it.")
        self._t, self._scale, self._total, self._u = t, scale, total, u
        p = density * (u[1] - u[0]) / total[:, None]
        p /= p.sum(axis=1, keepdims=True)
        y = np.where(p > 0, forward(nodes), 0.0)
        self.mean = np.sum(p * y, axis=1)
        self.std = np.sqrt(np.sum(p * (y - self.mean[:, None]) ** 2, axis=1))

    def _log_in_t(self, t: np.ndarray) -> np.ndarray:
        """Log density in unbounded coordinates."""
        forward, inverse = TRANSFORMS[self.support]
        jacobian = {"real": 0.0, "positive": t, "unit": -np.logaddexp(0, t) - np.logaddexp(0, -t)}[self.support]
        y = forward(t)
        inside = np.isfinite(inverse(y))
        with np.errstate(invalid="ignore", over="ignore"):
            value = self._log_density(np.where(inside, y, forward(0.0))) + jacobian
        return np.where(inside & ~np.isnan(value), value, -np.inf)

    def _find_bulk(self, t: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
        """Mode, half width at half a nat below it, and the range of asinh(t/width) with appreciable density."""
        rows, u = np.arange(len(t)), np.linspace(-14.0, 14.0, 57)
        going = np.full(len(t), True)
        for _ in range(25):  # a wide scan, then finer ones until the density hardly varies between neighbours
            scan = t[:, None] + width[:, None] * np.sinh(u)
            value = self._log_in_t(scan)
            best = np.argmax(value, axis=1)
            spacing = (u[1] - u[0]) * width * np.cosh(u[best])
            t, width = np.where(going, scan[rows, best], t), np.where(going, spacing / 2, width)
            inner, u = np.clip(best, 1, len(u) - 2), np.linspace(-1.8, 1.8, 9)
            neighbours = np.minimum(value[rows, inner - 1], value[rows, inner + 1])
            going &= ~(neighbours > value[rows, best] - 0.1)
            if not np.any(going):
                break
        steps = width[:, None] * 4.0 ** np.arange(-1, 20)
        around = self._log_in_t(t[:, None] + np.concatenate([0 * steps[:, :1], steps, -steps], axis=1))
        if not np.all(np.isfinite(around[:, 0])):
            raise ValueError("log_prob is not a density of the target: no target was found where it is finite.")
        k = steps.shape[1]
        higher = np.maximum(around[:, 1 : k + 1], around[:, k + 1 :]) - around[:, :1]
        scale = 0.5 * steps[rows, np.minimum(np.sum(higher > -0.5, axis=1), k - 1)]
        last = steps[rows, np.minimum(np.sum(np.log(steps) - np.log(scale)[:, None] + higher > -32, axis=1), k - 1)]
        return t, scale, float(np.arcsinh(np.max(last / scale)))

    def _integral(self, u: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The cdf (m,) at some values of u and the inputs they belong to, from the spline."""
        x, c = self._spline.x, self._spline.c  # c: (5, cells, n)
        cell = np.clip(np.searchsorted(x, u) - 1, 0, len(x) - 2)
        off, value = np.clip(u, x[0], x[-1]) - x[cell], 0.0
        for coefficients in c:
            value = value * off + coefficients[cell, rows]
        return np.clip(value / self._total[rows], 0.0, 1.0)

    # ------------------------------------------------------------------ the contract
    def _cdf(self, y, rows):
        if self.support == "count":
            return self._table._cdf(y, rows)
        _, inverse = TRANSFORMS[self.support]
        return self._integral(np.arcsinh((inverse(y) - self._t[rows]) / self._scale[rows]), rows)

    def log_density(self, y):
        return self._log_density(self._targets(y)[:, None])[:, 0]

    def _quantiles(self, q, rows):
        """By bisection on the spline."""
        if self.support == "count":
            return self._table._quantiles(q, rows)
        forward, _ = TRANSFORMS[self.support]
        low, high = np.full(len(q), self._u[0]), np.full(len(q), self._u[-1])
        for _ in range(50):
            middle = 0.5 * (low + high)
            below = self._integral(middle, rows) < q
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return forward(self._t[rows] + self._scale[rows] * np.sinh(0.5 * (low + high)))

    def sample(self, n_samples=1, random_state=None):
        if self.support == "count":
            return self._table.sample(n_samples, random_state)
        levels, rows = generator(random_state).random((n_samples, len(self))), np.arange(len(self))
        return self._quantiles(levels.ravel(), np.tile(rows, n_samples)).reshape(levels.shape)
