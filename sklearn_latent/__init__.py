"""Find, count and infer hidden variables in ordinary tables."""

from . import datasets, exceptions, metrics, noisy_or, plotting
from ._version import __version__
from .noisy_or import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)

__all__ = [
    "NoisyOrEM",
    "NoisyOrMoMLearner",
    "NoisyOrNetwork",
    "QuartetStructureLearner",
    "__version__",
    "datasets",
    "exceptions",
    "metrics",
    "noisy_or",
    "plotting",
]
