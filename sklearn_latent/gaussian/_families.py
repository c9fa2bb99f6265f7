r"""Fits of many small families at a time: one child, a few parents, the same rows.

Every step is a handful of array operations over a whole batch of families, so that the
cost of a fit is that of its arithmetic; families that have converged leave the batch.
The likelihood is maximised by Fisher scoring with Marquardt's damping. The mean of a
family is fitted as

.. math:: o + h(v, c), \quad h(v, c) = \frac{s(c v) - s(0)}{c},
   \quad v = \sum_i b_i u_i,

with the link's shape :math:`s`. This is the same function as
:math:`\theta_0 + \theta_1 s(\sum_i \alpha_i u_i)` with :math:`\alpha_i = c b_i`,
:math:`\theta_1 = 1 / c`, but :math:`b` are slopes, and :math:`c` says how far
the response is from linear. In :math:`\alpha` and :math:`\theta_1` a nearly linear
response is a narrow curved valley, along which steps are short and many. For a shape
that is symmetric around 0, as the sigmoid, h depends on :math:`c^2` alone, so this is
the parameter, called bend.
"""

from __future__ import annotations

import numpy as np

from .._core.graphs import parents_of
from ._links import N_THETA, Link, get_link
from ._noise import Noise, get_noise
from ._rows import distinct_rows
from ._statistics import NOISE_SHARE

# A node and its parents in ascending order.
Family = tuple[int, tuple[int, ...]]

# Where the arithmetic is safe: a response of a smaller c is linear, and no parameter is
# larger, in standard deviations.
SMALLEST_BEND, LARGEST = 0.02, 60.0
# Damping of steps: at first, and where a family has converged.
FIRST_DAMPING, LAST_DAMPING = 1e-3, 1e7


class Curve:
    """The response h of a link."""

    def __init__(self, link: Link):
        self.link = link
        around = np.array([0.0, 0.3, 1.0, 3.0])
        shape = link.shape(around)
        self.centre = float(shape[0])
        self.slope = float(link.shape_derivative(around[:1])[0])
        self.symmetric = bool(
            np.allclose(shape + link.shape(-around), 2.0 * self.centre, atol=1e-9)
        )
        power = 2 if self.symmetric else 1
        self.smallest = (SMALLEST_BEND * self.slope) ** power
        self.largest = (LARGEST * self.slope) ** power
        self.unit = self.slope**power  # a bend of common size

    def __call__(self, v, bend):
        """The response, and its derivatives by v and by the bend."""
        c = self.c_of(bend)
        value = (self.link.shape(c * v) - self.centre) / c
        slope = self.link.shape_derivative(c * v)
        by_c = (v * slope - value) / c
        return value, slope, by_c / (2.0 * c) if self.symmetric else by_c

    def bend_of(self, scale):
        """Bend of links with scales theta_1."""
        return 1.0 / scale**2 if self.symmetric else 1.0 / scale

    def c_of(self, bend):
        """The factor c of a bend."""
        return np.sqrt(bend) if self.symmetric else bend

    def bounded(self, place):
        """Parameters moved, in place, to where the arithmetic is safe."""
        bend = np.clip(place[:, -1], -self.largest, self.largest)
        if self.symmetric:
            np.maximum(bend, self.smallest, out=bend)
        else:
            flat = np.abs(bend) < self.smallest
            bend[flat] = np.where(bend[flat] < 0, -self.smallest, self.smallest)
        limit = LARGEST / self.slope
        np.clip(place[:, 1:], -limit, limit, out=place[:, 1:])
        place[:, -1] = bend
        return place


class Likelihood:
    """Likelihoods of a batch of families; the variance is the best for their means.

    Parameters psi are the offset, the slopes b, then the bend.

    inputs: parents, in standard units; zeros where a family has fewer, (n_families,
        n_parents, n_samples)
    target: children, in standard units, (n_families, n_samples)
    """

    def __init__(self, inputs, target, link: Link, noise: Noise, weight=None):
        self.inputs, self.target, self.weight = inputs, target, weight
        self.noise, self.curve = noise, Curve(link)

    def keep(self, which):
        """Leave out the other families."""
        self.inputs, self.target = self.inputs[which], self.target[which]

    def __call__(self, psi):
        """Log-likelihood, gradient, information and variance at `psi`."""
        noise, target = self.noise, self.target
        sums = np.matmul(psi[:, None, 1:-1], self.inputs)[:, 0]
        response, by_sum, by_bend = self.curve(sums, psi[:, -1:])
        mean = psi[:, :1] + response
        valid = noise.admissible(mean).all(axis=1)
        mean = noise.clip(mean)
        variance = noise.best_variance(target, mean, self.weight)
        variance = np.maximum(variance, NOISE_SHARE)
        spread = variance[:, None]
        density = noise.log_density(target, mean, spread)
        score = noise.score(target, mean, spread)
        information = noise.information(mean, spread)
        if self.weight is not None:
            density, score = density * self.weight, score * self.weight
            information = information * self.weight
        jacobian = np.empty((len(psi), psi.shape[1], target.shape[1]))
        jacobian[:, 0] = 1.0
        np.multiply(by_sum[:, None], self.inputs, out=jacobian[:, 1:-1])
        jacobian[:, -1] = by_bend
        gradient = np.matmul(jacobian, score[:, :, None])[:, :, 0]
        metric = jacobian * information[:, None]
        information = np.matmul(metric, jacobian.transpose(0, 2, 1))
        fitted = np.where(valid, density.sum(axis=1), -np.inf)
        return fitted, gradient, information, variance


def maximise(problem: Likelihood, start, *, max_iter=50, tol=1e-4):
    """Maximise a batch of likelihoods.

    start (n_families, n_parameters) -> best (n_families, n_parameters), variance and
    log-likelihood (n_families,), number of steps.
    """
    curve = problem.curve
    place = curve.bounded(np.array(start, dtype=float))
    best, alive = place.copy(), np.arange(len(place))
    value, gradient, information, variance = problem(place)
    fitted, final = value.copy(), variance.copy()
    damping = np.full(len(best), FIRST_DAMPING)
    done = np.zeros(len(best), dtype=bool)
    n_iter = 1
    while n_iter < max_iter and len(alive):
        step = _damped_step(gradient, information, damping, place[:, -1], curve)
        trial = curve.bounded(place + step)
        results = problem(trial)
        n_iter += 1
        gain = results[0] - value
        better = gain > 0  # also False where the trial has no likelihood
        done |= ((np.abs(gain) < tol) & (damping <= 1.0)) | (damping > LAST_DAMPING)
        now = place, value, gradient, information, variance
        for old, new in zip(now, (trial, *results), strict=True):
            old[better] = new[better]
        damping *= np.where(better, 0.1, 10.0)
        np.clip(damping, 1e-9, 10 * LAST_DAMPING, out=damping)
        best[alive], fitted[alive], final[alive] = place, value, variance
        # Copying the others costs as much as a step, so wait until it is worth it.
        if done.mean() >= 0.3:
            keep = np.flatnonzero(~done)
            alive, damping, done = alive[keep], damping[keep], done[keep]
            place, value, gradient, information, variance = (part[keep] for part in now)
            problem.keep(keep)
    return best, final, fitted, n_iter


def _damped_step(gradient, information, damping, bend, curve: Curve):
    """Marquardt's step, no longer than a trust region allows."""
    diagonal = np.einsum("bii->bi", information)
    largest = diagonal.max(axis=1, initial=0.0)
    # The last terms keep inputs that have no effect, as padding, where they are.
    extra = damping[:, None] * diagonal + (1e-10 * largest + 1e-30)[:, None]
    damped = information.copy()
    np.einsum("bii->bi", damped)[...] += extra
    # A response that is linear already, and would like to be more so, stays.
    stay = (bend <= curve.smallest) & (gradient[:, -1] < 0)
    if curve.symmetric and stay.any():
        damped[stay, -1, :-1] = damped[stay, :-1, -1] = 0.0
        damped[stay, -1, -1] = 1.0
        gradient = gradient.copy()
        gradient[stay, -1] = 0.0
    step = np.linalg.solve(damped, gradient[:, :, None])[:, :, 0]
    # The bend of a weak response is large, and so are its steps.
    size = np.abs(step[:, 1:])
    size[:, :-1] *= curve.slope
    size[:, -1] /= np.maximum(np.abs(bend), curve.unit)
    return step / np.maximum(size.max(axis=1), 1.0)[:, None]


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
        # A shift of the parents of a linear link is absorbed by the offset; else where
        # they have their zero is part of the model.
        absorbed = centred_parents or not link.scaled
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
        centre = np.average(standard, axis=1, weights=self.weight)
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
            # A batch of a megabyte stays in the cache.
            size = max(16, 2**20 // (8 * self.columns.shape[1] * width))
            yield order[first : first + size]
            first += size

    def _fit_batch(self, children, parents, start, start_theta):
        inputs = self.columns[parents]
        target = self.targets[children]
        psi = self._first(inputs, target, start, start_theta)
        problem = Likelihood(inputs, target, self.link, self.noise, self.weight)
        options = {"max_iter": self.max_iter, "tol": self.tol}
        psi, variance, log_likelihood, _ = maximise(problem, psi, **options)
        c = self.curve.c_of(psi[:, -1])
        theta = np.zeros((len(c), N_THETA))
        theta[:, 1] = 1.0 / c
        theta[:, 0] = psi[:, 0] - theta[:, 1] * self.curve.centre
        weights = c[:, None] * psi[:, 1:-1]
        units = self.total * np.log(self.child_scale[children])
        return weights, theta, variance, log_likelihood - units

    def _first(self, inputs, target, start, start_theta):
        """Offset, slopes and bend to begin with."""
        scale = np.where(start_theta[:, 1] == 0, 1.0, start_theta[:, 1])
        slopes = start * scale[:, None]
        fresh = np.flatnonzero(~start.any(axis=1))
        if len(fresh):
            steps, spread = self._regression(inputs[fresh], target[fresh])
            slopes[fresh] = steps / self.curve.slope
            # A sum of parents of deviation 1 is where a shape begins to bend.
            bent = np.sqrt(np.maximum(spread, 0.01)) / self.curve.slope
            scale[fresh] = bent if self.link.scaled else 1.0
        nothing = np.zeros(len(scale))
        psi = np.column_stack([nothing, slopes, self.curve.bend_of(scale)])
        psi = self.curve.bounded(psi)
        mean = np.average(target, axis=1, weights=self.weight)
        sums = np.matmul(psi[:, None, 1:-1], inputs)[:, 0]
        response = self.curve(sums, psi[:, -1:])[0]
        offset = mean - np.average(response, axis=1, weights=self.weight)
        known = start.any(axis=1) & (start_theta[:, 1] != 0)
        before = start_theta[:, 0] + start_theta[:, 1] * self.curve.centre
        psi[:, 0] = np.where(known, before, offset)
        # Parents have no effect where that is not allowed.
        bad = ~self.noise.admissible(psi[:, :1] + response).all(axis=1)
        psi[bad, 1:-1] = 0.0
        psi[bad, 0] = mean[bad]
        return psi

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
    size = np.where(np.abs(mean) > 1e-125, np.abs(mean), 1.0)
    noise_level = np.maximum(1e-12 * np.abs(mean), 1e-125)
    return np.where(deviation > noise_level, deviation, size)


def fit_network(
    X,
    adjacency,
    *,
    link="sigmoid",
    noise="additive",
    sample_weight=None,
    centred_parents=False,
):
    """Fit all families of a graph.

    X (n_samples, n_nodes), adjacency (n_nodes, n_nodes) -> weights (n_nodes, n_nodes),
    theta (n_nodes, 3), noise_variance (n_nodes,), log_likelihood (n_nodes,), in the
    units of the data. Without parents the offset is the mean, the scale 0.
    """
    fitter = FamilyFitter(
        X,
        get_link(link),
        get_noise(noise),
        sample_weight,
        centred_parents=centred_parents,
        tol=1e-6,
        max_iter=100,
    )
    families = [(x, parents_of(adjacency, x)) for x in range(fitter.n_nodes)]
    children, parents = fitter.pad(families)
    *fitted, log_likelihood = fitter.fit(children, parents)
    own, theta, variance = fitter.to_units(children, parents, *fitted)
    weights = np.zeros((fitter.n_nodes, fitter.n_nodes))
    for (child, known), row in zip(families, own, strict=True):
        weights[list(known), child] = row[: len(known)]
    return weights, theta, variance, log_likelihood
