"""Search for latents: births, deaths and redraws, by one score."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np

from ..._graphs import reaches
from .._missing.structural_em import StructuralEM, measured
from .._scores.linear import fit_linear
from .._scores.moves import TIE, ranked_with_ties
from .._statistics.statistics import GaussianStatistics, standardise
from .candidates import DenseSets, correlated_factors, few_factors
from .clusters import FEWEST_CHILDREN
from .sem import Sem, SemData, edge_gains, fit_sem

# Numbers of factors beyond the best that are tried before giving up.
PATIENCE = 2
# Sets of nodes that are tried as children of a new latent.
N_TRIALS = 8
# Smallest gain, in nats, of a change: less may come from a fit that ended early.
MIN_GAIN = 0.05
# Loss, in nats, that a search over graphs may still turn into a gain: of 48 changes
# accepted in ten graphs with confounders, 41 had lost less before that search.
SLACK = 20.0


class LatentSearch:
    """Search for the network with latents of the highest score.

    em: options, prices, and search over graphs
    statistics: of the features, in their units
    """

    def __init__(self, em: StructuralEM, statistics: GaussianStatistics):
        self.em = em
        limits = em.options.max_latents, statistics.n_nodes // 2
        self.limit = max(0, min(*limits, int(em.data.weight) - 1))
        self.read(statistics)

    def read(self, statistics: GaussianStatistics) -> None:
        """Take these statistics for those of the features."""
        standard, scale = standardise(statistics)
        self.data = SemData(standard, self.em.data.noise_floor / scale**2)

    @property
    def n_features(self) -> int:
        """Number of features."""
        return len(self.data.covariance)

    @property
    def edge_price(self) -> float:
        """What an edge of a latent costs, apart from the choice of children."""
        return self.em.penalty.parameter + self.em.penalty.latent_edge

    def score(self, model: Sem) -> float:
        """Log-likelihood minus the price of the whole network."""
        return model.log_likelihood - self.em.price(model.adjacency)

    def fit(self, model: Sem) -> Sem:
        """Fit the parameters and drop latents with too few neighbours."""
        self.em.n_evaluated += 1
        n = self.n_features
        while model.n_latents:
            children = model.adjacency[n:].sum(axis=1)
            few = children + model.adjacency[:, n:].sum(axis=0) < FEWEST_CHILDREN
            few |= children < 2
            if not few.any():
                break
            model = model.without(n + np.flatnonzero(few))
        return fit_sem(self.data, self._limited(model))

    def _limited(self, model: Sem) -> Sem:
        """The network with required edges, and no more parents than are allowed."""
        rules = self.em.options.rules(self.data.weight, model.n_latents)
        present = model.adjacency | rules.required
        size = np.where(rules.required, np.inf, np.abs(model.weights))
        size = np.where(present, size, -1.0)
        rank = np.argsort(np.argsort(-size, axis=0, kind="stable"), axis=0)
        return model.with_adjacency(present & (rank < rules.max_parents))

    def better(self, best: Sem, trial: Sem, name: str) -> Sem:
        """The better of two networks; what was gained goes to the history."""
        gain = self.score(trial) - self.score(best)
        if not gain > MIN_GAIN:
            return best
        self.em.history.append(((name, trial.n_latents), float(gain)))
        return trial

    def adapt(self, model: Sem, *, between=True, max_rounds=60) -> Sem:
        """Add and drop edges, many at a time, while the score rises.

        Each node makes its best move; if the exact score says that all of them
        together are too much, the better half of them is tried, and so on. Edges
        between features are left alone unless `between`.
        """
        score = self.score(model)
        share = 1.0
        for _ in range(max_rounds):
            moves = self._moves(model, between)
            if not moves:
                break
            n_moves = max(1, int(share * len(moves)))
            trial = self.fit(self._moved(model, moves[:n_moves]))
            trial_score = self.score(trial)
            if trial_score > score + MIN_GAIN:
                model, score, share = trial, trial_score, min(1.0, 2.0 * share)
            elif n_moves == 1:
                break
            else:
                share = 0.5 * n_moves / len(moves)
        return model

    def _moves(self, model: Sem, between: bool) -> list[tuple]:
        """Best move of each node, if it gains: (gain, parent, child, weight)."""
        n = self.n_features
        rules = self.em.options.rules(self.data.weight, model.n_latents)
        present = model.adjacency
        allowed = ~rules.forbidden & ~reaches(present).T
        allowed[:, present.sum(axis=0) >= rules.max_parents] = False
        gone = present & ~rules.required
        if not between:
            allowed[:n] = gone[:n] = False
        gains, steps = edge_gains(self.data, model, allowed)
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

    def _moved(self, model: Sem, moves) -> Sem:
        """The network after some moves, without those that would close a cycle."""
        adjacency, weights = model.adjacency.copy(), model.weights.copy()
        reach = reaches(adjacency)
        for _, parent, child, weight in moves:
            if adjacency[parent, child]:
                adjacency[parent, child] = False
            elif not reach[child, parent]:
                adjacency[parent, child] = True
                weights[parent, child] = weight
                reach[reach[:, parent]] |= reach[child]
        start = model.with_adjacency(adjacency)
        return replace(start, weights=np.where(adjacency, weights, 0.0))

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

    def settle(self, model: Sem) -> Sem:
        """Adapt edges, then search over graphs, until neither raises the score."""
        model = self.adapt(model)
        while not self.em.options.bipartite:
            trial = self.adapt(self.searched(model))
            if self.score(trial) <= self.score(model) + MIN_GAIN:
                break
            model = trial
        return model

    def searched(self, model: Sem) -> Sem:
        """Search over graphs on expected statistics: a step of structural EM."""
        point = self.data.point(model)
        if point is None:
            return model
        statistics = point.expected_statistics()
        result, _ = self.em.search(statistics, model.adjacency, model.n_latents)
        if np.array_equal(result.adjacency, model.adjacency):
            return model
        weights, _, noise = fit_linear(statistics, result.adjacency)
        n = self.n_features
        scale = np.sqrt(np.append(np.ones(n), noise[n:]))
        start = Sem(
            result.adjacency,
            weights * scale[:, None] / scale,
            np.maximum(noise[:n], self.data.floor),
        )
        return self.fit(start)

    def graph_first(self, model: Sem) -> Sem:
        """Search over graphs before edges are adapted.

        Edges that stand for a latent have others follow from them, so that each of
        them alone seems to be needed.
        """
        return self.adapt(self.searched(model))

    def latents_first(self, model: Sem) -> Sem:
        """Find the children of latents before edges between features."""
        return self.graph_first(self.adapt(model, between=False))

    def changed(
        self,
        best: Sem,
        kind: str,
        starts: Iterable[Sem],
        adapt: Callable[[Sem], Sem],
    ) -> Sem:
        """The first change whose edges, adapted, make the network better, if any.

        If none of them is, a search over graphs follows where little is lost.
        """
        score = self.score(best)
        near: list[tuple[float, Sem]] = []
        for start in starts:
            if _same_edges(start, best):
                continue
            trial = adapt(self.fit(start))
            gain = self.score(trial) - score
            if gain > MIN_GAIN:
                return self.better(best, self.settle(trial), kind)
            if gain > -SLACK:
                near.append((gain, trial))
        for _, trial in sorted(near, key=lambda entry: -entry[0]):
            found = self.better(best, self.settle(trial), kind)
            if found is not best:
                return found
        return best

    def births(self, model: Sem) -> Iterator[Sem]:
        """One more latent, over the most promising sets of nodes."""
        if model.n_latents >= self.limit:
            return
        for members in self._candidates(model):
            born = self.redrawn(model, [], members, 1)
            yield born
            yield self.cleared(born, 1)

    def deaths(self, model: Sem) -> Iterator[Sem]:
        """One latent less, the weakest first."""
        n = self.n_features
        worth = (model.weights[n:, :n] ** 2 / model.noise).sum(axis=1)
        for latent in np.argsort(worth, kind="stable"):
            yield model.without([n + latent])

    def redraws(self, model: Sem) -> Iterator[Sem]:
        """Latents, and pairs of them with common neighbours, drawn anew.

        The best rotation of two latents changes as edges between features are found,
        and so does whether a neighbour is a parent or a child.
        """
        n = self.n_features
        near = model.adjacency[n:, :n] | model.adjacency[:n, n:].T
        for a, b in combinations_with_replacement(range(model.n_latents), 2):
            if (near[a] & near[b]).any():
                latents = np.unique([a, b])
                members = np.flatnonzero(near[latents].any(axis=0))
                drawn = self.redrawn(model, n + latents, members, len(latents))
                yield drawn
                if a == b:
                    yield self.cleared(drawn, 1)

    def lowerings(self, model: Sem) -> Iterator[Sem]:
        """Latents without the features above them."""
        n = self.n_features
        for latent in np.flatnonzero(model.adjacency[:n, n:].any(axis=0)):
            yield self.lowered(model, n + int(latent))

    def lowered(self, model: Sem, latent: int) -> Sem:
        """The same distribution, features above a latent parents of its children.

        One edge to a latent is cheaper than edges to some of its children, so that a
        search which adds edges one at a time takes it first.
        """
        n = self.n_features
        adjacency, weights = model.adjacency.copy(), model.weights.copy()
        adjacency[:n] |= np.outer(adjacency[:n, latent], adjacency[latent])
        weights[:n] += np.outer(weights[:n, latent], weights[latent])
        adjacency[:n, latent], weights[:n, latent] = False, 0.0
        same = replace(model, adjacency=adjacency, weights=weights)
        rules = self.em.options.rules(self.data.weight, model.n_latents)
        return same.with_adjacency(adjacency & ~rules.forbidden)

    def redrawn(self, model: Sem, latents, members, n_new: int) -> Sem:
        """The network with new latents in place of some, and of edges among a set."""
        point = self.data.point(model)
        if point is None:
            return model
        kept = np.delete(np.arange(len(model.adjacency)), latents)
        rest = model.without(latents)
        members = np.searchsorted(kept, members)
        adjacency = rest.adjacency.copy()
        adjacency[np.ix_(members, members)] = False
        rest = rest.with_adjacency(adjacency)
        # What parents outside the set leave.
        columns = (np.eye(len(kept)) - rest.weights)[:, members]
        moments = point.expected_statistics().covariance[np.ix_(kept, kept)]
        left = columns.T @ moments @ columns
        return rest.with_latents(
            members, *few_factors(left, n_new, self.data.weight, self.edge_price)
        )

    def _candidates(self, model: Sem) -> list[np.ndarray]:
        """Sets of features, then of latents, that may share a latent."""
        n = self.n_features
        point = self.data.point(model)
        if point is None:
            return []
        sets = DenseSets(point)
        edge = self.edge_price
        sizes = np.arange(n + 1)
        between = self._prices(model.adjacency)[1][:n, :n].max()
        found = sets.find(np.arange(n), between, sizes * edge + self.em.choice(sizes))
        if self.em.options.bipartite:
            return found[:N_TRIALS]
        latents = np.arange(n, len(model.adjacency))
        above = sets.find(latents, edge, edge * np.arange(len(latents) + 1))
        return found[:N_TRIALS] + above[:N_TRIALS]

    def cleared(self, model: Sem, n_last: int) -> Sem:
        """The network without edges that may stand for its last latents.

        Given an effect of two causes these depend on each other, so that a graph
        without a latent also has edges from other causes of its children, be they
        features or latents.
        """
        n = self.n_features
        last = model.adjacency[-n_last:]
        children = np.append(last[:, :n].any(axis=0), np.zeros(model.n_latents, bool))
        adjacency = model.adjacency & ~children
        adjacency[children] = False
        adjacency[-n_last:] = last
        return model.with_adjacency(adjacency)

    def two_layers(self) -> Sem:
        """Best network of factors of all features, from several numbers of them."""
        bare = best = self.fit(self.bare())
        n_stale = 0
        for n_latents in range(1, self.limit + 1):
            if n_stale > PATIENCE or self.report(best):
                break
            start = self.fit(self.factors(bare, n_latents))
            trial = self.adapt(start, between=False)
            if self.score(trial) > self.score(best) + MIN_GAIN:
                best, n_stale = trial, 0
            else:
                n_stale += 1
        return best

    def factors(self, bare: Sem, n_latents: int) -> Sem:
        """Factors of all features: correlated ones unless they have no parents."""
        if n_latents > 1 and not self.em.options.bipartite:
            try:
                return correlated_factors(self.data, n_latents, self.edge_price)
            except np.linalg.LinAlgError:  # factors that coincide
                pass
        return self.redrawn(bare, [], np.arange(self.n_features), n_latents)

    def bare(self) -> Sem:
        """The network without latents and edges, apart from required ones."""
        required = self.em.options.required
        return Sem(required, np.zeros(required.shape), np.ones(self.n_features))

    def report(self, model: Sem) -> bool:
        """Tell how far the search has come; whether to stop."""
        return self.em.report(
            f"{int(model.adjacency.sum())} edges, {model.n_latents} latents, score "
            f"{self.score(model):.8g}"
        )

    def run(self, start: Sem) -> Sem:
        """Improve the better of a network without latents and one of two layers."""
        best = self.fit(start)
        if not self.em.stopped:
            best = self.better(best, self.two_layers(), "factors")
        return best if self.em.stopped else self.improve(best)

    def improve(self, best: Sem) -> Sem:
        """Change edges, and add, drop and redraw latents until nothing is gained."""
        best = self.better(best, self.settle(best), "edges")
        kinds = [
            ("birth", self.births, self.adapt),
            ("edges", self.redraws, self.adapt),
            ("death", self.deaths, self.adapt),
            ("edges", self.lowerings, self.adapt),
            ("birth", self.births, self.latents_first),
            ("edges", self.redraws, self.graph_first),
        ]
        if self.em.options.bipartite:  # fewer factors have been tried
            kinds = kinds[:2]
        n_stale = 0
        while n_stale < len(kinds) and not self.report(best):
            kind, starts, adapt = kinds[0]
            before, best = best, self.changed(best, kind, starts(best), adapt)
            if best is before:
                kinds, n_stale = kinds[1:] + kinds[:1], n_stale + 1
            else:
                n_stale = 0
        return best


def _same_edges(a: Sem, b: Sem) -> bool:
    """Whether features have the same parents, in any order of the latents."""
    n = a.n_features
    if a.adjacency[:n, n:].any() or b.adjacency[:n, n:].any():
        return False
    first, second = (sorted(map(bytes, model.adjacency[n:, :n])) for model in (a, b))
    return first == second and np.array_equal(a.adjacency[:n, :n], b.adjacency[:n, :n])
