"""Parameters of a known structure: from statistics to estimates and their errors."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._numerics import clip_probability
from .cleanup import clean_up
from .plan import Plan, Statistics
from .refine import likelihood_errors, refine, schedule_errors, siblings_errors
from .solve import solve_leak, solve_schedule


class Learned(NamedTuple):
    """What `learn_parameters` makes of statistics.

    prior (n_latents,), failure (n_latents, n_features), leak (n_features,)
    supported: whether the moments determined priors, then edges; (n_parameters,)
    """

    prior: np.ndarray
    failure: np.ndarray
    leak: np.ndarray
    supported: np.ndarray


def learn_parameters(
    plan: Plan, statistics: Statistics, *, improve=True, report=None
) -> Learned:
    """Follow the plan; `improve` combines triplets and refines.

    ``report(message)`` is called after each step.
    """
    report = report or (lambda message: None)
    moments, schedule = statistics.moments, plan.schedule
    structure = schedule.structure
    estimates = solve_schedule(moments, schedule, combine=improve)
    report(f"solved {schedule!r}")
    if plan.rest is not None:
        clean_up(moments, estimates, plan.rest)
        report(f"cleaned up {len(schedule.unreached):,} edges")
    # What is still unknown has no effect, so that the leaks account for it.
    prior = np.where(np.isnan(estimates.prior), 0.5, estimates.prior)
    failure = np.where(np.isnan(estimates.failure), 1.0, estimates.failure)
    failure[structure] = clip_probability(failure[structure])
    leak = solve_leak(moments, prior, failure)
    if improve:
        learned = structure & ~np.isnan(estimates.failure)
        prior, failure, leak = refine(plan, statistics, prior, failure, leak, learned)
        report("refined")
    return Learned(prior, failure, leak, estimates.supported)


def parameter_errors(plan: Plan, statistics: Statistics, network, *, improved=True):
    """Errors by likelihood, of least squares, or of the published estimator.

    Returns errors of priors (n_latents,) and of failures (n_latents, n_features).
    """
    schedule = plan.schedule
    if not improved:
        return schedule_errors(schedule, statistics.moments, network)
    errors = likelihood_errors(plan, statistics, network)
    if not np.isnan(errors[0]).any():
        return errors
    learned = np.isfinite(schedule.depth) | (
        schedule.structure & (plan.rest is not None)
    )
    others = siblings_errors(plan, statistics, network, learned)
    if others is None:
        others = schedule_errors(schedule, statistics.moments, network)
    return tuple(
        np.where(np.isnan(error), other, error)
        for error, other in zip(errors, others, strict=True)
    )
