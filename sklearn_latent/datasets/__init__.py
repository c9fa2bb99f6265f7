"""Generators of data whose hidden variables are known."""

from ._gaussian import make_gaussian_bn
from ._noisy_or import (
    figure_1_structure,
    image_sources,
    make_noisy_or,
    make_noisy_or_images,
    make_qmr_like,
)
from ._temporal import make_latent_dbn

__all__ = [
    "figure_1_structure",
    "image_sources",
    "make_gaussian_bn",
    "make_latent_dbn",
    "make_noisy_or",
    "make_noisy_or_images",
    "make_qmr_like",
]
