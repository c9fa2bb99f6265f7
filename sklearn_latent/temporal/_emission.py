"""Emissions: how features show the state of their latent.

The one module that knows what an emission is: a table of P(category | state), of shape
(n_states, n_categories), with a single row where a feature measures no latent. Features
of another kind need their own version of these functions, an encoder and a parameter.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from scipy import sparse

from ._panels.panel import MISSING, Panel
from ._tables import (
    draw_categories,
    family_score,
    free_parameters,
    log_prior,
    log_table,
    normalized,
)

# Pseudo-count of each row of a table.
SMOOTHING = 0.1


class Layout:
    """Tables of several features, one beside the other.

    n_categories (n_features,).
    """

    def __init__(self, n_categories):
        self.n_categories = np.asarray(n_categories, dtype=np.int64)
        # First column of each feature.
        self.offsets = np.concatenate([[0], np.cumsum(self.n_categories)[:-1]])
        self.offsets = self.offsets.astype(np.intp)[: len(self.n_categories)]

    def indicators(self, codes) -> sparse.csr_array:
        """Rows of zeros and ones, zeros alone where a value is missing.

        codes (n, n_features) -> (n, sum(n_categories)).
        """
        known = codes != MISSING
        ends = np.concatenate([[0], np.cumsum(known.sum(axis=1))])
        columns = (codes + self.offsets)[known].astype(np.intp)
        return sparse.csr_array(
            (np.ones(len(columns)), columns, ends),
            shape=(len(codes), int(self.n_categories.sum())),
        )

    def normalized(self, counts) -> np.ndarray:
        """Probabilities from counts, along the last axis."""
        sums = np.add.reduceat(counts, self.offsets, axis=-1)
        return counts / sums[..., self._feature_of_column]

    def split(self, tables) -> list[np.ndarray]:
        """Tables of the single features, of the last axis."""
        return np.split(tables, self.offsets[1:], axis=-1) if len(self.offsets) else []

    def n_free(self, n_states: int) -> int:
        """Number of free parameters."""
        return n_states * int((self.n_categories - 1).sum())

    @cached_property
    def _feature_of_column(self) -> np.ndarray:
        return np.repeat(np.arange(len(self.n_categories)), self.n_categories)


def tables_from(counts, smoothing: float = SMOOTHING) -> list[np.ndarray]:
    """Emissions of features from expected counts of (state, category)."""
    return [normalized(count, smoothing) for count in counts]


def marginal_tables(panel: Panel) -> list[np.ndarray]:
    """Emissions of features that measure no latent."""
    weights = np.broadcast_to(panel.weights[:, None], panel.codes.shape[:2])
    return tables_from(
        code_counts(panel.codes[:, :, f], weights, width)
        for f, width in enumerate(panel.n_categories)
    )


def code_counts(codes, weights, n_categories) -> np.ndarray:
    """How often each category of a feature occurs, shape (1, n_categories)."""
    known = codes != MISSING
    return np.bincount(codes[known], weights[known], minlength=n_categories)[None]


def state_counts(codes, states, n_categories) -> list[list[np.ndarray]]:
    """Expected counts of every feature with every latent: ``[feature][latent]``.

    codes (n, n_features), states: weighted probabilities per latent, (n, n_states).
    """
    layout = Layout(n_categories)
    counts = [(layout.indicators(codes).T @ state).T for state in states]
    of_latents = [layout.split(table) for table in counts]
    return [list(of_feature) for of_feature in zip(*of_latents, strict=True)]


def log_probabilities(table, codes) -> np.ndarray:
    """Logarithm of P(code | state), 0 where the code is missing; (n_states, ...)."""
    padded = np.column_stack([log_table(table), np.zeros(len(table))])
    return padded[:, codes]


def predicted(emission, parents, posterior, shape) -> list[np.ndarray]:
    """P(category) of each feature, given states of the latents; (..., n_categories)."""
    return [
        (posterior[j] if j >= 0 else np.ones((*shape, 1))) @ table
        for j, table in zip(parents, emission, strict=True)
    ]


def draw_codes(table, states, rng) -> np.ndarray:
    """Draw a category for each state."""
    return draw_categories(table[states.ravel()], rng).reshape(states.shape)


def n_free(emission) -> int:
    """Number of free parameters of the emissions of all features."""
    return free_parameters(emission)


def emission_log_prior(emission, smoothing: float) -> float:
    """Logarithm of the prior of the emissions of all features."""
    return log_prior(emission, smoothing)


def emission_score(counts, price: float) -> float:
    """Expected BIC of an emission with given counts, higher is better."""
    value, n_parameters = family_score(counts)
    return value - price * n_parameters
