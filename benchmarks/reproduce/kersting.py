"""The most likely heteroscedastic Gaussian process (Kersting, Plagemann, Pfaff & Burgard 2007), as a comparator."""

import numpy as np

from errorband import GPRegressor
from errorband.likelihoods import Gaussian
from errorband.parameters import Parameter
from errorband.predictive import GaussianPredictive

ROUNDS, CLOSE = 10, 1e-2  # of the iteration at most; changes of the log noise that end it


class MostLikelyNoise:
    """A Gaussian process for the targets and one for the logarithm of their noise, fitted in turn.

    With the prediction m_n ± s_n of each training target, the noise there is taken to be ½((y_n − m_n)² + s_n²), which
    is what draws of the prediction have for their mean; a second process smooths its logarithm, and the first is fitted
    again with that noise known.
    """

    def fit(self, X: np.ndarray, y: np.ndarray) -> "MostLikelyNoise":
        settings = {"calibrate": False, "random_state": 0}
        first = GPRegressor(**settings).fit(X, y)
        mean, std = first.predict(X, return_std=True)
        log_noise = np.full(len(y), np.inf)
        silent = Gaussian(Parameter(1e-8 * float(np.var(y)), fixed=True))
        for self.rounds_ in range(1, ROUNDS + 1):
            levels = np.log(0.5 * ((y - mean) ** 2 + std**2))
            self.noise_ = GPRegressor(**settings).fit(X, levels)
            before, log_noise = log_noise, self.noise_.predict(X, latent=True)
            self.targets_ = GPRegressor(likelihood=silent, **settings).fit(X, y, noise_variance=np.exp(log_noise))
            if np.max(np.abs(log_noise - before)) < CLOSE:
                break
            mean, latent_std = self.targets_.predict(X, return_std=True, latent=True)
            std = np.sqrt(latent_std**2 + np.exp(log_noise))
        return self

    def predictive(self, X: np.ndarray) -> GaussianPredictive:
        """Distribution of targets at new inputs."""
        mean, std = self.targets_.predict(X, return_std=True, latent=True)
        return GaussianPredictive(mean, np.sqrt(std**2 + np.exp(self.noise_.predict(X, latent=True))))
