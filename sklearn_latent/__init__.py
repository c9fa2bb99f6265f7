"""Find, count and infer hidden variables in ordinary tables."""

from . import (
    baselines,
    datasets,
    exceptions,
    gaussian,
    metrics,
    noisy_or,
    plotting,
    temporal,
)
from ._comparison.compare import compare
from ._explain import Explanation
from ._planning.rows_needed import RowsNeeded, rows_needed
from ._report.report import report
from ._version import __version__
from .gaussian import GaussianNetwork, IdealParentGaussianBN
from .noisy_or import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
    find_schedule,
    identifiability_order,
    quartet_depth,
)
from .temporal import LPCC, SEMDBN, LatentDBN, LGLPCCTemporal, sequences_from_frame

__all__ = [
    "LPCC",
    "SEMDBN",
    "Explanation",
    "GaussianNetwork",
    "IdealParentGaussianBN",
    "LGLPCCTemporal",
    "LatentDBN",
    "NoisyOrEM",
    "NoisyOrMoMLearner",
    "NoisyOrNetwork",
    "QuartetStructureLearner",
    "RowsNeeded",
    "__version__",
    "baselines",
    "compare",
    "datasets",
    "exceptions",
    "find_schedule",
    "gaussian",
    "identifiability_order",
    "metrics",
    "noisy_or",
    "plotting",
    "quartet_depth",
    "report",
    "rows_needed",
    "sequences_from_frame",
    "temporal",
]
