"""Latent variables behind categories and numbers, in tables and over time."""

from ._emissions.base import Emission
from ._emissions.categorical import Categorical
from ._emissions.gaussian import Gaussian
from ._emissions.gaussian_memory import GaussianMemory
from ._emissions.lognormal import LogNormal, LogNormalMemory
from ._emissions.memory import CategoricalMemory
from ._emissions.ordinal import Ordinal
from ._emissions.ordinal_memory import OrdinalMemory
from ._emissions.repeat import CategoricalRepeat
from ._epochs import EpochDBN
from ._forecast import Forecast
from ._graph import TemporalGraph
from ._lglpcc import LGLPCCTemporal
from ._lpcc import LPCC
from ._model import LatentDBN
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
    "EpochDBN",
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
