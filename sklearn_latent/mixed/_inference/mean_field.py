"""Factored inference where the joint states of coupled latents are too many.

Structured mean field: the posterior is approximated by independent chains, one per
latent, each exact in time, that see each other through expected log tables, as in
factorial hidden Markov models (Ghahramani and Jordan, 1997). The result is the best
such approximation near its start, and a lower bound of the log-likelihood.
"""

from __future__ import annotations

from math import prod

import numpy as np
from scipy.special import xlogy

from .._tables import family_of, outer_sum
from .chain import best_path
from .evidence import Evidence

# log(0) would turn an expectation into -inf times 0.
SMALLEST = 1e-300

# The smallest number above 0: sums that are even smaller are 0.
LEAST = 5e-324

# A sequence has settled when no probability moves by more than this in a sweep.
SETTLED = 1e-5
MAX_SWEEPS = 50

# Each sweep raises the bound, so EM need not wait for a start that it will leave. (With
# three it took 1.3 to 1.6 times as long on bfi and series of 200 slices, and ended in
# the same place.)
WARM_SWEEPS = 1

# Steps from which on products of two of them save time, and rows up to which they do.
LONG = 32
FEW = 16

# Share of a product below which digits may have been lost.
LOST = 1e-100


class MeanField:
    """Independent chains for the latents of one part of a network.

    network: the model
    latents: latents of the part
    evidence: what each slice says about each of them
    """

    def __init__(self, network, latents, evidence: Evidence):
        self.latents = [int(j) for j in latents]
        self.evidence = evidence
        n, self.n_slices = evidence.index[0].shape
        self.scale = evidence.total_scale(slice(0, n))
        self.log_evidence = {
            j: np.maximum(log, np.log(SMALLEST))[index]
            for j, log, index in zip(
                self.latents, evidence.log_likelihood, evidence.index, strict=True
            )
        }
        graph = network.directed_graph
        self.start, self.later = {}, {}
        for j in self.latents:
            self.start[j] = family_of(graph, j, later=False), _log(network.start[j])
            self.later[j] = family_of(graph, j, later=True), _log(network.transition[j])
        self.nodes: dict[int, np.ndarray] = {}
        self.pairs: dict[int, np.ndarray] = {}

    def fit(self, warm=None):
        """Update the chains in turn until every sequence has settled."""
        if warm is None:
            for j, log in self.log_evidence.items():
                node = np.exp(log)
                node /= node.sum(axis=2, keepdims=True)
                self.nodes[j] = node
                self.pairs[j] = node[:, :-1, :, None] * node[:, 1:, None, :]
        else:
            self.nodes = {j: node.copy() for j, node in warm[0].items()}
            self.pairs = {j: pair.copy() for j, pair in warm[1].items()}
        active = np.arange(len(self.scale))
        for _ in range(MAX_SWEEPS if warm is None else WARM_SWEEPS):
            moved = np.zeros(len(active))
            nodes = {j: node[active] for j, node in self.nodes.items()}
            pairs = {j: pair[active] for j, pair in self.pairs.items()}
            for j in self.latents:
                node, pair = _smooth(*self._potentials(j, active, nodes, pairs))
                change = np.abs(node - nodes[j]).max(axis=(1, 2), initial=0.0)
                moved = np.maximum(moved, change)
                nodes[j], pairs[j] = node, pair
                self.nodes[j][active], self.pairs[j][active] = node, pair
            # Each sequence stops by itself, so that it does not depend on the others.
            active = active[moved > SETTLED]
            if not len(active):
                break
        return self.nodes, self.pairs

    def states(self) -> list[np.ndarray]:
        """P(state) of each latent, (n, n_slices, cardinality)."""
        return [self.nodes[j] for j in self.latents]

    def bound(self) -> np.ndarray:
        """Lower bound of the log-likelihood of each sequence."""
        total = self.scale.copy()
        for j in self.latents:
            node, pair = self.nodes[j], self.pairs[j]
            total += (node * self.log_evidence[j]).sum(axis=(1, 2))
            # Entropy of the chain: that of the pairs less that of the inner nodes.
            total -= xlogy(pair, pair).sum(axis=(1, 2, 3))
            inner = node[:, 1:-1] if self.n_slices > 1 else node
            sign = 1.0 if self.n_slices > 1 else -1.0
            total += sign * xlogy(inner, inner).sum(axis=(1, 2))
            family, table = self.start[j]
            total += _contract(table, family, None, self._first(self.nodes))
            family, table = self.later[j]
            terms = _contract(table, family, None, self._steps(self.nodes, self.pairs))
            total += terms.reshape(len(total), -1).sum(axis=1)
        return total

    def most_probable(self):
        """Most probable path of each chain, and log P(all paths, sequence)."""
        found = []
        for j in self.latents:
            node = self.nodes[j]
            steps = _log(self.pairs[j]) - _log(node[:, :-1])[..., None]
            later = ((step, 0.0) for step in steps.swapaxes(0, 1))
            found.append(best_path(_log(node[:, 0]), later)[0])
        paths = np.stack(found, axis=2)
        return paths, self._log_joint(paths)

    def _log_joint(self, paths):
        """Evaluate log P(paths, sequence)."""
        place = {j: i for i, j in enumerate(self.latents)}
        total = self.scale.copy()
        for i, j in enumerate(self.latents):
            log = np.take_along_axis(self.log_evidence[j], paths[:, :, i, None], axis=2)
            total += log.sum(axis=(1, 2))
            family, table = self.start[j]
            total += table[tuple(paths[:, 0, place[k]] for k, _ in family)]
            family, table = self.later[j]
            now, before = paths[:, 1:], paths[:, :-1]
            states = [
                (now if is_now else before)[..., place[k]] for k, is_now in family
            ]
            total += table[tuple(states)].sum(axis=1)
        return total

    def _potentials(self, j, active, nodes, pairs):
        """Log potentials of the chain of latent `j`, given those of the others."""
        node = self.log_evidence[j][active].copy()
        card = node.shape[2]
        pair = np.zeros((len(active), self.n_slices - 1, card, card))
        for family, table in self.start.values():
            if (j, True) in family:
                node[:, 0] += _contract(table, family, j, self._first(nodes))
        for family, table in self.later.values():
            now, before = (j, True) in family, (j, False) in family
            if not (now or before):
                continue
            term = _contract(table, family, j, self._steps(nodes, pairs))
            part = node[:, 1:] if now else node[:, :-1]
            part = pair if now and before else part
            # A term without other latents is the same for all rows.
            part += term[0] if len(term) == 1 else term.reshape(part.shape)
        return node, pair

    @staticmethod
    def _first(nodes):
        """Function that gives the states of a latent in the first slice."""
        return lambda j, sides: nodes[j][:, 0]

    @staticmethod
    def _steps(nodes, pairs):
        """Function that gives the states of a latent in all pairs of slices."""

        def states(j, sides):
            if len(sides) == 2:
                pair = pairs[j]
                return pair.reshape(-1, *pair.shape[2:])
            node = nodes[j][:, 1:] if sides[0] else nodes[j][:, :-1]
            return node.reshape(-1, node.shape[2])

        return states


def first_counts(nodes, family, weights) -> np.ndarray:
    """Expected counts of some latents in the first slice."""
    return _count(family, MeanField._first(nodes), weights[:, 0])


def step_counts(nodes, pairs, family, weights) -> np.ndarray:
    """Expected counts of some latents in consecutive slices."""
    return _count(family, MeanField._steps(nodes, pairs), weights[:, 1:].ravel())


def _log(table):
    return np.log(np.maximum(table, SMALLEST))


def _contract(table, family, target, states):
    """Expect a log table over all latents but `target`, for each row of states.

    The result has the axes of the target: (n,), (n, card) or (n, card, card) with the
    slice before first; n is 1 if no other latent is in the family.
    """
    axis_of = {member: axis + 1 for axis, member in enumerate(family)}
    result, axes = table, [axis_of[member] for member in family]
    for j in dict.fromkeys(j for j, _ in family):
        if j == target:
            continue
        sides = [now for now in (False, True) if (j, now) in axis_of]
        own = [axis_of[j, now] for now in sides]
        left = [axis for axis in axes if axis and axis not in own]
        state = states(j, sides)
        if axes[0]:
            # The table is still the same for all rows: one matrix product.
            order = [axes.index(axis) for axis in (*own, *left)]
            flat = state.reshape(len(state), prod(state.shape[1:]))
            matrix = result.transpose(order).reshape(flat.shape[1], -1)
            shape = [result.shape[axes.index(axis)] for axis in left]
            result = (flat @ matrix).reshape(len(state), *shape)
        else:
            result = np.einsum(result, axes, state, [0, *own], [0, *left])
        axes = [0, *left]
    if axes[0] != 0:
        result, axes = result[None], [0, *axes]
    wanted = [axis_of[target, now] for now in (False, True) if (target, now) in axis_of]
    return result.transpose([0, *[axes.index(axis) for axis in wanted]])


def _count(family, states, weights):
    """Sum over rows of the weighted product of the states of a family."""
    axis_of = {member: axis for axis, member in enumerate(family)}
    parts, axes = [], []
    for j in dict.fromkeys(j for j, _ in family):
        sides = [now for now in (False, True) if (j, now) in axis_of]
        parts.append(states(j, sides))
        axes += [axis_of[j, now] for now in sides]
    counts = outer_sum(parts, weights)
    return counts.transpose(np.argsort(axes))


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
    begin = np.concatenate([_unit(node[:, 0]), np.full((n, card), 1.0 / card)])
    reached = _messages(begin, both_ways).swapaxes(0, 1)
    pair *= reached[:n, :-1, :, None]
    pair *= reached[n:, -2::-1, None]
    # Products with ones are quicker than sums over short axes.
    states = pair.reshape(-1, card) @ np.ones(card)
    states = states.reshape(n, n_slices - 1, card)
    totals = np.maximum(states @ np.ones(card), LEAST)[:, :, None]
    pair /= totals[:, :, :, None]
    return np.concatenate([states / totals, reached[:n, -1:]], axis=1), pair


def _messages(begin, steps) -> np.ndarray:
    """Rows that sum to 1, multiplied by one step after the other.

    begin (n, card), steps (n_steps, n, card, card) -> (n_steps + 1, n, card).
    """
    if len(steps) >= LONG and len(begin) <= FEW:
        found = _halved_messages(begin, steps)
        if found is not None:
            return found
    found = np.empty((len(steps) + 1, *begin.shape))
    found[0] = begin
    for t, step in enumerate(steps):
        found[t + 1] = _unit(np.matmul(found[t][:, None], step)[:, 0])
    return found


def _halved_messages(begin, steps) -> np.ndarray | None:
    """Messages of every second slice by products of steps, then those between.

    None if digits were lost: a product may know nothing of a state that matters.
    """
    n_twos = len(steps) // 2
    first, second = steps[: 2 * n_twos : 2], steps[1::2]
    products = np.matmul(first, second)
    products /= np.maximum(products.max(axis=(2, 3), keepdims=True), SMALLEST)
    found = np.empty((len(steps) + 1, *begin.shape))
    found[: 2 * n_twos + 1 : 2] = _messages(begin, products)
    sources = found[: len(steps) : 2, :, None]
    between = np.matmul(sources, steps[::2])[:, :, 0]
    reached = np.matmul(sources[:n_twos], products)
    if not min(between.sum(axis=2).min(), reached.sum(axis=3).min()) > LOST:
        return None
    found[1::2] = _unit(between)
    return found


def _unit(values):
    """Rows that sum to 1."""
    return values / np.maximum(values.sum(axis=-1, keepdims=True), LEAST)
