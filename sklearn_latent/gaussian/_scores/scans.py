"""How much the moves of a family would gain, without fitting any of them.

All candidates of a family are looked at together, at the cost of a few matrix products.
Two ways: the similarities of Elidan, Nachman and Friedman (2007), and a first-order
expansion around the present fit.
"""

from __future__ import annotations

import numpy as np

from .._noise import Additive
from .ideal_parent import Response, expected_gain_c1, expected_gain_c2, ideal_profile
from .linear import COLLINEAR


class IdealScan:
    """Gains that C1 or C2 expect, linearised at the ideal parent.

    All parameters of the family are frozen but the scale of the candidate and, in C2,
    the variance. C2 is for additive noise; else C1 is taken.
    """

    def __init__(self, fitter, similarity):
        self.fitter = fitter
        self.use_c2 = similarity == "C2" and isinstance(fitter.noise, Additive)

    def roots(self, children):
        """As in `TangentScan`."""
        theta = np.zeros(3)
        return np.array(
            [
                self.scan(child, (), (), theta, self.fitter.root_variance[child])[0]
                for child in children
            ]
        )

    def scan(self, child, order, weights, theta, variance):
        """As in `TangentScan`."""
        fitter = self.fitter
        link, noise = fitter.link, fitter.noise
        x = fitter.targets[child]
        parts = np.reshape(weights, (-1, 1)) * fitter.columns[list(order)]
        now = parts.sum(axis=0)
        eta = np.vstack([now, now - parts])
        if not order:
            mean = fitter.root_mean[child]
            theta = link.spanning(mean, np.abs(x - mean).max())
            now = link.inverse(np.full(len(x), mean), theta)
            if noise.positive:
                variance = variance * (fitter.scale / fitter.child_scale)[child] ** 2
        theta = np.broadcast_to(theta, (len(eta), len(theta)))
        response = Response(link, noise, theta, np.full(len(eta), variance))
        gain = expected_gain_c2 if self.use_c2 else expected_gain_c1
        gains = gain(
            x,
            eta,
            ideal_profile(x, eta, response),
            fitter.columns[:-1],
            response,
            now=now,
            sample_weight=fitter.weight,
        )
        return gains[0], gains[1:]


class TangentScan:
    """Gains with all parameters free, to first order around the present fit ("C3").

    C1 and C2 linearise the link where the ideal parent would put it, which may be far
    away. Here it is linearised at the present fit, and all parameters move: a linear
    regression on the tangent space of the family. For a linear link with additive noise
    this is the gain itself.
    """

    def __init__(self, fitter):
        self.fitter = fitter
        self._candidates = np.ascontiguousarray(fitter.columns[:-1].T)
        self._squares = self._candidates**2

    def roots(self, children):
        """Gains of additions to families without parents."""
        fitter = self.fitter
        weight = (
            np.ones(len(self._candidates)) if fitter.weight is None else fitter.weight
        )
        sums = weight @ self._candidates
        spread = weight @ self._squares - sums**2 / fitter.total
        mean, variance = fitter.root_mean[children], fitter.root_variance[children]
        mean, variance = mean[:, None], variance[:, None]
        root = fitter.noise.root
        metric = root.information(mean, variance)
        residual = root.score(fitter.targets[children], mean, variance) / metric
        target = residual * weight
        cross = target @ self._candidates - np.outer(
            target.sum(axis=1), sums / fitter.total
        )
        length = np.einsum("in,in->i", target, residual)[:, None]
        explained = _explained(cross, spread, weight @ self._squares)
        return self._gain(metric * explained, metric * length, root)

    def scan(self, child, order, weights, theta, variance):
        """Gains of additions to a family and of replacements in it.

        theta (3,) -> add (n_nodes,), replace (n_parents, n_nodes).
        """
        fitter = self.fitter
        if not order:
            return self.roots([child])[0], np.empty((0, fitter.n_nodes))
        parents = fitter.columns[list(order)]
        weights = np.asarray(weights)
        shape, slope, _ = fitter.link.shape_derivatives(weights @ parents + theta[2])
        mean = fitter.noise.clip(theta[0] + theta[1] * shape)
        slope = theta[1] * slope
        x = fitter.targets[child]
        metric = fitter.noise.information(mean, variance)
        residual = fitter.noise.score(x, mean, variance) / metric
        if fitter.weight is not None:
            metric = metric * fitter.weight
        # Directions in which the family can move: parents, offset, bias, scale.
        rows = [slope * parents, np.ones((1, len(x)))]
        if fitter.link.biased:
            rows.append(slope[None])
        if fitter.link.scaled:
            rows.append(shape[None])
        tangent = np.vstack(rows)
        gram = (tangent * metric) @ tangent.T
        effects = np.vstack([tangent, residual]) * (metric * slope)
        effects = effects @ self._candidates
        along = tangent @ (metric * residual)
        length = (metric * slope**2) @ self._squares
        squares = float(metric @ residual**2)
        _, coefficients, left = _regress(gram, effects[:-1], along)
        cross = effects[-1] - left @ effects[:-1]
        spread = length - np.einsum("ij,ij->j", effects[:-1], coefficients)
        add = self._gain(_explained(cross, spread, length), squares)
        # The direction of the scale is a function of the parent that goes, so that it
        # would stand in for it.
        n = len(tangent) - fitter.link.scaled
        precision, coefficients, left = _regress(gram[:n, :n], effects[:n], along[:n])
        cross = effects[-1] - left @ effects[:n]
        spread = length - np.einsum("ij,ij->j", effects[:n], coefficients)
        coefficients = coefficients[: len(order)]
        precision = precision[: len(order), None]
        own = (weights + left[: len(order)])[:, None]
        shared = coefficients / precision
        explained = _explained(
            cross + shared * own, spread + shared * coefficients, length
        )
        loss = own**2 / precision
        return add, self._gain(explained - loss, squares)

    def _gain(self, explained, squares, noise=None):
        """Gain in log-likelihood when so much less is left to the noise."""
        if not isinstance(noise or self.fitter.noise, Additive):
            return 0.5 * explained
        share = np.minimum(explained / np.maximum(squares, 1e-300), 1.0 - 1e-12)
        return -0.5 * self.fitter.total * np.log1p(-share)


def _explained(cross, spread, length):
    """Squared length of the projection on a candidate; 0 if there is nothing new."""
    usable = spread > COLLINEAR * length
    return np.where(usable, cross**2 / np.where(usable, spread, 1.0), 0.0)


def _regress(gram, effects, along):
    """Regressions of candidates, and of the residual, on the tangent space.

    The residual is orthogonal to it only where the fit is exact.
    """
    size = np.sqrt(gram.diagonal())
    # A direction without length, as of a constant parent, takes no part.
    size[size <= 1e-9 * size.max()] = np.inf
    unit = 1.0 / np.outer(size, size)
    inner = gram * unit
    inner.flat[:: len(inner) + 1] += 1e-9
    inverse = np.linalg.inv(inner) * unit
    precision = inverse.diagonal()
    precision = np.where(precision > 0, precision, np.inf)
    return precision, inverse @ effects, inverse @ along
