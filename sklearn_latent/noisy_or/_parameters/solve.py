"""Follow a schedule on given moments: from statistics to parameters.

The solution is tracked together with its derivative with respect to the moments, so
that standard errors follow from the same formulas.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.special import expit, logit

from .._probabilities import clip_probability
from .._statistics.subsets import MEMBERS, all_subsets, subset_products, subset_variance
from .mixture import solve_pairs, solve_triplets

# Subsets of a pair a, b among those of a triplet.
PAIR_COLUMNS = [0, 1, 3]


@dataclass
class Estimates:
    """Parameters learned so far, with their derivatives.

    prior: NaN where unknown, (n_latents,)
    failure: 1 where there is no edge, NaN where unknown, (n_latents, n_features)
    influence: derivative of priors, then of the failures of edges in row-major order,
        with respect to the moments, if tracked, (n_latents + n_edges, n_sets)
    supported: whether the moments determined the parameter; if not it has a neutral
        value, (n_latents + n_edges,)
    """

    prior: np.ndarray
    failure: np.ndarray
    influence: sparse.csr_array
    supported: np.ndarray

    @classmethod
    def unknown(cls, structure, n_sets) -> Estimates:
        """Know nothing but the structure."""
        n_parameters = len(structure) + int(structure.sum())
        return cls(
            prior=np.full(len(structure), np.nan),
            failure=np.where(structure, np.nan, 1.0),
            influence=sparse.csr_array((n_parameters, n_sets)),
            supported=np.zeros(n_parameters, dtype=bool),
        )

    def copy_values(self) -> Estimates:
        """Copy the parameters; the derivatives stay shared."""
        values = self.prior.copy(), self.failure.copy()
        return Estimates(*values, self.influence, self.supported.copy())


class _Round:
    """One round: estimates of parameters from steps of one kind, with derivatives."""

    def __init__(self, estimates, moments, schedule, steps, edge_of, track):
        self.estimates = estimates
        self.track = track
        self.edge_of = edge_of
        self.features = features = schedule.step_features[steps]
        self.latent = schedule.step_latent[steps]
        # Which latents are divided out of the moments of each step.
        owner, parent = schedule.removals
        number = np.full(len(schedule.step_latent), -1)
        number[steps] = np.arange(len(steps))
        mine = number[owner] >= 0
        self.owner, self.parent = number[owner[mine]], parent[mine]
        is_pair = features[0, 2] < 0
        self.columns = PAIR_COLUMNS if is_pair else list(range(7))
        self.sets = moments.index(all_subsets(features)[:, self.columns])
        self.M = moments.probability[self.sets]
        self.n = moments.total[self.sets].min(axis=1)

    def _influences(self):
        """Failures of removed parents and their influence on each subset (eq. 3)."""
        failure = self.estimates.failure[
            self.parent[:, None], self.features[self.owner]
        ]
        failure[self.features[self.owner] < 0] = 1.0
        product = subset_products(failure.T)[self.columns].T
        prior = self.estimates.prior[self.parent][:, None]
        return failure, product, 1.0 - prior + prior * product

    def adjusted_log_moments(self):
        """Divide the removed parents out of the moments (section 3.2)."""
        log_M = np.log(self.M)
        if not len(self.owner):
            return log_M
        _, _, influence = self._influences()
        gather = sparse.csr_array(
            (np.ones(len(self.owner)), (self.owner, np.arange(len(self.owner)))),
            shape=(len(self.features), len(self.owner)),
        )
        return log_M - gather @ np.log(influence)

    def derivative(self, gradient, through_known=None):
        """Derivative of all estimates with respect to the raw moments, or None.

        `gradient (n, e, s)` is with respect to the logarithms of adjusted moments,
        `through_known (n * e, n_parameters)` by known parameters of the own latent.
        """
        if not self.track:
            return None
        through = self._through_removed(gradient)
        if through_known is not None:
            through = through + through_known
        return self._direct(gradient) + through @ self.estimates.influence

    def _direct(self, gradient):
        """Derivative of estimates, row by row, with respect to their own moments."""
        n, e, s = gradient.shape
        rows = np.repeat(np.arange(n * e), s)
        sets = np.broadcast_to(self.sets[:, None, :], gradient.shape).ravel()
        values = (gradient / self.M[:, None, :]).ravel()
        shape = (n * e, self.estimates.influence.shape[1])
        return sparse.csr_array((values, (rows, sets)), shape=shape)

    def _through_removed(self, gradient):
        """Derivative of estimates with respect to the parameters divided out."""
        n, e, _ = gradient.shape
        shape = (n * e, self.estimates.influence.shape[0])
        if not len(self.owner):
            return sparse.csr_array(shape)
        failure, product, influence = self._influences()
        prior = self.estimates.prior[self.parent]
        pull = gradient[self.owner] / influence[:, None, :]
        d_prior = -np.einsum("res,rs->re", pull, product - 1.0)
        weighted = pull * product[:, None, :] * prior[:, None, None]
        members = MEMBERS[self.columns].astype(float)
        d_failure = -np.einsum("res,sj->rej", weighted, members) / failure[:, None, :]
        edge = self.edge_of[self.parent[:, None], self.features[self.owner]]
        edge = np.where(self.features[self.owner] >= 0, edge, -1)

        rows = self.owner[:, None] * e + np.arange(e)
        prior_columns = np.broadcast_to(self.parent[:, None], rows.shape)
        edge_rows = np.broadcast_to(rows[:, :, None], d_failure.shape)
        edge_columns = np.broadcast_to(edge[:, None, :], d_failure.shape)
        is_edge = edge_columns >= 0
        return sparse.csr_array(
            (
                np.concatenate([d_prior.ravel(), d_failure[is_edge]]),
                (
                    np.concatenate([rows.ravel(), edge_rows[is_edge]]),
                    np.concatenate([prior_columns.ravel(), edge_columns[is_edge]]),
                ),
            ),
            shape=shape,
        )

    def variance(self, gradient):
        """Sampling variance of the estimates, removed parameters taken as known."""
        full = np.zeros((*gradient.shape[:2], 7))
        full[:, :, self.columns] = gradient / self.M[:, None, :]
        M = np.ones((len(self.M), 7))
        M[:, self.columns] = self.M
        # Features that were never observed together tell nothing.
        n = np.where(self.n > 0, self.n, np.nan)
        return subset_variance(M, full) / n[:, None]


def _solve_triplet_round(part: _Round):
    """Values, variances, validity and derivatives of (prior, a, b, c) per triplet."""
    M = np.exp(part.adjusted_log_moments())
    solution = solve_triplets(M)
    gradient = solution.gradient * M[:, None, :]
    derivative = part.derivative(gradient)
    edges = part.edge_of[part.latent[:, None], part.features]
    parameter = np.column_stack([part.latent, edges])
    valid = np.broadcast_to(solution.valid[:, None], parameter.shape)
    return parameter, solution.parameters, part.variance(gradient), valid, derivative


def _solve_pair_round(part: _Round):
    """The same for pairs, which give the target's failure alone."""
    log_M = part.adjusted_log_moments()
    known = part.edge_of[part.latent, part.features[:, 1]]
    known_failure = part.estimates.failure[part.latent, part.features[:, 1]]
    solution = solve_pairs(
        log_M[:, 2] - log_M[:, 0] - log_M[:, 1],
        part.estimates.prior[part.latent],
        known_failure,
    )
    gradient = solution.gradient[:, :1, None] * np.array([-1.0, -1.0, 1.0])
    rows = np.arange(len(known))
    through_known = sparse.csr_array(
        (
            solution.gradient[:, 1:].T.ravel(),
            (np.tile(rows, 2), np.concatenate([part.latent, known])),
        ),
        shape=(len(rows), part.estimates.influence.shape[0]),
    )
    parameter = part.edge_of[part.latent, part.features[:, 0]]
    return (
        parameter[:, None],
        solution.failure[:, None],
        part.variance(gradient),
        solution.valid[:, None],
        part.derivative(gradient, through_known),
    )


def _combining_weights(parameter, variance, valid, n_parameters, combine):
    """Matrix that turns estimates into parameters.

    With `combine`, weights are inversely proportional to variances; without, the first
    valid estimate of each parameter counts, as published.
    """
    usable = np.flatnonzero(valid & np.isfinite(variance) & (parameter >= 0))
    if combine:
        # Variances that rounding made zero (exact moments) must not divide by zero.
        precision = 1.0 / np.maximum(variance[usable], 1e-30)
    else:
        _, first = np.unique(parameter[usable], return_index=True)
        usable = usable[first]
        precision = np.ones(len(usable))
    total = np.bincount(parameter[usable], weights=precision, minlength=n_parameters)
    weights = precision / total[parameter[usable]]
    return sparse.csr_array(
        (weights, (parameter[usable], usable)), shape=(n_parameters, len(parameter))
    )


def _learn(estimates, wanted, results, combine):
    """Combine the estimates of one round and store the wanted parameters."""
    n_latents, n_parameters = len(estimates.prior), len(estimates.supported)
    parameter, values, variance, valid = (
        np.concatenate([result[column].ravel() for result in results])
        for column in range(4)
    )
    parameter = np.where(wanted[parameter], parameter, -1)
    if combine:
        # Near 0 and 1 a prior's error looks small however wrong it is, and would win
        # over better estimates; on the logit scale it does not.
        is_prior = parameter < n_latents
        p = clip_probability(values[is_prior])
        values[is_prior] = logit(p)
        variance[is_prior] /= (p * (1.0 - p)) ** 2

    weights = _combining_weights(parameter, variance, valid, n_parameters, combine)
    supported = np.diff(weights.indptr) > 0
    # Without support: a latent that is on half of the time, an edge without effect.
    neutral = np.where(np.arange(n_parameters) < n_latents, 0.5, 1.0)
    learned = weights @ values
    if combine:
        learned[:n_latents] = expit(learned[:n_latents])
    learned = clip_probability(np.where(supported, learned, neutral))

    estimates.supported |= supported
    if results[0][4] is not None:
        derivative = sparse.vstack([r[4] for r in results], format="csr")
        estimates.influence = estimates.influence + weights @ derivative
    new_prior = wanted[:n_latents]
    estimates.prior[new_prior] = learned[:n_latents][new_prior]
    return learned


def solve_schedule(
    moments, schedule, *, combine=True, estimates=None, track=False
) -> Estimates:
    """Learn parameters by following a schedule.

    The second pass of Algorithm 1 of Halpern and Sontag (2013).
    """
    structure = schedule.structure
    n_latents = len(structure)
    if estimates is None:
        estimates = Estimates.unknown(structure, len(moments.sets))
    edge_of = np.full(structure.shape, -1)
    edge_of[structure] = n_latents + np.arange(structure.sum())
    for level in range(schedule.n_rounds):
        results = []
        targets = schedule.depth == level
        in_round = schedule.step_depth == level
        is_pair = schedule.step_features[:, 2] < 0
        has_triplet = np.zeros(n_latents, dtype=bool)
        has_triplet[schedule.step_latent[in_round & ~is_pair]] = True
        new_prior = np.isnan(estimates.prior) & has_triplet
        wanted = np.concatenate([new_prior, targets[structure]])
        for chosen, solve in (
            (in_round & ~is_pair, _solve_triplet_round),
            (in_round & is_pair, _solve_pair_round),
        ):
            if not chosen.any():
                continue
            steps = np.flatnonzero(chosen)
            part = _Round(estimates, moments, schedule, steps, edge_of, track)
            results.append(solve(part))
        learned = _learn(estimates, wanted, results, combine)
        estimates.failure[targets] = learned[edge_of[targets]]
    return estimates


def solve_leak(moments, prior, failure) -> np.ndarray:
    """Give what is not accounted for to the leaks.

    Equation 5 of Halpern and Sontag (2013).
    """
    n_features = failure.shape[1]
    single = np.full((n_features, moments.sets.shape[1]), -1)
    single[:, -1] = np.arange(n_features)
    off = moments.probability[moments.index(single)]
    explained = np.prod(1.0 - prior[:, None] + prior[:, None] * failure, axis=0)
    return clip_probability(1.0 - off / explained)
