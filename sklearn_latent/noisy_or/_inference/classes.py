"""Rows of a network with hidden classes above its latents, in the user's coding.

Given the class the latents are independent, so each class is a network of its own, and
the classes are weighted by how well each explains the row.
"""

from __future__ import annotations

import numpy as np

from .._statistics.patterns import turn
from .inference import Inference, Predictions, infer, predict_off


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
    n_rows, n_classes = len(on), network.n_classes
    joint = np.empty((n_rows, n_classes))
    total = np.full(n_rows, -np.inf)
    posterior = np.zeros((n_rows, network.n_latents))
    is_bound = np.zeros(n_rows, dtype=bool)
    for c, (weight, prior) in enumerate(
        zip(network.class_weight, network.class_prior, strict=True)
    ):
        found = infer(prior, network.failure, network.leak, on, observed, method)
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
    flipped = (network.polarity < 0)[np.nonzero(~observed)[1]]
    return Predictions(np.where(flipped, 1.0 - off, off), is_bound)
