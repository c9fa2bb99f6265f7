"""Gradient and curvature of the log-density of a network by some of its values."""

from __future__ import annotations

import numpy as np

from .._nonlinear.densities import Densities


def derivatives(network: Densities, points, missing):
    """Gradient of the log-density by the missing values, and its expected curvature.

    points (n_rows, n_points, n_nodes), missing (n_rows, n_missing) -> gradient (n_rows,
    n_points, n_missing), metric (n_rows, n_points, n_missing, n_missing).
    """
    noise = network._noise
    eta = points @ network.weights
    nodes = np.arange(network.n_nodes)
    mean = network._family_means(eta, nodes)
    has_parents = network.adjacency.any(axis=0)
    variance = network.noise_variance
    own_gradient = -(points - mean) / variance
    score = -own_gradient
    information = np.broadcast_to(1.0 / variance, points.shape)
    if noise.positive:
        clipped = noise.clip(mean)
        size = 1e-5 * np.maximum(np.abs(points), 1e-12)
        slope = (
            noise.log_density(points + size, clipped, variance)
            - noise.log_density(points - size, clipped, variance)
        ) / (2.0 * size)
        own_gradient = np.where(has_parents, slope, own_gradient)
        score = np.where(has_parents, noise.score(points, clipped, variance), score)
        information = np.where(
            has_parents, noise.information(clipped, variance), information
        )
    if network.link_parameters is None:
        bend = np.ones_like(eta)
    else:
        bend = network._link.derivative(eta, network.link_parameters)
    bend = np.where(has_parents, bend, 0.0)
    # [row, missing, node]: weight of the missing value in each family.
    weights = network.weights[missing]
    effect = bend[:, :, None, :] * weights[:, None]
    gradient = np.einsum("rpdn,rpn->rpd", effect, score)
    gradient += np.take_along_axis(
        own_gradient, np.broadcast_to(missing[:, None], gradient.shape), 2
    )
    place = np.broadcast_to(missing[:, None, :, None], (*gradient.shape, 1))
    residual = np.take_along_axis(effect, place, 3) - 1.0
    np.put_along_axis(effect, place, residual, 3)
    metric = (effect * information[:, :, None]) @ effect.transpose(0, 1, 3, 2)
    return gradient, metric
