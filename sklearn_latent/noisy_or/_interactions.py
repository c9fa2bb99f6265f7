"""Least squares on second- and third-order interactions of the negative moments.

In logarithms, the interaction of features within a set is a sum over the parents that
couple at least two of them. Leaks and all other parents cancel, so that a few terms
describe each set however many parents its features have.
"""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg

from ._probabilities import EPSILON, clip_probability
from ._schedule import coupling_parents
from ._statistics.subsets import MEMBERS, all_subsets, subset_products, subset_variance

# Up to this many parameters, normal equations are solved directly.
DENSE_COLUMNS = 400
MAX_DAMPING = 1e8
# Damping up to which a short step means that the fit is near its end.
LIGHT_DAMPING = 1.0
# Iterations in which the weights follow the parameters.
REWEIGHED = 12
START_MARGIN = 1e-3
TINY = 1e-12

# Signs with which the logarithms of the moments of a, b, c, ab, ac, bc, abc enter.
PAIR_SIGNS = np.array([-1.0, -1.0, 0.0, 1.0, 0.0, 0.0, 0.0])
TRIPLET_SIGNS = np.array([1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0])


class Interactions:
    """Observed interactions of sets of features, and what a network implies for them.

    moments: with all subsets of the sets
    sets: features; -1 in the last place makes a pair, (n_sets, 3)
    """

    def __init__(self, moments, structure, sets):
        self.structure = structure
        self.sets = sets
        is_pair = sets[:, 2] < 0
        self.signs = np.where(is_pair[:, None], PAIR_SIGNS, TRIPLET_SIGNS)
        subsets = all_subsets(sets)
        # A pair has no third feature: its empty subsets have sign 0, any set will do.
        subsets[is_pair] = np.where(
            (self.signs[is_pair] == 0)[:, :, None],
            subsets[is_pair][:, :1],
            subsets[is_pair],
        )
        self.index = moments.index(subsets)
        self.M = moments.probability[self.index]
        self.n = moments.total[self.index].min(axis=1)
        self.observed = np.einsum("ns,ns->n", self.signs, np.log(self.M))
        self.owner, self.parent = coupling_parents(structure, sets)
        # Edges of the terms, numbered row by row; one more number is no edge. Values
        # of the edges alone stay in the cache, where those of the matrix would not.
        n_edges = int(structure.sum())
        edge_of = np.full(structure.shape, n_edges)
        edge_of[structure] = np.arange(n_edges)
        features = sets[self.owner].T
        self._edge = np.where(features >= 0, edge_of[self.parent, features], n_edges)
        self._term_signs = np.ascontiguousarray(self.signs[self.owner].T)
        self.weight = self._weights(self.M)

    def _weights(self, M):
        """Inverse standard deviations of the observed interactions."""
        variance = subset_variance(M, self.signs / M)
        # A constant feature has no variance and no information either.
        informative = variance > TINY
        return np.where(
            informative, np.sqrt(self.n / np.where(informative, variance, 1.0)), 0.0
        )

    def reweigh(self, prior, failure):
        """Take the weights from a network instead of the noisy moments themselves."""
        *_, influence = self._terms(prior, failure)
        log_influence = np.log(influence)
        lift = log_influence - MEMBERS @ log_influence[:3]
        lifts = [
            np.bincount(self.owner, weights=row, minlength=len(self.sets))
            for row in lift
        ]
        independent = np.log(self.M[:, :3]) @ MEMBERS.T
        self.weight = self._weights(np.exp(independent + np.transpose(lifts)))

    def _terms(self, prior, failure):
        """Prior, failures, their products and influences, per subset and term.

        A term is one parent in one set, see ``owner`` and ``parent``.
        """
        f = np.append(failure[self.structure], 1.0)[self._edge]
        p = prior[self.parent]
        product = subset_products(f)
        return p, f, product, 1.0 - p + p * product

    def implied(self, prior, failure) -> np.ndarray:
        """Interactions that a network implies, one per set."""
        *_, influence = self._terms(prior, failure)
        terms = (self._term_signs * np.log(influence)).sum(axis=0)
        return np.bincount(self.owner, weights=terms, minlength=len(self.sets))

    def residuals(self, prior, failure) -> np.ndarray:
        """Weighted differences between implied and observed interactions."""
        return self.weight * (self.implied(prior, failure) - self.observed)

    def cost(self, prior, failure) -> float:
        """Half the weighted sum of squared residuals."""
        return float(0.5 * np.sum(self.residuals(prior, failure) ** 2))

    def jacobian(self, prior, failure, column_of_prior, column_of_edge, n_columns):
        """Sparse derivative of the weighted residuals by the free parameters."""
        p, f, product, influence = self._terms(prior, failure)
        pull = self._term_signs / influence * self.weight[self.owner]
        d_prior = (pull * (product - 1.0)).sum(axis=0)
        d_failure = MEMBERS.T @ (pull * p * product) / f
        edge = np.append(column_of_edge[self.structure], -1)[self._edge]
        prior_column = column_of_prior[self.parent]
        rows = np.broadcast_to(self.owner, edge.shape)
        free, free_prior = edge >= 0, prior_column >= 0
        return sparse.csr_array(
            (
                np.concatenate([d_prior[free_prior], d_failure[free]]),
                (
                    np.concatenate([self.owner[free_prior], rows[free]]),
                    np.concatenate([prior_column[free_prior], edge[free]]),
                ),
            ),
            shape=(len(self.sets), n_columns),
        )

    def by_moments(self, n_moments):
        """Sparse derivative of the observed interactions by the moments."""
        rows, subset = np.nonzero(self.signs)
        values = self.signs[rows, subset] / self.M[rows, subset]
        return sparse.csr_array(
            (values, (rows, self.index[rows, subset])),
            shape=(len(self.sets), n_moments),
        )


class FreeParameters:
    """Some priors and failures of a network as one vector.

    prior, failure: values of the parameters that are not free
    free_prior, free_edge: which are free
    """

    def __init__(self, prior, failure, free_prior, free_edge):
        self.prior, self.failure = prior, failure
        self.free_prior, self.free_edge = free_prior, free_edge
        self.n_prior = int(free_prior.sum())
        self.n_columns = self.n_prior + int(free_edge.sum())
        self.column_of_prior = np.full(len(prior), -1)
        self.column_of_prior[free_prior] = np.arange(self.n_prior)
        self.column_of_edge = np.full(failure.shape, -1)
        self.column_of_edge[free_edge] = np.arange(self.n_prior, self.n_columns)

    def pack(self, prior, failure):
        """Vector of the free parameters, within bounds."""
        return clip_probability(
            np.concatenate([prior[self.free_prior], failure[self.free_edge]])
        )

    def unpack(self, x):
        """Priors and failures with the free ones taken from the vector."""
        prior, failure = self.prior.copy(), self.failure.copy()
        prior[self.free_prior] = x[: self.n_prior]
        failure[self.free_edge] = x[self.n_prior :]
        return prior, failure

    def linearize(self, interactions, x):
        """Weighted residuals and their sparse Jacobian."""
        values = self.unpack(x)
        return interactions.residuals(*values), interactions.jacobian(
            *values, self.column_of_prior, self.column_of_edge, self.n_columns
        )


def damped_step(J, gradient, diagonal, damping, free):
    """Solve (J'J + damping * diagonal) step = -gradient for the free coordinates."""
    rhs = np.where(free, -gradient, 0.0)
    if len(rhs) <= DENSE_COLUMNS:
        hessian = (J.T @ J).toarray()
        hessian[np.diag_indices_from(hessian)] += damping * diagonal
        hessian[~free] = 0.0
        hessian[:, ~free] = 0.0
        hessian[~free, ~free] = 1.0
        return np.linalg.solve(hessian, rhs)
    # Conjugate gradients; one part in a hundred is enough for a step that is damped
    # and repeated anyway.
    transpose = sparse.csr_array(J.T)
    operator = LinearOperator(
        (len(rhs), len(rhs)),
        matvec=lambda v: np.where(
            free, transpose @ (J @ v) + damping * diagonal * v, v
        ),
    )
    preconditioner = LinearOperator(
        operator.shape, matvec=lambda v: v / ((1.0 + damping) * diagonal)
    )
    step, _ = cg(operator, rhs, rtol=1e-2, maxiter=200, M=preconditioner)
    return step


def fit_interactions(
    interactions,
    prior,
    failure,
    free_prior,
    free_edge,
    guess=None,
    *,
    max_iter=100,
    tol=0.01,
):
    """Fit free parameters to observed interactions by reweighted least squares.

    Levenberg-Marquardt within the bounds; the weights are those that the current
    parameters imply, because weights from the noisy moments of rare events are worse
    than none. A `guess` has residuals and a Jacobian of its own, which count too.
    """
    parameters = FreeParameters(prior, failure, free_prior, free_edge)

    def cost_of(x):
        values = parameters.unpack(x)
        cost = interactions.cost(*values)
        if guess is not None:
            cost += 0.5 * np.sum(guess.residuals(parameters, *values) ** 2)
        return cost

    # At the very edge of the box the residuals are flat; start a little inside.
    x = np.clip(parameters.pack(prior, failure), START_MARGIN, 1.0 - START_MARGIN)
    damping = 1e-3
    for iteration in range(max_iter):
        # Weights that always change can let the fit run in circles.
        if guess is None or iteration < REWEIGHED:
            interactions.reweigh(*parameters.unpack(x))
        residuals, J = parameters.linearize(interactions, x)
        if guess is not None:
            values = parameters.unpack(x)
            residuals = np.append(residuals, guess.residuals(parameters, *values))
            J = sparse.vstack([J, guess.jacobian(parameters, *values)], format="csr")
        cost = 0.5 * residuals @ residuals
        gradient = J.T @ residuals
        diagonal = np.maximum(J.multiply(J).sum(axis=0), TINY)
        # A parameter at a bound that wants to leave the box stays where it is.
        free = ~(
            ((x <= EPSILON) & (gradient > 0)) | ((x >= 1 - EPSILON) & (gradient < 0))
        )
        while damping < MAX_DAMPING:
            step = damped_step(J, gradient, diagonal, damping, free)
            candidate = clip_probability(x + step)
            if cost_of(candidate) <= cost:
                break
            damping *= 8.0
        else:
            break
        moved = np.linalg.norm(J @ (candidate - x))
        x = candidate
        # Heavily damped steps are short wherever they start.
        if moved <= tol * np.sqrt(len(x)) and damping <= LIGHT_DAMPING:
            break
        damping = max(damping / 5.0, 1e-12)
    return *parameters.unpack(x), cost_of(x)


def random_triplets(structure, latents, n_per_latent) -> np.ndarray:
    """Triplets of children of each latent: all, or a fixed random choice of them."""
    # The choice is part of a plan: it must not vary from run to run.
    rng = np.random.RandomState(0)
    found = [np.zeros((0, 3), dtype=np.int64)]
    for latent in latents:
        children = np.flatnonzero(structure[latent])
        if comb(len(children), 3) <= n_per_latent:
            chosen = np.array(list(combinations(children, 3)), dtype=np.int64)
            found.append(chosen.reshape(-1, 3))
        elif n_per_latent > 0:
            keys = rng.random_sample((n_per_latent, len(children)))
            found.append(children[np.argpartition(keys, 2, axis=1)[:, :3]])
    return np.concatenate(found)


def sibling_pairs(structure, latents) -> np.ndarray:
    """All pairs of children of each latent, with -1 in the third place."""
    found = [np.zeros((0, 3), dtype=np.int64)]
    for latent in latents:
        children = np.flatnonzero(structure[latent])
        one, two = np.triu_indices(len(children), 1)
        none = np.full(len(one), -1)
        found.append(np.column_stack([children[one], children[two], none]))
    return np.concatenate(found)


def pairs_of(sets) -> np.ndarray:
    """The sets and all pairs within them, each once, with -1 in the last place."""
    sets = -np.sort(-np.asarray(sets), axis=1)
    triplets = sets[sets[:, 2] >= 0]
    pairs = np.concatenate([sets[:, :2], triplets[:, 1:], triplets[:, ::2]])
    pairs = np.column_stack([pairs, np.full(len(pairs), -1)])
    return np.unique(np.concatenate([pairs, triplets]), axis=0)


def open_sets(structure, sets, unknown) -> np.ndarray:
    """Those of the sets that no unknown edge couples."""
    owner, parent = coupling_parents(structure, sets)
    features = sets[owner]
    blocked = (unknown[parent[:, None], features] & (features >= 0)).any(axis=1)
    usable = np.ones(len(sets), dtype=bool)
    usable[owner[blocked]] = False
    return sets[usable]
