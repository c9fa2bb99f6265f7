"""Edges of networks with latents, added and dropped while one score rises."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..._core.graphs import reaches
from .._linear_scores import fit_linear
from .._missing.structural_em import StructuralEM, measured
from .._rules import TIE, ranked_with_ties
from .._statistics import GaussianStatistics, standardise
from .clusters import FEWEST_CHILDREN
from .sem import Sem, SemData, edge_gains, fit_sem

# Smallest gain, in nats, of a change: less may come from a fit that ended early.
MIN_GAIN = 0.05


class EdgeSearch:
    """Search for the edges of a network with given latents.

    em: options, prices, and search over graphs
    statistics: of the features, in their units
    """

    def __init__(self, em: StructuralEM, statistics: GaussianStatistics):
        self.em = em
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
