"""Simple models of any table, to compare others with."""

from ._features import IndependentFeatures
from ._mixture import LatentClasses

__all__ = ["IndependentFeatures", "LatentClasses"]
