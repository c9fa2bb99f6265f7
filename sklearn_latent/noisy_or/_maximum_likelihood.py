"""Maximum likelihood of a noisy-or network, and its standard errors.

EM climbs fast at first and crawls at the end. Where all states of the latents are
summed, quasi-Newton steps on the gradient that falls out of the same expectations go
the rest of the way. Rows are `TableRows` or beams: both have expectations.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from .._core.climb import Ascent, climb
from .._tables.blocks import add_present
from ._beam import Beam
from ._expected import Expected, maximize
from ._probabilities import EPSILON, clip_probability
from ._state_table import TableRows
from ._statistics.packed import PackedRows
from ._statistics.patterns import Patterns

# Information of a uniform distribution on [0, 1], whose variance is 1 / 12.
UNIFORM_INFORMATION = 12.0

# EM steps before the quasi-Newton phase; they also set its scales.
WARM_UP = 5

# Large tables: how often rows are grouped, and the gain in nats of all rows together
# below which a step is the last of a grouping.
GROUPINGS, LEAST_GAIN = 2, 0.02

# EM steps from one look at the neighbours of states to the next. A step that looks
# takes twice as long as one that does not.
FOLLOWED = 4

# Values of the rows that share a beam, so that memory is bounded.
PIECE_VALUES = 1 << 22

# Parameters whose information is inverted together; of more, each is taken as if the
# others were known.
MOST_TOGETHER = 2500


def climb_table(
    start, rows: TableRows, *, tol: float, max_iter: int, smooth=False
) -> Ascent:
    """EM over all states of the latents; `tol` is per row."""

    def expect(network):
        expected = rows.expect(network)
        return expected.log_likelihood, expected

    return climb(
        expect,
        partial(maximize, smooth=smooth),
        start._clipped(),
        tol=tol * rows.patterns.weights.sum(),
        max_iter=max_iter,
    )


def climb_beams(
    start,
    beams: list[Beam],
    *,
    tol: float,
    max_iter: int,
    smooth: bool = True,
    patient: bool = False,
    search: bool = True,
    report=None,
) -> Ascent:
    """EM on the states of beams, which follow the parameters; `tol` is per row.

    It starts with a search, because the states at hand may be a local optimum, unless
    they come from one that was shortly before.
    """
    start = start._clipped()
    if search:
        for beam in beams:
            beam.search(start)
    number = count()

    def expect(network):
        step = next(number)
        for beam in beams:
            if step or not search:
                beam.update(network, expand=step % FOLLOWED == 0)
        expected = add_present(beam.expect() for beam in beams)
        return expected.log_likelihood, expected

    return climb(
        expect,
        partial(maximize, smooth=smooth),
        start,
        tol=tol * sum(beam.patterns.weights.sum() for beam in beams),
        max_iter=max_iter,
        patient=patient,
        report=report,
    )


def cut(patterns: Patterns) -> list[Patterns]:
    """Pieces of the rows that share a beam each."""
    n_rows, n_features = patterns.on.shape
    step = max(1, PIECE_VALUES // max(1, n_features))
    return [patterns.take(slice(i, i + step)) for i in range(0, n_rows, step)]


def expect_block(block: PackedRows, network, most_values) -> Expected:
    """Expectations of a block of rows, or of a sample that stands for it."""
    step = max(1, most_values // max(1, len(block.off)))
    patterns = block.unpack(np.arange(block.n_rows)[:: -(-block.n_rows // step)])
    scale = block.total / patterns.weights.sum()
    parts = cut(patterns._replace(weights=patterns.weights * scale))
    return add_present(_expect_rows(part, network) for part in parts)


def _expect_rows(patterns, network) -> Expected:
    """Expectations of some rows, with a beam of their own."""
    beam = Beam(patterns, network.n_latents)
    beam.search(network)
    return beam.expect()


class LikelihoodFit(NamedTuple):
    """Result of `maximize_likelihood`.

    n_iter: iterations of the slowest component
    converged: whether the gradient vanished in every component
    """

    network: Any
    log_likelihood: float
    n_iter: int
    converged: bool


def maximize_likelihood(
    start, patterns: Patterns, *, max_iter=500, tol=1e-4
) -> LikelihoodFit:
    """Climb to a maximum of the exact likelihood from a good start.

    EM with quasi-Newton acceleration (Jamshidian and Jennrich, 1997), component by
    component.
    """
    start = start._clipped()
    fits = [
        (part, _maximize_component(start._part(*part), TableRows(table), max_iter, tol))
        for part, table in patterns.by_component(start.structure)
    ]
    return LikelihoodFit(
        start._with_parts((part, fit.network) for part, fit in fits),
        sum(fit.log_likelihood for _, fit in fits),
        max((fit.n_iter for _, fit in fits), default=0),
        all(fit.converged for _, fit in fits),
    )


def _maximize_component(start, rows: TableRows, max_iter, tol) -> LikelihoodFit:
    """`maximize_likelihood` for one connected component."""
    if not rows.group(start):
        return _quasi_newton(start, rows, max_iter, tol)
    fit, n_iter = LikelihoodFit(start, -np.inf, 0, False), 0
    for _ in range(GROUPINGS):
        rows.group(fit.network)
        fit = _quasi_newton(fit.network, rows, max_iter, tol, LEAST_GAIN)
        n_iter += fit.n_iter
    whole = TableRows(rows.patterns).expect(fit.network)
    return fit._replace(log_likelihood=whole.log_likelihood, n_iter=n_iter)


def _quasi_newton(start, rows, max_iter, tol, least_gain=0.0) -> LikelihoodFit:
    """EM steps, then quasi-Newton steps until the gradient vanishes.

    Steps that gain less than `least_gain` are the last, too.
    """
    warm = climb_table(start, rows, tol=0.0, max_iter=WARM_UP)
    angles = _Angles(warm.state, warm.statistics)

    def objective(coordinates):
        network = angles.network(coordinates)
        expected = rows.expect(network)
        return -expected.log_likelihood, -angles.gradient(network, expected)

    result = minimize(
        objective,
        angles.coordinates(warm.state),
        jac=True,
        method="L-BFGS-B",
        bounds=angles.bounds(),
        options={
            "maxiter": max_iter,
            "gtol": tol,
            "ftol": least_gain / max(abs(warm.objective), 1.0),
            "maxcor": 20,
        },
    )
    # A line search that finds nothing better has hit rounding: as good as it gets.
    converged = bool(result.success or result.status == 2)
    n_iter = warm.n_iter + int(result.nit)
    if -result.fun < warm.objective:
        return LikelihoodFit(warm.state, warm.objective, n_iter, converged)
    best = angles.network(result.x)
    return LikelihoodFit(best, -float(result.fun), n_iter, converged)


class _Angles:
    """Coordinates in which the likelihood of complete data is nearly a unit sphere.

    A probability p becomes 2 arcsin(sqrt(p)), whose information per trial is 1 for
    every p, times the root of the expected number of trials.
    """

    def __init__(self, network, expected: Expected):
        self.start = network
        counts = np.full(network.n_latents, expected.total)
        trials = self._join(counts, expected.trials, expected.leak_trials)
        self.scale = np.sqrt(np.maximum(trials, 1e-12))

    def _join(self, prior, failure, leak):
        return np.concatenate([prior, failure[self.start.structure], leak])

    def coordinates(self, network):
        return self._angle(self._join(network.prior, network.failure, network.leak))

    def _angle(self, values):
        return 2.0 * np.arcsin(np.sqrt(values)) * self.scale

    def bounds(self):
        ends = (np.full(len(self.scale), end) for end in (EPSILON, 1.0 - EPSILON))
        return list(zip(*map(self._angle, ends), strict=True))

    def network(self, coordinates):
        values = clip_probability(np.sin(0.5 * coordinates / self.scale) ** 2)
        n_latents, n_features = self.start.failure.shape
        prior, edges, leak = np.split(values, [n_latents, len(values) - n_features])
        failure = np.ones(self.start.failure.shape)
        failure[self.start.structure] = edges
        return self.start._with(
            class_prior=prior[np.newaxis], failure=failure, leak=leak
        )

    def gradient(self, network, expected):
        slopes = self._join(*likelihood_gradient(network, expected))
        values = self._join(network.prior, network.failure, network.leak)
        return slopes * np.sqrt(values * (1.0 - values)) / self.scale


def likelihood_gradient(network, expected: Expected):
    """Slopes of the log-likelihood: of priors, failures of edges, and leaks."""
    prior, latent_on = network.prior, expected.latent_on.sum(axis=0)
    return (
        (latent_on - prior * expected.total) / (prior * (1.0 - prior)),
        (expected.trials - expected.causes) / network.failure,
        (expected.leak_causes - expected.leak_trials) / (1.0 - network.leak),
    )


def standard_errors(network, patterns: Patterns):
    """Standard errors of maximum-likelihood parameters; NaN where there is no edge.

    Roots of the diagonal of the inverse of the information, the outer product of the
    scores of the rows (Berndt, Hall, Hall and Hausman, 1974), to which the information
    of a uniform distribution is added: data that says nothing of a parameter leaves the
    standard deviation of a guess, 0.29, instead of a singular matrix. A parameter at a
    bound is not normally distributed; it is taken out of the inversion, as if known,
    and its own figure is the distance from the bound at which the log-likelihood, all
    else fixed, has fallen by one half, which is what a standard error is elsewhere.

    Returns errors of priors, failures and leaks; over all states of the latents.
    """
    network = network._clipped()
    errors = network._with()
    parts = []
    for part, table in patterns.by_component(network.structure):
        piece = network._part(*part)
        prior, failure, leak = errors_of(piece, TableRows(table))
        parts.append(
            (
                part,
                piece._with(class_prior=prior[np.newaxis], failure=failure, leak=leak),
            )
        )
    errors = network._with_parts(parts)
    failure = np.where(network.structure, errors.failure, np.nan)
    return errors.prior, failure, errors.leak


def errors_of(network, rows: TableRows | Beam):
    """`standard_errors` of one component, or from a beam that holds its parameters.

    Of latents under classes, those of P(latent on).
    """
    latent, feature = np.nonzero(network.structure)
    values = np.concatenate(
        [network.prior, network.failure[latent, feature], network.leak]
    )
    weights, observed = rows.patterns.weights, rows.patterns.observed
    together = len(values) <= MOST_TOGETHER
    if isinstance(rows, Beam):
        # Fewer rows than parameters leave most of a large matrix empty.
        together &= len(values) <= weights.sum() / 2
    slope = np.zeros(len(values))
    information = np.zeros((len(values),) * 2 if together else len(values))
    scale = np.concatenate(
        [
            network.prior * (1.0 - network.prior),
            network.failure[latent, feature],
            1.0 - network.leak,
        ]
    )
    for part, latent_on, of_edges, of_leaks in rows.scores(network, latent, feature):
        known = np.ones(of_leaks.shape) if observed is None else observed[part]
        of_failures = latent_on[:, latent] * known[:, feature] - of_edges
        scores = np.hstack([latent_on - network.prior, of_failures, of_leaks - known])
        scores /= scale
        slope += weights[part] @ scores
        if together:
            information += scores.T @ (scores * weights[part, np.newaxis])
        else:
            information += weights[part] @ scores**2
    errors = _errors(values, slope, information)
    n_latents, n_features = network.failure.shape
    prior, edges, leak = np.split(errors, [n_latents, len(errors) - n_features])
    failure = np.full(network.failure.shape, np.nan)
    failure[latent, feature] = edges
    return prior, failure, leak


def _errors(values, slope, information) -> np.ndarray:
    """Standard errors of probabilities from slope and information of the likelihood.

    values, slope (n,); information (n, n) or, if parameters are taken one at a time,
    its diagonal (n,) -> errors (n,).
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
