"""What is known of parameters before, and beside, their moments.

Data can be silent about a rare latent: then every combination of a prior and of small
effects fits, and least squares returns an arbitrary one. Two facts are always there.
A feature cannot be on more often by its latents than it is on at all. And a latent that
shows nothing is rare, rather than present in every row and without effect.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse, special

from ._maximum_likelihood import UNIFORM_INFORMATION
from ._noisy_or_network import NoisyOrNetwork
from ._probabilities import clip_probability
from ._state_table import TableRows
from ._statistics.patterns import Patterns

# Where nothing is known: the middle of the range of a failure, and a rare latent.
LIKELY_FAILURE = 0.5
LIKELY_PRIOR = 0.0
# Half of that of a uniform distribution: enough to decide where data are silent, little
# beside what they say elsewhere.
GUESS_INFORMATION = 6.0
# Share of the children that may be silent because their edges are weak.
SILENT_CHILDREN = 0.25
# Edges without effect could not tell a rare latent from a frequent one at the start.
WEAKEST_EFFECT = 0.2
# Beyond this, the mean of a normal tail is a difference of nearly equal numbers.
LARGEST_Z = 100.0
# A latent whose two best children correlate by this many standard errors is visible.
VISIBLE = 5.0


class Rates:
    """How often each feature is on, and how far latents may explain it.

    on: P(feature on), a little above that of the rows, (n_features,)
    log_off: logarithm of P(feature off), (n_features,)
    weight: inverse standard deviation of it, (n_features,)
    """

    def __init__(self, moments):
        single = np.full((moments.n_features, moments.sets.shape[1]), -1)
        single[:, -1] = np.arange(moments.n_features)
        index = moments.index(single)
        total = moments.total[index]
        # A feature that was never on may still be on in the next row.
        on = total - moments.off[index] + np.minimum(total, 0.5)
        rate = clip_probability(
            np.divide(on, total + 1.0, out=np.ones(len(on)), where=total > 0)
        )
        self.on, self.log_off = rate, np.log1p(-rate)
        self.weight = np.sqrt(total * (1.0 - rate) / rate)

    def excess(self, prior, failure) -> np.ndarray:
        """How much less often features are off by their latents than they are."""
        return np.maximum(self.log_off - self._explained(prior, failure), 0.0)

    @staticmethod
    def _explained(prior, failure):
        """Log P(feature off by all latents), where unknown ones have no effect."""
        effect = np.nan_to_num(prior)[:, None] * np.nan_to_num(1.0 - failure)
        return np.log1p(-effect).sum(axis=0)

    def bound(self, prior, failure) -> np.ndarray:
        """Failures that explain no feature more often than it is on.

        The effects of all its latents shrink by one factor.
        """
        explained = self._explained(prior, failure)
        too_much = explained < self.log_off
        share = np.where(too_much, self.log_off / np.where(too_much, explained, 1), 1.0)
        # log(1 - t x) is at least t log(1 - x), so that this share is small enough.
        return 1.0 - share * (1.0 - failure)

    def leak(self, prior, failure) -> np.ndarray:
        """What latents leave of the rates: means of normal errors, cut off at 0.

        A leak of 0 would say that a feature proves that one of its latents is on. In
        20,000 rows of 570 rare diseases, a fifth of the leaks would be 0 otherwise.
        """
        left, error = self._explained(prior, failure) - self.log_off, 1.0 / self.weight
        z = np.maximum(left / error, -LARGEST_Z)
        density = np.exp(-0.5 * z**2 - special.log_ndtr(z)) / np.sqrt(2.0 * np.pi)
        return clip_probability(-np.expm1(-error * (z + density)))

    def plausible(self, prior, failure, latents):
        """Start that the rates allow for some latents: rarer, with stronger edges.

        Most children of a latent are on at least as often as it is on and affects them;
        the others may have weak edges. Latents that respect this stay as they are.
        """
        effect = np.where(failure < 1.0, np.maximum(1.0 - failure, WEAKEST_EFFECT), 0.0)
        largest = self._largest_prior(effect)
        too_large = latents & (prior > largest)
        prior = np.where(too_large, largest, prior)
        effect = np.minimum(effect, self.on / prior[:, None])
        changed = too_large[:, None] & (failure < 1.0)
        return prior, np.where(changed, 1.0 - effect, failure)

    def _largest_prior(self, effect):
        """Prior that all but the rarest children allow."""
        child = effect > 0
        bounds = np.where(child, self.on / np.where(child, effect, 1.0), np.inf)
        place = (SILENT_CHILDREN * (child.sum(axis=1) - 1)).astype(int)
        place = np.maximum(place, 0)[:, None]
        bounds = np.take_along_axis(np.sort(bounds, axis=1), place, axis=1)[:, 0]
        return np.minimum(bounds, 1.0)

    def prior_error(self, structure) -> np.ndarray:
        """Standard deviation of a prior of which nothing but the rates is known."""
        likely = np.where(structure, 1.0 - LIKELY_FAILURE, 0.0)
        return self._largest_prior(likely) / np.sqrt(UNIFORM_INFORMATION)


def without_silent(network: NoisyOrNetwork, structure, table: Patterns):
    """Most likely parameters, with latents that the rows do not show made rare.

    Where features are independent of each other, latents with any prior are equally
    likely, as long as their edges are weak.
    """
    total = table.weights.sum()
    for latent in np.flatnonzero(_is_faint(network, total)):
        rare = _make_rare(network, structure, latent, 1.0 / (total + 2.0))
        loss = _log_likelihood(network, table) - _log_likelihood(rare, table)
        # Akaike's criterion: what that many parameters gain by chance, and as much.
        if loss < 1 + structure[latent].sum():
            network = rare
    return network


def _log_likelihood(network, table):
    """Log-likelihood of the rows of a component."""
    return TableRows(table).expect(network._clipped()).log_likelihood


def _is_faint(network, total):
    """Whether no two children of a latent depend on each other visibly through it."""
    prior, failure, leak = network.prior, network.failure, network.leak
    influence = 1.0 - prior[:, None] * (1.0 - failure)
    off = clip_probability((1.0 - leak) * influence.prod(axis=0))
    # Correlation of a child with the latent, from the difference that it makes.
    difference = off / influence * (1.0 - failure)
    loading = difference * np.sqrt(
        (prior * (1.0 - prior))[:, None] / (off * (1.0 - off))
    )
    if loading.shape[1] < 2:
        return np.ones(len(prior), dtype=bool)
    strongest = np.sort(loading, axis=1)[:, -2:]
    return strongest.prod(axis=1) * np.sqrt(total) < VISIBLE


def _make_rare(network, structure, latent, prior):
    """Replace a latent by a rare one; the leaks take over what it explained."""
    priors, failure = network.prior.copy(), network.failure.copy()
    leak = network.leak
    leak = 1.0 - (1.0 - leak) * (1.0 - priors[latent] * (1.0 - failure[latent]))
    priors[latent] = prior
    failure[latent, structure[latent]] = LIKELY_FAILURE
    influence = 1.0 - prior * (1.0 - failure[latent])
    leak = clip_probability(1.0 - (1.0 - leak) / influence)
    return NoisyOrNetwork._of(priors, failure, leak)


class Guess:
    """Weak residuals beside those of the moments, for least squares.

    rates: of the features
    structure: edges of the network
    """

    def __init__(self, rates: Rates, structure):
        self.rates = rates
        self.latent, self.feature = np.nonzero(structure)

    def residuals(self, free, prior, failure) -> np.ndarray:
        """Of the rates, then of the free parameters."""
        x = free.pack(prior, failure)
        middle = np.full(len(x), LIKELY_FAILURE)
        middle[: free.n_prior] = LIKELY_PRIOR
        return np.concatenate(
            [
                self.rates.weight * self.rates.excess(prior, failure),
                np.sqrt(GUESS_INFORMATION) * (x - middle),
            ]
        )

    def jacobian(self, free, prior, failure) -> sparse.csr_array:
        """Derivative of the residuals by the free parameters."""
        latent, feature = self.latent, self.feature
        weight = np.where(
            self.rates.excess(prior, failure) > 0, self.rates.weight, 0.0
        )[feature]
        p, f = prior[latent], failure[latent, feature]
        pull = weight / (1.0 - p * (1.0 - f))
        columns = free.column_of_prior[latent], free.column_of_edge[latent, feature]
        used = [(column >= 0) & (weight > 0) for column in columns]
        values = pull * (1.0 - f), -pull * p
        of_rates = sparse.csr_array(
            (
                np.concatenate([v[u] for v, u in zip(values, used, strict=True)]),
                (
                    np.concatenate([feature[u] for u in used]),
                    np.concatenate([c[u] for c, u in zip(columns, used, strict=True)]),
                ),
            ),
            shape=(len(self.rates.weight), free.n_columns),
        )
        of_parameters = np.sqrt(GUESS_INFORMATION) * sparse.eye_array(free.n_columns)
        return sparse.vstack([of_rates, of_parameters], format="csr")
