"""EM on truncated posteriors: any number of coupled latents, with or without classes.

The statistics add up over blocks of rows, so that blocks may lie on other machines.
"""

from __future__ import annotations

from functools import partial
from itertools import count
from typing import NamedTuple

import numpy as np

from ..._core.climb import Ascent, climb
from ..._tables.blocks import add_present
from .._numerics import clip_probability
from .._statistics.packed import PackedRows
from .._statistics.patterns import Patterns
from .beam import Beam, Width
from .layered import Layered

# Pseudo-rows of the beta distribution of failures: never more certain than this.
MOST_PSEUDO_ROWS = 100.0

# Pseudo-row of each prior of a class, at the mean of its latent. (Held-out
# log-likelihood of the digits, per row: -17.56 with 0.1 of a row, -17.61 with 1.)
CLASS_ROWS = 0.1

# Rows that share a beam, at most, and their values.
PIECE, PIECE_VALUES = 1 << 13, 1 << 22

# Memory of the beams that EM keeps from step to step; beams of more rows are searched
# anew in every step, which takes four times as long.
KEPT_BYTES = 1 << 29

# EM steps from one look at the neighbours of states to the next. A step that looks
# takes twice as long as one that does not.
FOLLOWED = 4

# States of a row, about, for the memory that a beam takes, and bytes of a state beside
# one for each latent.
STATES, STATE_BYTES = 30, 40


class Expected(NamedTuple):
    """Sums over rows of what the M-step needs.

    log_likelihood: of the weighted rows
    classes: expected number of rows of each class, (n_classes,)
    latent_on: and of those with the latent on, (n_classes, n_latents)
    trials, causes: over the rows that know the feature and have the latent on: the
        expected number of them, and the expected sum of [feature on] / P(feature on |
        state), (n_latents, n_features); causes of edges alone
    leak_trials, leak_causes: the same for the leak, which is always on, (n_features,)
    """

    log_likelihood: float
    classes: np.ndarray
    latent_on: np.ndarray
    trials: np.ndarray
    causes: np.ndarray
    leak_trials: np.ndarray
    leak_causes: np.ndarray

    def __add__(self, other) -> Expected:
        return Expected(*(a + b for a, b in zip(self, other, strict=True)))

    @property
    def total(self) -> float:
        """Number of rows."""
        return float(self.classes.sum())

    @classmethod
    def of(cls, beam: Beam) -> Expected:
        """Expectations over the states of a beam."""
        patterns, n_latents = beam.patterns, beam.states.shape[1]
        n_features = patterns.on.shape[1]
        mass = patterns.weights[beam.row] * beam.share
        causes = np.zeros((n_latents, n_features))
        leak_causes = np.zeros(n_features)
        classes = np.zeros(beam.parameters.n_classes)
        latent_on = np.zeros((len(classes), n_latents))
        for part in beam.chunks(len(beam.row)):
            states = beam.states[part].astype(np.float64)
            fired = beam.fired(part)
            fired *= mass[part]
            causes += _edge_sums(beam, states, fired)
            leak_causes += fired.sum(axis=1)
            shares = beam.class_shares_of(states) * mass[part, np.newaxis]
            classes += shares.sum(axis=0)
            latent_on += shares.T @ states
        if patterns.observed is None:
            trials = np.repeat(latent_on.sum(axis=0)[:, np.newaxis], n_features, axis=1)
            leak_trials = np.full(n_features, patterns.weights.sum())
        else:
            known = patterns.observed * patterns.weights[:, np.newaxis]
            trials, leak_trials = beam.posterior.T @ known, known.sum(axis=0)
        log_likelihood = float(patterns.weights @ beam.log_likelihood)
        return cls(
            log_likelihood,
            classes,
            latent_on,
            trials,
            causes,
            leak_trials,
            leak_causes,
        )


def _edge_sums(beam, states, fired) -> np.ndarray:
    """Sums over states with the latent on, where there is an edge."""
    if not beam.is_sparse:
        return np.where(beam.parameters.structure, states.T @ fired.T, 0.0)
    sums = np.zeros(beam.parameters.failure.shape)
    for latent, on in enumerate(np.ascontiguousarray(states.T)):
        children = beam.children[latent]
        sums[latent, children] = fired[children] @ on
    return sums


def expect_block(block: PackedRows, parameters: Layered, most_values) -> Expected:
    """Statistics of a block of rows, or of a sample that stands for it.

    The rows are cut into pieces with a beam each, so that memory is bounded.
    """
    step = max(1, most_values // max(1, len(block.off)))
    rows = np.arange(block.n_rows)[:: -(-block.n_rows // step)]
    patterns = block.unpack(rows)
    patterns = patterns._replace(
        weights=patterns.weights * (block.total / patterns.weights.sum())
    )
    return add_present(
        _expect_rows(patterns.take(slice(first, first + PIECE)), parameters)
        for first in range(0, len(rows), PIECE)
    )


def _expect_rows(patterns, parameters) -> Expected:
    """Statistics of some rows, with a beam of their own."""
    beam = Beam(patterns, parameters.n_latents)
    beam.search(parameters)
    return Expected.of(beam)


def maximize(parameters: Layered, expected: Expected, *, smooth=True) -> Layered:
    """M-step: shares of the edges that were tried and fired."""
    weight, _, failure, leak = parameters
    fired = (1.0 - failure) * expected.causes
    failed, pseudo = 0.0, 0.0
    if smooth:
        failed, pseudo = _pseudo_rows(parameters, expected)
    tried = np.maximum(expected.trials + failed + pseudo, 1e-300)
    shares = 1.0 - (fired + pseudo) / tried
    shares = np.where(expected.trials + failed + pseudo > 0, shares, failure)
    leaked = leak * expected.leak_causes / np.maximum(expected.leak_trials, 1e-300)
    leaked = np.where(expected.leak_trials > 0, leaked, leak)
    rows = CLASS_ROWS if len(weight) > 1 else 0.0
    mean = expected.latent_on.sum(axis=0) / expected.total
    in_class = np.maximum(expected.classes[:, np.newaxis] + rows, 1e-300)
    classes = expected.classes + 1e-9 * expected.total
    return Layered(
        classes / classes.sum(),
        clip_probability((expected.latent_on + rows * mean) / in_class),
        # Clipped here, because an edge that never fires must not turn into a non-edge.
        np.where(failure < 1.0, clip_probability(shares), 1.0),
        clip_probability(leaked),
    )


def _pseudo_rows(parameters, expected):
    """Failed and fired pseudo-rows of each failure.

    Maximum likelihood sets many a failure to 0 if rows are few: of 25 rows with a cause
    that fails one time in ten, none may show the failure. So the failures of a network
    are taken as draws from one beta distribution, whose parameters are estimated from
    them by moments (empirical Bayes): what they vary more than their sampling noise. On
    the 8 x 8 images this recovers, from the true structure, 6.3 of 8 sources at 100
    rows where maximum likelihood recovers 1.0.
    """
    edges = parameters.structure
    values = parameters.failure[edges]
    trials = np.maximum(expected.trials[edges], 1.0)
    if len(values) < 2:
        return 1.0, 1.0
    mean = np.average(values, weights=trials)
    noise = np.average(values * (1.0 - values) / trials, weights=trials)
    spread = np.average((values - mean) ** 2, weights=trials) - noise
    certain = mean * (1.0 - mean)
    total = certain / max(spread, certain / (1.0 + MOST_PSEUDO_ROWS)) - 1.0
    total = np.clip(total, 1.0, MOST_PSEUDO_ROWS)
    return mean * total, (1.0 - mean) * total


def climb_truncated(
    start: Layered,
    beam: Beam,
    *,
    tol: float,
    max_iter: int,
    smooth: bool = True,
    patient: bool = False,
    search: bool = True,
    report=None,
) -> Ascent:
    """EM on the states of a beam, which follow the parameters; `tol` is per row.

    It starts with a search, because the states at hand may be a local optimum, unless
    they come from one that was shortly before.
    """
    start = start.clipped()
    if search:
        beam.search(start)

    number = count()

    def expect(parameters: Layered):
        step = next(number)
        if step or not search:
            beam.update(parameters, expand=step % FOLLOWED == 0)
        expected = Expected.of(beam)
        return expected.log_likelihood, expected

    def next_parameters(parameters: Layered, expected: Expected):
        return maximize(parameters, expected, smooth=smooth)

    return climb(
        expect,
        next_parameters,
        start,
        tol=tol * beam.patterns.weights.sum(),
        max_iter=max_iter,
        patient=patient,
        report=report,
    )


def climb_pieces(
    start: Layered,
    patterns: Patterns,
    width: Width,
    *,
    tol: float,
    max_iter: int,
    smooth: bool,
) -> Ascent:
    """EM on beams of pieces of the rows, so that memory is bounded; `tol` is per row.

    Every call searches from the empty states, because those that were followed from
    step to step may be a local optimum.
    """
    n_latents, (n_rows, n_features) = start.n_latents, patterns.on.shape
    step = max(1, min(PIECE, PIECE_VALUES // max(1, n_features)))
    pieces = [patterns.take(slice(i, i + step)) for i in range(0, n_rows, step)]
    row_bytes = 8 * n_features + STATES * (n_latents + STATE_BYTES)
    keep = n_rows * row_bytes <= KEPT_BYTES
    beams: dict[int, Beam] = {}

    def expect_piece(number, parameters: Layered) -> Expected:
        beam = beams.get(number)
        if beam is None:
            beam = Beam(pieces[number], n_latents, width)
            beam.search(parameters)
        else:
            beam.update(parameters)
        if keep:
            beams[number] = beam
        return Expected.of(beam)

    def expect(parameters: Layered):
        parts = (expect_piece(i, parameters) for i in range(len(pieces)))
        expected = add_present(parts)
        return expected.log_likelihood, expected

    return climb(
        expect,
        partial(maximize, smooth=smooth),
        start.clipped(),
        tol=tol * patterns.weights.sum(),
        max_iter=max_iter,
    )
