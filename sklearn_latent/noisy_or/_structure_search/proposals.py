"""Sets of features that may be the children of one latent, from coupled triplets.

Triplets are coupled if and only if they share a parent, and at a few hundred rows
nearly all of them are told right, long before quartet tests are. If a latent alone
couples the pair a, b, then the features that are coupled with both are just its other
children. So each pair votes for a set, and sets with votes are proposed.
"""

from __future__ import annotations

from itertools import permutations

import numpy as np

from .coupling import Triplets

# Pairs that vote, the most strongly coupled ones; their sets are all compared.
MAX_VOTERS = 3000

# Features that take part; a cube of bits over 600 features takes 216 MB.
MAX_FEATURES = 600

# Share of the triplets within a set that must be coupled.
LEAST_COHESION = 0.7

# Votes count by this power of that share. Two overlapping latents together have a
# share of 0.7 or so, and there may be more such pairs than pairs of one latent.
SHARPNESS = 20

# Votes that a set needs: even three children are three pairs.
LEAST_VOTES = 1.5

# Two votes are for the same set if this share of their union is common.
LIKENESS = 0.75


def propose_children(triplets: Triplets, n_features: int) -> np.ndarray:
    """Sets of children that coupled triplets suggest."""
    features, cube, weight = _cube(triplets)
    if not len(features):
        return np.zeros((0, n_features), dtype=bool)
    one, two = np.nonzero(np.triu(weight, 1))
    strongest = np.argsort(-weight[one, two], kind="stable")[:MAX_VOTERS]
    one, two = one[strongest], two[strongest]
    votes = cube[one, two]
    cohesion = _cohesion(cube, one, two, votes)
    votes[np.arange(len(one)), one] = True
    votes[np.arange(len(two)), two] = True
    chosen = cohesion >= LEAST_COHESION
    sets = _elect(votes[chosen], cohesion[chosen] ** SHARPNESS)
    children = np.zeros((len(sets), n_features), dtype=bool)
    children[:, features] = sets
    return children


def _cube(triplets):
    """Features that take part, coupled triplets among them, and strength of pairs."""
    sets, strength = triplets
    features, position = np.unique(sets, return_inverse=True)
    position = position.reshape(sets.shape)
    if len(features) > MAX_FEATURES:
        total = np.bincount(position.ravel(), np.repeat(strength, 3))
        chosen = np.zeros(len(features), dtype=bool)
        chosen[np.argsort(-total, kind="stable")[:MAX_FEATURES]] = True
        inside = chosen[position].all(axis=1)
        return _cube(Triplets(sets[inside], strength[inside]))
    n = len(features)
    cube = np.zeros((n, n, n), dtype=bool)
    weight = np.zeros((n, n))
    for a, b, c in permutations(position.T):
        cube[a, b, c] = True
        np.add.at(weight, (a, b), strength)
    return features, cube, weight


def _cohesion(cube, one, two, votes):
    """Share of the pairs within each vote that are coupled with a and with b."""
    cohesion = np.empty(len(one))
    for number, (a, b) in enumerate(zip(one, two, strict=True)):
        members = np.flatnonzero(votes[number])
        n_pairs = len(members) * (len(members) - 1)
        inside = np.ix_(members, members)
        coupled = int(cube[a][inside].sum()) + int(cube[b][inside].sum())
        cohesion[number] = 0.5 * coupled / n_pairs if n_pairs else 1.0
    return cohesion


def _elect(votes, weight):
    """Weighted majorities of like votes, largest first."""
    sizes = votes.sum(axis=1, dtype=np.float32)
    common = votes.astype(np.float32) @ votes.T.astype(np.float32)
    alike = common >= LIKENESS * (sizes[:, None] + sizes - common)
    left = np.ones(len(votes), dtype=bool)
    elected = []
    while left.any():
        support = (alike @ (weight * left)) * left
        voters = alike[int(np.argmax(support))] & left
        total = weight[voters].sum()
        if total >= LEAST_VOTES:
            elected.append(weight[voters] @ votes[voters] > 0.5 * total)
        left &= ~voters
    return np.array(elected, dtype=bool).reshape(len(elected), votes.shape[1])
