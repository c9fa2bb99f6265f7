"""Each node from all others where the joint distribution is not Gaussian."""

from __future__ import annotations

import numpy as np

from .._conditional import CHUNK
from .._densities import Densities

# Points of the grid; a smooth density on 8 standard deviations to either side is
# integrated to many more digits than the model is worth.
N_POINTS = 81
REACH = 8.0


def integrate_features(network: Densities, X, values, variance):
    """Mean and variance of each feature given the others of its row, by integration.

    The density of a node given all others is a product of its own family and those of
    its children, a function of one variable. The grid is laid around what the parents
    say, and once more around what comes out, because the children may know better.
    Missing and latent values of the others are taken at their expectations.
    """
    means = network.conditional_means(values)
    spread = np.sqrt(network.noise_variance)
    if network._noise.positive:
        has_parents = network.adjacency.any(axis=0)
        spread = np.where(has_parents, spread * np.abs(means), spread)
    spread = np.broadcast_to(spread, means.shape)
    predicted, variances = np.empty(X.shape), np.empty(X.shape)
    for node in range(network.n_features):
        width = int(network.adjacency[node].sum()) + 1
        step = max(1, CHUNK // (N_POINTS * width))
        for start in range(0, len(values), step):
            rows = slice(start, start + step)
            mean, deviation = means[rows, node], spread[rows, node]
            for _ in range(3):
                mean, deviation = _moments(network, node, values[rows], mean, deviation)
            predicted[rows, node], variances[rows, node] = mean, deviation**2
    missing = np.isnan(X)
    predicted[missing] = values[:, : network.n_features][missing]
    variances[missing] = variance[:, : network.n_features][missing]
    return predicted, variances


def _moments(network, node, values, centre, deviation):
    """Mean and standard deviation of a node given all others, on a grid."""
    grid = centre[:, None] + deviation[:, None] * np.linspace(-REACH, REACH, N_POINTS)
    log_density = log_conditional(network, node, values, grid)
    log_density -= log_density.max(axis=1, keepdims=True)
    share = np.exp(log_density)
    share /= share.sum(axis=1, keepdims=True)
    mean = (share * grid).sum(axis=1)
    variance = (share * (grid - mean[:, None]) ** 2).sum(axis=1)
    # A density narrower than the grid's step shows no width at all.
    step = 2.0 * REACH * deviation / (N_POINTS - 1)
    return mean, np.sqrt(variance + (0.5 * step) ** 2)


def log_conditional(network, node, values, grid) -> np.ndarray:
    """Log-density of a node given all others, up to a constant.

    values (n_samples, n_nodes), grid (n_samples, n_points) -> log_density (n_samples,
    n_points).
    """
    own = np.array([node])
    mean = network._family_means(values @ network.weights[:, own], own)
    total = network._log_densities(grid[..., None], mean[:, None], own)[..., 0]
    if network._noise.positive:
        total = np.where(grid > 0, total, -np.inf)
    children = np.flatnonzero(network.adjacency[node])
    if not len(children):
        return total
    weights = network.weights[:, children]
    without = values @ weights - np.outer(values[:, node], weights[node])
    eta = without[:, None] + grid[..., None] * weights[node]
    means = network._family_means(eta, children)
    seen = values[:, None, children]
    return total + network._log_densities(seen, means, children).sum(axis=-1)
