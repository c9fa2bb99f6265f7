"""What rows tell of the latents: exactly wherever that is within reach.

Three engines share the work. The states of few latents are summed in one table for all
rows; more latents row by row, over the parts that positive findings couple; and where
these are too large, a beam sums over the likeliest states, a lower bound.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ._beam import WIDE, Beam
from ._coupled_parts import sum_over_parts
from ._probabilities import finite_log
from ._state_table import StateTable, row_chunks
from ._statistics.patterns import Component, Patterns, components, turn

METHODS = ("auto", "exact")

# Connected latents whose states make a table; EM enumerates as many unless told
# otherwise. (5,000 rows of 10 latents take 3 s instead of 2 s on beams, of 12 latents
# 19 s instead of 8 s, and are exact.)
MAX_TABLE = 12

# Numbers that the exact sum of a part may hold. With method="auto" a part takes some
# tenths of a millisecond; with method="exact", a second or two and 400 MB.
MAX_COST = {"auto": 1 << 16, "exact": 1 << 24}

# Rows that share a beam, times edges and non-edges of the network: of a wide one few
# rows share a beam, which has but the features that are on in some of them.
BEAM_VALUES = 1 << 23


class Inference(NamedTuple):
    """What is known of rows.

    log_likelihood (n_rows,), posterior (n_rows, n_latents)
    is_bound: rows out of reach, whose likelihood is a lower bound, (n_rows,)
    class_posterior: of the classes above the latents, (n_rows, n_classes)
    """

    log_likelihood: np.ndarray
    posterior: np.ndarray
    is_bound: np.ndarray
    class_posterior: np.ndarray

    @classmethod
    def nothing(cls, network, n_rows) -> Inference:
        """Room for what is to be found."""
        return cls(
            np.zeros(n_rows),
            np.zeros((n_rows, network.n_latents)),
            np.zeros(n_rows, dtype=bool),
            np.ones((n_rows, network.n_classes)),
        )

    def put(self, rows, latents, found: Inference) -> None:
        """Set what was found of some rows and latents, which are independent."""
        self.log_likelihood[rows] += found.log_likelihood
        self.posterior[np.ix_(rows, latents)] = found.posterior
        self.is_bound[rows] |= found.is_bound
        self.class_posterior[rows] = found.class_posterior


def infer_network(network, on, observed=None, method="auto") -> Inference:
    """Likelihood of rows in the user's coding; posteriors of latents and classes."""
    on = turn(on, observed, network.polarity)
    found = Inference.nothing(network, len(on))
    everywhere = np.arange(len(on))
    for part, piece in _pieces(network):
        known = None if observed is None else observed[:, part.features]
        own = _infer_piece(piece, on[:, part.features], known, method)
        found.put(everywhere, part.latents, own)
    # A row that the network cannot produce says nothing.
    impossible = np.isneginf(found.log_likelihood)
    found.posterior[impossible] = network.prior
    found.class_posterior[impossible] = network.class_weight
    np.clip(found.posterior, 0.0, 1.0, out=found.posterior)
    return found


def _pieces(network):
    """Parts of a network that are independent; classes couple all latents."""
    parts = components(network.structure)
    if network.n_classes > 1:
        everything = np.arange(network.n_latents), np.arange(network.n_features)
        parts = [Component(*everything)]
    return [(part, network._part(*part)) for part in parts]


def _infer_piece(network, on, observed, method) -> Inference:
    """Infer a piece of a network, and rows out of reach by the likeliest states."""
    found = _exactly(network, on, observed, MAX_COST[method])
    if method == "exact" and found.is_bound.any():
        raise ValueError(
            "method='exact' must have few enough positive findings, or latents that "
            f"share them, in each row; got {found.is_bound.sum()} of {len(on)} rows "
            "out of reach. method='auto' gives those a lower bound."
        )
    beyond = np.flatnonzero(found.is_bound & ~np.isneginf(found.log_likelihood))
    step = max(1, BEAM_VALUES // max(1, network.failure.size))
    for start in range(0, len(beyond), step):
        rows = beyond[start : start + step]
        known = None if observed is None else observed[rows]
        own = _by_beam(network, on[rows], known)
        found.log_likelihood[rows] = 0.0
        found.put(rows, np.arange(network.n_latents), own)
    return found


def _exactly(network, on, observed, most) -> Inference:
    """Infer a piece of a network, and say which rows are out of reach."""
    found = Inference.nothing(network, len(on))
    if network.n_latents <= MAX_TABLE:
        table = StateTable.of(network)
        for rows, share, value in table.posteriors(
            on, observed, row_elements=2 * on.shape[1]
        ):
            found.log_likelihood[rows] = value
            found.posterior[rows] = share @ table.states
            found.class_posterior[rows] = share @ table.classes
        return found
    if network.n_classes > 1:
        return _class_by_class(network, on, observed, most)
    value, latents, beyond = sum_over_parts(network, on, observed, most)
    return Inference(value, latents, beyond, found.class_posterior)


def _class_by_class(network, on, observed, most) -> Inference:
    """Given its class, the latents of a row are independent: each is a network."""
    found = Inference.nothing(network, len(on))
    joint = np.tile(np.log(network.class_weight), (len(on), 1))
    latents = np.empty((network.n_classes, *found.posterior.shape))
    everywhere = np.arange(len(on))
    for c in range(network.n_classes):
        given = network._given_class(c)
        own = Inference.nothing(given, len(on))
        for part, piece in _pieces(given):
            known = None if observed is None else observed[:, part.features]
            of_piece = _exactly(
                piece, on[:, part.features], known, most / network.n_classes
            )
            own.put(everywhere, part.latents, of_piece)
        joint[:, c] += own.log_likelihood
        latents[c], found.is_bound[:] = own.posterior, found.is_bound | own.is_bound
    found.log_likelihood[:] = np.logaddexp.reduce(joint, axis=1)
    peak = np.maximum(joint.max(axis=1, keepdims=True), -1e300)
    shares = np.exp(joint - peak)
    shares /= np.maximum(shares.sum(axis=1, keepdims=True), 1e-300)
    found.class_posterior[:] = shares
    np.einsum("rc,crk->rk", shares, latents, out=found.posterior)
    return found


def _by_beam(network, on, observed) -> Inference:
    """Lower bounds by the likeliest states, for any number of latents and classes."""
    seen = np.flatnonzero(on.any(axis=0))
    piece = network._part(np.arange(network.n_latents), seen)
    # Features that are off in all of the rows only change the odds of the latents.
    off = (~on if observed is None else observed & ~on).astype(np.float64)
    off[:, seen] = 0.0
    known = None if observed is None else observed[:, seen]
    patterns = Patterns(on[:, seen], known, np.ones(len(on)))
    beam = Beam(patterns, network.n_latents, WIDE)
    beam.search(piece, off @ finite_log(network.failure.T))
    value = beam.log_likelihood + off @ finite_log(1.0 - network.leak)
    is_bound = np.ones(len(on), dtype=bool)
    return Inference(value, beam.posterior, is_bound, beam.class_posterior)


class Predictions(NamedTuple):
    """P(off | row) of cells without a value, and whether it comes from a bound."""

    off: np.ndarray
    is_bound: np.ndarray


def predict_off(network, on, observed) -> Predictions:
    """P(off | row) of unknown cells, in the order of ``np.nonzero(~observed)``.

    A ratio of likelihoods, of the row with the feature off and without it, in which a
    negative finding costs nothing.
    """
    off, is_bound = np.zeros(on.shape), np.zeros(on.shape, dtype=bool)
    for part, piece in _pieces(network):
        some = np.flatnonzero(~observed[:, part.features].all(axis=1))
        cells = np.ix_(some, part.features)
        off[cells], is_bound[cells] = _predict_piece(piece, on[cells], observed[cells])
    off, is_bound = off[~observed], is_bound[~observed]
    flipped = (network.polarity < 0)[np.nonzero(~observed)[1]]
    return Predictions(np.where(flipped, 1.0 - off, off), is_bound)


def _predict_piece(network, on, observed):
    """Predict the unknown cells of a piece, as the network reads them."""
    off, bounds = np.zeros(on.shape), np.zeros(on.shape, dtype=bool)
    before = infer_network(network, on, observed)
    bounds |= before.is_bound[:, np.newaxis]
    row, feature = np.nonzero(~observed)
    negative = network.polarity < 0
    for cells in row_chunks(len(row), on.shape[1]):
        at = np.arange(len(row[cells])), feature[cells]
        fires, known = on[row[cells]], observed[row[cells]]
        fires[at], known[at] = negative[feature[cells]], True
        after = infer_network(network, fires, known)
        with np.errstate(invalid="ignore"):
            ratio = after.log_likelihood - before.log_likelihood[row[cells]]
        off[row[cells], feature[cells]] = np.exp(np.minimum(ratio, 0.0))
        bounds[row[cells], feature[cells]] |= after.is_bound
    # A row that the network cannot produce says nothing.
    impossible = np.isneginf(before.log_likelihood)
    singles = np.arange(network.n_features)[:, np.newaxis]
    off[impossible] = network.negative_moment(singles)
    return off, bounds
