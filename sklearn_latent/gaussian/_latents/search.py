"""Search for latents: births, deaths and redraws, by one score."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations_with_replacement

import numpy as np

from .._missing.structural_em import StructuralEM
from .._statistics import GaussianStatistics
from .candidates import DenseSets, correlated_factors, few_factors
from .edges import MIN_GAIN, EdgeSearch
from .sem import Sem

# Numbers of factors beyond the best that are tried before giving up.
PATIENCE = 2
# Sets of nodes that are tried as children of a new latent.
N_TRIALS = 8
# Loss, in nats, that a search over graphs may still turn into a gain: in one of 24
# graphs with confounders, a loss of 25 became a gain of 43; 45 changes none of six.
SLACK = 30.0


class LatentSearch(EdgeSearch):
    """Search for the network with latents of the highest score.

    limit: largest number of latents
    """

    def __init__(self, em: StructuralEM, statistics: GaussianStatistics):
        super().__init__(em, statistics)
        limits = em.options.max_latents, statistics.n_nodes // 2
        self.limit = max(0, min(*limits, int(em.data.weight) - 1))

    def better(self, best: Sem, trial: Sem, name: str) -> Sem:
        """The better of two networks; what was gained goes to the history."""
        gain = self.score(trial) - self.score(best)
        if not gain > MIN_GAIN:
            return best
        self.em.history.append(((name, trial.n_latents), float(gain)))
        return trial

    def changed(
        self,
        best: Sem,
        kind: str,
        starts: Iterable[Sem],
    ) -> Sem:
        """The first change whose edges, adapted, make the network better, if any.

        If none of them does, a search over graphs follows where little is lost.
        """
        score = self.score(best)
        near: list[tuple[float, Sem]] = []
        for start in starts:
            if _same_edges(start, best):
                continue
            trial = self.adapt(self.fit(start))
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
        for latents, members in self._neighbours(model):
            drawn = self.redrawn(model, latents, members, len(latents))
            yield drawn
            if len(latents) == 1:
                yield self.cleared(drawn, 1)

    def _neighbours(self, model: Sem) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Latents and all their features; pairs if some are common."""
        n = self.n_features
        near = model.adjacency[n:, :n] | model.adjacency[:n, n:].T
        for a, b in combinations_with_replacement(range(model.n_latents), 2):
            if (near[a] & near[b]).any():
                latents = np.unique([a, b])
                yield n + latents, np.flatnonzero(near[latents].any(axis=0))

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
            ("birth", self.births),
            ("edges", self.redraws),
            ("death", self.deaths),
        ]
        if self.em.options.bipartite:  # fewer factors have been tried
            kinds = kinds[:2]
        n_stale = 0
        while n_stale < len(kinds) and not self.report(best):
            kind, starts = kinds[0]
            before, best = best, self.changed(best, kind, starts(best))
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
