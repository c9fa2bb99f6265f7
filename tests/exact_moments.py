"""Moments that (almost) infinitely many rows of a network would have."""

from itertools import combinations

import numpy as np

from sklearn_latent.noisy_or._rates import Rates
from sklearn_latent.noisy_or._statistics.moments import NegativeMoments, canonical_sets

# Their sampling noise, 1e-6, is far above rounding and far below any dependence worth a
# name.
MANY_ROWS = 1e12


class ExactMoments:
    """What a search by quartets asks of data, answered by a network."""

    def __init__(self, network):
        self.network = network
        self.n_features = network.n_features
        self.n_rows = MANY_ROWS

    def probability(self, sets):
        return self.network.negative_moment(sets)

    def known_rows(self, sets):
        return np.full(len(sets), self.n_rows)


def exact_moments(network, sets):
    """Counts of planned sets, as the moment learner takes them."""
    n_rows = 1e16
    probability = np.ones(len(sets))
    sizes = (sets >= 0).sum(axis=1)
    for size in np.unique(sizes):
        chosen = sizes == size
        members = sets[chosen][:, sets.shape[1] - size :]
        probability[chosen] = network.negative_moment(members)
    total = np.full(len(sets), n_rows)
    return NegativeMoments(sets, probability * n_rows, total, network.n_features)


def every_set(n_features, order):
    """All sets of one to `order` features, padded with -1."""
    sets = [
        [*members] + [-1] * (order - size)
        for size in range(1, order + 1)
        for members in combinations(range(n_features), size)
    ]
    return canonical_sets(sets, n_features)


def exact_rates(network):
    """What is known of a network's features, each by itself."""
    singles = np.full((network.n_features, 3), -1)
    singles[:, -1] = np.arange(network.n_features)
    return Rates(exact_moments(network, singles))
