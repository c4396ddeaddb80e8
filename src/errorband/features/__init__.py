"""Features: what a latent function is seen through. A new kind is one file and one line in :data:`FEATURES`."""

from errorband.features.base import Features
from errorband.features.kernel_columns import KernelColumns
from errorband.features.kernel_pca import KernelPCA
from errorband.features.mixed import Mixed
from errorband.features.multi_scale import MultiScale
from errorband.features.network import Network
from errorband.features.points import Points
from errorband.features.spectrum import SparseSpectrum
from errorband.features.waves import TimeFrequency, WindowedFourier

FEATURES: dict[str, type[Features]] = {
    cls.__name__: cls
    for cls in (
        *(Points, MultiScale, WindowedFourier, TimeFrequency, Mixed, KernelPCA),
        *(SparseSpectrum, Network, KernelColumns),
    )
}

__all__ = [*FEATURES, "FEATURES", "Features"]
