"""Generators of continuous networks and of data from them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from .._core.graphs import topological_order
from .._core.validation import (
    MOST_COLUMNS,
    MOST_ROWS,
    check_count,
    check_flag,
    check_numbers,
    check_random_state,
    shown,
)
from ..gaussian._gaussian_network import GaussianNetwork
from ..gaussian._links import Linear, Link, get_link
from ..gaussian._noise import Noise, get_noise
from ..gaussian._row_inference import LARGEST

# Rows from which the scale of weighted sums is estimated where links saturate.
_PILOT_ROWS = 1000
_SPREAD = 1.5  # standard deviation of the weighted sums: bent, but not a step


def make_gaussian_bn(
    n_features: int = 20,
    n_latents: int = 0,
    n_samples: int = 1000,
    *,
    n_parents: float = 2.0,
    bipartite: bool = False,
    link: str | Link = "linear",
    noise: str | Noise = "additive",
    weight: tuple[float, float] = (0.5, 1.5),
    noise_variance: tuple[float, float] = (0.5, 1.5),
    missing: float = 0.0,
    random_state: Any = None,
) -> Bunch:
    """Draw a random continuous network and data from it.

    Parameters
    ----------
    n_features : int, default=20
        Number of features.
    n_latents : int, default=0
        Number of latents. They have no parents.
    n_samples : int, default=1000
        Number of rows.
    n_parents : float, default=2.0
        Mean number of parents per feature. With ``bipartite=True`` every feature has
        at least one.
    bipartite : bool, default=False
        Whether features have latents as their only parents.
    link : str or Link, default="linear"
        Link function. Unless it is linear, weights are scaled such that the weighted
        sum of the parents has a standard deviation of 1.5.
    noise : {"additive", "multiplicative"} or Noise, default="additive"
        Noise model. With multiplicative noise all weights and values are positive, and
        the noise of features with parents has a hundredth of `noise_variance`.
    weight : (float, float), default=(0.5, 1.5)
        Range of the absolute values of the weights. Signs are random.
    noise_variance : (float, float), default=(0.5, 1.5)
        Range of the variances of the noise. Latents have variance 1.
    missing : float, default=0.0
        Share of the values that are missing completely at random.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    data : Bunch
        ``X (n_samples, n_features)``, ``Z (n_samples, n_latents)``, ``network``,
        ``feature_names`` and ``DESCR``.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_gaussian_bn
    >>> data = make_gaussian_bn(n_features=5, n_samples=100, random_state=0)
    >>> data.X.shape, data.network
    ((100, 5), GaussianNetwork(5 features, 0 latents, 10 edges, link='linear'))
    """
    _check_sizes(n_features, n_latents, n_samples, n_parents, missing, bipartite)
    sizes = _check_range("weight", weight)
    variances = _check_range("noise_variance", noise_variance)
    rng = check_random_state(random_state)
    if bipartite:
        adjacency = _two_layers(n_features, n_latents, n_parents, rng)
    else:
        adjacency = _random_graph(n_features, n_latents, n_parents, rng)
    n_nodes = n_features + n_latents
    weights = np.where(adjacency, rng.uniform(*sizes, adjacency.shape), 0.0)
    variance = rng.uniform(*variances, n_nodes)
    variance[n_features:] = 1.0
    positive = get_noise(noise).positive
    if not positive:
        weights *= rng.choice([-1.0, 1.0], size=weights.shape)
    network = _parametrise(adjacency, weights, variance, link, noise, n_latents, rng)
    X, Z = network.sample(n_samples, rng)
    X[rng.random_sample(X.shape) < missing] = np.nan
    return Bunch(
        X=X,
        Z=Z,
        network=network,
        feature_names=network.node_names[:n_features],
        DESCR=(
            f"Continuous network of {n_features} features, {n_latents} latents and "
            f"{int(adjacency.sum())} edges, {get_link(link).name} link, "
            f"{get_noise(noise).name} noise."
        ),
    )


def _parametrise(adjacency, weights, variance, link, noise, n_latents, rng):
    """Choose what makes sense for the link and the noise, parents before children."""
    n_nodes = len(adjacency)
    positive = get_noise(noise).positive
    is_linear = isinstance(get_link(link), Linear)
    has_parents = adjacency.any(axis=0)
    intercept = np.zeros(n_nodes)
    theta = np.zeros((n_nodes, 3))
    if positive:
        # Far enough from zero for values that must be positive.
        intercept[~has_parents] = rng.uniform(8.0, 12.0, int((~has_parents).sum()))
        intercept[has_parents] = 1.0
        variance = np.where(has_parents, 0.01 * variance, variance)
        # Sums of positive parts would grow with every generation.
        weights = weights / np.maximum(adjacency.sum(axis=0), 1)
    if not is_linear:
        theta[:, 1] = rng.uniform(3.0, 6.0, n_nodes)
        theta[:, 0] = 2.0 if positive else -0.5 * theta[:, 1]
        theta[~has_parents] = 0.0
        intercept = np.where(has_parents, theta[:, 0], intercept)

    def network(weights, theta):
        return GaussianNetwork(
            adjacency,
            weights,
            intercept,
            variance,
            link=link,
            noise=noise,
            link_parameters=None if is_linear else theta,
            n_latents=n_latents,
        )

    if is_linear:
        return network(weights, theta)
    for node in topological_order(adjacency):
        if has_parents[node]:
            # Nodes before this one are final, so what they look like is known.
            pilot = np.hstack(network(weights, theta).sample(_PILOT_ROWS, rng))
            eta = pilot @ weights[:, node]
            if not eta.std() > 0:  # noise that is lost in rounding
                continue
            weights[:, node] *= _SPREAD / eta.std()
            if positive:  # others are symmetric around zero and need no bias
                theta[node, 2] = -_SPREAD * eta.mean() / eta.std()
    return network(weights, theta)


def _random_graph(n_features, n_latents, n_parents, rng):
    """Features in random order, latents before them; edges at random."""
    n_nodes = n_features + n_latents
    order = np.concatenate(
        [n_features + np.arange(n_latents), rng.permutation(n_features)]
    ).astype(int)
    early, late = np.triu_indices(n_nodes, 1)
    possible = late >= n_latents
    early, late = early[possible], late[possible]
    n_edges = min(round(n_parents * n_features), len(early))
    chosen = rng.choice(len(early), size=n_edges, replace=False)
    adjacency = np.zeros((n_nodes, n_nodes), dtype=bool)
    adjacency[order[early[chosen]], order[late[chosen]]] = True
    return adjacency


def _two_layers(n_features, n_latents, n_parents, rng):
    """One latent parent for every feature, evenly, and further ones at random."""
    n_nodes = n_features + n_latents
    adjacency = np.zeros((n_nodes, n_nodes), dtype=bool)
    first = rng.permutation(np.arange(n_features) % n_latents)
    adjacency[n_features + first, np.arange(n_features)] = True
    free = np.argwhere(~adjacency[n_features:, :n_features])
    n_more = min(max(round((n_parents - 1.0) * n_features), 0), len(free))
    latent, feature = free[rng.choice(len(free), size=n_more, replace=False)].T
    adjacency[n_features + latent, feature] = True
    return adjacency


def _check_sizes(n_features, n_latents, n_samples, n_parents, missing, bipartite):
    check_count("n_features", n_features, 1, MOST_COLUMNS)
    check_count("n_latents", n_latents, 0, MOST_COLUMNS)
    check_count("n_samples", n_samples, 1, MOST_ROWS)
    if not isinstance(n_parents, Real) or not 0 <= float(n_parents) < np.inf:
        raise ValueError(f"n_parents must be a non-negative number, got {n_parents!r}.")
    if not isinstance(missing, Real) or not 0 <= float(missing) < 1:
        raise ValueError(f"missing must be a share below 1, got {missing!r}.")
    check_flag("bipartite", bipartite)
    if bipartite and n_latents == 0:
        raise ValueError("n_latents must be at least 1 with bipartite=True, got 0.")


def _check_range(name, limits):
    pair = check_numbers(name, limits)
    if pair.shape != (2,) or not 1 / LARGEST <= pair[0] <= pair[1] <= LARGEST:
        raise ValueError(
            f"{name} must be a pair (low, high) of numbers from {1 / LARGEST:g} to "
            f"{LARGEST:g}, got {shown(limits)}."
        )
    return pair
