"""Which directions of edges data can tell."""

from __future__ import annotations

from itertools import combinations

import numpy as np

__all__ = ["equivalence_class"]


def equivalence_class(intra, inter) -> np.ndarray:
    """Leave edges undirected that can be turned without changing the model.

    Time directs the edges between slices. Within a slice an edge is directed if it is
    part of a collider whose parents are not joined, one of which may be in the slice
    before, or if turning it would make a new collider or a cycle [1]_.

    intra (n_latents, n_latents), inter (n_latents, n_latents) -> pattern (n_latents,
    n_latents).

    References
    ----------
    .. [1] Meek, C. (1995). Causal inference and causal explanation with background
       knowledge. UAI.
    """
    n = len(intra)
    # Latents of the slice before come first. They are given, hence all joined.
    arrows = np.zeros((2 * n, 2 * n), dtype=bool)
    arrows[:n, n:] = inter
    arrows[n:, n:] = intra
    joined = arrows | arrows.T
    joined[:n, :n] = True
    directed = np.zeros_like(arrows)
    directed[:n, n:] = inter
    for child in range(n, 2 * n):
        parents = np.flatnonzero(arrows[:, child])
        for first, second in combinations(parents, 2):
            if not joined[first, second]:
                directed[[first, second], child] = True
    changed = True
    while changed:
        changed = False
        for a in range(n, 2 * n):
            for b in range(n, 2 * n):
                if not arrows[a, b] or directed[a, b]:
                    continue
                if _is_compelled(a, b, directed, joined):
                    directed[a, b] = changed = True
    turnable = intra & ~directed[n:, n:]
    return intra | turnable.T


def _is_compelled(a, b, directed, joined) -> bool:
    """Whether the rules of Meek direct a -> b."""
    others = [c for c in range(len(directed)) if c not in (a, b)]
    # A turned edge would make a collider c -> a <- b.
    if any(directed[c, a] and not joined[c, b] for c in others):
        return True
    # It would close the cycle a -> c -> b -> a.
    if any(directed[a, c] and directed[c, b] for c in others):
        return True
    # Two ways round through undirected neighbours of a, which are not joined.
    neighbours = [
        c for c in others if joined[a, c] and directed[c, b] and not directed[c, a]
    ]
    return any(not joined[c, d] for c, d in combinations(neighbours, 2))
