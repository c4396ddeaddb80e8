"""What can be read off a fitted model with basis functions: a plain network, a spectrum, directions that matter."""

from errorband.networks.export import PlainNetwork, export
from errorband.networks.fourier import FourierTransform, fourier_transform
from errorband.networks.reduction import SupervisedReduction

__all__ = ["FourierTransform", "PlainNetwork", "SupervisedReduction", "export", "fourier_transform"]
