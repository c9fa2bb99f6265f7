r"""Levenberg-Marquardt for many small problems at a time.

A problem is a family: one child, a few parents, the same rows for all. Every step is a
handful of array operations over the whole batch, so that the cost of a fit is that of
its arithmetic. Problems that have converged leave the batch.

The mean of a family is fitted as

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

from typing import NamedTuple

import numpy as np

_TINY = 1e-12  # mean square below which a fit is perfect
_SMALLEST = 0.02  # a response with a smaller c is linear
_LARGEST = 60.0  # of a parameter, in standard deviations
_LONGEST = 1.0  # step of a parameter
_FIRST_DAMPING = 1e-3
_LAST_DAMPING = 1e7
_WORTH_LEAVING = 0.3  # share of converged problems


class _Response(NamedTuple):
    """The response h to the parents, and its derivatives by v and the bend."""

    value: np.ndarray
    v: np.ndarray
    bend: np.ndarray
    v_v: np.ndarray
    v_bend: np.ndarray
    bend_bend: np.ndarray


class Curve:
    """The response h of a link."""

    def __init__(self, link):
        self.link = link
        around = np.array([0.0, 0.3, 1.0, 3.0])
        shape = link.shape(around)
        self.centre = float(shape[0])
        self.slope = float(link.shape_derivative(around[:1])[0])
        self.symmetric = bool(
            np.allclose(shape + link.shape(-around), 2.0 * self.centre, atol=1e-9)
        )
        power = 2 if self.symmetric else 1
        self.smallest = (_SMALLEST * self.slope) ** power
        self.largest = (_LARGEST * self.slope) ** power
        self.unit = self.slope**power  # a bend of common size

    def __call__(self, v, bend) -> _Response:
        """Value and derivatives."""
        c = np.sqrt(bend) if self.symmetric else bend
        shape, first, second = self.link.shape_derivatives(c * v)
        value = (shape - self.centre) * (1.0 / c)
        change = v * first - value  # c times the derivative by c
        mixed = v * second
        if self.symmetric:  # derivatives by c^2
            by_bend = change * (0.5 / bend)
            by_v_bend = mixed * (0.5 / c)
            twice = (v * mixed - change * (3.0 / c)) * (0.25 / (c * bend))
        else:
            by_bend = change * (1.0 / c)
            by_v_bend = mixed
            twice = (v * mixed - by_bend * 2.0) * (1.0 / c)
        return _Response(value, first, by_bend, c * second, by_v_bend, twice)

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
        limit = _LARGEST / self.slope
        np.clip(place, -limit, limit, out=place)
        place[:, -1] = bend
        return place


class _Problem:
    """What all problems share.

    inputs: parents, in standard units; zeros where a problem has fewer. A row of ones
        stands for the bias, (n_problems, n_inputs, n_samples)
    target: children, in standard units, (n_problems, n_samples)
    """

    def __init__(self, inputs, target, link, weight=None):
        self.inputs = inputs
        self.target = target
        self.link = link
        self.weight = weight
        n_samples = target.shape[1]
        self.total = float(n_samples) if weight is None else float(weight.sum())
        self.curve = Curve(link)

    def keep(self, which):
        """Leave out the other problems."""
        self.inputs = self.inputs[which]
        self.target = self.target[which]

    def response(self, slopes, bend) -> _Response:
        """Response h of all problems, of shape (n_problems, n_samples)."""
        v = np.matmul(slopes[:, None, :], self.inputs)[:, 0]
        return self.curve(v, bend)

    def _sum(self, values):
        """Weighted sum over the rows."""
        if self.weight is None:
            return np.add.reduce(values, axis=-1)
        return values @ self.weight


class LeastSquares(_Problem):
    """Additive noise: sums of squares, with the offset and the variance at their best.

    Parameters are the slopes b, then the bend. The Hessian is exact: the residuals are
    not small, so that Gauss-Newton steps would be too long.
    """

    def __init__(self, inputs, target, link, weight=None):
        super().__init__(inputs, target, link, weight)
        self.mean = self._sum(target) / self.total
        self.target = target - self.mean[:, None]

    def keep(self, which):
        """Leave out the other problems."""
        super().keep(which)
        self.mean = self.mean[which]

    def __call__(self, phi):
        """Objective, gradient, Hessian and (offset, variance) at `phi`."""
        inputs, total, weight = self.inputs, self.total, self.weight
        h = self.response(phi[:, :-1], phi[:, -1:])
        residual = self.target - h.value
        shift = self._sum(residual) / total
        residual -= shift[:, None]
        weighted = residual if weight is None else residual * weight
        loss = np.einsum("bn,bn->b", weighted, residual)
        squares = np.maximum(loss, _TINY * total)
        # Half of the derivatives of the sum of squares, for a fixed offset. One matrix
        # product with the inputs gives sums, gradient and what is mixed with the bend.
        rows = np.empty((len(phi), 3, len(residual[0])))
        rows[:, 0] = h.v
        np.multiply(h.v, residual, out=rows[:, 1])
        np.multiply(h.v, h.bend, out=rows[:, 2])
        rows[:, 2] -= residual * h.v_bend
        own = h.v**2
        own -= residual * h.v_v
        by_c = h.bend
        if weight is not None:
            rows *= weight
            own *= weight
            by_c = by_c * weight
        across = inputs.transpose(0, 2, 1)
        products = np.matmul(rows, across)
        n_inputs = inputs.shape[1]
        hessian = np.empty((len(phi), n_inputs + 1, n_inputs + 1))
        hessian[:, :-1, :-1] = np.matmul(own[:, None] * inputs, across)
        hessian[:, :-1, -1] = hessian[:, -1, :-1] = products[:, 2]
        hessian[:, -1, -1] = np.einsum("bn,bn->b", by_c, h.bend)
        hessian[:, -1, -1] -= np.einsum("bn,bn->b", weighted, h.bend_bend)
        gradient = np.empty((len(phi), n_inputs + 1))
        gradient[:, :-1] = products[:, 1]
        gradient[:, -1] = np.einsum("bn,bn->b", weighted, h.bend)
        sums = np.empty_like(gradient)
        sums[:, :-1] = products[:, 0]
        sums[:, -1] = np.add.reduce(by_c, axis=-1)
        # The offset follows the other parameters.
        hessian -= sums[:, :, None] * (sums[:, None] / total)
        factor = total / squares
        gradient *= -factor[:, None]
        hessian *= factor[:, None, None]
        state = np.empty((len(phi), 2))
        np.add(self.mean, shift, out=state[:, 0])
        np.divide(loss, total, out=state[:, 1])
        return 0.5 * total * np.log(squares), gradient, hessian, state


class Likelihood(_Problem):
    """Any noise: the likelihood itself, by Fisher scoring.

    Parameters are the offset, the slopes b, then the bend. The variance is the best
    one for the means at hand.
    """

    def __init__(self, inputs, target, link, weight, noise, floor):
        super().__init__(inputs, target, link, weight)
        self.noise = noise
        self.floor = floor

    def __call__(self, psi):
        """Objective, gradient, information and (offset, variance) at `psi`."""
        noise, target = self.noise, self.target
        h = self.response(psi[:, 1:-1], psi[:, -1:])
        mean = psi[:, :1] + h.value
        valid = noise.admissible(mean).all(axis=1)
        mean = noise.clip(mean)
        variance = noise.best_variance(target, mean, self.weight)
        variance = np.maximum(variance, self.floor)[:, None]
        density = self._sum(noise.log_density(target, mean, variance))
        jacobian = np.empty((len(psi), psi.shape[1], target.shape[1]))
        jacobian[:, 0] = 1.0
        np.multiply(h.v[:, None], self.inputs, out=jacobian[:, 1:-1])
        jacobian[:, -1] = h.bend
        score = noise.score(target, mean, variance)
        information = noise.information(mean, variance)
        if self.weight is not None:
            score = score * self.weight
            information = information * self.weight
        gradient = -np.matmul(jacobian, score[:, :, None])[:, :, 0]
        information = np.matmul(
            jacobian * information[:, None], jacobian.transpose(0, 2, 1)
        )
        state = np.concatenate([psi[:, :1], variance], axis=1)
        return np.where(valid, -density, np.inf), gradient, information, state


def minimise(problem, start, *, max_iter=50, tol=1e-4):
    """Minimise a batch of problems.

    start (n_problems, n_parameters) -> best (n_problems, n_parameters), state
    (n_problems, 2).
    """
    curve = problem.curve
    place = curve.bounded(np.array(start, dtype=float))
    best = place.copy()
    alive = np.arange(len(best))
    value, gradient, curvature, state = problem(place)
    final = state.copy()
    damping = np.full(len(best), _FIRST_DAMPING)
    done = np.zeros(len(best), dtype=bool)
    n_iter = 1
    while n_iter < max_iter:
        step = _damped_step(gradient, curvature, damping, place[:, -1], curve)
        trial = curve.bounded(place + step)
        results = problem(trial)
        n_iter += 1
        gain = value - results[0]
        better = gain > 0  # also False where the trial has no likelihood
        done |= (np.abs(gain) < tol) & (damping <= 1.0)
        done |= damping > _LAST_DAMPING
        if better.all():
            place = trial
            value, gradient, curvature, state = results
        else:
            for old, new in zip(
                (place, value, gradient, curvature, state),
                (trial, *results),
                strict=True,
            ):
                old[better] = new[better]
        damping *= np.where(better, 0.1, 10.0)
        np.clip(damping, 1e-9, 10 * _LAST_DAMPING, out=damping)
        # Copying the others costs as much as a step, so wait until it is worth it.
        if done.mean() < _WORTH_LEAVING:
            continue
        best[alive[done]] = place[done]
        final[alive[done]] = state[done]
        keep = np.flatnonzero(~done)
        alive = alive[keep]
        if len(keep) == 0:
            return best, final, n_iter
        place, value, gradient = place[keep], value[keep], gradient[keep]
        curvature, state, damping = curvature[keep], state[keep], damping[keep]
        done = np.zeros(len(keep), dtype=bool)
        problem.keep(keep)
    best[alive] = place
    final[alive] = state
    return best, final, n_iter


def _damped_step(gradient, curvature, damping, bend, curve):
    """Marquardt's step, no longer than a trust region allows."""
    diagonal = np.abs(np.einsum("bii->bi", curvature))
    largest = diagonal.max(axis=1, initial=0.0)
    # The last terms keep inputs that have no effect, as padding, where they are.
    extra = damping[:, None] * diagonal + (1e-10 * largest + 1e-30)[:, None]
    damped = curvature.copy()
    np.einsum("bii->bi", damped)[...] += extra
    # A response that is linear already, and would like to be more so, stays.
    stay = (bend <= curve.smallest) & (gradient[:, -1] > 0)
    if curve.symmetric and stay.any():
        damped[stay, -1, :-1] = damped[stay, :-1, -1] = 0.0
        damped[stay, -1, -1] = 1.0
        gradient = gradient.copy()
        gradient[stay, -1] = 0.0
    step = np.linalg.solve(damped, -gradient[:, :, None])[:, :, 0]
    uphill = np.einsum("bi,bi->b", step, gradient) > 0
    if uphill.any():
        step[uphill] = _saddle_free(gradient[uphill], damped[uphill])
    # The bend of a weak response is large, and so are its steps.
    size = np.abs(step)
    size[:, :-1] *= curve.slope
    size[:, -1] /= np.maximum(np.abs(bend), curve.unit)
    longest = size.max(axis=1)
    return step * (_LONGEST / np.maximum(longest, _LONGEST))[:, None]


def _saddle_free(gradient, curvature):
    """Newton's step away from a saddle point: negative curvature counts as positive."""
    values, vectors = np.linalg.eigh(curvature)
    values = np.abs(values)
    values = np.maximum(values, 1e-6 * values.max(axis=1, keepdims=True) + 1e-30)
    along = np.einsum("bij,bi->bj", vectors, gradient) / values
    return -np.einsum("bij,bj->bi", vectors, along)
