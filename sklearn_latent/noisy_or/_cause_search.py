"""Search for latents by likelihood, whatever their number.

From the latents that quartets reveal, the search alternates EM on truncated posteriors
with changes of the structure: edges by their likelihood ratios, latents born where
residuals depend on each other, split where their children do, merged where their
posteriors do, and dropped where they do not improve the Bayesian information criterion
(BIC).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.criteria import bic_price, log_choices
from ._beam import NARROW, Beam
from ._expected import Expected
from ._maximum_likelihood import climb_beams
from ._noisy_or_network import NoisyOrNetwork
from ._proposals import (
    new_edges,
    propose_children,
    propose_splits,
    residual_dependence,
    weak_edges,
)

# Latents that a round may propose.
MOST_BIRTHS = 20

# Where a new latent starts; EM finds its way from any such place.
START_PRIOR, START_FAILURE = 0.05, 0.4

# Correlation of posteriors above which two latents may be halves of one.
LEAST_CORRELATION = 0.1

# Pairs of latents that are united on trial in a round, and latents handed over.
MOST_MERGES = 5

# Rows that must show a latent: where leaks are small, two rows that share three of them
# would make one.
LEAST_SEEN = 4.0

# Rounds of births, and of edges within each. They end long before.
MAX_ROUNDS, MAX_EDGE_ROUNDS = 50, 5

# Least leak that EM starts with, as a share of the rate of the feature. A leak near 0
# stays there, since states that need it are dropped, and its part falls to a latent,
# whose prior grows: without this the search ended 260 nats lower in 2,000 rows of 20
# coupled latents.
LEAST_LEAK = 0.1

# Largest number of edges and non-edges of a network whose edges are all opened again,
# and where they start. (On the roles of developers the BIC is 99 higher without.)
MOST_REOPENED, REOPENED_FAILURE = 200, 0.9

# Random starts of small networks, with so many more latents than were found, their
# priors and EM steps; and largest number of edges and non-edges. (Of networks of 3
# latents and 7 features, 12 draws, 83% of the latents are recovered with such starts
# and 61% without.)
MORE_LATENTS, RANDOM_PRIOR, RANDOM_STEPS, MOST_RANDOM = (1, 2, 3), 0.25, 100, 80

# EM steps between two changes of the structure, and gain per row that ends them. More
# steps fit edges to chance: the images came with three too many at 2,000 rows.
STEPS, TOLERANCE = 8, 1e-4

# The same after edges have changed, which move little else.
FEW_STEPS = 4


class Fitted(NamedTuple):
    """A network, how well it explains the rows, and what EM knows of them."""

    parameters: NoisyOrNetwork
    expected: Expected
    score: float


class Search:
    """A network that changes, on the rows that judge it.

    Every change returns a new `Fitted`; the beam of states follows it.
    """

    def __init__(self, patterns, report=None):
        self.patterns = patterns
        self.n_rows = float(patterns.weights.sum())
        self.price = bic_price(self.n_rows)
        # Any three features could have been the first children of a latent.
        n_features = patterns.on.shape[1]
        any_three = float(log_choices(n_features, min(3, n_features)))
        self.latent_price = self.price + any_three
        self.rate = column_rates(patterns)
        self.beam = Beam(patterns, 0, NARROW)
        self._report = report

    def run(self, start: NoisyOrNetwork, max_rounds=MAX_ROUNDS, max_iter=0) -> Fitted:
        """Change the structure as long as the BIC improves, after some EM steps."""
        self.beam.add(start.n_latents)
        if max_iter:
            start = self.fit(start, search=True, max_iter=max_iter).parameters
        return self._reopen(self._grow(self._improve(start), max_rounds))

    def _grow(self, best: Fitted, max_rounds) -> Fitted:
        """Rounds of births and splits, where residuals go together."""
        for _ in range(max_rounds):
            if self._report is not None and self._report(best.parameters):
                break
            children = propose_children(residual_dependence(self.beam), MOST_BIRTHS)
            splits = propose_splits(self.beam)
            if not len(children) and not splits:
                break
            snapshot = self.beam.snapshot()
            parent = self._split(best.parameters, splits)
            born = self._improve(self._deliver(parent, children))
            if born.score <= best.score + 1.0:
                self.beam.restore(snapshot)
                break
            best = born
        return best

    def _reopen(self, best: Fitted) -> Fitted:
        """Give a small network all edges once more, and see which stay.

        Latents that share most children get stuck with too few of them.
        """
        network = best.parameters
        closed = ~network.structure
        if not closed.any() or closed.size > MOST_REOPENED:
            return best
        snapshot = self.beam.snapshot()
        failure = np.where(closed, REOPENED_FAILURE, network.failure)
        opened = self._improve(network._with(failure=failure))
        if opened.score > best.score:
            return opened
        self.beam.restore(snapshot)
        return best

    def _deliver(self, parameters, children) -> NoisyOrNetwork:
        """Add latents with some children."""
        self.beam.add(len(children))
        return parameters._with_latents(
            START_PRIOR, np.where(children, START_FAILURE, 1.0)
        )

    def _split(self, parameters, splits) -> NoisyOrNetwork:
        """Two latents in place of one, with a part of its children each."""
        for latent, side in splits:
            failure, prior = (
                np.array(parameters.failure),
                np.array(parameters.class_prior),
            )
            prior[:, latent] /= 2.0
            new = np.where(side, failure[latent], 1.0)[np.newaxis]
            failure[latent, side] = 1.0
            self.beam.add(1)
            parameters = parameters._with(class_prior=prior, failure=failure)
            parameters = parameters._with_latents(prior[:, [latent]], new)
        return parameters

    def _improve(self, parameters) -> Fitted:
        """Change edges, and drop and unite latents."""
        return self._merge(self._prune(self.settle(parameters)))

    def fit(self, parameters, *, search=False, max_iter=STEPS) -> Fitted:
        """Fit the parameters of a structure."""
        leak = np.maximum(parameters.leak, LEAST_LEAK * self.rate)
        parameters = parameters._with(leak=leak)
        ascent = climb_beams(
            parameters, [self.beam], tol=TOLERANCE, max_iter=max_iter, search=search
        )
        fitted: NoisyOrNetwork = ascent.state
        price = self.price * fitted.structure.sum()
        score = ascent.objective - price - self.latent_price * fitted.n_latents
        return Fitted(fitted, ascent.statistics, score)

    def settle(self, parameters) -> Fitted:
        """Fit, and change edges until none is worth it."""
        fitted = self.fit(parameters, search=True)
        for _ in range(MAX_EDGE_ROUNDS):
            parameters, expected, _ = fitted
            weak = weak_edges(self.beam, parameters, self.price)
            # A little more than the price, lest an edge come and go.
            new = new_edges(self.beam, parameters, expected, self.price + 1.0)
            failure = np.where(weak, 1.0, np.minimum(parameters.failure, new))
            # Two children are a pair, which has many explanations.
            useful = (failure < 1.0).sum(axis=1) >= 3
            if useful.all() and not (weak.any() or (new < 1.0).any()):
                break
            parameters = parameters._with(failure=failure)._keep(useful)
            self.beam.keep(useful)
            fitted = self.fit(parameters, max_iter=FEW_STEPS)
        return fitted

    def _prune(self, fitted) -> Fitted:
        """Drop latents that do not improve the BIC.

        Those that share no child are dropped at once.
        """
        while fitted.parameters.n_latents:
            structure = fitted.parameters.structure
            price = self.latent_price + self.price * structure.sum(axis=1)
            surplus = self.deletion_losses(fitted.parameters) - price
            seen = fitted.parameters.prior * self.n_rows
            if self.patterns.squares is not None:
                # Of independent columns one heavy row would make a latent.
                squares = self.patterns.squares @ self.beam.posterior
                seen *= seen / np.maximum(squares, 1e-300)
            surplus[seen < LEAST_SEEN] = -np.inf
            order = np.argsort(surplus, kind="stable")
            kept = np.ones(len(order), dtype=bool)
            touched = np.zeros(structure.shape[1], dtype=bool)
            for latent in order[surplus[order] < 0.0]:
                if not (touched & structure[latent]).any():
                    kept[latent] = False
                    touched |= structure[latent]
            if kept.all():
                break
            self.beam.keep(kept)
            fitted = self.fit(fitted.parameters._keep(kept))
        return fitted

    def deletion_losses(self, parameters) -> np.ndarray:
        """Log-likelihood that each latent adds, all other parameters fixed.

        Without a latent, a row has the probability that it has together with the latent
        off, divided by P(latent off). Of the states with the latent off, those of the
        beam are counted, or those that are one switch away from it, if they are more.
        """
        beam = self.beam
        gains = beam.switch_gains(np.arange(len(beam.row)))
        share = beam.share[:, np.newaxis]
        at_hand = beam.per_row(np.where(beam.states, 0.0, share))
        near = beam.per_row(
            np.where(beam.states, share * np.exp(np.minimum(gains, 0.0)), 0.0)
        )
        off = np.maximum(np.maximum(at_hand, near), 1e-300)
        lost = -(self.patterns.weights @ np.log(off))
        return lost + self.n_rows * np.log1p(-parameters.prior)

    def _merge(self, fitted) -> Fitted:
        """Unite latents whose posteriors go together, where BIC improves.

        Or hand over what two latents have in common, if a third one stands for it: it
        goes together with both.
        """
        pairs = self._correlated()
        changes: list = [(self._unite, *pair) for pair in pairs[:MOST_MERGES]]
        changes += [
            (self._hand_over, *three) for three in _triples(pairs)[:MOST_MERGES]
        ]
        for change, *latents in changes:
            snapshot = self.beam.snapshot()
            changed = change(fitted.parameters, *latents)
            if changed.score > fitted.score:
                return self._merge(self.settle(changed.parameters))
            self.beam.restore(snapshot)
        return fitted

    def _correlated(self):
        """Pairs of latents by the correlation of their posteriors, largest first."""
        beam, weights = self.beam, self.patterns.weights / self.n_rows
        posterior = beam.posterior
        centred = posterior - weights @ posterior
        covariance = centred.T @ (centred * weights[:, np.newaxis])
        deviation = np.sqrt(np.diag(covariance))
        scale = np.where(deviation > 1e-9, deviation, np.inf)
        correlation = np.triu(covariance / scale[:, np.newaxis] / scale, 1)
        one, two = np.nonzero(correlation > LEAST_CORRELATION)
        order = np.argsort(-correlation[one, two], kind="stable")
        return list(zip(one[order], two[order], strict=True))

    def _unite(self, parameters, one, two) -> Fitted:
        """One latent in place of two."""
        failure = np.array(parameters.failure)
        failure[one] = np.minimum(failure[one], failure[two])
        kept = np.arange(len(failure)) != two
        states = np.array(self.beam.states)
        states[:, one] |= states[:, two]
        self.beam.states = states
        self.beam.keep(kept)
        return self.fit(parameters._with(failure=failure)._keep(kept))

    def _hand_over(self, parameters, latent, one, two) -> Fitted:
        """Two latents that also have the children of a third, which goes."""
        failure = np.array(parameters.failure)
        for heir in (one, two):
            failure[heir] = np.minimum(failure[heir], failure[latent])
        kept = np.arange(len(failure)) != latent
        self.beam.keep(kept)
        return self.fit(parameters._with(failure=failure)._keep(kept))


def _triples(pairs) -> list[tuple[int, int, int]]:
    """Latents with their first two partners, in the order of the pairs."""
    partners: dict[int, list[int]] = {}
    triples = []
    for pair in pairs:
        for latent, partner in (pair, pair[::-1]):
            others = partners.setdefault(latent, [])
            others.append(partner)
            if len(others) == 2:
                triples.append((latent, *others))
    return triples


def column_rates(patterns) -> np.ndarray:
    """How often each feature is on."""
    known = np.maximum(patterns.weights @ patterns.known, 1e-300)
    return patterns.weights @ patterns.on / known


def search_independent(
    patterns, start: NoisyOrNetwork, max_rounds, report=None
) -> Fitted:
    """The best of searches from a start and, of few features, from random ones.

    Births of latents one by one get stuck where latents share most of their features.
    """
    best = Search(patterns, report).run(start, max_rounds)
    n_latents, n_features = best.parameters.failure.shape
    rng = np.random.RandomState(0)
    for size in (n_latents + more for more in MORE_LATENTS if n_latents):
        if size * n_features <= MOST_RANDOM:
            search = Search(patterns, report)
            failure = rng.uniform(0.2, 0.8, (size, n_features))
            prior = np.full(size, RANDOM_PRIOR)
            begin = NoisyOrNetwork._of(prior, failure, LEAST_LEAK * search.rate)
            other = search.run(begin, 0, max_iter=RANDOM_STEPS)
            best = max(best, other, key=lambda fitted: fitted.score)
    return best
