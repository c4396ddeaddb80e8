"""The prior of one latent function."""

from typing import Any

from errorband.kernels import Kernel
from errorband.means import Mean
from errorband.parameters import Module


class Latent(Module):
    """Prior of a latent function: f ~ GP(mean, kernel), seen through features (None: at the inputs themselves)."""

    kernel: Kernel
    mean: Mean
    features: Any = None  # Features or None

    def whitened(self, factor: Any, X: Any) -> Any:
        """Φ = K_fu L⁻ᵀ at the rows of X. Traced."""
        return self.features.whitened(self.kernel, factor, X)

    def variance(self, X: Any) -> Any:
        """Prior variance at the rows of X. Traced."""
        return self.kernel.gram_diag(X) if self.features is None else self.features.k_ff(self.kernel, X)
