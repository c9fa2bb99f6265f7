"""Complete data in standard units, and fits of batches of families to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ..._core.graphs import parents_of
from .._statistics.incomplete import distinct_rows
from .._statistics.statistics import NOISE_SHARE
from .levenberg import Curve, LeastSquares, Likelihood, minimise
from .links import N_THETA, Link, get_link
from .noise import Additive, Noise, get_noise

# A node and its parents in ascending order.
Family = tuple[int, tuple[int, ...]]

# Smallest deviation that is told from zero: its square still has all its digits.
SMALLEST = 1e-125

_BATCH_BYTES = 2**20  # working memory of a batch, so that it stays in the cache


class FamilyFitter:
    """Fits families, many at a time.

    Work is done in standard units: parents have standard deviation 1, children too, so
    that data of any scale behave alike.

    centred_parents: whether parents have their zero at their means, whatever the link
    tol: a fit has converged when a step gains less than this, in nats
    total: number of rows, or sum of their weights
    columns: parents; number n_nodes stands for no parent, (n_nodes + 1, n_samples)
    targets: children, (n_nodes, n_samples)
    """

    def __init__(
        self,
        X,
        link: Link,
        noise: Noise,
        sample_weight=None,
        *,
        centred_parents=False,
        tol=1e-4,
        max_iter=50,
    ):
        noise.check(np.asarray(X, dtype=float))
        # Likelihoods have several maxima, and rounding must not decide which is found.
        X, sample_weight = distinct_rows(X, sample_weight)
        if (sample_weight == 1).all():
            sample_weight = None
        self.link, self.noise, self.weight = link, noise, sample_weight
        self.curve = Curve(link)
        self.tol, self.max_iter = tol, max_iter
        n_samples, self.n_nodes = X.shape
        self.total = float(n_samples if sample_weight is None else sample_weight.sum())
        self.mean = np.average(X, axis=0, weights=sample_weight)
        centred = X - self.mean
        self.scale = _safe_deviation(centred, sample_weight, self.mean)
        # A shift of the parents is absorbed by an offset or a bias; if there is none,
        # where the parents have their zero is part of the model.
        absorbed = centred_parents or link.biased or not link.scaled
        self.shift = self.mean if absorbed else 0.0 * self.mean
        self.columns = np.zeros((self.n_nodes + 1, n_samples))
        self.columns[:-1] = ((X - self.shift) / self.scale).T
        if noise.positive:
            self.child_shift, self.child_scale = 0.0 * self.mean, np.abs(self.mean)
        else:
            self.child_shift, self.child_scale = self.mean, self.scale
        self.targets = np.ascontiguousarray(
            ((X - self.child_shift) / self.child_scale).T
        )
        self._fit_roots((centred / self.scale).T)

    def _fit_roots(self, standard):
        """Fit families without parents; standard (n_nodes, n_samples)."""
        root = self.noise.root
        centre = root.centre(standard, self.weight)
        deviation = standard - centre[:, None]
        nothing = np.zeros((self.n_nodes, 1))
        variance = root.best_variance(deviation, nothing, self.weight)
        self.root_variance = np.maximum(variance, NOISE_SHARE)
        density = root.log_density(deviation, nothing, self.root_variance[:, None])
        density = density.sum(1) if self.weight is None else density @ self.weight
        self.root_log_likelihood = density - self.total * np.log(self.scale)
        mean = self.mean + centre * self.scale
        self.root_mean = (mean - self.child_shift) / self.child_scale

    def pad(self, families) -> tuple[np.ndarray, np.ndarray]:
        """Children, and parents padded with `n_nodes`, as arrays."""
        children = np.array([child for child, _ in families], dtype=np.intp)
        n_parents = max((len(parents) for _, parents in families), default=0)
        padded = np.full((len(families), n_parents), self.n_nodes, dtype=np.intp)
        for row, (_, parents) in zip(padded, families, strict=True):
            row[: len(parents)] = parents
        return children, padded

    def fit(self, children, parents, start=None, start_theta=None):
        """Fit families, given as by `pad`, in standard units.

        children (n_families,), parents (n_families, n_parents), start (n_families,
        n_parents), start_theta (n_families, 3) -> weights (n_families, n_parents),
        theta (n_families, 3), variance (n_families,), log_likelihood (n_families,).
        """
        n_families = len(parents)
        if start is None:
            start = np.zeros(parents.shape)
        if start_theta is None:
            start_theta = np.zeros((n_families, N_THETA))
        weights = np.zeros(parents.shape)
        theta = np.zeros((n_families, N_THETA))
        theta[:, 0] = self.root_mean[children]
        variance = self.root_variance[children]
        log_likelihood = self.root_log_likelihood[children]
        n_used = (parents < self.n_nodes).sum(axis=1)
        for batch in self._batches(n_used):
            width = int(n_used[batch].max())
            (
                weights[batch, :width],
                theta[batch],
                variance[batch],
                log_likelihood[batch],
            ) = self._fit_batch(
                children[batch],
                parents[batch, :width],
                start[batch, :width],
                start_theta[batch],
            )
        return weights, theta, variance, log_likelihood

    def _batches(self, n_used):
        """Families with parents in batches of like size that fit into the cache."""
        order = np.argsort(n_used, kind="stable")
        first = int(np.searchsorted(n_used[order], 1))
        while first < len(order):
            width = n_used[order[first]] + 4
            size = max(16, int(_BATCH_BYTES // (8 * self.columns.shape[1] * width)))
            yield order[first : first + size]
            first += size

    def _fit_batch(self, children, parents, start, start_theta):
        n_families, n_parents = parents.shape
        biased = self.link.biased
        inputs = np.empty((n_families, n_parents + biased, self.columns.shape[1]))
        inputs[:, :n_parents] = self.columns[parents]
        if biased:
            inputs[:, -1] = 1.0
        target = self.targets[children]
        phi = self._first(inputs, target, start, start_theta)
        options = {"max_iter": self.max_iter, "tol": self.tol}
        if isinstance(self.noise, Additive):
            problem = LeastSquares(inputs, target, self.link, self.weight)
            phi, state, _ = minimise(problem, phi, **options)
        else:
            psi = self._first_admissible(inputs, target, phi, start, start_theta)
            likelihood = Likelihood(
                inputs, target, self.link, self.weight, self.noise, NOISE_SHARE
            )
            psi, state, _ = minimise(likelihood, psi, **options)
            phi = psi[:, 1:]
        c = self.curve.c_of(phi[:, -1])
        theta = np.zeros((n_families, N_THETA))
        theta[:, 1] = 1.0 / c
        theta[:, 0] = state[:, 0] - theta[:, 1] * self.curve.centre
        if biased:
            theta[:, 2] = c * phi[:, -2]
        weights = c[:, None] * phi[:, :n_parents]
        variance = np.maximum(state[:, 1], NOISE_SHARE)
        units = self.total * np.log(self.child_scale[children])
        if isinstance(self.noise, Additive):
            terms = np.log(2 * np.pi * variance) + state[:, 1] / variance
            log_likelihood = -0.5 * self.total * terms
        else:
            eta = np.matmul(weights[:, None], self.columns[parents])[:, 0]
            mean = self.noise.clip(self.link.value(eta, theta[:, None]))
            density = self.noise.log_density(target, mean, variance[:, None])
            if self.weight is not None:
                density *= self.weight
            log_likelihood = density.sum(axis=1)
        return weights, theta, variance, log_likelihood - units

    def _first(self, inputs, target, start, start_theta):
        """Slopes and bend to begin with."""
        n_parents = start.shape[1]
        phi = np.zeros((len(inputs), inputs.shape[1] + 1))
        scale = np.where(start_theta[:, 1] == 0, 1.0, start_theta[:, 1])
        phi[:, -1] = self.curve.bend_of(scale)
        phi[:, :n_parents] = start * scale[:, None]
        if self.link.biased:
            phi[:, -2] = start_theta[:, 2] * scale
        fresh = np.flatnonzero(~start.any(axis=1))
        if len(fresh):
            phi[fresh] = 0.0
            slopes, spread = self._regression(inputs[fresh, :n_parents], target[fresh])
            phi[fresh, :n_parents] = slopes / self.curve.slope
            phi[fresh, -1] = 1.0
            if self.link.scaled:
                # A sum of parents of deviation 1 is where a shape begins to bend.
                scale = np.sqrt(np.maximum(spread, 0.01)) / self.curve.slope
                phi[fresh, -1] = self.curve.bend_of(scale)
        return phi

    def _regression(self, inputs, target):
        """Linear regressions: slopes, and the variance of the sums of parents."""
        weight = self.weight
        average = np.average(inputs, axis=2, weights=weight)[:, :, None]
        centred = inputs - average
        weighted = centred if weight is None else centred * weight
        gram = np.matmul(weighted, centred.transpose(0, 2, 1))
        cross = np.matmul(weighted, target[:, :, None])
        ridge = 1e-6 * self.total * np.eye(inputs.shape[1])
        slope = np.linalg.solve(gram + ridge, cross)[:, :, 0]
        return slope, np.einsum("bi,bij,bj->b", slope, gram, slope) / self.total

    def _first_admissible(self, inputs, target, phi, start, start_theta):
        """Offset, slopes, bend; no effect of the parents where that is not allowed."""
        mean = np.average(target, axis=1, weights=self.weight)
        problem = LeastSquares(inputs, target, self.link, self.weight)
        response = problem.response(phi[:, :-1], phi[:, -1:]).value
        offset = mean - np.average(response, axis=1, weights=self.weight)
        known = start_theta[:, 0] + start_theta[:, 1] * self.curve.centre
        offset = np.where(start.any(axis=1) & (start_theta[:, 1] != 0), known, offset)
        bad = ~self.noise.admissible(offset[:, None] + response).all(axis=1)
        psi = np.concatenate([offset[:, None], phi], axis=1)
        psi[bad, 1:-1] = 0.0
        psi[bad, 0] = mean[bad]
        return psi

    def to_units(self, children, parents, weights, theta, variance):
        """Parameters in the units of the data from those in standard units."""
        shift = np.append(self.shift, 0.0)[parents]
        scale = np.append(self.scale, 1.0)[parents]
        child_scale = self.child_scale[children]
        # A linear link has no scale of its own, so its weights carry the child's.
        factor = 1.0 if self.link.scaled else child_scale[:, None]
        weights = weights * factor / scale
        moved = (weights * shift).sum(axis=1)
        theta = theta.copy()
        theta[:, 0] = theta[:, 0] * child_scale + self.child_shift[children]
        if self.link.scaled:
            theta[:, 1] *= child_scale
            theta[:, 2] -= moved
        else:
            theta[:, 0] -= moved
        has_parents = (parents < self.n_nodes).any(axis=1)
        if self.noise.positive:
            # The noise of a family with parents has no units.
            factor = np.where(has_parents, 1.0, self.scale[children] ** 2)
        else:
            factor = child_scale**2
        return weights, theta, variance * factor


def _safe_deviation(centred, weight, mean):
    """Standard deviations; columns that are constant get one that does no harm."""
    deviation = np.sqrt(np.average(centred**2, axis=0, weights=weight))
    # Variances must not vanish, so numbers whose squares would are taken for zero.
    size = np.where(np.abs(mean) > SMALLEST, np.abs(mean), 1.0)
    noise_level = np.maximum(1e-12 * np.abs(mean), SMALLEST)
    return np.where(deviation > noise_level, deviation, size)


class FittedFamilies(NamedTuple):
    """Parameters of families, in the units of the data.

    weights: scales of the parents, in their order; 0 where a family has fewer
    theta: offset, scale and bias of the link, (n_families, 3). Without parents the
        offset is the mean and the scale 0
    noise_variance: without parents the variance of the child, whatever the noise
    log_likelihood: of the child given its parents, over all rows
    """

    weights: np.ndarray
    theta: np.ndarray
    noise_variance: np.ndarray
    log_likelihood: np.ndarray


def fit_families(
    X,
    families: Sequence[Family],
    *,
    link="sigmoid",
    noise="additive",
    sample_weight=None,
    centred_parents=False,
    tol=1e-6,
    max_iter=100,
) -> FittedFamilies:
    """Fit the parameters of families."""
    fitter = FamilyFitter(
        X,
        get_link(link),
        get_noise(noise),
        sample_weight,
        centred_parents=centred_parents,
        tol=tol,
        max_iter=max_iter,
    )
    children, parents = fitter.pad(families)
    *fitted, log_likelihood = fitter.fit(children, parents)
    weights, theta, variance = fitter.to_units(children, parents, *fitted)
    return FittedFamilies(weights, theta, variance, log_likelihood)


def fit_network(X, adjacency, **options):
    """Fit all families of a graph.

    X (n_samples, n_nodes), adjacency (n_nodes, n_nodes) -> weights (n_nodes, n_nodes),
    theta (n_nodes, 3), noise_variance (n_nodes,), log_likelihood (n_nodes,).
    """
    adjacency = np.asarray(adjacency, dtype=bool)
    families = [(x, parents_of(adjacency, x)) for x in range(len(adjacency))]
    fit = fit_families(X, families, **options)
    weights = np.zeros(adjacency.shape)
    for (child, parents), row in zip(families, fit.weights, strict=True):
        weights[list(parents), child] = row[: len(parents)]
    return weights, fit.theta, fit.noise_variance, fit.log_likelihood
