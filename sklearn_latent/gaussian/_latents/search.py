"""Search for latents: candidates, trial by score, adaptation of edges, pruning."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._graphs import reaches
from .._missing.structural_em import StructuralEM, measured
from .._scores.linear import fit_linear
from .._statistics.statistics import GaussianStatistics, standardise
from .candidates import Candidate, DenseSets, rotated_factors
from .clusters import FEWEST_CHILDREN
from .sem import Sem, SemData, edge_gains, fit_sem

# Numbers of latents beyond the best that are tried before giving up.
PATIENCE = 2
# Sets of nodes that are tried as children of a new latent.
N_TRIALS = 8
# Networks with one more latent, the best first, that are searched in full.
N_SETTLED = 12
# Random rotations of a factor analysis.
N_ROTATIONS = 5
# Smallest gain, in nats, of a change: less may come from a fit that ended early.
MIN_GAIN = 0.05


class LatentSearch:
    """Search for the network with latents of the highest score.

    em: options, prices, and search over graphs
    statistics: of the features, in their units
    found: best network of each number of latents that was tried
    """

    def __init__(self, em: StructuralEM, statistics: GaussianStatistics):
        self.em, self.rng = em, np.random.RandomState(0)
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
        parents = change.argmax(axis=0)
        best = change[parents, np.arange(len(parents))]
        children = np.flatnonzero(best > MIN_GAIN)
        children = children[np.argsort(-best[children], kind="stable")]
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
        add = np.full(adjacency.shape, em.penalty.parameter + em.penalty.latent_edge)
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

    def births(self, model: Sem) -> Sem:
        """Try one more latent, over the most promising sets of nodes."""
        if model.n_latents >= self.limit:
            return model
        trials: list[Sem] = []
        for candidate in self._candidates(model):
            born = self.born(model, candidate)
            starts = born, self.cleared(born, -1)
            trials += [self.adapt(self.fit(start)) for start in starts]
        trials.sort(key=self.score, reverse=True)
        for trial in trials[:N_SETTLED]:
            best = self.better(model, self.settle(trial), "birth")
            if best is not model:
                return best
        return model

    def _candidates(self, model: Sem) -> list[Candidate]:
        """Sets of features, then of latents, that may share a latent."""
        n, penalty = self.n_features, self.em.penalty
        point = self.data.point(model)
        if point is None:
            return []
        sets = DenseSets(point)
        edge = penalty.parameter + penalty.latent_edge
        sizes = np.arange(n + 1)
        price = sizes * edge + 2 * penalty.parameter + self.em.choice(sizes)
        between = self._prices(model.adjacency)[1][:n, :n].max()
        found = sets.find(np.arange(n), between, price)[:N_TRIALS]
        if self.em.options.bipartite:
            return found
        latents = np.arange(n, len(model.adjacency))
        above = sets.find(latents, edge, edge * np.arange(len(latents) + 1))
        return found + above[:N_TRIALS]

    def cleared(self, model: Sem, latent: int) -> Sem:
        """The network without edges that may stand for one of its latents.

        Given an effect of two causes these depend on each other, so that a graph
        without a latent also has edges from other causes of its children, be they
        features or latents.
        """
        n = self.n_features
        children = np.append(
            model.adjacency[latent, :n], np.zeros(model.n_latents, bool)
        )
        adjacency = model.adjacency & ~children
        adjacency[children] = False
        adjacency[latent] = model.adjacency[latent]
        return model.with_adjacency(adjacency)

    def redrawn(self, model: Sem) -> Sem:
        """Draw the edges around each latent again: they may stem from before it."""
        for latent in range(self.n_features, len(model.adjacency)):
            trial = self.settle(self.fit(self.cleared(model, latent)))
            best = self.better(model, trial, "edges")
            if best is not model:
                return best
        return model

    def born(self, model: Sem, candidate) -> Sem:
        """The network with a latent in place of edges among a set."""
        members = candidate.members
        adjacency = model.adjacency.copy()
        adjacency[np.ix_(members, members)] = False
        start = model.with_adjacency(adjacency)
        return start.with_latent(members, candidate.weights, candidate.noise)

    def deaths(self, model: Sem) -> Sem:
        """Drop latents, the weakest first, while that raises the score.

        Edges are adapted before the verdict, so that they, or another latent, can
        take over.
        """
        n = self.n_features
        worth = (model.weights[n:, :n] ** 2 / model.noise).sum(axis=1)
        for latent in np.argsort(worth, kind="stable"):
            trial = self.settle(self.fit(model.without([n + latent])))
            before, model = model, self.better(model, trial, "death")
            if model is not before:
                return self.deaths(model)
        return model

    def two_layers(self) -> Sem:
        """Best network of latents over features, from several numbers of latents."""
        best = self.fit(self.bare())
        price = self.em.penalty.parameter + self.em.penalty.latent_edge
        stale = 0
        for n_latents in range(1, self.limit + 1):
            before = best
            for start in rotated_factors(
                self.data,
                n_latents,
                price,
                n_random=N_ROTATIONS,
                oblique=not self.em.options.bipartite,
                rng=self.rng,
            ):
                trial = self.adapt(self.fit(start), between=False)
                best = self.better(best, trial, "rotation")
            stale = 0 if best is not before else stale + 1
            if stale > PATIENCE or self.report(best):
                break
        return best

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

    def improve(self, best: Sem) -> Sem:
        """Change edges, drop and add latents until nothing is gained."""
        best = self.better(best, self.settle(best), "edges")
        steps = [self.births, self.deaths, self.redrawn]
        n_stale = 0
        while n_stale < len(steps) and not self.report(best):
            before, best = best, steps[0](best)
            if best is before:
                steps, n_stale = steps[1:] + steps[:1], n_stale + 1
            else:
                n_stale = 0
        return best

    def run(self, first: Sem | None) -> Sem:
        """Improve the best of a network without latents and one of two layers."""
        best = self.two_layers()
        if first is None or self.em.stopped:
            return (
                best if first is None else self.better(best, self.fit(first), "edges")
            )
        return self.improve(
            self.better(self.settle(best), self.settle(self.fit(first)), "edges")
        )
