"""Choice of pairs and triplets of siblings whose moments judge a fit."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from .._identifiability.schedule import coupling_parents


def random_triplets(structure, latents, n_per_latent) -> np.ndarray:
    """Triplets of children of each latent: all, or a fixed random choice of them.

    structure (n_latents, n_features) -> triplets (n_triplets, 3).
    """
    # The choice is part of a plan: it must not vary from run to run.
    rng = np.random.RandomState(0)
    found = [np.zeros((0, 3), dtype=np.int64)]
    for latent in latents:
        children = np.flatnonzero(structure[latent])
        if comb(len(children), 3) <= n_per_latent:
            chosen = np.array(list(combinations(children, 3)), dtype=np.int64)
            found.append(chosen.reshape(-1, 3))
        elif n_per_latent > 0:
            keys = rng.random_sample((n_per_latent, len(children)))
            found.append(children[np.argpartition(keys, 2, axis=1)[:, :3]])
    return np.concatenate(found)


def sibling_pairs(structure, latents) -> np.ndarray:
    """All pairs of children of each latent, with -1 in the third place."""
    found = [np.zeros((0, 3), dtype=np.int64)]
    for latent in latents:
        children = np.flatnonzero(structure[latent])
        one, two = np.triu_indices(len(children), 1)
        none = np.full(len(one), -1)
        found.append(np.column_stack([children[one], children[two], none]))
    return np.concatenate(found)


def pairs_of(sets) -> np.ndarray:
    """The sets and all pairs within them, each once, with -1 in the last place."""
    sets = -np.sort(-np.asarray(sets), axis=1)
    triplets = sets[sets[:, 2] >= 0]
    pairs = np.concatenate([sets[:, :2], triplets[:, 1:], triplets[:, ::2]])
    pairs = np.column_stack([pairs, np.full(len(pairs), -1)])
    return np.unique(np.concatenate([pairs, triplets]), axis=0)


def open_sets(structure, sets, unknown) -> np.ndarray:
    """Those of the sets that no unknown edge couples.

    structure (n_latents, n_features), sets (n_sets, 3), unknown (n_latents,
    n_features).
    """
    owner, parent = coupling_parents(structure, sets)
    features = sets[owner]
    blocked = (unknown[parent[:, None], features] & (features >= 0)).any(axis=1)
    usable = np.ones(len(sets), dtype=bool)
    usable[owner[blocked]] = False
    return sets[usable]
