"""Find, count and infer hidden variables in ordinary tables."""

from . import (
    baselines,
    datasets,
    exceptions,
    gaussian,
    metrics,
    mixed,
    noisy_or,
    plotting,
)
from ._answers.explain import Explanation
from ._answers.report import report
from ._studies.compare import compare
from ._studies.rows_needed import RowsNeeded, rows_needed
from ._version import __version__
from .gaussian import GaussianNetwork, IdealParentGaussianBN
from .mixed import LPCC, SEMDBN, LatentDBN, LGLPCCTemporal, sequences_from_frame
from .noisy_or import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
    find_schedule,
    identifiability_order,
    quartet_depth,
)

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
    "mixed",
    "noisy_or",
    "plotting",
    "quartet_depth",
    "report",
    "rows_needed",
    "sequences_from_frame",
]
