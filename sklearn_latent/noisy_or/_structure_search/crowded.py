"""Search where too many latents are coupled for exact likelihood: by moments.

Proposals are fitted by the method of moments for known structures; edges and latents
that are not significant go, and unexplained triplets propose further latents.
"""

from __future__ import annotations

import numpy as np

from .._likelihood.exact import Parameters
from .._network import NoisyOrNetwork
from .._parameters.learn import learn_parameters, parameter_errors
from .._parameters.plan import Plan, Statistics
from .._statistics.counts import Residual, RowSource
from .coupling import coupled_triplets, pair_moments
from .proposals import propose_children
from .search import cover
from .smoothed import Model

# Rounds of fits; later ones repair little.
MAX_ROUNDS = 3

# A failure above this is no edge: its influence is below what moments can tell.
WEAKEST_FAILURE = 0.97


def search_crowded(source: RowSource, children, pretest, report=None) -> Model:
    """Find latents by moments alone."""
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


def crowded_errors(found: Parameters, source: RowSource):
    """Standard errors of priors and failures by moments."""
    plan, statistics = _count(found.failure < 1.0, source)
    return parameter_errors(plan, statistics, NoisyOrNetwork(*found))


def _count(structure, source: RowSource):
    plan = Plan.of(structure)
    return plan, source.sum(Statistics.of, plan)


def _fit(children, source) -> Model:
    """Parameters by moments; weak edges and latents of fewer than three are dropped."""
    prior, failure, leak, _ = learn_parameters(*_count(children, source))
    failure = np.where(failure > WEAKEST_FAILURE, 1.0, failure)
    useful = ((failure < 1.0).sum(axis=1) >= 3) & (prior * source.n_rows >= 3.0)
    return Model(prior[useful], failure[useful], leak)
