"""Noisy-or networks by plain enumeration: slow, short, and written on its own."""

from itertools import product

import numpy as np
from hypothesis import strategies as st

from sklearn_latent import NoisyOrNetwork

FIGURE_1 = np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], dtype=bool)


def random_network(
    seed, n_latents, n_features, *, density=0.6, corners=False, n_classes=None
):
    """A network; `corners` takes parameters from the ends of [0, 1] too.

    n_classes: of hidden classes, together with a random polarity
    """
    rng = np.random.default_rng(seed)

    def draw(*shape):
        if corners:
            return rng.choice([0.0, 1.0, 0.5, 0.01, 0.99], size=shape)
        return rng.uniform(0.02, 0.98, size=shape)

    edges = rng.random((n_latents, n_features)) < density
    rows = () if n_classes is None else (n_classes,)
    parameters = [draw(*rows, n_latents), np.where(edges, draw(*edges.shape), 1.0)]
    parameters.append(draw(n_features))
    if n_classes is None:
        return NoisyOrNetwork(*parameters)
    return NoisyOrNetwork(
        *parameters,
        class_weight=rng.dirichlet(np.ones(n_classes)),
        polarity=rng.choice([-1, 1], n_features),
    )


def random_rows(seed, n_rows, n_features, *, missing=0.0):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, 2, (n_rows, n_features)).astype(float)
    X[rng.random(X.shape) < missing] = np.nan
    return X


def figure_1_network(seed):
    """The five-feature network of Halpern and Sontag, Section 4.1."""
    rng = np.random.default_rng(seed)
    failure = np.where(FIGURE_1, rng.uniform(0.2, 0.8, FIGURE_1.shape), 1.0)
    return NoisyOrNetwork(rng.uniform(0.2, 0.8, 2), failure, np.full(5, 0.01))


def states(n):
    return np.array(list(product([0, 1], repeat=n)), dtype=int).reshape(2**n, n)


def off_probability(network, Z):
    """P(feature off | latents) for each row of Z."""
    fails = np.where(Z[:, :, np.newaxis], network.failure, 1.0)
    return (1 - network.leak) * fails.prod(axis=1)


def class_joint(network, Z):
    """P(class, latents), (n_classes, n_states)."""
    prior = network.class_prior[:, np.newaxis]
    given_class = np.where(Z, prior, 1 - prior).prod(axis=2)
    return network.class_weight[:, np.newaxis] * given_class


def joint(network, X):
    """P(row, state) for every row and every state of the latents."""
    Z = states(network.n_latents)
    weight = class_joint(network, Z).sum(axis=0)
    off = off_probability(network, Z)
    x = np.asarray(X, dtype=float)[:, np.newaxis]
    x = np.where(network.polarity < 0, 1 - x, x)
    chance = np.where(np.isnan(x), 1.0, np.where(x == 1, 1 - off, off))
    return chance.prod(axis=2) * weight, Z


def answer(network, X):
    """Log-likelihood and posterior of each row; the prior for an impossible one."""
    table, Z = joint(network, X)
    total = table.sum(axis=1)
    possible = total > 0
    log_likelihood = np.full(len(X), -np.inf)
    log_likelihood[possible] = np.log(total[possible])
    posterior = np.empty((len(X), network.n_latents))
    posterior[:] = network.prior
    posterior[possible] = (table @ Z)[possible] / total[possible, np.newaxis]
    return log_likelihood, posterior


networks = st.builds(
    random_network,
    seed=st.integers(0, 2**32 - 1),
    n_latents=st.integers(0, 6),
    n_features=st.integers(1, 7),
    density=st.floats(0.1, 0.9),
    corners=st.booleans(),
)

class_networks = st.builds(
    random_network,
    seed=st.integers(0, 2**32 - 1),
    n_latents=st.integers(0, 5),
    n_features=st.integers(1, 6),
    density=st.floats(0.1, 0.9),
    corners=st.booleans(),
    n_classes=st.integers(1, 4),
)
