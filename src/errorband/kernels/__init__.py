"""Kernels: covariance functions.

A new kernel is one file and one line in :data:`KERNELS`, from which the contract tests and file formats are built.
"""

from errorband.kernels.additive import Additive
from errorband.kernels.base import Kernel, Product, Scaled, Sum
from errorband.kernels.categorical import Categorical, Hamming, LowRankCategorical
from errorband.kernels.diffusion import Diffusion
from errorband.kernels.dot_product import ArcSine, Constant, Linear, Polynomial
from errorband.kernels.halfspace import HalfSpace
from errorband.kernels.periodic import Periodic
from errorband.kernels.projection import Projection
from errorband.kernels.spline import BSpline
from errorband.kernels.stationary import (
    Laplacian,
    Matern,
    PoweredExponential,
    Radial,
    RationalQuadratic,
    SquaredExponential,
    Stationary,
    heat,
)
from errorband.kernels.unskewed import Unskewed
from errorband.kernels.white import White

KERNELS: dict[str, type[Kernel]] = {
    cls.__name__: cls
    for cls in (
        Additive,
        ArcSine,
        BSpline,
        Categorical,
        Constant,
        Diffusion,
        HalfSpace,
        Hamming,
        Laplacian,
        Linear,
        LowRankCategorical,
        Matern,
        Periodic,
        Polynomial,
        PoweredExponential,
        Product,
        Projection,
        RationalQuadratic,
        Scaled,
        SquaredExponential,
        Sum,
        Unskewed,
        White,
    )
}

__all__ = [*KERNELS, "KERNELS", "Kernel", "Radial", "Stationary", "heat"]
