"""What to do about edges that no schedule reaches.

As in section 3.3 of Halpern and Sontag (2013).

Suppose that the prior and one failure of an unreached latent were known: that often
unlocks a schedule for the rest. So search a grid over these two, keep the cells that
fit the moments best, and polish them by least squares.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from .._identifiability.schedule import Schedule, open_pairs, run_rounds
from .guess import Guess, Rates
from .interactions import (
    Interactions,
    fit_interactions,
    open_sets,
    pairs_of,
    random_triplets,
    sibling_pairs,
)
from .solve import Estimates, solve_schedule

GRID_PRIOR = (0.01, 0.03, 0.06, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
GRID_FAILURE = (0.05, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.95)
POLISHED_CELLS = 3
RANDOM_STARTS = 8
# Steps of least squares from each random start, and how many then go on.
FIRST_STEPS = 6
POLISHED_STARTS = 2
MAX_STEPS = 100
# When steps are small enough to stop, in standard errors.
FINE, COARSE = 0.01, 0.1
# Sets per parameter that are enough for these first steps.
FIRST_SETS = 3
# Limits that keep planning and counting affordable on large unreached parts.
HYPOTHESES_TRIED = 60
ANCHORS_PER_LATENT = 3
SETS_PER_PIECE = 2000


@dataclass(frozen=True)
class Piece:
    """A part of the unreached parameters that is learned at once.

    anchor: latent and feature whose prior and failure are searched; None if no single
        edge unlocks anything, so that least squares has to start at random
    schedule: what the anchor unlocks
    free_prior, free_edge: the parameters of this piece
    sets: pairs (-1 last) and triplets whose moments judge the fit, (n_sets, 3)
    """

    anchor: tuple[int, int] | None
    schedule: Schedule | None
    free_prior: np.ndarray
    free_edge: np.ndarray
    sets: np.ndarray


@dataclass(frozen=True)
class CleanUp:
    """How to learn what a schedule leaves.

    latents, features: the part of the network that is involved: the features of
        unreached latents and all their parents. Everything below speaks of positions in
        these
    structure: structure of that part
    pieces: in order; each uses what the ones before have learned
    """

    latents: np.ndarray
    features: np.ndarray
    structure: np.ndarray
    pieces: list[Piece]

    @property
    def sets(self) -> np.ndarray:
        """Sets of features, in the whole network, whose moments are needed."""
        sets = np.concatenate(
            [piece.sets for piece in self.pieces]
            + [
                piece.schedule.step_features
                for piece in self.pieces
                if piece.schedule is not None
            ]
        )
        return np.where(sets >= 0, self.features[sets], -1)


def _hypotheses(structure, known):
    """Unknown edges worth supposing, those with most open siblings first."""
    A, K = structure.astype(np.float32), known.astype(np.float32)
    ranked = []
    for latent in np.flatnonzero((structure & ~known).any(axis=1)):
        children = np.flatnonzero(structure[latent])
        graph, _ = open_pairs(A, K, latent, children)
        openness = np.where(known[latent, children], -1, graph.sum(axis=1))
        for best in np.argsort(-openness, kind="stable")[:ANCHORS_PER_LATENT]:
            if openness[best] > 0:
                ranked.append((openness[best], latent, children[best]))
    ranked.sort(key=lambda item: -item[0])
    return [(int(latent), int(child)) for _, latent, child in ranked[:HYPOTHESES_TRIED]]


def _judging_sets(structure, known, free_edge):
    """Pairs and triplets that only known and free edges couple."""
    latents = np.flatnonzero(free_edge.any(axis=1))
    triplets = random_triplets(structure, latents, SETS_PER_PIECE // len(latents))
    pairs = sibling_pairs(structure, latents)
    # A sample of the pairs is enough where there are very many.
    pairs = pairs[:: 1 + len(pairs) // (4 * SETS_PER_PIECE)]
    sets = pairs_of(np.concatenate([pairs, triplets]))
    return open_sets(structure, sets, structure & ~known & ~free_edge)


def plan_clean_up(schedule) -> CleanUp:
    """Decide how to learn what a schedule leaves; depends on the structure alone."""
    unreached = np.isinf(schedule.depth)
    features = np.flatnonzero(schedule.structure[unreached.any(axis=1)].any(axis=0))
    latents = np.flatnonzero(schedule.structure[:, features].any(axis=1))
    structure = schedule.structure[np.ix_(latents, features)]
    known = structure & ~unreached[np.ix_(latents, features)]
    pieces = []
    while (structure & ~known).any():
        piece = _next_piece(structure, known)
        pieces.append(piece)
        known = known | piece.free_edge
    return CleanUp(latents, features, structure, pieces)


def _next_piece(structure, known):
    """The anchor that unlocks most, or all that is left if none unlocks anything."""
    anchor, unlocked, best_gain = None, None, 0
    for edge in _hypotheses(structure, known):
        supposed = known.copy()
        supposed[edge] = True
        schedule = run_rounds(structure, supposed)
        gain = int(np.isfinite(schedule.depth).sum())
        if gain > best_gain:
            anchor, unlocked, best_gain = edge, schedule, gain
    if unlocked is None:
        free_edge = structure & ~known
    else:
        free_edge = np.isfinite(unlocked.depth)
        free_edge[anchor] = True
    free_prior = free_edge.any(axis=1) & ~known.any(axis=1)
    sets = _judging_sets(structure, known, free_edge)
    return Piece(anchor, unlocked, free_prior, free_edge, sets)


def _starts(moments, estimates, piece, rates=None):
    """Candidate values of the piece's parameters: grid cells, or random draws."""
    if piece.anchor is None:
        rng = np.random.RandomState(0)
        for _ in range(RANDOM_STARTS):
            prior, failure = estimates.prior.copy(), estimates.failure.copy()
            prior[piece.free_prior] = rng.uniform(0.1, 0.6, piece.free_prior.sum())
            failure[piece.free_edge] = rng.uniform(0.2, 0.8, piece.free_edge.sum())
            yield _allowed(rates, prior, failure)
        return
    latent, feature = piece.anchor
    priors = GRID_PRIOR if piece.free_prior[latent] else (estimates.prior[latent],)
    for p, f in product(priors, GRID_FAILURE):
        cell = estimates.copy_values()
        if rates is not None and piece.free_prior[latent]:
            # The grid covers what the rate of the anchor allows.
            p *= min(1.0, rates.on[feature] / (1.0 - f))
        cell.prior[latent], cell.failure[latent, feature] = p, f
        solve_schedule(moments, piece.schedule, estimates=cell)
        yield _allowed(rates, cell.prior, cell.failure)


def _allowed(rates, prior, failure):
    """Values that the rates allow, if they are asked."""
    return (prior, failure) if rates is None else (prior, rates.bound(prior, failure))


def clean_up(moments, estimates, plan, *, improve=False):
    """Learn the remaining parameters and put them into the estimates.

    `improve` on what is published by what rates allow.
    """
    block = np.ix_(plan.latents, plan.features)
    local = Estimates.unknown(plan.structure, 0)
    local.prior[:] = estimates.prior[plan.latents]
    local.failure[:] = estimates.failure[block]
    moments = moments.restrict(plan.features)
    rates = Rates(moments) if improve else None
    for piece in plan.pieces:
        _learn_piece(moments, plan.structure, local, piece, rates)
    estimates.prior[plan.latents] = local.prior
    estimates.failure[block] = local.failure


def _stride(piece):
    """Which of the sets the first steps use: every so many."""
    n_parameters = piece.free_prior.sum() + piece.free_edge.sum()
    return max(1, len(piece.sets) // (FIRST_SETS * n_parameters))


def _learn_piece(moments, structure, estimates, piece, rates):
    """Start from a grid or at random, polish the best, keep the best."""
    interactions = Interactions(moments, structure, piece.sets)
    guess = None if rates is None else Guess(rates, structure)
    starts = list(_starts(moments, estimates, piece, rates))
    is_random = guess is not None and piece.anchor is None
    # What is refined afterwards need not be polished to the last digit.
    tol = COARSE if is_random else FINE

    def polish(start, interactions, max_iter=MAX_STEPS):
        """Fit from one start."""
        prior, failure = start[:2]
        return fit_interactions(
            interactions,
            prior,
            failure,
            piece.free_prior,
            piece.free_edge,
            guess=guess,
            max_iter=max_iter,
            tol=tol,
        )

    kept = len(starts) if piece.anchor is None else POLISHED_CELLS
    if is_random:
        # Random starts all look alike; a few steps on a few sets tell them apart.
        few = Interactions(moments, structure, piece.sets[:: _stride(piece)])
        starts = [polish(start, few, FIRST_STEPS) for start in starts]
        kept = POLISHED_STARTS
    costs = [interactions.cost(*start[:2]) for start in starts]
    fits = [polish(starts[cell], interactions) for cell in np.argsort(costs)[:kept]]
    # Weights differ from fit to fit; compare by those of the moments.
    interactions = Interactions(moments, structure, piece.sets)
    prior, failure, _ = min(fits, key=lambda fit: interactions.cost(*fit[:2]))
    estimates.prior[piece.free_prior] = prior[piece.free_prior]
    estimates.failure[piece.free_edge] = failure[piece.free_edge]
