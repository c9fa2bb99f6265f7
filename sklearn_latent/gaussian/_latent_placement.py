"""Search for latents of linear networks: births, deaths and redraws, by one score.

Between two of these steps edges are added and dropped, many at a time, by what they
gain in likelihood with the latents integrated out, and searched for as a whole on
expected statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

import numpy as np

from .._core.choose import grow
from .._core.graphs import reaches
from ._factors import FEWEST_CHILDREN, DenseSets, correlated_factors, few_factors
from ._gaussian_network import GaussianNetwork
from ._latent_likelihood import Point, edge_gains, fit_point
from ._linear_scores import fit_linear
from ._rules import TIE, ranked_with_ties
from ._statistics import NOISE_SHARE, GaussianStatistics, standardise
from ._structural_em import (
    Expected,
    StructuralEM,
    fit_parameters,
    learn,
    measured,
    saturated_statistics,
    weakest_first,
)

# Smallest gain, in nats, of a change: less may come from a fit that ended early.
MIN_GAIN = 0.05
# Sets of nodes that are tried as children of a new latent.
N_TRIALS = 8


def place_latents(em: StructuralEM) -> GaussianNetwork:
    """Best network with latents: anywhere, or over features only if `bipartite`.

    Where values are missing, the network found so far says what is expected of the
    features, and the search goes on from there.
    """
    start = None if em.options.bipartite else em.first().network
    statistics = saturated_statistics(em.data)
    search = LatentSearch(em, statistics)
    if start is not None and not search.limit:
        return start
    best = search.run(search.bare() if start is None else search.standard(start))
    network = search.in_units(best.network)

    def improved(state: Expected):
        if em.report(state):
            return None
        search.read(state.statistics)
        point = search.improve(search.fit(search.standard(state.network)))
        if np.array_equal(point.network.adjacency, state.network.adjacency):
            return None
        return search.in_units(point.network)

    def fit(network):
        return fit_parameters(em.data, network, tol=1e-5)

    if em.data.n_missing:
        state = learn(network, fit, improved, em.whole_score, tol=MIN_GAIN)
        search.read(state.statistics)
        network = state.network
    # EM takes long to the end where latents trade their effects.
    best = fit_point(search.given, search.standard(network), tol=1e-9, max_iter=200)
    return search.in_units(best.network)


class LatentSearch:
    """Search for the network with latents of the highest score.

    em: options, prices, and search over graphs
    given: statistics of the features in standard units, `scale` and `mean`
    limit: largest number of latents
    """

    def __init__(self, em: StructuralEM, statistics: GaussianStatistics):
        self.em = em
        self.n_features = em.data.n_features
        limits = em.options.max_latents, self.n_features // 2
        self.limit = max(0, min(*limits, int(em.data.weight) - 1))
        self.read(statistics)

    def read(self, statistics: GaussianStatistics) -> None:
        """Take these statistics for those of the features; others may follow."""
        own = statistics.reordered(np.arange(self.n_features))
        self.given, self.scale = standardise(own)
        self.mean = own.mean

    def standard(self, network: GaussianNetwork) -> GaussianNetwork:
        """A network of the data in standard units; its intercepts have no meaning."""
        units = np.append(1.0 / self.scale, np.ones(network.n_latents))
        return network._rescaled(units)._in_noise_units()

    def in_units(self, network: GaussianNetwork) -> GaussianNetwork:
        """A network in the units of the data."""
        nothing = np.zeros(network.n_latents)
        scale = np.append(self.scale, nothing + 1.0)
        centred = GaussianNetwork._linear(
            network.adjacency,
            network.weights,
            0.0 * network.intercept,
            network.noise_variance,
            network.n_latents,
        )
        return centred._rescaled(scale, np.append(self.mean, nothing))

    @property
    def edge_price(self) -> float:
        """What an edge of a latent costs, apart from the choice of children."""
        return self.em.penalty.parameter + self.em.penalty.latent_edge

    def score(self, point: Point) -> float:
        """Log-likelihood minus the price of the whole network."""
        return self.em.whole_score(point)

    # Edges, the latents given

    def fit(self, network: GaussianNetwork) -> Point:
        """Fit the parameters and drop latents with too few neighbours."""
        self.em.n_evaluated += 1
        n = self.n_features
        while network.n_latents:
            adjacency = network.adjacency
            children = adjacency[n:].sum(axis=1)
            few = children + adjacency[:, n:].sum(axis=0) < FEWEST_CHILDREN
            few |= children < 2
            if not few.any():
                break
            network = network._without(np.flatnonzero(few))
        return fit_point(self.given, self._limited(network))

    def _limited(self, network: GaussianNetwork) -> GaussianNetwork:
        """The network with required edges, and no more parents than are allowed."""
        rules = self.em.options.rules(self.given.weight, network.n_latents)
        present = network.adjacency | rules.required
        size = np.where(rules.required, np.inf, np.abs(network.weights))
        size = np.where(present, size, -1.0)
        rank = np.argsort(np.argsort(-size, axis=0, kind="stable"), axis=0)
        return network._with_edges(present & (rank < rules.max_parents))

    def adapt(self, point: Point, *, between=True, max_rounds=60) -> Point:
        """Add and drop edges, many at a time, while the score rises.

        Each node makes its best move; if the exact score says that all of them
        together are too much, the better half of them is tried, and so on. Edges
        between features are left alone unless `between`.
        """
        share = 1.0
        for _ in range(max_rounds):
            moves = self._moves(point, between)
            if not moves:
                break
            n_moves = max(1, int(share * len(moves)))
            trial = self.fit(self._moved(point.network, moves[:n_moves]))
            if self.score(trial) > self.score(point) + MIN_GAIN:
                point, share = trial, min(1.0, 2.0 * share)
            elif n_moves == 1:
                break
            else:
                share = 0.5 * n_moves / len(moves)
        return point

    def _moves(self, point: Point, between: bool) -> list[tuple]:
        """Best move of each node, if it gains: (gain, parent, child, weight)."""
        n, present = self.n_features, point.network.adjacency
        rules = self.em.options.rules(self.given.weight, point.network.n_latents)
        allowed = ~rules.forbidden & ~reaches(present).T
        allowed[:, present.sum(axis=0) >= rules.max_parents] = False
        gone = present & ~rules.required
        if not between:
            allowed[:n] = gone[:n] = False
        gains, steps = edge_gains(point, allowed)
        self.em.n_considered += int(allowed.sum())
        add, drop = self._prices(present)
        change = np.where(allowed & ~present, gains - add, -np.inf)
        change = np.where(gone, drop - gains, change)
        best = change.max(axis=0)
        parents = (change >= best - TIE).argmax(axis=0)
        children = np.flatnonzero(best > MIN_GAIN)
        children = children[ranked_with_ties(best[children])]
        return [
            (best[child], parents[child], child, steps[parents[child], child])
            for child in children
        ]

    def _moved(self, network: GaussianNetwork, moves) -> GaussianNetwork:
        """The network after some moves, without those that would close a cycle."""
        adjacency = network.adjacency.copy()
        reach = reaches(adjacency)
        added = np.zeros(adjacency.shape)
        for _, parent, child, weight in moves:
            if adjacency[parent, child]:
                adjacency[parent, child] = False
            elif not reach[child, parent]:
                adjacency[parent, child] = True
                added[parent, child] = weight
                reach[reach[:, parent]] |= reach[child]
        moved = network._with_edges(adjacency)
        return GaussianNetwork._linear(
            adjacency,
            moved.weights + added,
            moved.intercept,
            moved.noise_variance,
            moved.n_latents,
        )

    def _prices(self, adjacency) -> tuple[np.ndarray, np.ndarray]:
        """What each edge would cost, and what dropping it would save."""
        n, em = self.n_features, self.em
        price = em.price(adjacency)
        add = np.full(adjacency.shape, self.edge_price)
        drop = add.copy()

        def change(i, j):
            other = adjacency.copy()
            other[i, j] ^= True
            return em.price(other) - price

        for nodes in (np.arange(n), n + np.flatnonzero(measured(adjacency, n))):
            block = np.ix_(nodes, nodes)
            present = adjacency[block]
            absent = ~present & ~np.eye(len(nodes), dtype=bool)
            if absent.any():
                add[block] = change(*nodes[np.argwhere(absent)[0]])
            if present.any():
                drop[block] = -change(*nodes[np.argwhere(present)[0]])
        for latent in range(n, len(adjacency)):
            children = adjacency[latent, :n]
            if not children.all():
                more = change(latent, int(np.argmin(children)))
                add[latent, :n] = add[:n, latent] = more
            if children.any():
                less = -change(latent, int(np.argmax(children)))
                drop[latent, :n] = drop[:n, latent] = less
        return add, drop

    def settle(self, point: Point) -> Point:
        """Adapt edges, then search over graphs, until neither raises the score."""
        return learn(point, self.adapt, self.searched, self.score, tol=MIN_GAIN)

    def searched(self, point: Point) -> Point | None:
        """Search over graphs on expected statistics: a step of structural EM."""
        if self.em.options.bipartite or not point.is_valid:
            return None
        adjacency, n_latents = point.network.adjacency, point.network.n_latents
        statistics = point.statistics
        method = self.em.options.search
        graph = self.em.search(statistics, adjacency, n_latents, method)
        if np.array_equal(graph, adjacency):
            return None
        own = fit_linear(statistics, graph, NOISE_SHARE)
        start = GaussianNetwork._linear(graph, own[0], own[1], own[2], n_latents)
        return self.fit(start._in_noise_units())

    # Latents

    def run(self, start: GaussianNetwork) -> Point:
        """Improve the better of a network without latents and one of two layers."""
        best = self.fit(start)
        if not self.em.stopped:
            best = self.better(best, self.two_layers(), "factors")
        return best if self.em.stopped else self.improve(best)

    def two_layers(self) -> Point:
        """Best network of factors of all features, from several numbers of them."""
        bare = self.fit(self.bare())

        def layers(n_latents):
            if not n_latents:
                return bare
            return self.adapt(self.fit(self.factors(bare, n_latents)), between=False)

        return grow(
            layers,
            range(self.limit + 1),
            lambda point: -self.score(point),
            is_hopeless=lambda growth: self.em.report(growth.best),
        ).best

    def factors(self, bare: Point, n_latents: int) -> GaussianNetwork:
        """Factors of all features: correlated ones unless they have no parents."""
        if n_latents > 1 and not self.em.options.bipartite:
            try:
                return correlated_factors(self.given, n_latents, self.edge_price)
            except np.linalg.LinAlgError:  # factors that coincide
                pass
        return self.redrawn(bare, [], np.arange(self.n_features), n_latents)

    def bare(self) -> GaussianNetwork:
        """The network without latents and edges, apart from required ones."""
        required = self.em.options.required
        nothing, ones = np.zeros(self.n_features), np.ones(self.n_features)
        return GaussianNetwork._linear(
            required, np.zeros(required.shape), nothing, ones
        )

    def improve(self, best: Point) -> Point:
        """Change edges, and add, drop and redraw latents until nothing is gained."""
        best = self.better(best, self.settle(best), "edges")
        kinds = [
            ("birth", self.births),
            ("edges", self.redraws),
            ("death", self.deaths),
        ]
        if self.em.options.bipartite:  # fewer factors have been tried
            kinds = kinds[:2]
        n_stale = 0
        while n_stale < len(kinds) and not self.em.report(best):
            kind, starts = kinds[0]
            before, best = best, self.changed(best, kind, starts(best))
            if best is before:
                kinds, n_stale = kinds[1:] + kinds[:1], n_stale + 1
            else:
                n_stale = 0
        return best

    def better(self, best: Point, trial: Point, name: str) -> Point:
        """The better of two networks; what was gained goes to the history."""
        gain = self.score(trial) - self.score(best)
        if not gain > MIN_GAIN:
            return best
        self.em.history.append(((name, trial.network.n_latents), float(gain)))
        return trial

    def changed(
        self, best: Point, kind: str, starts: Iterable[GaussianNetwork]
    ) -> Point:
        """The first change whose edges, adapted, make the network better, if any."""
        for start in starts:
            if _same_edges(start, best.network):
                continue
            trial = self.adapt(self.fit(start))
            if self.score(trial) > self.score(best) + MIN_GAIN:
                return self.better(best, self.settle(trial), kind)
        return best

    def births(self, point: Point) -> Iterator[GaussianNetwork]:
        """One more latent, over the most promising sets of nodes."""
        if point.network.n_latents >= self.limit or not point.is_valid:
            return
        for members in self._candidates(point):
            yield self.redrawn(point, [], members, 1)

    def deaths(self, point: Point) -> Iterator[GaussianNetwork]:
        """One latent less, the weakest first."""
        for latent in weakest_first(point.network):
            yield point.network._without([latent])

    def redraws(self, point: Point) -> Iterator[GaussianNetwork]:
        """Latents, and pairs of them with common neighbours, drawn anew.

        The best rotation of two latents changes as edges between features are found,
        and so does whether a neighbour is a parent or a child.
        """
        n, adjacency = self.n_features, point.network.adjacency
        near = adjacency[n:, :n] | adjacency[:n, n:].T
        for a, b in combinations_with_replacement(range(len(near)), 2):
            if not (near[a] & near[b]).any():
                continue
            latents = np.unique([a, b])
            members = np.flatnonzero(near[latents].any(axis=0))
            yield self.redrawn(point, latents, members, len(latents))

    def redrawn(self, point: Point, latents, members, n_new: int) -> GaussianNetwork:
        """The network with new latents in place of some, and of edges among a set."""
        if not point.is_valid:
            return point.network
        gone = self.n_features + np.asarray(latents, dtype=int)
        kept = np.delete(np.arange(len(point.network.adjacency)), gone)
        rest = point.network._without(latents)
        members = np.searchsorted(kept, members)
        adjacency = rest.adjacency.copy()
        adjacency[np.ix_(members, members)] = False
        rest = rest._with_edges(adjacency)
        # What parents outside the set leave.
        columns = (np.eye(len(kept)) - rest.weights)[:, members]
        moments = point.statistics.covariance[np.ix_(kept, kept)]
        left = columns.T @ moments @ columns
        return rest._with_latents(
            members, *few_factors(left, n_new, self.given.weight, self.edge_price)
        )

    def _candidates(self, point: Point) -> list[np.ndarray]:
        """Sets of features, then of latents, that may share a latent."""
        n, adjacency = self.n_features, point.network.adjacency
        sets, edge, sizes = DenseSets(point), self.edge_price, np.arange(n + 1)
        between = self._prices(adjacency)[1][:n, :n].max()
        found = sets.find(np.arange(n), between, sizes * edge + self.em.choice(sizes))
        if self.em.options.bipartite:
            return found[:N_TRIALS]
        latents = np.arange(n, len(adjacency))
        above = sets.find(latents, edge, edge * np.arange(len(latents) + 1))
        return found[:N_TRIALS] + above[:N_TRIALS]


def _same_edges(a: GaussianNetwork, b: GaussianNetwork) -> bool:
    """Whether features have the same parents, in any order of the latents."""
    n = a.n_features
    if a.adjacency[:n, n:].any() or b.adjacency[:n, n:].any():
        return False
    first, second = (sorted(map(bytes, own.adjacency[n:, :n])) for own in (a, b))
    return first == second and np.array_equal(a.adjacency[:n, :n], b.adjacency[:n, :n])
