"""Parameters of a linear network of known structure, with values missing: EM."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._core.climb import Ascent, climb
from .._conditional import IncompleteData, Joint, expected_statistics
from .._linear_scores import fit_linear
from .._network import GaussianNetwork
from .._statistics import NOISE_SHARE, GaussianStatistics

# Weights, intercept and noise variance.
Parameters = tuple[np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True, eq=False)
class LinearState:
    """A linear network, and what it expects of the data.

    Parameters are as in `GaussianNetwork`; statistics are expected ones under these
    parameters, and the log-likelihood is that of the observed values.
    """

    adjacency: np.ndarray
    weights: np.ndarray
    intercept: np.ndarray
    noise_variance: np.ndarray
    n_latents: int
    statistics: GaussianStatistics
    log_likelihood: float

    @property
    def parameters(self) -> Parameters:
        """Weights, intercept and noise variance."""
        return self.weights, self.intercept, self.noise_variance

    @property
    def n_parameters(self) -> int:
        """A weight per edge, an intercept and a noise variance per node."""
        return int(self.adjacency.sum()) + 2 * len(self.intercept)

    def network(self) -> GaussianNetwork:
        """The network as a model object."""
        return GaussianNetwork(
            self.adjacency, *self.parameters, n_latents=self.n_latents
        )


def expect(
    data: IncompleteData, adjacency, parameters: Parameters, n_latents: int
) -> LinearState:
    """E-step: what these parameters expect of the data."""
    statistics, log_likelihood = expected_statistics(Joint(*parameters), data)
    return LinearState(adjacency, *parameters, n_latents, statistics, log_likelihood)


def maximise(statistics: GaussianStatistics, adjacency, n_latents, floor):
    """M-step: regressions on expected statistics; latents are standardised.

    The scale and place of a latent are arbitrary. They are free in the regressions
    and divided out afterwards, which changes no likelihood.
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


def climb_by_leaps(
    start,
    expect: Callable,
    maximise: Callable,
    units: Callable,
    *,
    tol: float,
    max_iter: int,
) -> Ascent:
    """Maximise a likelihood by EM with squared extrapolation.

    Monotone; scheme S3 of Varadhan and Roland (2008, Scandinavian Journal of
    Statistics 35).

    ``expect(parameters)`` is a state, with ``parameters`` and ``log_likelihood``;
    ``maximise(state)`` are the next parameters. ``units(state)`` is a pair of
    functions, from parameters to a vector without dimensions, and back.
    """
    longest, settled = 4.0, False

    def leap(state, _):
        nonlocal longest, settled
        first = expect(maximise(state))
        if first.log_likelihood - state.log_likelihood < tol:
            # Leaps cross plateaus: where a step of plain EM gains next to nothing
            # after them, there is nothing left to gain.
            settled = True
            return first
        second = maximise(first)
        pack, unpack = units(state)
        a, b, c = pack(state.parameters), pack(first.parameters), pack(second)
        step, bend = b - a, (c - b) - (b - a)
        length = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300)
        if length >= longest:
            length, longest = longest, 4.0 * longest
        length = max(length, 1.0)
        far = expect(unpack(a + 2.0 * length * step + length**2 * bend))
        # A leap that falls below plain EM is not taken, so the likelihood never falls.
        if not far.log_likelihood >= first.log_likelihood:
            far = expect(second)
            longest = max(longest / 4.0, 1.0)
        return far

    def known(state):
        return state.log_likelihood, None

    ascent = climb(
        known, leap, start, tol=tol, max_iter=max_iter, report=lambda *_: settled
    )
    return replace(ascent, converged=ascent.converged or settled, stopped=False)


def fit_network(
    data: IncompleteData,
    adjacency,
    parameters,
    n_latents=0,
    *,
    max_iter=50,
    tol=2e-6,
    trace=None,
) -> LinearState:
    """Maximise the likelihood of the observed values by EM that leaps."""

    def expectation(parameters):
        return expect(data, adjacency, parameters, n_latents)

    def maximum(state):
        return maximise(state.statistics, adjacency, n_latents, data.noise_floor)

    # With nothing to expect the first step is the last.
    is_complete = data.n_missing == 0 and n_latents == 0
    start = expectation(parameters)
    if is_complete:
        states = start, expectation(maximum(start))
        objectives, state = [s.log_likelihood for s in states], states[-1]
    else:
        ascent = climb_by_leaps(
            start,
            expectation,
            maximum,
            lambda state: _units(state, data.noise_floor),
            tol=tol * data.weight,
            max_iter=max_iter,
        )
        objectives, state = ascent.objectives.tolist(), ascent.state
    if trace is not None:
        trace += objectives
    return state


def _units(state: LinearState, floor):
    """Parameters as a vector, and back; no variable dominates its length.

    Intercepts are those of centred variables, so that shifts do not matter.
    """
    centre = state.statistics.mean
    deviation = np.sqrt(state.statistics.noise_floor)
    edges = state.adjacency
    unit = deviation / deviation[:, None]
    n_edges, n_nodes = int(edges.sum()), len(deviation)

    def pack(parameters):
        weights, intercept, noise = parameters
        centred = intercept + centre @ weights - centre
        return np.concatenate(
            [(weights / unit)[edges], centred / deviation / 1e4, np.log(noise)]
        )

    def unpack(vector):
        weights = np.zeros(edges.shape)
        weights[edges] = vector[:n_edges]
        weights *= unit
        centred = vector[n_edges : n_edges + n_nodes] * deviation * 1e4
        noise = np.exp(np.clip(vector[n_edges + n_nodes :], -600, 600))
        noise[: len(floor)] = np.maximum(noise[: len(floor)], floor)
        return weights, centred + centre - centre @ weights, noise

    return pack, unpack


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
    pull = len(mean) if pull is None else pull
    # Beside the heaviest of rows it must still keep collinear features apart.
    pull = max(pull, NOISE_SHARE * data.weight)

    def expectation(joint):
        statistics, log_likelihood = expected_statistics(joint, data)
        return log_likelihood, statistics

    def maximum(joint, statistics):
        covariance = statistics.scatter + pull * np.diag(spread)
        return Joint.of_moments(statistics.mean, covariance / (data.weight + pull))

    return climb(
        expectation,
        maximum,
        Joint(np.zeros((len(mean), len(mean))), mean, spread),
        tol=tol * data.weight,
        max_iter=max_iter if data.n_missing else 0,
    ).statistics
