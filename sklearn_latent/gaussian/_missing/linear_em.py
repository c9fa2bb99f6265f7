"""Parameters of a linear network of known structure, with values missing: EM.

References
----------
.. [1] Dempster, A. P., Laird, N. M., Rubin, D. B. (1977). Maximum likelihood from
   incomplete data via the EM algorithm. Journal of the Royal Statistical Society B, 39.
.. [2] Varadhan, R., Roland, C. (2008). Simple and globally convergent methods for
   accelerating the convergence of any EM algorithm. Scandinavian Journal of
   Statistics, 35.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._inference.inference import IncompleteData, Joint, expected_statistics
from .._network import GaussianNetwork
from .._scores.linear import fit_linear
from .._statistics.statistics import NOISE_SHARE, GaussianStatistics

__all__ = ["LinearState", "fit_network", "maximise", "saturated_statistics"]


@dataclass(frozen=True, eq=False)
class LinearState:
    """A linear network, and what it expects of the data.

    adjacency: edges, (n_nodes, n_nodes)
    weights, intercept, noise_variance: parameters, as in `GaussianNetwork`
    n_latents: how many of the last nodes are hidden
    statistics: expected statistics under these parameters
    log_likelihood: of the observed values, under these parameters
    """

    adjacency: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    noise_variance: np.ndarray
    n_latents: int
    statistics: GaussianStatistics
    log_likelihood: float

    @property
    def parameters(self):
        """Weights, intercept and noise variance."""
        return self.weights, self.intercept, self.noise_variance

    @property
    def n_parameters(self) -> int:
        """A weight per edge, an intercept and a noise variance per node."""
        return int(self.adjacency.sum()) + 2 * len(self.intercept)

    def network(self, node_names=None) -> GaussianNetwork:
        """The network as a model object."""
        return GaussianNetwork(
            self.adjacency,
            self.weights,
            self.intercept,
            self.noise_variance,
            n_latents=self.n_latents,
            node_names=node_names,
        )


def expect(data: IncompleteData, adjacency, parameters, n_latents) -> LinearState:
    """E-step: what these parameters expect of the data."""
    statistics, log_likelihood = expected_statistics(Joint(*parameters), data)
    weights, intercept, noise_variance = parameters
    return LinearState(
        adjacency,
        weights,
        intercept,
        noise_variance,
        n_latents,
        statistics,
        log_likelihood,
    )


def maximise(statistics: GaussianStatistics, adjacency, n_latents, floor):
    """M-step: regressions on expected statistics; hidden nodes are standardised.

    The scale and place of a hidden node are arbitrary. They are free in the regressions
    and divided out afterwards, which changes no likelihood.

    adjacency (n_nodes, n_nodes), floor (n_features,).
    """
    weights, intercept, noise = fit_linear(statistics, adjacency)
    bottom = statistics.noise_floor
    low = np.flatnonzero(noise <= bottom * (1.0 + 1e-9))
    if len(low):
        # That floor moves with the expectations; the one of the data does not.
        columns = np.eye(len(noise))[:, low] - weights[:, low]
        left = np.einsum("ik,ik->k", columns, statistics.covariance @ columns)
        noise[low] = np.maximum(left, 0.0)
    smallest = bottom.copy()
    smallest[: len(floor)] = floor
    noise = np.maximum(noise, smallest)
    if n_latents:
        scale = np.ones(len(noise))
        shift = np.zeros(len(noise))
        scale[-n_latents:] = np.sqrt(statistics.covariance.diagonal()[-n_latents:])
        shift[-n_latents:] = statistics.mean[-n_latents:]
        scale[scale < 1e-100] = 1.0
        intercept = (intercept + shift @ weights - shift) / scale
        weights = weights * scale[:, None] / scale
        noise = noise / scale**2
    return weights, intercept, noise


def fit_network(
    data: IncompleteData,
    adjacency,
    parameters,
    n_latents=0,
    *,
    max_iter=200,
    tol=1e-6,
    trace=None,
) -> LinearState:
    """Maximise the likelihood of the observed values: EM [1]_, extrapolated [2]_.

    adjacency (n_nodes, n_nodes).
    """
    trace = [] if trace is None else trace
    state = expect(data, adjacency, parameters, n_latents)
    trace.append(state.log_likelihood)
    if data.n_missing == 0 and n_latents == 0:
        # Nothing to expect: the first step is the last.
        parameters = maximise(state.statistics, adjacency, 0, data.noise_floor)
        state = expect(data, adjacency, parameters, 0)
        trace.append(state.log_likelihood)
        return state
    n_steps, longest, floor = 1, 4.0, data.noise_floor
    while n_steps < max_iter:
        before = state.log_likelihood
        parameters = maximise(state.statistics, adjacency, n_latents, floor)
        first = expect(data, adjacency, parameters, n_latents)
        second = maximise(first.statistics, adjacency, n_latents, floor)
        trace.append(first.log_likelihood)
        n_steps += 2
        if first.log_likelihood - before < tol * data.weight:
            state = first
            break
        leap, longest = _extrapolate(state, first, second, longest, floor)
        state = expect(data, adjacency, leap, n_latents)
        # A leap that falls below plain EM is not taken, so the likelihood never falls.
        if not state.log_likelihood >= first.log_likelihood:
            state = expect(data, adjacency, second, n_latents)
            longest = max(longest / 4.0, 1.0)
            n_steps += 1
        trace.append(state.log_likelihood)
    return state


def _extrapolate(start: LinearState, first: LinearState, second, longest, floor):
    """Squared extrapolation of two EM steps (scheme S3 of [2]_)."""
    deviation = np.sqrt(start.statistics.noise_floor)
    edges = start.adjacency
    unit = deviation / deviation[:, None]

    def flat(weights, intercept, noise):
        # Dimensionless, so that no variable dominates the length of the step.
        return np.concatenate(
            [(weights / unit)[edges], intercept / deviation / 1e4, np.log(noise)]
        )

    a, b, c = flat(*start.parameters), flat(*first.parameters), flat(*second)
    step, bend = b - a, (c - b) - (b - a)
    length = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300)
    if length >= longest:
        length, longest = longest, 4.0 * longest
    length = max(length, 1.0)
    far = a + 2.0 * length * step + length**2 * bend
    n_edges, n_nodes = int(edges.sum()), len(deviation)
    weights = np.zeros(edges.shape)
    weights[edges] = far[:n_edges]
    noise = np.exp(np.clip(far[n_edges + n_nodes :], -600, 600))
    intercept = far[n_edges : n_edges + n_nodes] * deviation * 1e4
    noise[: len(floor)] = np.maximum(noise[: len(floor)], floor)
    return (weights * unit, intercept, noise), longest


def saturated_statistics(
    data: IncompleteData, *, pull=None, max_iter=20, tol=1e-4
) -> GaussianStatistics:
    """Expected statistics under a Gaussian without any structure.

    A search needs a first guess of what is missing. Under a network without edges,
    missing values carry no correlation, which hides edges; a free covariance, pulled
    towards independence as rows are few, does not take sides.
    """
    mean, variance = data.column_moments()
    spread = np.maximum(variance, data.noise_floor)
    weights = np.zeros((len(mean), len(mean)))
    joint = Joint(weights, mean, spread)
    pull = len(mean) if pull is None else pull
    # Beside the heaviest of rows it must still keep collinear features apart.
    pull = max(pull, NOISE_SHARE * data.weight)
    before = -np.inf
    statistics, log_likelihood = expected_statistics(joint, data)
    for _ in range(max_iter):
        if data.n_missing == 0:
            break
        covariance = statistics.scatter + pull * np.diag(spread)
        covariance = covariance / (data.weight + pull)
        joint = Joint.of_moments(statistics.mean, covariance)
        statistics, log_likelihood = expected_statistics(joint, data)
        if log_likelihood - before < tol * data.weight:
            break
        before = log_likelihood
    return statistics
