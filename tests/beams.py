"""Beams that keep every state, and random networks with rows of theirs."""

import numpy as np
from brute_force import random_network
from hypothesis import strategies as st

from sklearn_latent.noisy_or._beam import Beam, Width
from sklearn_latent.noisy_or._statistics.patterns import Patterns

# Keeps and expands every state.
EVERYTHING = Width(1e-300, 0.0, 1 << 20)


def read(network, X):
    """Rows as the network reads them, with weights that are no whole numbers."""
    X = np.where(network.polarity < 0, 1.0 - X, X)
    weights = np.random.default_rng(len(X)).uniform(0.5, 3.0, len(X))
    observed = None if not np.isnan(X).any() else ~np.isnan(X)
    return Patterns(X == 1, observed, weights)


def searched(network, X, width=EVERYTHING):
    beam = Beam(read(network, X), network.n_latents, width)
    beam.search(network)
    return beam


def sampled(network, n_rows, missing=0.0, seed=0):
    """Rows of a network, some with gaps."""
    X = network.sample(n_rows, random_state=seed % 2**31)[0].astype(float)
    X[np.random.default_rng(seed).random(X.shape) < missing] = np.nan
    return X


@st.composite
def cases(draw, n_latents=(0, 5), n_features=(1, 6), n_classes=(1, 3), n_rows=(1, 30)):
    """A network, with classes or without, and rows with gaps or without."""
    seed = draw(st.integers(0, 2**32 - 1))
    network = random_network(
        seed,
        draw(st.integers(*n_latents)),
        draw(st.integers(*n_features)),
        density=draw(st.floats(0.1, 0.9)),
        n_classes=draw(st.integers(*n_classes)),
    )
    missing = draw(st.sampled_from([0.0, 0.3]))
    return network, sampled(network, draw(st.integers(*n_rows)), missing, seed)
