"""Bipartite noisy-or networks: hidden causes of binary features."""

# The shapes of arrays follow from their names: prior (n_latents,), leak (n_features,),
# failure, structure, known and free edges (n_latents, n_features), on and observed
# (n_rows, n_features), sets (n_sets, size), pairs (n_features, n_features), and moments
# of the 7 (or 16) subsets of triplets (quartets) M (n_sets, 7).

from ._em import NoisyOrEM
from ._identifiability import identifiability_order, quartet_depth
from ._mom import NoisyOrMoMLearner
from ._noisy_or_network import NoisyOrNetwork
from ._schedule import Schedule, Step, find_schedule
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
