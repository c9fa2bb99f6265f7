"""Structure of two-layer linear networks: which latents, over which features.

Edges are added and dropped by what the *observed* likelihood says of them: the score
test (Rao, 1948) of an absent edge and the Wald test of a present one need no refit, so
that many edges change at a time. Each change is then checked by the exact BIC.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ..._criteria import log_choices
from .clusters import FEWEST_CHILDREN, agglomerate, marginal_gain, promising
from .factors import FactorData, Factors, fit_factors
from .rotation import fewest_edges, random_rotation, varimax

# Numbers of latents beyond the best that are tried before giving up.
PATIENCE = 3
# Smallest gain, in nats, of a change: less may come from EM going on.
MIN_GAIN = 0.05


def edge_gains(data: FactorData, factors: Factors) -> tuple[np.ndarray, np.ndarray]:
    """Estimated gain of the log-likelihood by each edge, at a maximum of it."""
    mask, loadings, noise = factors.mask, factors.loadings, factors.noise
    e = data.expect(factors)
    scaled = loadings / noise
    posterior = np.linalg.inv(np.eye(len(mask)) + scaled @ loadings.T)
    pull = posterior @ scaled  # precision @ loadings.T, transposed
    precision = 1.0 / noise - np.einsum("hi,hi->i", scaled, pull)
    # Fisher's identity: the gradient is that of the expected complete likelihood.
    gradient = data.weight * (e.cross - e.latent @ loadings) / noise
    information = data.weight * (
        precision[:, None, None] * (np.eye(len(mask)) - posterior)
        - pull.T[:, :, None] * pull.T[:, None, :]
    )
    present = mask.T
    both = present[:, :, None] & present[:, None, :]
    block = np.where(both, information, 0.0)
    place = np.arange(len(mask))
    block[:, place, place] += np.where(present, 1e-12 * data.weight, 1.0)
    inverse = np.linalg.inv(block)
    cross = np.where(present[:, :, None], information, 0.0)
    own = np.diagonal(information, axis1=1, axis2=2)
    left = own - np.einsum("ijk,ijk->ik", cross, inverse @ cross)
    left = np.maximum(left, 1e-9 * np.maximum(own, 1e-300)).T
    loss = loadings**2 / (2.0 * np.diagonal(inverse, axis1=1, axis2=2).T)
    return np.where(mask, loss, gradient**2 / (2.0 * left)), gradient / left


@dataclass
class TwoLayerSearch:
    """Search for the two-layer network of highest BIC.

    parameter_cost, edge_cost: what a parameter costs, and an edge on top
    multiplicity: weight of the price of choosing children, see `choice`
    report: ``report(message)`` is called for each network; True asks to stop
    history: accepted changes and what they gained
    found: best network of each number of latents that was tried
    n_evaluated, n_considered: networks fitted, and edges rated
    """

    data: FactorData
    max_latents: int
    max_parents: int
    parameter_cost: float
    edge_cost: float = 0.0
    multiplicity: float = 1.0
    rng: np.random.RandomState = field(default_factory=lambda: np.random.RandomState(0))
    report: Callable[[str], bool] | None = None
    stopped: bool = False
    history: list = field(default_factory=list)
    found: dict[int, Factors] = field(default_factory=dict)
    n_evaluated: int = 0
    n_considered: int = 0

    def penalised(self, factors: Factors) -> float:
        """Log-likelihood less the price of parameters and edges."""
        n_latents, n_features = factors.mask.shape
        n_edges = int(factors.mask.sum())
        n_parameters = n_edges + 2 * (n_features + n_latents)
        return (
            factors.log_likelihood
            - self.parameter_cost * n_parameters
            - self.edge_cost * n_edges
        )

    def score(self, factors: Factors) -> float:
        """That less the price of having chosen the children among all features."""
        return self.penalised(factors) - float(
            self.choice(factors.mask.sum(axis=1)).sum()
        )

    def choice(self, n_children) -> np.ndarray:
        """Log of the number of sets of so many children (Scott and Berger, 2010).

        Among hundreds of features some triple is always correlated by chance. A
        latent must gain more than the best of them.
        """
        return self.multiplicity * log_choices(self.data.n_features, n_children)

    def fit(self, start: Factors, *, tol=5e-6, max_iter=70) -> Factors:
        """Fit the parameters and drop latents with too few children."""
        self.n_evaluated += 1
        few = start.mask.sum(axis=1) < FEWEST_CHILDREN
        if few.any():
            start = start.without(few)
        return fit_factors(self.data, start, tol=tol, max_iter=max_iter)

    @property
    def edge_price(self) -> float:
        """What an edge must gain to pay."""
        return self.parameter_cost + self.edge_cost

    def adapt(self, factors: Factors, max_rounds=100) -> Factors:
        """Add and drop edges, many at a time, while the BIC rises.

        Each feature makes its best move; if the exact score says that all of them
        together are too much, the better half of them is tried, and so on.
        """
        score = self.score(factors)
        share = 1.0
        for _ in range(max_rounds):
            if not factors.n_latents:
                break
            move, gain, steps = self._best_moves(factors)
            features = np.flatnonzero(gain > MIN_GAIN)
            if not len(features):
                break
            features = features[np.argsort(-gain[features], kind="stable")]
            features = features[: max(1, int(share * len(features)))]
            mask = factors.mask.copy()
            mask[move[features], features] ^= True
            start = factors.with_mask(mask)
            new = mask & ~factors.mask
            start = replace(start, loadings=np.where(new, steps, start.loadings))
            trial = self.fit(start)
            trial_score = self.score(trial)
            if trial_score > score + MIN_GAIN:
                factors, score = trial, trial_score
                share = min(1.0, 2.0 * share)
            elif len(features) == 1:
                break
            else:
                share = 0.5 * len(features) / max(1, (gain > MIN_GAIN).sum())
        return factors

    def _best_moves(self, factors):
        """Best change of each feature's edges, its gain, and starting weights."""
        gains, steps = edge_gains(self.data, factors)
        self.n_considered += gains.size
        n_children = factors.mask.sum(axis=1)
        here = self.choice(n_children)
        more = self.choice(np.minimum(n_children + 1, self.data.n_features)) - here
        less = here - self.choice(n_children - 1)
        change = np.where(
            factors.mask,
            self.edge_price + less[:, None] - gains,
            gains - self.edge_price - more[:, None],
        )
        full = factors.mask.sum(axis=0) >= self.max_parents
        change = np.where(~factors.mask & full, -np.inf, change)
        move = change.argmax(axis=0)
        return move, change[move, np.arange(len(move))], steps

    def factor_analysis(self, n_latents: int) -> Factors:
        """Factor analysis with all edges, in the rotation where EM happened to end."""
        scale = np.sqrt(np.maximum(self.data.variance, self.data.floor))
        moments = self.data.covariance
        values, vectors = np.linalg.eigh(moments / np.outer(scale, scale))
        values, vectors = values[::-1][:n_latents], vectors[:, ::-1][:, :n_latents]
        rest = max(0.0, (len(scale) - values.sum()) / max(1, len(scale) - n_latents))
        size = np.sqrt(np.maximum(values - rest, 0.01))
        loadings = (vectors * size).T * scale
        mask = np.ones(loadings.shape, dtype=bool)
        self.n_evaluated += 1
        start = self.data.start(mask, loadings)
        return fit_factors(self.data, start, tol=2e-5, max_iter=35)

    def rotations(self, factors: Factors, n_random: int, n_kept=2) -> list[Factors]:
        """Networks with few edges and nearly the likelihood of a factor analysis."""
        weight = self.data.weight / (2.0 * factors.noise)
        price = self.edge_price
        # Communalities of 1, so that weak features count as much as strong ones.
        common = np.sqrt((factors.loadings**2).sum(axis=0))
        common = np.maximum(
            common, 1e-12 * np.sqrt(self.data.variance + self.data.floor)
        )
        even = factors.loadings / common
        found = [fewest_edges(varimax(even) * common, weight, price)]
        for _ in range(n_random):
            turned = random_rotation(even, self.rng) * common
            found.append(fewest_edges(turned, weight, price))
        found.sort(key=lambda pair: pair[1])
        kept: list[tuple] = []
        for pair in found:
            if not kept or pair[1] > kept[-1][1] + 0.1 * price:
                kept.append(pair)
        return [
            self._pruned(replace(factors, loadings=loadings))
            for loadings, _ in kept[:n_kept]
        ]

    def _pruned(self, factors: Factors) -> Factors:
        """The network without edges that do not pay, or are too many for a feature."""
        gains, _ = edge_gains(self.data, factors)
        rank = np.argsort(np.argsort(-gains, axis=0, kind="stable"), axis=0)
        keep = (gains > self.edge_price) & (rank < self.max_parents)
        return self.fit(factors.with_mask(keep))

    def independent(self) -> Factors:
        """The network without latents."""
        mask = np.zeros((0, self.data.n_features), dtype=bool)
        return fit_factors(self.data, self.data.start(mask, mask.astype(float)))

    def residual_correlation(self, factors: Factors) -> np.ndarray:
        """Correlation that the network leaves unexplained, ones on the diagonal.

        The identity plus the gradient of the log-likelihood by the covariance, in
        units of the noise: of all directions, its leading eigenvector is the one along
        which a new latent gains most at first.
        """
        scaled = factors.loadings / factors.noise
        inner = np.eye(factors.n_latents) + scaled @ factors.loadings.T
        precision = np.diag(1.0 / factors.noise) - scaled.T @ np.linalg.solve(
            inner, scaled
        )
        model = factors.loadings.T @ factors.loadings + np.diag(factors.noise)
        gap = self.data.covariance - model
        deviation = np.sqrt(factors.noise)
        left = deviation[:, None] * (precision @ gap @ precision) * deviation
        np.fill_diagonal(left, 1.0)
        return left

    @property
    def cluster_gain(self):
        """Estimated gain of a latent over a cluster."""
        return partial(
            marginal_gain,
            weight=self.data.weight,
            parameter_cost=self.parameter_cost,
            edge_cost=self.edge_cost,
        )

    def clustered_start(self) -> Factors:
        """All latents at once: the clustering of highest estimated gain."""
        base = self.independent()
        levels = agglomerate(self.residual_correlation(base), self.cluster_gain)
        best = max(levels, key=lambda level: sum(max(c.gain, 0.0) for c in level))
        chosen = sorted((c for c in best if c.gain > 0), key=lambda c: -c.gain)
        for cluster in chosen[: self.max_latents]:
            base = self.with_cluster(base, cluster)
        return self.fit(base)

    def with_cluster(self, factors: Factors, cluster) -> Factors:
        """The network with one more latent, over a cluster; not yet fitted."""
        size = np.sqrt(max(cluster.eigenvalue - 1.0, 0.01))
        row = np.zeros(self.data.n_features)
        share = cluster.direction * size
        row[cluster.members] = share * np.sqrt(factors.noise[cluster.members])
        noise = factors.noise / (1.0 + (row**2) / factors.noise)
        return Factors(
            np.vstack([factors.mask, row != 0.0]),
            np.vstack([factors.loadings, row]),
            factors.mean,
            np.maximum(noise, self.data.floor),
        )

    def births(self, factors: Factors) -> Factors:
        """Try one more latent, over the most promising clusters."""
        if factors.n_latents >= self.max_latents:
            return factors
        best, best_score = factors, self.score(factors)
        correlation = self.residual_correlation(factors)
        for cluster in promising(correlation, self.cluster_gain):
            trial = self.adapt(self.fit(self.with_cluster(factors, cluster)))
            if self.score(trial) > best_score + MIN_GAIN:
                best, best_score = trial, self.score(trial)
        return best

    def deaths(self, factors: Factors) -> Factors:
        """Drop latents, the weakest first, while that raises the BIC.

        The edges of the others are adapted before the verdict, so that one of them can
        take over the children: a merge.
        """
        score = self.score(factors)
        gains, _ = edge_gains(self.data, factors)
        worth = np.where(factors.mask, gains, 0.0).sum(axis=1)
        for latent in np.argsort(worth, kind="stable"):
            trial = self.adapt(self.fit(factors.without([latent])))
            if self.score(trial) > score + MIN_GAIN:
                return self.deaths(trial)
        return factors

    def run(self) -> Factors:
        """Start from several numbers of latents; change the best of them."""
        best = self.independent()
        best = self._better(best, self.adapt(self.clustered_start()), "clusters")
        # Up and down from the number of clusters, until it is clear that it gets worse.
        middle = max(best.n_latents, 1)
        for numbers in (
            range(middle, self.max_latents + 1),
            range(min(middle, self.max_latents) - 1, 0, -1),
        ):
            stale = 0
            for n_latents in numbers:
                before, best = best, self._rotate(best, n_latents, n_random=3)
                stale = 0 if best is not before else stale + 1
                if stale >= PATIENCE or self.stopped:
                    break
        if best.n_latents > 1 and not self.stopped:
            best = self._rotate(best, best.n_latents, n_random=20)
        return self.improve(best)

    def improve(self, best: Factors) -> Factors:
        """Change edges, drop and add latents until nothing is gained."""
        best = self._better(best, self.adapt(best), "edges")
        for _ in range(2 * self.max_latents + 10):
            if self.stopped:
                break
            before = best
            best = self._better(best, self.deaths(best), "death")
            best = self._better(best, self.births(best), "birth")
            if best is before:
                break
        return best

    def _rotate(self, best: Factors, n_latents: int, n_random: int) -> Factors:
        """The best so far, or better: a rotated factor analysis."""
        dense = self.factor_analysis(n_latents)
        for start in self.rotations(dense, n_random if n_latents > 1 else 0):
            best = self._better(best, self.adapt(start), "rotation")
        return best

    def _better(self, best: Factors, trial: Factors, name: str) -> Factors:
        """The better of two networks; what was gained goes to the history."""
        if self.report is not None and not self.stopped:
            score = self.penalised(trial)
            self.stopped = self.report(f"{trial.n_latents} latents, score {score:.8g}")
        known = self.found.get(trial.n_latents)
        if known is None or self.score(trial) > self.score(known):
            self.found[trial.n_latents] = trial
        gain = self.score(trial) - self.score(best)
        if not gain > MIN_GAIN:
            return best
        self.history.append(((name, trial.n_latents), gain))
        return trial
