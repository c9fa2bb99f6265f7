"""Structural EM (Friedman, 1998) over pure measurement models."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ..._core.criteria import bic, bic_price
from ..._core.graphs import is_acyclic
from .._em.chain_em import EMOptions, fit_chain
from .._graph import TemporalGraph
from .._inference.chain_data import ChainData
from .._inference.expectation import expectation
from .._model import LatentDBN
from .._panels.panel import Panel
from .._tables import family_score, normalized, table_shape

# A family table with more cells than this is not considered.
MAX_CELLS = 100_000

# Parents of a latent at the start where inference is factored, which takes as many
# products for each slice of each sequence as the tables have cells.
MAX_START_PARENTS = 2

# A move must gain this much; smaller gains are rounding.
SMALLEST_GAIN = 1e-6


@dataclass(frozen=True)
class SEMRun:
    """Result of one start of structural EM.

    bic: lower is better
    n_iter: rounds of EM and moves
    history: moves and what they gained in expectation
    """

    network: LatentDBN
    log_likelihood: float
    bic: float
    n_iter: int
    converged: bool
    history: list


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


class ExpectedCounts:
    """Counts under the current model, from which any structure can be scored.

    network: the current model
    data: sequences, prepared for its measurement model
    """

    def __init__(self, network: LatentDBN, data: ChainData):
        result = expectation(network, data, together=True)
        self.cardinality = network.cardinality
        self.n_slices = data.weights.shape[1]
        self.weights = data.weights
        assert result.family_counts is not None
        self.family_counts = result.family_counts
        # As many observations as sequences: their slices are not independent.
        self.price = bic_price(data.total)
        # Statistics of every feature with every latent: [feature][latent].
        weighted = [state * data.weights[:, :, None] for state in result.states]
        self.emissions = network.emissions
        self.emission = [
            [data.statistics(f, own, state) for state in weighted]
            for f, own in enumerate(network.emissions)
        ]
        self._scores: dict = {}

    def counts(self, j: int, before, within, *, later: bool) -> np.ndarray:
        """Counts of latent `j` and its parents in the first or in later slices."""
        family = [(i, False) for i in before] if later else []
        family += [(i, True) for i in (*within, j)]
        return self.family_counts(family, later)

    def feature_score(self, f: int, j: int) -> float:
        """Expected BIC of feature `f` as a measure of latent `j`."""
        key = "feature", f, j
        if key not in self._scores:
            statistics = self.emission[f][j]
            best = self.emissions[f].fitted(statistics, 0.0)
            value = best.expected_log_likelihood(statistics)
            self._scores[key] = value - self.price * best.n_free
        return self._scores[key]

    def latent_score(self, j: int, before: tuple, within: tuple) -> float:
        """Expected BIC of the tables of latent `j` with given parents."""
        key = j, before, within
        if key not in self._scores:
            cells = np.prod(self.cardinality[[*before, *within, j]].astype(float))
            if cells > MAX_CELLS:
                return -np.inf
            scores = [
                family_score(self.counts(j, before, within, later=later))
                for later in (False, True)[: self.n_slices]
            ]
            self._scores[key] = sum(value - self.price * free for value, free in scores)
        return self._scores[key]


def best_moves(
    counts: ExpectedCounts, graph: TemporalGraph
) -> tuple[TemporalGraph, list]:
    """Make the best move until none raises the expected score.

    A move gives a feature to another latent, or adds, deletes or reverses an edge
    between latents; no latent loses its last feature, and slices stay acyclic.
    """
    moves: list[tuple[str, float]] = []
    while True:
        candidates = [*_feature_moves(counts, graph), *_edge_moves(counts, graph)]
        gain, label, changed = max(
            candidates, key=lambda move: move[0], default=(0.0, "", graph)
        )
        if gain < SMALLEST_GAIN:
            return graph, moves
        graph = changed
        moves.append((label, gain))


def structural_em(
    panel: Panel,
    cardinality,
    init: str | LatentDBN,
    options: EMOptions,
    *,
    max_rounds: int,
    random_state: int,
) -> SEMRun:
    """One start, "classes", "random" or a network, then EM and moves in turn."""
    rng = np.random.RandomState(random_state)
    if isinstance(init, LatentDBN):
        graph, first = init.graph, init
    else:
        factored = np.prod(cardinality.astype(float)) > options.max_joint_states
        max_parents = MAX_START_PARENTS if factored else None
        graph = random_graph(
            len(cardinality), panel.n_observed, panel.n_slices, rng, max_parents
        )
        first = None
        if init == "random":
            first = _random_network(graph, cardinality, panel.n_categories, rng)

    def fit(graph, first):
        ascent = fit_chain(panel, graph, cardinality, first, options, random_state=rng)
        network, value = ascent.state, ascent.statistics.log_likelihood
        return network, value, bic(value, network.n_parameters, panel.weights.sum())

    best = fit(graph, first)
    history: list = []
    converged = False
    n_rounds = 1
    while not converged and n_rounds <= max_rounds:
        data = ChainData.of(panel.codes, graph.structure, panel.weights)
        counts = ExpectedCounts(best[0], data)
        graph, moves = best_moves(counts, graph)
        moved = fit(graph, _tables_from(counts, graph)) if moves else best
        # Moves can fail to pay if counts were factored or EM stopped early.
        if moved[2] >= best[2]:
            converged = True
        else:
            best = moved
            history.extend(moves)
            n_rounds += 1
    network, value, criterion = best
    return SEMRun(network, value, criterion, n_rounds, converged, history)


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


def _tables_from(counts: ExpectedCounts, graph) -> LatentDBN:
    """M-step on expected counts for a graph that moves have changed."""
    families = [
        (j, graph.parents_before(j), graph.parents_within(j))
        for j in range(graph.n_latents)
    ]
    start, transition = (
        [normalized(counts.counts(*own, later=later), 1.0) for own in families]
        for later in (False, True)
    )
    parents = graph.structure.argmax(axis=0)
    emission = [
        own.fitted(of_latents[j], 1.0)
        for own, of_latents, j in zip(
            counts.emissions, counts.emission, parents, strict=True
        )
    ]
    return LatentDBN(graph, counts.cardinality, start, transition, emission)


def _feature_moves(counts: ExpectedCounts, graph: TemporalGraph):
    """Yield (gain, label, graph) for each feature that could change its latent."""
    n_features = graph.structure.sum(axis=1)
    for f, j in enumerate(graph.structure.argmax(axis=0)):
        if n_features[j] < 2:
            continue
        now = counts.feature_score(f, j)
        for k in range(graph.n_latents):
            if k == j:
                continue
            structure = graph.structure.copy()
            structure[[j, k], f] = False, True
            gain = counts.feature_score(f, k) - now
            label = f"feature {f}: latent {j} to {k}"
            yield gain, label, replace(graph, structure=structure)


def _edge_moves(counts: ExpectedCounts, graph: TemporalGraph):
    """Yield (gain, label, graph) for each edge that could be changed."""
    n = graph.n_latents
    before = [graph.parents_before(j) for j in range(n)]
    within = [graph.parents_within(j) for j in range(n)]
    now = [counts.latent_score(j, before[j], within[j]) for j in range(n)]
    for i, j in product(range(n), repeat=2):
        if counts.n_slices > 1:
            gain = counts.latent_score(j, _toggle(before[j], i), within[j]) - now[j]
            word = "delete" if graph.inter[i, j] else "add"
            label = f"{word} latent {i} -> latent {j} of the next slice"
            yield gain, label, replace(graph, inter=_flipped(graph.inter, (i, j)))
        if i == j:
            continue
        gain = counts.latent_score(j, before[j], _toggle(within[j], i)) - now[j]
        word, intra = "add", _flipped(graph.intra, (i, j))
        if graph.intra[i, j]:
            yield gain, f"delete latent {i} -> latent {j}", replace(graph, intra=intra)
            word, intra = "reverse", _flipped(intra, (j, i))
            gain += counts.latent_score(i, before[i], _toggle(within[i], j)) - now[i]
        if gain > 0 and is_acyclic(intra):
            yield gain, f"{word} latent {i} -> latent {j}", replace(graph, intra=intra)


def _flipped(edges, place) -> np.ndarray:
    """Edges with one added, or removed if it was there."""
    edges = edges.copy()
    edges[place] ^= True
    return edges


def _toggle(parents: tuple, i: int) -> tuple:
    """Parents with `i` added, or removed if it was there."""
    return tuple(sorted(set(parents) ^ {i}))
