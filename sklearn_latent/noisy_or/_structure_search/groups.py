"""Wide tables: groups of columns that depend on each other.

Any columns of a noisy-or network follow a noisy-or network, with the same priors and
failures: what the other columns share with them is part of the leaks. So groups of
columns are learned one by one, as tables of their own.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ..._tables.blocks import Blocks
from .._statistics.together import STRIP, Links, Singles, find_links
from .coupling import discovery_level, discovery_threshold

# Columns of a table that is looked at as a whole.
WIDE = 2000

# Groups of more columns are split where they are loosely tied, and of so many anyhow.
LARGE, TOO_LARGE = 200, 4000

# Shares of common neighbours below which two columns are loosely tied. Children of one
# latent have all neighbours in common; one that has a second parent shares half of its
# neighbours with each family.
LOOSE = (0.3, 0.45, 0.6, 0.75)

# Least share of the columns that a split must leave in groups of three or more.
LEAST_KEPT = 0.5

# Links that tie a column to a group in which it is not.
LEAST_TIES = 2


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
    """Connected parts of a graph of links, large ones split where they are loose."""
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
    """Split a large part into cores, each with the columns that are tied to it."""
    cores: list[np.ndarray] = []
    whole: list[np.ndarray] = []
    large = [np.arange(len(columns))]
    for share in LOOSE:
        parts = []
        for part in large:
            inside = ties[part][:, part]
            inside.data[inside.data < share] = 0.0
            inside.eliminate_zeros()
            pieces = [part[piece] for piece in _parts(inside)]
            if sum(map(len, pieces)) < LEAST_KEPT * len(part):
                # It does not split, it dissolves.
                whole.append(part)
            else:
                parts += pieces
        cores += [part for part in parts if len(part) <= LARGE]
        large = [part for part in parts if len(part) > LARGE]
    for part in whole + large:
        cores += _cut(graph[part][:, part], part)
    owner = _adopt(graph, cores)
    groups = []
    for number in range(len(cores)):
        core = np.flatnonzero(owner == number)
        features = np.union1d(core, _tied(graph, core))
        groups.append(Group(columns[core], columns[features]))
    return groups


def _cut(graph, columns) -> list[np.ndarray]:
    """Unite the strongest links first, up to the largest size that can be learned."""
    if len(columns) <= TOO_LARGE:
        return [columns]
    links = sparse.coo_array(sparse.triu(graph, 1))
    root, size = np.arange(len(columns)), np.ones(len(columns), dtype=np.int64)
    one, two = links.coords
    for link in np.argsort(-links.data, kind="stable"):
        a, b = _root(root, one[link]), _root(root, two[link])
        if a != b and size[a] + size[b] <= TOO_LARGE // 2:
            root[b] = a
            size[a] += size[b]
    label = np.array([_root(root, column) for column in range(len(columns))])
    return [columns[label == a] for a in np.unique(label) if size[a] >= 3]


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
    linked = sparse.coo_array(graph[alone])
    from_, to = linked.coords
    known = owner[to] >= 0
    place = (from_[known], owner[to[known]])
    shape = (len(alone), max(1, len(cores)))
    n_links = sparse.csr_array((np.ones(known.sum()), place), shape=shape)
    most = np.asarray(n_links.argmax(axis=1)).ravel()
    has_links = n_links.sum(axis=1) > 0
    owner[alone[has_links]] = most[has_links]
    return owner


def _tied(graph, core) -> np.ndarray:
    """Columns outside a core that are linked to it, at most as many as are large."""
    inside = np.zeros(graph.shape[0])
    inside[core] = 1.0
    n_links = graph.astype(bool) @ inside
    n_links[core] = 0.0
    tied = np.flatnonzero(n_links >= LEAST_TIES)
    most = max(LARGE, len(core))
    if len(tied) > most:
        tied = tied[np.argsort(-n_links[tied], kind="stable")[:most]]
    return tied
