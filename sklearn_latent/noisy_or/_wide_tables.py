"""Wide tables: groups of columns that depend on each other, learned one by one.

Any columns of a noisy-or network follow a noisy-or network, with the same priors and
failures: what the other columns share with them is part of the leaks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .._tables.blocks import Blocks
from ._coupled_sets import discovery_level, discovery_threshold
from ._noisy_or_network import NoisyOrNetwork
from ._posterior import infer_network
from ._probabilities import clip_probability
from ._quartets import Causes
from ._refine_causes import Settings, learn_table, scored_rows
from ._statistics.packed import PackedRows
from ._statistics.patterns import components
from ._statistics.rows import open_blocks
from ._statistics.together import STRIP, Links, Singles, find_links

# Columns of a table that is looked at as a whole.
WIDE = 2000

# Columns of the core of a group, and of others that are learned with it.
LARGE = 200

# Links that tie a column to a group in which it is not.
LEAST_TIES = 2

# Share of the children of a latent that a latent of another group has too, above which
# they are the same, seen from two sides.
PART = 0.5


class Group(NamedTuple):
    """Columns that are learned together.

    core: columns that are in no other core
    features: these, and columns of other cores that are tied to them, in order
    """

    core: np.ndarray
    features: np.ndarray


def find_groups(blocks: Blocks, singles: Singles) -> list[Group]:
    """Groups of columns of a table; columns in none of them depend on nothing."""
    n_features = len(singles.on)
    links = find_links(blocks, singles)
    least = discovery_threshold(
        links.z, discovery_level(singles.total), n_features * (n_features - 1) // 2
    )
    return split_columns(_graph(links, n_features, least))


def _graph(links: Links, n_features, least) -> sparse.csr_array:
    """Links that are significant, as a symmetric matrix of z-scores."""
    sure = links.z >= least
    one, two, z = (values[sure] for values in links)
    upper = sparse.coo_array((z, (one, two)), shape=(n_features, n_features))
    return sparse.csr_array(upper + upper.T)


def split_columns(graph: sparse.csr_array) -> list[Group]:
    """Connected parts of a graph of links, large ones in overlapping groups."""
    ties = _common_shares(graph)
    groups = []
    for part in _parts(ties):
        if len(part) <= LARGE:
            groups.append(Group(part, part))
        else:
            groups += _split(graph[part][:, part], ties[part][:, part], part)
    return groups


def _common_shares(graph) -> sparse.csr_array:
    """Of each link, the share of neighbours that both columns have in common.

    A latent has at least three children, so links without any common neighbour go: they
    are pairs, which have many explanations, or chance.
    """
    linked = graph.astype(bool).astype(np.float64)
    degree = linked.sum(axis=1)
    strips = []
    for start in range(0, graph.shape[0], STRIP):
        strip = linked[start : start + STRIP]
        strips.append((strip @ linked).multiply(strip))
    common = sparse.coo_array(sparse.vstack(strips))
    one, two = common.coords
    # Both columns are among the neighbours of each other.
    share = (common.data + 2.0) / (degree[one] + degree[two] - common.data)
    return sparse.csr_array((share, (one, two)), shape=graph.shape)


def _parts(graph, least=3) -> list[np.ndarray]:
    """Connected parts of some columns at least, by their first column."""
    n_parts, label = connected_components(graph, directed=False)
    order = np.argsort(label, kind="stable")
    sizes = np.bincount(label, minlength=n_parts)
    parts = np.split(order, np.cumsum(sizes)[:-1])
    return [part for part in parts if len(part) >= least]


def _split(graph, ties, columns) -> list[Group]:
    """Cores of a large part, each with the columns that are tied to it."""
    cores = _cores(ties)
    owner = _adopt(graph, cores)
    groups = []
    for number in range(len(cores)):
        core = np.flatnonzero(owner == number)
        features = np.union1d(core, _tied(graph, core))
        groups.append(Group(columns[core], columns[features]))
    return groups


def _cores(ties) -> list[np.ndarray]:
    """Unite the columns with most neighbours in common first, up to a largest size.

    Children of one latent have all neighbours in common; one that has a second parent
    shares half of its neighbours with each family.
    """
    links = sparse.coo_array(sparse.triu(ties, 1))
    root, size = np.arange(ties.shape[0]), np.ones(ties.shape[0], dtype=np.int64)
    one, two = links.coords
    for link in np.argsort(-links.data, kind="stable"):
        a, b = _root(root, one[link]), _root(root, two[link])
        if a != b and size[a] + size[b] <= LARGE:
            root[b] = a
            size[a] += size[b]
    label = np.array([_root(root, column) for column in range(len(root))])
    return [np.flatnonzero(label == a) for a in np.unique(label) if size[a] >= 3]


def _root(root, column):
    while root[column] != column:
        root[column] = root[root[column]]
        column = root[column]
    return column


def _adopt(graph, cores) -> np.ndarray:
    """The core of each column: its own or, if it has none, the one with most links."""
    owner = np.full(graph.shape[0], -1)
    for number, core in enumerate(cores):
        owner[core] = number
    alone = np.flatnonzero(owner < 0)
    members = owner >= 0
    at = np.flatnonzero(members), owner[members]
    belongs = sparse.csr_array(
        (np.ones(members.sum()), at), shape=(len(owner), max(1, len(cores)))
    )
    n_links = graph[alone].astype(bool).astype(np.float64) @ belongs
    has_links = n_links.sum(axis=1) > 0
    owner[alone[has_links]] = np.asarray(n_links.argmax(axis=1)).ravel()[has_links]
    return owner


def _tied(graph, core) -> np.ndarray:
    """Columns outside a core that are linked to it, at most as many as are large."""
    inside = np.zeros(graph.shape[0])
    inside[core] = 1.0
    n_links = graph.astype(bool) @ inside
    n_links[core] = 0.0
    tied = np.flatnonzero(n_links >= LEAST_TIES)
    most = max(LARGE, len(core))
    return tied[np.argsort(-n_links[tied], kind="stable")[:most]]


def learn_groups(
    blocks: Blocks, settings: Settings, rng, report: Callable[[int, int], Any]
) -> tuple[Causes, np.ndarray]:
    """Causes of a wide table, group by group, and the polarity of the columns.

    report: is called with the numbers of groups and of latents so far; what it returns
        ends the search if true
    """
    singles = blocks.sum(Singles.of)
    if singles is None:
        raise ValueError("X must have at least one row of positive weight, got none.")
    groups = find_groups(blocks, singles)
    if len(groups) != 1:
        settings = settings._replace(dependence=False)
    leak = clip_probability(singles.rate)
    polarity = np.ones(len(leak), dtype=np.int8)
    owner = np.full(len(leak), -1)
    for number, group in enumerate(groups):
        owner[group.core] = number
    learned: list[Causes] = []
    for number, group in enumerate(groups):
        source, patterns = open_group(blocks, group.features, settings.n_jobs)
        found, turned = learn_table(source, patterns, settings, rng)
        home = _at_home(number, owner[group.features], found.network.structure)
        learned.append(_widen(found.keep(home), group.features, len(leak)))
        core = np.isin(group.features, group.core)
        polarity[group.core] = turned[core]
        leak[group.core] = found.network.leak[core]
        if report(number + 1, sum(len(one.depth) for one in learned)):
            groups = groups[: number + 1]
            break
    if len(learned) == 1:
        network = learned[0].network._with(leak=leak)
        return learned[0]._replace(network=network), polarity
    together = _drop_copies(learned, leak)
    leak = _explain_rates(together.network, polarity, groups, singles)
    together = together._replace(network=together.network._with(leak=leak))
    effect = together.network.prior * (1.0 - together.network.failure).sum(1)
    return together.keep(np.lexsort((-effect, together.depth))), polarity


def open_group(blocks: Blocks, features, n_jobs):
    """Moments and rows of some columns."""
    return open_blocks(blocks.map(PackedRows.select, features), n_jobs)


def _at_home(number, owner, structure) -> np.ndarray:
    """Latents that have as many children in the core of this group as in any other."""
    counts = [np.bincount(owner[edges], minlength=number + 1) for edges in structure]
    home = [latent for latent, n in enumerate(counts) if n[number] == n.max()]
    return np.array(home, dtype=np.int64)


def _widen(found: Causes, features, n_features) -> Causes:
    """The same in a table of more columns, which are independent of these."""
    failure = np.ones((len(found.depth), n_features))
    errors = np.full(failure.shape, np.nan)
    failure[:, features] = found.network.failure
    errors[:, features] = found.failure_errors
    # -1 stands for no quartet and is the last place here.
    quartets = np.append(features, -1)[found.quartets]
    return found._replace(
        network=found.network._with(failure=failure),
        quartets=quartets,
        failure_errors=errors,
    )


def _drop_copies(learned: list[Causes], leak) -> Causes:
    """All latents but those that are part of what another group found."""
    together, of_group = Causes.none(leak), np.zeros(0, dtype=np.int64)
    for number, found in enumerate(learned):
        network = found.network
        together = together.add(network.prior, network.failure, *found[1:])
        of_group = np.append(of_group, np.full(len(found.depth), number))
    structure = together.network.structure
    size = structure.sum(axis=1)
    edges = structure.astype(np.float32)
    common = edges @ edges.T
    kept: list[int] = []
    for latent in np.argsort(-size, kind="stable"):
        is_part = common[latent, kept] > PART * size[latent]
        if not (is_part & (of_group[kept] != of_group[latent])).any():
            kept.append(latent)
    return together.keep(np.sort(np.array(kept, dtype=np.int64)))


def _explain_rates(
    network: NoisyOrNetwork, polarity, groups, singles: Singles
) -> np.ndarray:
    """Leaks; of columns in several groups, what all latents leave of the rate."""
    in_groups = [np.zeros(0, dtype=np.int64), *(group.features for group in groups)]
    n_groups = np.bincount(np.concatenate(in_groups), minlength=len(singles.on))
    shared = np.flatnonzero(n_groups > 1)
    off = 1.0 - singles.rate[shared]
    off = np.where(polarity[shared] < 0, 1.0 - off, off)
    effect = network.prior[:, np.newaxis] * (1.0 - network.failure[:, shared])
    leak = np.array(network.leak)
    leak[shared] = clip_probability(1.0 - off / (1.0 - effect).prod(axis=0))
    return leak


def score_groups(
    blocks: Blocks, network: NoisyOrNetwork, n_jobs=None
) -> tuple[float, float, bool]:
    """Log-likelihood of the rows of a wide table, their weight, whether it is exact.

    Components of the network are independent, so that their likelihoods add up.
    """
    singles = blocks.sum(Singles.of)
    parts = components(network.structure)
    # Features without a latent are one part.
    alone = [part.features for part in parts if not len(part.latents)]
    parts = [part for part in parts if len(part.latents)]
    if network.n_classes > 1:
        # The classes couple them all.
        features = np.concatenate([part.features for part in parts])
        latents = np.arange(network.n_latents)
        parts = [parts[0]._replace(latents=latents, features=np.sort(features))]
    total, is_exact = sum(_alone(network, singles, part) for part in alone), True
    for latents, features in parts:
        part = network._part(latents, features)
        _, patterns = open_group(blocks, features, n_jobs)
        rows = scored_rows(patterns, part.structure)
        found = infer_network(part, rows.on, rows.observed)
        share = rows.weights.sum() / singles.total
        total += float(rows.weights @ found.log_likelihood) / share
        is_exact &= not found.is_bound.any() and np.isclose(share, 1.0, rtol=1e-9)
        is_exact &= len(rows.weights) == len(patterns.weights)
    return total, singles.total, bool(is_exact)


def _alone(network, singles: Singles, features) -> float:
    """Log-likelihood of columns without a latent."""
    on, known = singles.on[features], singles.known[features]
    on = np.where(network.polarity[features] < 0, known - on, on)
    leak = network.leak[features]
    return float(on @ np.log(leak) + (known - on) @ np.log1p(-leak))
