"""Closed forms for Gaussian noise, one for each way of keeping the prior covariance."""

from errorband.conjugate.base import Closed, Engine
from errorband.conjugate.blocks import BlocksEngine
from errorband.conjugate.dense import DenseEngine
from errorband.conjugate.low_rank import LowRankEngine

__all__ = ["BlocksEngine", "Closed", "DenseEngine", "Engine", "LowRankEngine"]
