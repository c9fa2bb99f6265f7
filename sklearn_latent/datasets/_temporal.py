"""Panels drawn from latent dynamic Bayesian networks."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils import Bunch

from .._core.validation import (
    MOST_ROWS,
    check_count,
    check_counts,
    check_flag,
    check_numbers,
    check_random_state,
    shown,
)
from ..mixed._graph import TemporalGraph
from ..mixed._latent_dbn import LatentDBN
from ..mixed._tables import table_shape

# Edges (within a slice, into the next slice) of the graphs of Figure 3 of the paper.
GRAPHS = {
    "G1": ([[0]], [[1]]),
    "G2": ([[0, 1], [0, 0]], [[1, 0], [0, 0]]),
    "G3": ([[0, 1], [0, 0]], [[0, 0], [0, 1]]),
}
FEATURES_PER_LATENT = 3


def make_latent_dbn(
    graph: str | TemporalGraph = "G3",
    n_sequences: int = 2000,
    n_slices: int = 4,
    *,
    cardinality: ArrayLike = 4,
    n_categories: ArrayLike | None = None,
    reliability: ArrayLike = 0.8,
    persistence: ArrayLike = 0.8,
    relabel: bool = True,
    random_state: Any = None,
) -> Bunch:
    """Draw sequences from a latent dynamic Bayesian network.

    The graphs of [1]_ have three features per latent and four values throughout:
    G1 is one latent L with L -> L' (the prime is the next slice); G2 has L1 -> L1' and
    L1 -> L2 within the slice; G3 has L1 -> L2 and L2 -> L2', so that L2' has two
    parents, L2 and L1'.

    Parameters
    ----------
    graph : {"G1", "G2", "G3"} or TemporalGraph, default="G3"
        The structure; undirected edges are oriented as ``graph.directed()`` does it.
    n_sequences : int, default=2000
        Number of sequences.
    n_slices : int, default=4
        Their length.
    cardinality : int or array-like of shape (n_latents,), default=4
        Number of states of the latents.
    n_categories : int, array-like of shape (n_observed,) or None, default=None
        Number of values of the features; None gives each as many as its latent has
        states.
    reliability : float or array-like of shape (n_observed,), default=0.8
        Probability that a feature shows the value that stands for the state of its
        latent; the rest is spread evenly over the other values.
    persistence : float or array-like of shape (n_latents,), default=0.8
        Probability of the value that the parents of a latent point to; the rest is
        spread evenly. With one parent this is the parent's own state; with more it is
        drawn at random per configuration, such that every parent matters.
    relabel : bool, default=True
        Whether to rename the values of each feature at random. Categories are names:
        a method must not rely on their order.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    data : Bunch
        With the attributes:

        X : ndarray of shape (n_sequences, n_slices * n_observed)
            Values by number, slice by slice.
        codes : ndarray of shape (n_sequences, n_slices, n_observed)
            The same as an array of three dimensions.
        Z : ndarray of shape (n_sequences, n_slices, n_latents)
            States of the latents.
        graph : TemporalGraph
            The structure.
        network : LatentDBN
            The true model.
        n_slices : int
            Number of slices.

    References
    ----------
    .. [1] Halbersberg, D., Lerner, B. (2020). Local to global learning of a latent
       dynamic Bayesian network. ECAI.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_latent_dbn
    >>> data = make_latent_dbn("G3", n_sequences=100, n_slices=5, random_state=0)
    >>> data.X.shape, data.Z.shape
    ((100, 30), (100, 5, 2))
    >>> data.graph
    TemporalGraph(n_latents=2, n_observed=6, n_intra=1, n_inter=1)
    """
    check_flag("relabel", relabel)
    n_sequences = check_count("n_sequences", n_sequences, 1, MOST_ROWS)
    rng = check_random_state(random_state)
    graph = _check_graph(graph)
    cards = _per(
        "cardinality",
        check_counts("cardinality", cardinality),
        graph.n_latents,
        "latent",
    )
    keep = _shares("persistence", persistence, graph.n_latents, "latent")
    right = _shares("reliability", reliability, graph.n_observed, "feature")
    parent = np.where(graph.structure.any(axis=0), graph.structure.argmax(axis=0), -1)
    default = np.array([cards[j] if j >= 0 else 2 for j in parent], dtype=int)
    widths = default
    if n_categories is not None:
        given = check_counts("n_categories", n_categories)
        widths = _per("n_categories", given, graph.n_observed, "feature")
    directed = graph.directed()
    latents = range(graph.n_latents)
    start = [
        _table(table_shape(directed, cards, j, later=False), keep[j], rng)
        if directed.parents_within(j)
        else np.full(cards[j], 1.0 / cards[j])
        for j in latents
    ]
    transition = [
        _table(table_shape(directed, cards, j, later=True), keep[j], rng)
        for j in latents
    ]
    emission = [
        _emission(cards[j] if j >= 0 else 1, widths[f], right[f], relabel, rng)
        for f, j in enumerate(parent)
    ]
    network = LatentDBN(graph, cards, start, transition, emission)
    codes, states = network.sample(n_sequences, n_slices, rng)
    return Bunch(
        X=codes.reshape(n_sequences, -1),
        codes=codes,
        Z=states,
        graph=graph,
        network=network,
        n_slices=n_slices,
    )


def _check_graph(graph) -> TemporalGraph:
    """A graph by name, or the graph itself."""
    if isinstance(graph, TemporalGraph):
        return graph
    if not isinstance(graph, str) or graph not in GRAPHS:
        raise ValueError(
            f"graph must be one of {sorted(GRAPHS)} or a TemporalGraph, got {graph!r}."
        )
    intra, inter = map(np.array, GRAPHS[graph])
    structure = np.kron(np.eye(len(intra)), np.ones((1, FEATURES_PER_LATENT)))
    return TemporalGraph(structure, intra, inter)


def _per(name, values, n, what) -> np.ndarray:
    """One number per latent or feature."""
    values = np.full(n, values) if values.ndim == 0 else values
    if values.shape != (n,):
        raise ValueError(
            f"{name} must be a number or one per {what}, shape ({n},), got "
            f"{values.shape}."
        )
    return values


def _shares(name, value, n, what) -> np.ndarray:
    """One probability per latent or feature."""
    values = check_numbers(name, value)
    # NaN fails the comparisons.
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError(f"{name} must be in [0, 1], got {shown(value)}.")
    return _per(name, values, n, what)


def _table(shape, keep: float, rng) -> np.ndarray:
    """Conditional table with `keep` on one value of every row."""
    *parents, card = shape
    if not parents:
        return np.full(card, 1.0 / card)
    if len(parents) == 1:
        peak = np.arange(parents[0]) % card
    else:
        peak = _influenced_by_all(parents, card, rng)
    return _peaked(peak, card, keep)


def _influenced_by_all(parents, card: int, rng) -> np.ndarray:
    """A value for every configuration of parents, on which each has an influence.

    Draws rows until each parent alone, averaged over the others, shifts the
    distribution; a table such as the sum modulo card would hide every parent.
    """

    def least_shift(peak):
        indicator = peak[..., None] == np.arange(card)
        axes = range(len(parents))
        alone = [indicator.mean(axis=tuple({*axes} - {axis})) for axis in axes]
        return min(means.std(axis=0).mean() for means in alone)

    tables = [rng.randint(card, size=tuple(parents)) for _ in range(200)]
    return max(tables, key=least_shift)


def _peaked(peak: np.ndarray, card: int, mass: float) -> np.ndarray:
    """Rows with `mass` on the peak and the rest spread evenly."""
    if card == 1:
        return np.ones((*peak.shape, 1))
    at_peak = peak[..., None] == np.arange(card)
    return np.where(at_peak, mass, (1.0 - mass) / (card - 1))


def _emission(n_states, n_values, mass, relabel, rng) -> np.ndarray:
    """Emission table whose peaks differ between states as far as values allow."""
    peak = np.arange(n_states) % n_values
    if relabel:
        peak = rng.permutation(n_values)[peak]
    return _peaked(peak, n_values, mass)
