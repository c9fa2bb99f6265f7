"""Search where too many latents are coupled for exact likelihood: by moments.

Proposals are fitted by the method of moments for known structures; edges and latents
that are not significant go, and unexplained triplets propose further latents.
"""

from __future__ import annotations

import warnings

import numpy as np

from ...exceptions import LatentWarning
from .._mom import NoisyOrMoMLearner
from .._statistics.counts import Residual, RowSource
from .coupling import coupled_triplets, pair_moments
from .proposals import propose_children
from .search import cover
from .smoothed import Model

__all__ = ["crowded_errors", "search_crowded"]

# Rounds of fits; later ones repair little.
MAX_ROUNDS = 3

# A failure above this is no edge: its influence is below what moments can tell.
WEAKEST_FAILURE = 0.97


def search_crowded(source: RowSource, children, pretest, report=None) -> Model:
    """Find latents by moments alone.

    children (n_latents, n_features).
    """
    pairs = pair_moments(source)
    for number in range(MAX_ROUNDS):
        model = _fit(children, source)
        kept = model.structure
        if report is not None and report(model):
            break
        residual = Residual(source, model.prior, model.failure)
        triplets = coupled_triplets(residual, pairs, pretest)
        new = cover(propose_children(triplets, source.n_features), triplets)
        if number == MAX_ROUNDS - 1 or (
            np.array_equal(kept, children) and not len(new)
        ):
            break
        children = np.concatenate([kept, new])
    return model


def crowded_errors(structure, source: RowSource):
    """Standard errors of priors and failures by moments.

    structure (n_latents, n_features).
    """
    learner = _learner(structure, source)
    return learner.prior_stderr_, learner.failure_stderr_


def _learner(structure, source: RowSource):
    """The moment learner for a known structure, fitted."""
    with warnings.catch_warnings():
        # What no schedule reaches is a matter of the search, not of the user.
        warnings.simplefilter("ignore", LatentWarning)
        return NoisyOrMoMLearner(structure)._fit_source(source)


def _fit(children, source) -> Model:
    """Parameters by moments; weak edges and latents of fewer than three are dropped."""
    learner = _learner(children, source)
    weak = learner.failure_ > WEAKEST_FAILURE
    failure = np.where(weak, 1.0, learner.failure_)
    useful = ((failure < 1.0).sum(axis=1) >= 3) & (
        learner.prior_ * source.n_rows >= 3.0
    )
    return Model(learner.prior_[useful], failure[useful], learner.leak_)
