"""Networks of continuous variables, with latents and missing values."""

from ._gaussian_estimator import IdealParentGaussianBN
from ._gaussian_network import GaussianNetwork
from ._links import Linear, Link, Sigmoid
from ._margin_kinds import Margin, MixtureMargin, NormalMargin
from ._noise import Additive, Multiplicative, Noise

__all__ = [
    "Additive",
    "GaussianNetwork",
    "IdealParentGaussianBN",
    "Linear",
    "Link",
    "Margin",
    "MixtureMargin",
    "Multiplicative",
    "Noise",
    "NormalMargin",
    "Sigmoid",
]
