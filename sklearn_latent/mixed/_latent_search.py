"""From the columns of a panel to latents and edges between them.

Columns make groups, groups get states, states get edges; parameters come last, and are
not learned here.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from joblib import Parallel, delayed

from .._core.graphs import slice_equivalence_class
from ._column_groups import GroupSearch, SearchOptions
from ._hidden_classes import Rows
from ._latent_edges import best_edges
from ._latent_states import (
    Latents,
    alone,
    compared,
    guess_states,
    learn_latents,
    score,
    structure_of,
)
from ._local_graphs import (
    LocalGraph,
    edges_by_majority,
    global_partners,
    local_partners,
    shared_parents,
    windows,
)
from ._mutual_information import design_effect
from ._pairwise_clusters import lpcc_graph
from ._panels.panel import Panel
from ._redundant import Redundant
from ._sem_rounds import review_edges

# Products of a step of EM of all latents together; more take long, and guessed states
# have found the edges of random networks as well.
MAX_PRODUCTS = 1e8


def find_latents(
    panel: Panel, redundant: Redundant, options: SearchOptions, max_joint_states: int
) -> Latents:
    """Latents and the edges between them, by BIC."""
    kept = redundant.kept
    groups = [
        tuple(kept[list(group)].tolist()) for group in _groups(panel, kept, options)
    ]
    taken = {feature for group in groups for feature in group}
    # Near-duplicates share a latent, even if no other feature does.
    lone = [tuple(group) for group in redundant.groups if group[0] in set(kept) - taken]
    latents = learn_latents(panel, sorted([*groups, *lone]), options)
    n_joint = np.prod(np.array(latents.cardinality, dtype=float))
    n_products = n_joint**2 * panel.codes.shape[0] * panel.n_slices
    small = n_joint <= max_joint_states and n_products <= MAX_PRODUCTS
    if len(latents.latents) < 2 or not small:
        return latents
    graph, emission = latents.graph(panel.n_observed), latents.emission(panel)
    found = review_edges(panel, graph, latents.cardinality, emission)
    return Latents(latents.latents, found.intra, found.inter)


def _groups(panel: Panel, kept, options: SearchOptions) -> list[tuple[int, ...]]:
    """Groups of features that share a latent."""
    if not len(kept):
        return []
    panel = panel.of_features(kept)
    effect = design_effect(panel.codes, panel.weights)
    search = GroupSearch(Rows.pooled(panel), effect, options)
    groups = search.run()
    if panel.n_slices == 1:
        return groups
    parts = [part for group in groups for part in review(panel, search, group, options)]
    return sorted(parts)


def review(panel: Panel, search: GroupSearch, group, options: SearchOptions) -> list:
    """Split a group whose halves move differently, by BIC of networks over time.

    Slices alone do not know how latents move. (Joining groups that move alike, as well,
    merged true latents: of 32 panels each of 400 and 1,000 sequences the mean SHD was
    1.7 and 0.9 with it, 1.3 and 0.2 without.)
    """
    halves = search.best_halves(frozenset(group))[:2]
    if not halves:
        return [group]
    own, place = panel.of_features(group), {f: k for k, f in enumerate(group)}

    def value(groups):
        places = [tuple(place[f] for f in sorted(part)) for part in groups]
        found = learn_latents(own, places, options)
        # Each latent follows its own past, whatever else it follows.
        past = found.inter | np.eye(len(places), dtype=bool)
        graph = replace(found, inter=past).graph(len(group))
        emission = found.emission(own)
        return score(own, compared(own, graph, found.cardinality, emission))

    one = value([group])
    gains = [gain + value(pair) - one for *pair, gain in halves]
    if max(gains) <= 0:
        return [group]
    return [tuple(sorted(half)) for half in halves[int(np.argmax(gains))][:2]]


def local_graphs(
    panel: Panel, found: Latents, structure, n_jobs=None
) -> list[LocalGraph]:
    """How the latents depend on each other in each window of slices."""

    def learn(window):
        intra, inter = best_edges(guess_states(window, found.latents))
        intra = slice_equivalence_class(intra, inter)
        has_past = window.n_slices > 1
        return LocalGraph.of_tables(structure, intra, inter if has_past else None)

    return Parallel(n_jobs=n_jobs)(delayed(learn)(window) for window in windows(panel))


def vote_for_latents(
    panel: Panel, options: SearchOptions, n_jobs=None
) -> tuple[Latents, list[LocalGraph]]:
    """Latents and edges by pairwise cluster comparison and a vote, as published."""
    learn = delayed(_lpcc_graph)
    graphs = Parallel(n_jobs=n_jobs)(learn(window) for window in windows(panel))
    shared = shared_parents(graphs)
    groups = global_partners(local_partners(shared), shared)
    intra, inter = edges_by_majority(graphs, structure_of(groups, panel.n_observed))
    latents = [alone(panel, group, options) for group in groups]
    return Latents(latents, intra, inter), graphs


def _lpcc_graph(panel: Panel) -> LocalGraph:
    """Local graph by pairwise cluster comparison."""
    pairs = [panel.of_slices(slice(t, t + 2)) for t in range(panel.n_slices - 1)]
    codes = np.concatenate([pair.codes for pair in pairs or [panel]])
    weights = np.tile(panel.weights, len(pairs) or 1)
    return lpcc_graph(Panel(codes, weights, panel.n_categories)).oriented()
