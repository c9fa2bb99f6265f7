"""Local graphs: what each pair of consecutive slices says by itself."""

from __future__ import annotations

import numpy as np
from joblib import Parallel, delayed

from .._edges.edges import learn_edges
from .._edges.structure import Measurement, latent_counts
from .._measurement.measurement import learn_measurement
from .local_to_global import LocalGraph
from .lpcc import lpcc_graph

__all__ = ["learn_local_graphs", "windows"]


def windows(n_slices: int) -> list[slice]:
    """Pairs of consecutive slices; the only slice if there is one."""
    if n_slices == 1:
        return [slice(0, 1)]
    return [slice(t, t + 2) for t in range(n_slices - 1)]


def learn_local_graphs(
    codes,
    weights,
    n_categories,
    *,
    local="bic",
    measurement: Measurement | None = None,
    n_jobs=None,
    seed=0,
    **options,
) -> list[LocalGraph]:
    """A local graph for every pair of consecutive slices.

    codes (n, n_slices, n_observed), weights (n,), n_categories (n_observed,).
    """
    learn = _bic_graph if local == "bic" else _lpcc_graph
    return Parallel(n_jobs=n_jobs)(
        delayed(learn)(
            codes[:, window], weights, n_categories, measurement, seed, **options
        )
        for window in windows(codes.shape[1])
    )


def _bic_graph(
    codes,
    weights,
    n_categories,
    measurement: Measurement,
    seed,
    *,
    max_states=6,
    n_states=None,
    max_joint_states=500,
) -> LocalGraph:
    """Local graph by BIC: groups first, then edges on expected counts."""
    random_state = np.random.RandomState(seed)
    shared = [group for group in measurement.groups if len(group) > 1]
    groups, _ = learn_measurement(
        codes,
        weights,
        n_categories,
        max_classes=max_states,
        start=shared,
        random_state=random_state,
    )
    taken = {feature for group in groups for feature in group}
    lone = [g for g in measurement.groups if len(g) == 1 and g[0] not in taken]
    own = measurement.with_groups(
        sorted([*groups, *lone]),
        codes,
        weights,
        n_categories,
        max_states=max_states,
        n_states=n_states,
        random_state=random_state,
    )
    counts, _ = latent_counts(
        codes, weights, n_categories, own, max_joint_states=max_joint_states
    )
    intra, inter = learn_edges(counts)
    has_past = codes.shape[1] > 1
    return LocalGraph.of_tables(own.matrix, intra, inter if has_past else None)


def _lpcc_graph(codes, weights, n_categories, measurement, seed, **options):
    """Local graph by pairwise cluster comparison."""
    return lpcc_graph(codes, weights, n_categories).oriented()
