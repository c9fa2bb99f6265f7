"""Generators of data whose hidden variables are known."""

from ._noisy_or import (
    figure_1_structure,
    image_sources,
    make_noisy_or,
    make_noisy_or_images,
    make_qmr_like,
)

__all__ = [
    "figure_1_structure",
    "image_sources",
    "make_noisy_or",
    "make_noisy_or_images",
    "make_qmr_like",
]
