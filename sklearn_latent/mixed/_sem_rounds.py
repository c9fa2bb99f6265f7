"""Structural EM (Friedman, 1998): features and edges of latents by expected counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from .._core.criteria import bic, bic_price
from ._em.chain_em import EMOptions, fit_chain
from ._graph import TemporalGraph, complete_graph
from ._inference.chain_data import ChainData
from ._inference.expectation import expectation
from ._latent_dbn import LatentDBN
from ._latent_edges import best_edges
from ._latent_states import compared, score
from ._panels.panel import Panel
from ._tables import family_score, normalized, table_shape


@dataclass(frozen=True)
class SEMRun:
    """Result of one start of structural EM.

    bic: lower is better
    n_iter: rounds of EM and choices of a structure
    history: structures that were chosen, and what they gained
    """

    network: LatentDBN
    log_likelihood: float
    bic: float
    n_iter: int
    converged: bool
    history: list


class ExpectedCounts:
    """Counts under the current model, from which any structure can be scored.

    They have the scores of families that `best_edges` asks for.
    """

    # A table with more cells is not considered.
    max_parents, max_cells = 5, 100_000

    def __init__(self, network: LatentDBN, panel: Panel, price: float | None = None):
        data = ChainData.of(panel.values, network.graph.structure, panel.weights)
        result = expectation(network, data, together=True)
        self.cardinality = network.cardinality
        self.has_past = panel.n_slices > 1
        self.family_counts: Any = result.family_counts
        # As many observations as sequences: their slices are not independent.
        self.price = bic_price(data.total) if price is None else price
        self.emissions = network.emissions
        self._data, self._states = data, result.states

    @cached_property
    def emission(self) -> list[list[np.ndarray]]:
        """Statistics of every feature with every latent: [feature][latent]."""
        mass = self._data.weights[:, :, None]
        return [
            [self._data.statistics(f, own, state * mass) for state in self._states]
            for f, own in enumerate(self.emissions)
        ]

    def prepare(self, families) -> None:
        """Nothing takes long here."""

    def counts(self, before, within, child: int, *, later: bool) -> np.ndarray:
        """Counts of a latent and its parents in the first or in later slices."""
        family = [(i, False) for i in before] if later else []
        family += [(i, True) for i in (*within, child)]
        return self.family_counts(family, later)

    def score(self, before, within, child: int) -> tuple[float, int]:
        """Log-likelihood of a latent given its parents, and free parameters."""
        scores = [
            family_score(self.counts(before, within, child, later=later))
            for later in (False, True)[: 1 + self.has_past]
        ]
        return sum(value for value, _ in scores), sum(free for _, free in scores)

    def feature_scores(self) -> np.ndarray:
        """Expected BIC of each feature as a measure of each latent."""

        def value(emission, statistics):
            best = emission.fitted(statistics, 0.0)
            likelihood = best.expected_log_likelihood(statistics)
            return likelihood - self.price * best.n_free

        each = zip(self.emissions, self.emission, strict=True)
        return np.array([[value(own, one) for one in all_] for own, all_ in each])

    def network(self, graph: TemporalGraph) -> LatentDBN:
        """M-step for another graph."""
        start, transition = (
            [
                normalized(
                    self.counts(
                        graph.parents_before(j), graph.parents_within(j), j, later=later
                    ),
                    1.0,
                )
                for j in range(graph.n_latents)
            ]
            for later in (False, True)
        )
        parents = graph.structure.argmax(axis=0)
        each = zip(self.emissions, self.emission, parents, strict=True)
        emission = [own.fitted(statistics[j], 1.0) for own, statistics, j in each]
        return LatentDBN(graph, self.cardinality, start, transition, emission)


def better_structure(counts: ExpectedCounts, graph: TemporalGraph) -> TemporalGraph:
    """The graph of highest expected score; no latent loses its last feature."""
    structure = graph.structure.copy()
    scores = counts.feature_scores()
    now = structure.argmax(axis=0)
    gains = scores.max(axis=1) - scores[np.arange(len(now)), now]
    for f in np.argsort(-gains, kind="stable"):
        if gains[f] > 0 and structure[now[f]].sum() > 1:
            structure[[now[f], scores[f].argmax()], f] = False, True
    return TemporalGraph(structure, *best_edges(counts))


def structural_em(
    panel: Panel,
    cardinality,
    init: str | LatentDBN,
    options: EMOptions,
    *,
    max_rounds: int,
    random_state: int,
) -> SEMRun:
    """One start, "classes", "random" or a network, then EM and structures in turn."""
    rng = np.random.RandomState(random_state)
    first: LatentDBN | None = None
    if isinstance(init, LatentDBN):
        graph, first = init.graph, init
    else:
        factored = np.prod(cardinality.astype(float)) > options.max_joint_states
        # Factored inference takes as many products as the tables have cells.
        graph = random_graph(
            len(cardinality),
            panel.n_observed,
            panel.n_slices,
            rng,
            max_parents=2 if factored else None,
        )
        if init == "random":
            first = _random_network(graph, cardinality, panel.n_categories, rng)

    def fit(graph, first):
        ascent = fit_chain(panel, graph, cardinality, first, options, random_state=rng)
        network, value = ascent.state, ascent.statistics.log_likelihood
        return network, value, bic(value, network.n_parameters, panel.weights.sum())

    best = fit(graph, first)
    history: list = []
    while len(history) < max_rounds:
        counts = ExpectedCounts(best[0], panel)
        graph = better_structure(counts, best[0].graph)
        if graph == best[0].graph:
            break
        moved = fit(graph, counts.network(graph))
        # Structures can fail to pay if counts were factored or EM stopped early.
        if moved[2] >= best[2]:
            break
        history.append((repr(graph), best[2] - moved[2]))
        best = moved
    network, value, criterion = best
    converged = len(history) < max_rounds
    return SEMRun(network, value, criterion, 1 + len(history), converged, history)


def review_edges(panel: Panel, graph: TemporalGraph, cardinality, emission):
    """The graph, or one by counts that assume no edges, whichever has the better BIC.

    Guessed states of single slices hide some of the past, and directions.
    """
    every = complete_graph(graph.structure)
    # A few steps are enough to see what the guessed states hide.
    network = compared(panel, every, cardinality, emission, max_iter=20).state
    n_rows = (panel.weights @ (panel.codes >= 0).any(axis=2)).sum()
    intra, inter = best_edges(ExpectedCounts(network, panel, bic_price(n_rows)))
    other = replace(graph, intra=intra, inter=inter)
    if other == graph:
        return graph
    first, second = (
        score(panel, compared(panel, one, cardinality, start))
        for one, start in ((graph, emission), (other, network.emissions))
    )
    return other if second > first else graph


def random_graph(
    n_latents: int, n_observed: int, n_slices: int, rng, max_parents: int | None = None
) -> TemporalGraph:
    """A random pure measurement model with random edges."""
    # Every latent gets a feature first; the others fall where they may.
    parent = np.concatenate(
        [np.arange(n_latents), rng.randint(n_latents, size=n_observed - n_latents)]
    )
    structure = np.zeros((n_latents, n_observed), dtype=bool)
    structure[rng.permutation(parent), np.arange(n_observed)] = True
    order = rng.permutation(n_latents)
    intra = np.triu(rng.uniform(size=(n_latents, n_latents)) < 0.5, 1)
    inter = rng.uniform(size=(n_latents, n_latents)) < 0.5
    intra, inter = intra[np.ix_(order, order)], inter & (n_slices > 1)
    if max_parents is not None:
        parents = np.concatenate([intra, inter])
        for column in parents.T:
            column[rng.permutation(np.flatnonzero(column))[max_parents:]] = False
        intra, inter = parents[:n_latents], parents[n_latents:]
    return TemporalGraph(structure, intra, inter)


def _random_network(graph, cardinality, n_categories, rng) -> LatentDBN:
    """A network whose tables are drawn from flat Dirichlet distributions."""

    def table(*shape):
        return rng.dirichlet(np.ones(shape[-1]), shape[:-1])

    latents = range(graph.n_latents)
    parents = graph.structure.argmax(axis=0)
    return LatentDBN(
        graph,
        cardinality,
        [table(*table_shape(graph, cardinality, j, later=False)) for j in latents],
        [table(*table_shape(graph, cardinality, j, later=True)) for j in latents],
        [table(cardinality[j], n) for j, n in zip(parents, n_categories, strict=True)],
    )
