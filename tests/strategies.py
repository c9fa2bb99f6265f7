"""Hypothesis strategies: random structures, networks and data."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sklearn_latent import NoisyOrNetwork

__all__ = ["networks", "seeds", "structures", "with_parameters"]

seeds = st.integers(0, 2**32 - 1)


@st.composite
def structures(draw, max_latents=5, max_features=11):
    """Structures without empty rows."""
    shape = (draw(st.integers(1, max_latents)), draw(st.integers(3, max_features)))
    structure = draw(hnp.arrays(bool, shape))
    # An empty row is no latent; give it the feature that keeps shrinking simple.
    structure[~structure.any(axis=1), 0] = True
    return structure


def with_parameters(structure, seed, low=0.2, high=0.8):
    """A network of a given structure with random parameters, away from 0 and 1."""
    rng = np.random.default_rng(seed)
    structure = np.asarray(structure, dtype=bool)
    failure = np.where(structure, rng.uniform(low, high, structure.shape), 1.0)
    return NoisyOrNetwork(
        rng.uniform(low, high, len(structure)),
        failure,
        rng.uniform(0.0, 0.2, structure.shape[1]),
    )


@st.composite
def networks(draw, **kwargs):
    """Networks whose parameters are away from 0 and 1."""
    return with_parameters(draw(structures(**kwargs)), draw(seeds))
