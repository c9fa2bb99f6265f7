"""Bipartite noisy-or networks: hidden causes of binary features."""

from ._em import NoisyOrEM
from ._identifiability.depth import quartet_depth
from ._identifiability.identifiability import identifiability_order
from ._identifiability.schedule import Schedule, Step, find_schedule
from ._mom import NoisyOrMoMLearner
from ._network import NoisyOrNetwork
from ._structure import QuartetStructureLearner

__all__ = [
    "NoisyOrEM",
    "NoisyOrMoMLearner",
    "NoisyOrNetwork",
    "QuartetStructureLearner",
    "Schedule",
    "Step",
    "find_schedule",
    "identifiability_order",
    "quartet_depth",
]
