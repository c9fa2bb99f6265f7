"""Latents that stand for two.

Given the states of the latents, the features of a row are independent. If one latent
stands for two, those of its children that belong to the one go together in the rows
that show it, and against those that belong to the other. Other latents absorb nothing
of that, whereas the residuals of all rows may be too small for a birth.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._beam import Beam

# Largest eigenvalue of the products of residuals, in standard deviations beyond its
# mean if residuals are independent. Of the images, 23 of 24 true latents had less than
# 1 and one 5.6; of networks with one latent in place of two, the largest had 42 to 313.
# What is split in vain is not kept.
LEAST_Z = 3.0


class Split(NamedTuple):
    """A latent, and those of its children that go together against the others."""

    latent: int
    side: np.ndarray


def propose_splits(beam: Beam) -> list[Split]:
    """Latents whose children fall into two groups in the rows that show them."""
    splits = []
    for latent, (n_rows, products) in enumerate(_products(beam)):
        children = beam.children[latent]
        # Half of them make a latent.
        if n_rows < 1.0 or len(children) < 6:
            continue
        # Not standardised row by row: that makes much of rows that are nearly certain.
        scale = np.sqrt(np.maximum(np.diag(products), 1e-9))
        values, vectors = np.linalg.eigh(products / scale / scale[:, np.newaxis])
        if _z(values[-1], n_rows, len(children)) > LEAST_Z:
            side = np.zeros(len(beam.log_leak_off), dtype=bool)
            side[children[vectors[:, -1] > 0.0]] = True
            splits.append(Split(latent, side))
    return splits


def _z(largest, n_rows, n_columns) -> float:
    """Largest eigenvalue of the correlations of independent columns, standardised.

    Johnstone (Annals of Statistics 2001) has its mean and deviation.
    """
    one, two = np.sqrt(n_rows), np.sqrt(n_columns)
    deviation = (one + two) * (1.0 / one + 1.0 / two) ** (1.0 / 3.0)
    return float((n_rows * largest - (one + two) ** 2) / deviation)


def _products(beam: Beam):
    """Rows that show each latent, and products of the residuals of its children."""
    mass = beam.patterns.weights[beam.row] * beam.share
    totals = mass @ beam.states
    products = [np.zeros((len(some), len(some))) for some in beam.children]
    for part in beam.chunks(len(beam.row)):
        states = beam.states[part]
        residuals = beam.off_probability(states)
        residuals += beam.is_on(beam.row[part])
        residuals -= 1.0
        if beam.patterns.observed is not None:
            residuals *= beam.patterns.observed[beam.row[part]].T
        residuals *= np.sqrt(mass[part])
        for latent, children in enumerate(beam.children):
            some = residuals[np.ix_(children, np.flatnonzero(states[:, latent]))]
            products[latent] += some @ some.T
    return zip(totals, products, strict=True)
