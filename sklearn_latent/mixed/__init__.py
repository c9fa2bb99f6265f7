"""Latent variables behind categories and numbers, in tables and over time."""

from ._emissions.categories import (
    Categorical,
    CategoricalMemory,
    CategoricalRepeat,
    Ordinal,
    OrdinalMemory,
)
from ._emissions.emission import Emission
from ._emissions.numbers import Gaussian, GaussianMemory, LogNormal, LogNormalMemory
from ._forecast import Forecast
from ._graph import TemporalGraph
from ._latent_dbn import LatentDBN
from ._lglpcc import LGLPCCTemporal
from ._lpcc import LPCC
from ._panels.frames import sequences_from_frame
from ._panels.sequences import Sequences
from ._sem import SEMDBN

__all__ = [
    "LPCC",
    "SEMDBN",
    "Categorical",
    "CategoricalMemory",
    "CategoricalRepeat",
    "Emission",
    "Forecast",
    "Gaussian",
    "GaussianMemory",
    "LGLPCCTemporal",
    "LatentDBN",
    "LogNormal",
    "LogNormalMemory",
    "Ordinal",
    "OrdinalMemory",
    "Sequences",
    "TemporalGraph",
    "sequences_from_frame",
]
