"""Factored inference where the joint states of coupled latents are too many.

Structured mean field: the posterior is approximated by independent chains, one per
latent, each exact in time, that see each other through expected log tables, as in
factorial hidden Markov models (Ghahramani and Jordan, 1997). The result is the best
such approximation near its start, and a lower bound of the log-likelihood.
"""

from __future__ import annotations

import numpy as np
from scipy.special import xlogy

from .._tables import family_of, weighted_products
from .chain import best_path, messages, unit
from .chain_data import ChainData, Evidence
from .tree import SliceTree

# A sequence has settled when no probability moves by more than this in a sweep.
SETTLED = 1e-5
MAX_SWEEPS = 50

# Each sweep raises the bound, so EM need not wait for a start that it will leave. (With
# three it took 1.3 to 1.6 times as long on bfi and series of 200 slices, and ended in
# the same place.)
WARM_SWEEPS = 1


class MeanField:
    """Independent chains for the latents of one part of a network.

    chains: P(states of a slice), (n, n_slices, card), and of consecutive slices, (n,
        n_slices - 1, card, card), by latent
    """

    def __init__(self, network, data: ChainData, tree: SliceTree):
        evidence = Evidence(network, data, tree.cards)
        self.weights = data.weights
        self.n, self.n_slices = data.weights.shape
        self.scale = evidence.total_scale(slice(0, self.n))
        whole = slice(0, self.n), slice(0, self.n_slices)
        self.evidence = {
            j: _floored(evidence.states(place, *whole, log=True))
            .reshape(self.n_slices, self.n, -1)
            .swapaxes(0, 1)
            for place, j in enumerate(tree.cards)
        }
        graph = network.directed_graph
        # Log tables, with their families; those of the first slice first.
        self.tables = [
            (later, family_of(graph, j, later=later), _log(tables[j]))
            for later, tables in ((False, network.start), (True, network.transition))
            for j in tree.cards
        ]
        self.graph = graph
        self.chains: tuple[dict, dict] = {}, {}

    def fit(self, warm=()) -> MeanField:
        """Update the chains in turn until every sequence has settled."""
        nodes, pairs = (
            ({}, {})
            if not warm
            else ({j: own.copy() for j, own in part.items()} for part in warm)
        )
        for j, log in self.evidence.items() if not warm else ():
            nodes[j] = node = unit(np.exp(log))
            pairs[j] = node[:, :-1, :, None] * node[:, 1:, None, :]
        active = np.arange(self.n)
        for _ in range(WARM_SWEEPS if warm else MAX_SWEEPS):
            moved = np.zeros(len(active))
            some, both = (
                {j: own[active] for j, own in part.items()} for part in (nodes, pairs)
            )
            for j in self.evidence:
                node, pair = _smooth(*self._potentials(j, active, some, both))
                change = np.abs(node - some[j]).max(axis=(1, 2), initial=0.0)
                moved = np.maximum(moved, change)
                some[j], both[j] = node, pair
                nodes[j][active], pairs[j][active] = node, pair
            # Each sequence stops by itself, so that it does not depend on the others.
            active = active[moved > SETTLED]
            if not len(active):
                break
        self.chains = nodes, pairs
        return self

    @property
    def states(self) -> dict[int, np.ndarray]:
        """P(state) of each latent, (n, n_slices, cardinality)."""
        return self.chains[0]

    @property
    def log_likelihood(self) -> np.ndarray:
        """Lower bound of the log-likelihood of each sequence."""
        total, (nodes, pairs) = self.scale.copy(), self.chains
        for j, log in self.evidence.items():
            node, pair = nodes[j], pairs[j]
            total += (node * log).sum(axis=(1, 2))
            # Entropy of the chain: that of the pairs less that of the inner nodes.
            total -= xlogy(pair, pair).sum(axis=(1, 2, 3))
            inner = node[:, 1:-1] if self.n_slices > 1 else node
            entropy = xlogy(inner, inner).sum(axis=(1, 2))
            total += entropy if self.n_slices > 1 else -entropy
        for later, family, table in self.tables:
            term = _contract(table, family, None, later, nodes, pairs)
            total += term.reshape(self.n, -1).sum(axis=1)
        return total

    def most_probable(self) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Most probable path of each chain, and log P(all paths, sequence)."""
        paths = {}
        for j, node in self.chains[0].items():
            steps = _log(self.chains[1][j]) - _log(node[:, :-1])[..., None]
            onward = ((step, 0.0) for step in steps.swapaxes(0, 1))
            paths[j] = best_path(_log(node[:, 0]), onward)[0].T
        total = self.scale.copy()
        for j, log in self.evidence.items():
            total += np.take_along_axis(log, paths[j][..., None], axis=2).sum((1, 2))
        for later, family, table in self.tables:
            slices = slice(1, None) if later else slice(0, 1)
            before = slice(None, -1)
            own = (paths[i][:, slices if now else before] for i, now in family)
            total += table[tuple(own)].sum(axis=1)
        return paths, total

    def counts(self, later: bool, j: int, e: int = 0) -> np.ndarray:
        """Expected counts of the table of a latent."""
        return self.family_counts(family_of(self.graph, j, later=later), later)

    def family_counts(self, family, later: bool, e: int = 0) -> np.ndarray:
        """Expected counts of some latents."""
        operands = _states(family, None, later, *self.chains)
        weights = self.weights[:, 1:] if later else self.weights[:, :1]
        axes = [axis for own in operands[1::2] for axis in own[1:]]
        found = weighted_products(operands[::2], weights.ravel())
        return found.transpose(np.argsort(axes))

    def _potentials(self, j, active, nodes, pairs):
        """Log potentials of the chain of a latent, given the other chains."""
        node = self.evidence[j][active]
        card = node.shape[2]
        pair = np.zeros((len(active), self.n_slices - 1, card, card))
        for later, family, table in self.tables:
            now, before = (j, True) in family, (j, False) in family
            if not (now or before):
                continue
            term = _contract(table, family, j, later, nodes, pairs)
            if not later:
                node[:, 0] += term
                continue
            part = node[:, 1:] if now else node[:, :-1]
            part = pair if now and before else part
            # A term without other latents is the same for all rows.
            part += term if len(term) == 1 else term.reshape(part.shape)
        return node, pair


def _floored(log):
    """Logarithms that may be multiplied by 0."""
    return np.maximum(log, np.log(1e-300))


def _log(table):
    return np.log(np.maximum(table, 1e-300))


def _states(family, target, later, nodes, pairs) -> list:
    """States of the latents of a family but one, as operands of `einsum`.

    Axis 0 is that of the rows: sequences, or their steps.
    """
    axis_of = {member: axis for axis, member in enumerate(family, start=1)}
    operands: list = []
    for j in dict.fromkeys(j for j, _ in family if j != target):
        sides = [now for now in (False, True) if (j, now) in axis_of]
        if len(sides) == 2:
            own = pairs[j]
        elif later:
            own = nodes[j][:, 1:] if sides[0] else nodes[j][:, :-1]
        else:
            own = nodes[j][:, :1]
        shape = own.shape[2:]
        operands += [own.reshape(-1, *shape), [0, *(axis_of[j, now] for now in sides)]]
    return operands


def _contract(table, family, target, later, nodes, pairs):
    """Expect a log table over all latents but `target`, for each row of states.

    The result has the axes of the target: (n,), (n, card) or (n, card, card) with the
    slice before first; n is 1 if no other latent is in the family.
    """
    operands = _states(family, target, later, nodes, pairs)
    axes = list(range(1, len(family) + 1))
    wanted = [
        axis
        for side in (False, True)
        for axis, member in enumerate(family, start=1)
        if member == (target, side)
    ]
    if not operands:
        return np.einsum(table, axes, wanted)[None]
    return np.einsum(table, axes, *operands, [0, *wanted], optimize=True)


def _smooth(node, pair):
    """States and pairs of chains with potentials of their own in every slice."""
    n, n_slices, card = node.shape
    node = np.exp(node - node.max(axis=2, keepdims=True))
    pair = pair - pair.max(axis=(2, 3), keepdims=True, initial=-np.inf)
    pair = np.multiply(np.exp(pair, out=pair), node[:, 1:, None], out=pair)
    # Forward and backward are the same sums, so both ways run side by side. Slices come
    # first there: they are what is looped over. All else keeps the order of memory,
    # which takes half the time.
    both_ways = np.empty((n_slices - 1, 2 * n, card, card))
    both_ways[:, :n] = pair.swapaxes(0, 1)
    both_ways[:, n:] = pair[:, ::-1].swapaxes(0, 1).swapaxes(2, 3)
    begin = np.concatenate([unit(node[:, 0]), np.full((n, card), 1.0 / card)])
    reached = messages(begin, both_ways).swapaxes(0, 1)
    pair *= reached[:n, :-1, :, None]
    pair *= reached[n:, -2::-1, None]
    # Products with ones are quicker than sums over short axes.
    states = (pair.reshape(-1, card) @ np.ones(card)).reshape(n, n_slices - 1, card)
    totals = np.maximum(states @ np.ones(card), 5e-324)[:, :, None]
    pair /= totals[:, :, :, None]
    return np.concatenate([states / totals, reached[:n, -1:]], axis=1), pair
