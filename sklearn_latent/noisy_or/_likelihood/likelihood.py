"""Maximum likelihood of a noisy-or network, and its standard errors.

EM climbs fast at first and crawls at the end. From a good start, quasi-Newton steps on
the gradient that falls out of the same expected statistics go the rest of the way.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from .._numerics import EPSILON, clip_probability
from .._statistics.patterns import Patterns
from .exact import (
    Parameters,
    StateTable,
    climb_exact,
    clip_parameters,
    configurations,
    expected_statistics,
    posteriors,
)
from .grouped import group_rows, grouped_statistics, pays

# Information of a uniform distribution on [0, 1], whose variance is 1 / 12.
UNIFORM_INFORMATION = 12.0

# EM steps before the quasi-Newton phase; they also set its scales.
WARM_UP = 5

# Large tables: how often rows are grouped, and the gain in nats of all rows together
# below which a step is the last of a grouping.
GROUPINGS = 2
LEAST_GAIN = 0.02


class LikelihoodFit(NamedTuple):
    """Result of `maximize_likelihood`.

    n_iter: iterations of the slowest component
    converged: whether the gradient vanished in every component
    """

    prior: np.ndarray
    failure: np.ndarray
    leak: np.ndarray
    log_likelihood: float
    n_iter: int
    converged: bool


def maximize_likelihood(
    start: Parameters, structure, patterns: Patterns, *, max_iter=500, tol=1e-4
) -> LikelihoodFit:
    """Climb to a maximum of the exact likelihood from a good start.

    EM with quasi-Newton acceleration (Jamshidian and Jennrich, 1997), component by
    component.
    """
    prior, failure, leak = start
    failure = np.where(structure, clip_probability(failure), 1.0)
    result = Parameters(*clip_parameters(prior, failure, leak))
    log_likelihood, n_iter, converged = 0.0, 0, True
    for part, table in patterns.by_component(structure):
        fit = _maximize_component(result.restrict(part), table, max_iter, tol)
        result.put(part, fit)
        log_likelihood += fit.log_likelihood
        n_iter = max(n_iter, fit.n_iter)
        converged &= fit.converged
    return LikelihoodFit(*result, log_likelihood, n_iter, converged)


class _Angles:
    """Coordinates in which the likelihood of complete data is nearly a unit sphere.

    A probability p becomes 2 arcsin(sqrt(p)), whose information per trial is 1 for
    every p, times the root of the expected number of trials.
    """

    def __init__(self, prior, failure, leak, statistics):
        self.edges = failure < 1.0
        self.sizes = np.cumsum([len(prior), self.edges.sum()])
        trials = self._join(
            np.full(len(prior), statistics.total),
            statistics.trials,
            statistics.leak_trials,
        )
        self.scale = np.sqrt(np.maximum(trials, 1e-12))

    def _join(self, prior, failure, leak):
        return np.concatenate([prior, failure[self.edges], leak])

    def coordinates(self, prior, failure, leak):
        return self._angle(self._join(prior, failure, leak))

    def _angle(self, values):
        return 2.0 * np.arcsin(np.sqrt(values)) * self.scale

    def bounds(self):
        ends = (np.full(len(self.scale), end) for end in (EPSILON, 1.0 - EPSILON))
        return list(zip(*map(self._angle, ends), strict=True))

    def parameters(self, coordinates):
        values = clip_probability(np.sin(0.5 * coordinates / self.scale) ** 2)
        prior, edges, leak = np.split(values, self.sizes)
        failure = np.ones(self.edges.shape)
        failure[self.edges] = edges
        return prior, failure, leak

    def gradient(self, prior, failure, leak, statistics):
        slopes = self._join(*likelihood_gradient(prior, failure, leak, statistics))
        values = self._join(prior, failure, leak)
        return slopes * np.sqrt(values * (1.0 - values)) / self.scale


def likelihood_gradient(prior, failure, leak, statistics):
    """Differentiate the log-likelihood with respect to the parameters."""
    excess = statistics.latent_on - prior * statistics.total
    return (
        excess / (prior * (1.0 - prior)),
        (statistics.trials - statistics.causes) / failure,
        (statistics.leak_causes - statistics.leak_trials) / (1.0 - leak),
    )


def _maximize_component(start: Parameters, patterns, max_iter, tol):
    """`maximize_likelihood` for one connected component."""
    if not pays(len(start.prior), patterns):
        return _climb(start, patterns, max_iter, tol)
    n_iter = 0
    for _ in range(GROUPINGS):
        groups = group_rows(Parameters(*clip_parameters(*start)), patterns)
        fit = _climb(
            start,
            patterns,
            max_iter,
            tol,
            expectation=partial(grouped_statistics, groups=groups),
            least_gain=LEAST_GAIN,
        )
        start, n_iter = Parameters(*fit[:3]), n_iter + fit.n_iter
    whole = expected_statistics(*start, *patterns[:3])
    return fit._replace(log_likelihood=whole.log_likelihood, n_iter=n_iter)


def _climb(start, patterns, max_iter, tol, expectation=None, least_gain=0.0):
    """EM steps, then quasi-Newton steps until the gradient vanishes.

    Steps that gain less than `least_gain` are the last, too.
    """
    if expectation is None:

        def expectation(parameters):
            return expected_statistics(*parameters, *patterns[:3])

    warm = climb_exact(
        start, patterns, tol=0.0, max_iter=WARM_UP, expectation=expectation
    )
    prior, failure, leak = warm.state
    angles = _Angles(prior, failure, leak, warm.statistics)

    def objective(coordinates):
        parameters = Parameters(*angles.parameters(coordinates))
        statistics = expectation(parameters)
        gradient = angles.gradient(*parameters, statistics)
        return -statistics.log_likelihood, -gradient

    scale = max(abs(warm.objective), 1.0)
    result = minimize(
        objective,
        angles.coordinates(prior, failure, leak),
        jac=True,
        method="L-BFGS-B",
        bounds=angles.bounds(),
        options={
            "maxiter": max_iter,
            "gtol": tol,
            "ftol": least_gain / scale,
            "maxcor": 20,
        },
    )
    log_likelihood = warm.objective
    if -result.fun >= log_likelihood:
        prior, failure, leak = angles.parameters(result.x)
        log_likelihood = float(-result.fun)
    # A line search that finds nothing better has hit rounding: as good as it gets.
    converged = bool(result.success or result.status == 2)
    n_iter = warm.n_iter + int(result.nit)
    return LikelihoodFit(prior, failure, leak, log_likelihood, n_iter, converged)


def score_covariance(prior, failure, leak, structure, on, observed, weights):
    """Information matrix as the outer product of the scores of the rows.

    The estimator of Berndt, Hall, Hall and Hausman (1974).
    """
    prior, failure, leak = clip_parameters(prior, failure, leak)
    table = StateTable.of(prior, failure, leak)
    latent, feature = np.nonzero(structure)
    states = configurations(len(prior)).astype(np.float64)
    odds = np.exp(-table.on)
    # What a positive finding says of an edge (of the leak) in each state.
    causes = np.hstack([states[:, latent] * odds[:, feature], odds])
    n_parameters = len(prior) + causes.shape[1]
    information = np.zeros((n_parameters, n_parameters))
    for rows, posterior, _ in posteriors(
        table, on, observed, row_elements=2 * n_parameters
    ):
        latent_on = posterior @ states
        fired = posterior @ causes * np.hstack([on[rows][:, feature], on[rows]])
        tried = np.hstack([latent_on[:, latent], np.ones_like(on[rows], dtype=float)])
        if observed is not None:
            known = observed[rows]
            tried *= np.hstack([known[:, feature], known])
        scores = np.hstack(
            [
                (latent_on - prior) / (prior * (1.0 - prior)),
                (tried - fired)[:, : len(latent)] / failure[latent, feature],
                (fired - tried)[:, len(latent) :] / (1.0 - leak),
            ]
        )
        information += scores.T @ (scores * weights[rows, np.newaxis])
    return information


def standard_errors(
    parameters: Parameters, structure, patterns: Patterns
) -> Parameters:
    """Standard errors of maximum-likelihood parameters; NaN where there is no edge.

    Roots of the diagonal of the inverse of `score_covariance`, to which the
    information of a uniform distribution is added: data that says nothing of a
    parameter leaves the standard deviation of a guess, 0.29, instead of a singular
    matrix. A parameter at a bound is not normally distributed; it is taken out of the
    inversion, as if known, and its own figure is the distance from the bound at which
    the log-likelihood, all else fixed, has fallen by one half, which is what a standard
    error is elsewhere.
    """
    errors = Parameters(
        np.empty(len(structure)),
        np.full(structure.shape, np.nan),
        np.empty(structure.shape[1]),
    )
    for part, table in patterns.by_component(structure):
        edges = structure[np.ix_(part.latents, part.features)]
        values = _component_errors(parameters.restrict(part), edges, table)
        sizes = [len(part.latents), edges.sum()]
        of_prior, of_edges, of_leak = np.split(values, np.cumsum(sizes))
        of_failure = np.full(edges.shape, np.nan)
        of_failure[edges] = of_edges
        errors.put(part, (of_prior, of_failure, of_leak))
    return errors


def _component_errors(parameters, edges, patterns):
    """Estimate those of a component, in the order of `score_covariance`."""
    prior, failure, leak = parameters
    failure = np.where(edges, failure, 1.0)
    prior, failure, leak = clip_parameters(prior, failure, leak)
    information = score_covariance(prior, failure, leak, edges, *patterns[:3])
    statistics = expected_statistics(prior, failure, leak, *patterns[:3])
    d_prior, d_failure, d_leak = likelihood_gradient(prior, failure, leak, statistics)
    slope = np.concatenate([d_prior, d_failure[edges], d_leak])
    values = np.concatenate([prior, failure[edges], leak])
    return errors_of(values, slope, information)


def errors_of(values, slope, information) -> np.ndarray:
    """Standard errors of probabilities from slope and information of the likelihood.

    values, slope (n,); information (n, n) or, if parameters are taken one at a time,
    its diagonal (n,) -> errors (n,). See `standard_errors`.
    """
    full = information.ndim == 2
    curvature = (np.diag(information) if full else information) + UNIFORM_INFORMATION
    free = (values > 2 * EPSILON) & (values < 1.0 - 2 * EPSILON)
    errors = 1.0 / np.sqrt(curvature)
    if full:
        among = np.array(information[np.ix_(free, free)])
        among[np.diag_indices_from(among)] += UNIFORM_INFORMATION
        errors[free] = np.sqrt(_inverse_diagonal(among))
    slope, curvature = np.abs(slope[~free]), curvature[~free]
    # The root of slope * d + curvature * d ** 2 / 2 = 1 / 2, without cancellation.
    errors[~free] = 1.0 / (slope + np.sqrt(slope**2 + curvature))
    return errors


def _inverse_diagonal(information):
    """Diagonal of the inverse, whose matrix holds the uniform information at least."""
    try:
        root = np.linalg.inv(np.linalg.cholesky(information))
        return (root**2).sum(axis=0)
    except np.linalg.LinAlgError:
        # Beside the information of very heavy rows, small eigenvalues are lost to
        # rounding.
        values, vectors = np.linalg.eigh(information)
        return vectors**2 @ (1.0 / np.maximum(values, UNIFORM_INFORMATION))
