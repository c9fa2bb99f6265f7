"""Rows of a network with hidden classes above its latents, in the user's coding.

Given the class the latents are independent, so each class is a network of its own, and
the classes are weighted by how well each explains the row. Small components are summed
for all classes at once: 20 classes of 12 latents take 0.1 ms a row, not 0.75.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from .._likelihood.exact import StateTable, configurations, posteriors
from .._likelihood.layered import Layered
from .._numerics import LOG_ZERO, safe_log
from .._statistics.patterns import Component, components, turn
from .inference import (
    MAX_BEAM,
    MAX_TABLE,
    Inference,
    Predictions,
    infer,
    infer_by_beam,
    predict_off,
    within_reach,
)


def infer_network(
    network, on, observed=None, method="auto", *, classes=False
) -> Inference:
    """Likelihood of rows, posterior of the latents and, if needed, of the classes."""
    on = turn(on, observed, network.polarity)
    if network.n_classes > 1 or classes:
        return _mix(network, on, observed, method)
    return infer(network.prior, network.failure, network.leak, on, observed, method)


def _mix(network, on, observed, method="auto") -> Inference:
    """Infer over all classes; rows are as the network reads them."""
    parts = components(network.structure)
    largest = max((len(latents) for latents, _ in parts), default=0)
    if largest > MAX_TABLE and method == "auto" and network.failure.size <= MAX_BEAM:
        return _by_reach(network, on, observed)
    if largest > MAX_TABLE:
        return _one_by_one(network, on, observed, method)
    found = _together(network, parts, on, observed)
    # Shares below floating point: classes that different parts of a row rule out.
    lost = np.flatnonzero(np.isneginf(found.log_likelihood))
    if len(lost):
        known = None if observed is None else observed[lost]
        exact = _one_by_one(network, on[lost], known, method)
        for values, better in zip(found, exact, strict=True):
            values[lost] = better
    return found


def _distinct(on, observed):
    """First of each set of equal rows, and which one each row is."""
    codes = on if observed is None else np.hstack([on, observed])
    packed = np.ascontiguousarray(np.packbits(codes, axis=1))
    items = packed.view(f"V{packed.shape[1]}").ravel()
    return np.unique(items, return_index=True, return_inverse=True)[1:]


def _by_reach(network, on, observed) -> Inference:
    """Infer each distinct row once."""
    first, number = _distinct(on, observed)
    known = None if observed is None else observed[first]
    found = _by_reach_once(network, on[first], known)
    return Inference(*(values[number.ravel()] for values in found))


def _by_reach_once(network, on, observed) -> Inference:
    """Infer rows within reach class by class, and others by a beam over all classes."""
    parameters = network.failure, network.leak
    near = within_reach(*parameters, on, network.n_classes)
    layered = Layered(network.class_weight, network.class_prior, *parameters)
    result = Inference(
        np.empty(len(on)),
        np.empty((len(on), network.n_latents)),
        np.empty(len(on), dtype=bool),
        np.empty((len(on), network.n_classes)),
    )
    for is_near in (True, False):
        rows = np.flatnonzero(near == is_near)
        known = None if observed is None else observed[rows]
        if is_near:
            found = _one_by_one(network, on[rows], known, "auto")
        else:
            found = infer_by_beam(layered, on[rows], known)
        for values, part in zip(result, found, strict=True):
            values[rows] = part
    return result


def _one_by_one(network, on, observed, method) -> Inference:
    """Infer class by class."""
    n_rows, n_classes = len(on), network.n_classes
    joint = np.empty((n_rows, n_classes))
    total = np.full(n_rows, -np.inf)
    posterior = np.zeros((n_rows, network.n_latents))
    is_bound = np.zeros(n_rows, dtype=bool)
    for c, (weight, prior) in enumerate(
        zip(network.class_weight, network.class_prior, strict=True)
    ):
        found = infer(
            prior, network.failure, network.leak, on, observed, method, n_classes
        )
        joint[:, c] = found.log_likelihood + np.log(weight)
        before, total = total, np.logaddexp(total, joint[:, c])
        posterior *= _share(before, total)[:, np.newaxis]
        posterior += _share(joint[:, c], total)[:, np.newaxis] * found.posterior
        is_bound |= found.is_bound
    shares = _share(joint, total[:, np.newaxis])
    # A row that the network cannot produce says nothing.
    impossible = np.isneginf(total)
    posterior[impossible], shares[impossible] = network.prior, network.class_weight
    np.clip(posterior, 0.0, 1.0, out=posterior)
    return Inference(total, posterior, is_bound, shares)


def _together(network, parts, on, observed) -> Inference:
    """Infer all classes from one table of states per component.

    The likelihood of a state is that of all classes; only how probable it is differs.
    """
    tables = [_ClassTable.of(network, part) for part in parts]
    log_joint = np.tile(np.log(network.class_weight), (len(on), 1))
    for table in tables:
        for rows, _, given_class, value in table.rows(on, observed):
            log_joint[rows] += value[:, np.newaxis] + safe_log(given_class)
    total = special.logsumexp(log_joint, axis=1)
    shares = _share(log_joint, total[:, np.newaxis])
    posterior = np.empty((len(on), network.n_latents))
    for table in tables:
        for rows, share, given_class, _ in table.rows(on, observed):
            weight = np.divide(
                shares[rows],
                given_class,
                out=np.zeros_like(given_class),
                where=given_class > 0,
            )
            share *= weight @ table.ratio.T
            posterior[rows, table.part.latents] = share @ table.states
    np.clip(posterior, 0.0, 1.0, out=posterior)
    return Inference(total, posterior, np.zeros(len(on), dtype=bool), shares)


class _ClassTable(NamedTuple):
    """States of a component, with their probabilities over all classes.

    ratio: P(state | class) / P(state), (n_states, n_classes)
    """

    part: Component
    table: StateTable
    states: np.ndarray
    ratio: np.ndarray

    @classmethod
    def of(cls, network, part: Component) -> _ClassTable:
        """Tabulate a component."""
        block = network.failure[np.ix_(*part)], network.leak[part.features]
        table = StateTable.of(network.prior[part.latents], *block)
        states = configurations(len(part.latents))
        prior = network.class_prior[:, part.latents]
        given = np.stack([np.where(states, p, 1.0 - p).prod(axis=1) for p in prior], 1)
        chance = given @ network.class_weight
        log_chance = np.maximum(safe_log(chance), LOG_ZERO)
        ratio = given / np.where(chance > 0, chance, 1.0)[:, np.newaxis]
        possible = table.possible and bool((chance > 0).all())
        table = table._replace(prior=log_chance, possible=possible)
        return cls(part, table, states.astype(np.float64), ratio)

    def rows(self, on, observed):
        """Slices of rows, P(state | row), P(row | class) / P(row) and log P(row)."""
        features = self.part.features
        known = None if observed is None else observed[:, features]
        size = 2 * len(features) + self.ratio.shape[1]
        for rows, share, value in posteriors(
            self.table, on[:, features], known, row_elements=size
        ):
            yield rows, share, share @ self.ratio, value


def _share(part, total):
    """Share of the likelihood that a part has, given logarithms; nothing has 0."""
    difference = np.full_like(part, -np.inf)
    np.subtract(part, total, out=difference, where=~np.isneginf(part))
    return np.exp(difference)


def predict_network(network, on, observed) -> Predictions:
    """P(off | row) of unknown cells, in the order of ``np.nonzero(~observed)``."""
    on = turn(on, observed, network.polarity)
    parameters = network.failure, network.leak
    if network.n_classes == 1:
        found = predict_off(network.prior, *parameters, on, observed)
        off, is_bound = found.off, found.is_bound
    else:
        mixed = _mix(network, on, observed)
        row = np.nonzero(~observed)[0]
        off, is_bound = np.zeros(len(row)), mixed.is_bound[row]
        for prior, share in zip(
            network.class_prior, mixed.class_posterior.T, strict=True
        ):
            found = predict_off(prior, *parameters, on, observed)
            off += share[row] * found.off
            is_bound |= found.is_bound
    # Sums of products may exceed 1 by rounding.
    off = np.clip(off, 0.0, 1.0)
    flipped = (network.polarity < 0)[np.nonzero(~observed)[1]]
    return Predictions(np.where(flipped, 1.0 - off, off), is_bound)
