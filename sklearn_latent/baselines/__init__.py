"""Simple models of any table, to compare others with."""

from ._features import IndependentFeatures, MarkovChains
from ._gaussians import GaussianMixtureBIC
from ._mixture import LatentClasses

__all__ = [
    "GaussianMixtureBIC",
    "IndependentFeatures",
    "LatentClasses",
    "MarkovChains",
]
