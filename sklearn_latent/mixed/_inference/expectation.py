"""Expected states and counts of a latent dynamic Bayesian network.

Parts of the graph that no edge joins are independent given their features, so each runs
alone: a tree of buckets within each slice, and a chain of the latents that time joins.
Both are exact. Where either is too wide, the chains of the latents are factored.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import prod

import numpy as np

from ..._core.warn import warn
from ...exceptions import ApproximateInferenceWarning
from .._tables import draw_categories, family_counts, family_of, joint_table
from .chain import (
    Chain,
    Forward,
    Steps,
    best_path,
    draw_path,
    filter_logs,
    possible,
    smooth_logs,
)
from .chain_data import ChainData, Evidence
from .factored import MeanField
from .tree import NEVER, SliceTree, careful_log

# Elements of the largest temporary array; several of half a megabyte stay in the cache.
CHUNK_ELEMENTS = 1 << 16


@dataclass(frozen=True)
class ChainCounts:
    """Result of the E-step over some sequences; instances add up.

    log_likelihood: of all of them together, weighted
    start, transition: expected counts in the shape of the tables
    emission: expected sufficient statistics of each feature, (n_states, n_statistics);
        of a categorical one counts in the shape of its table

    Transitions and emissions of several epochs follow each other.
    """

    log_likelihood: float
    start: list
    transition: list
    emission: list

    def __add__(self, other: ChainCounts) -> ChainCounts:
        tables = (
            [one + two for one, two in zip(mine, yours, strict=True)]
            for mine, yours in (
                (self.start, other.start),
                (self.transition, other.transition),
                (self.emission, other.emission),
            )
        )
        return ChainCounts(self.log_likelihood + other.log_likelihood, *tables)


@dataclass(frozen=True)
class Expectation:
    """What the sequences say about the latents.

    log_likelihood: of each sequence, (n,)
    states: P(state | sequence) of each latent, (n, n_slices, cardinality)
    counts: expected counts of all tables
    family_counts: function of a family of latents that gives its counts; None unless
        latents are together
    mean_fields: chains of the parts where inference was factored
    """

    log_likelihood: np.ndarray
    states: list
    counts: ChainCounts
    family_counts: Callable | None
    mean_fields: dict


class Part:
    """Latents of one part of a network, and sequences that tell of them."""

    def __init__(self, network, data: ChainData, tree: SliceTree):
        self.tree, self.evidence = tree, Evidence(network, data, tree.cards)
        self.place = {j: place for place, j in enumerate(tree.cards)}
        self.n, self.n_slices = data.weights.shape
        spans = list(enumerate(network._spans(self.n_slices)))
        # The tables of a slice, and the slices of each epoch that they are for.
        self.spans = [(-1, network.start, slice(0, 1))]
        for e, (own, span) in spans:
            later = slice(max(span.start, 1), span.stop)
            if later.start < later.stop:
                self.spans.append((e, own.transition, later))
        graph, core = network.directed_graph, tree.core
        start = joint_table(graph, network.start, core, later=False)
        steps, epoch = [], []
        for e, (own, span) in spans:
            table = joint_table(
                graph, own.transition, core, later=True, brief=not tree.together
            )
            self.past = table.shape[: len(core)]
            places = np.arange(prod(self.past)).reshape(self.past)
            rows = np.broadcast_to(places, start.shape).ravel()
            steps.append(Steps(table.reshape(-1, start.size), rows))
            epoch += [e] * (span.stop - span.start)
        self.chain = Chain(start.ravel(), steps, epoch)

    def chunks(self) -> list[slice]:
        """Slices of rows whose temporary arrays stay small."""
        size = max(1, CHUNK_ELEMENTS // (self.n_slices * self.tree.width))
        return [slice(i, min(i + size, self.n)) for i in range(0, self.n, size)]

    def gather(self, rows, mode: str = "sum") -> Gathered:
        """What the slices of some sequences say, as `SliceTree.up` takes it."""
        tree, evidence, log = self.tree, self.evidence, mode != "sum"
        combine = np.add if log else np.multiply
        whole, core = slice(0, self.n_slices), np.full((1, 1), 0.0 if log else 1.0)
        for j, joint in tree.places.items():
            own = evidence.states(self.place[j], rows, whole, log, joint)
            core = combine(core, own, out=own)
        scale = evidence.total_scale(rows)
        shape = self.n_slices, len(scale), tree.n_states
        core = np.broadcast_to(core, (prod(shape[:2]), tree.n_states))
        found = Gathered(core.reshape(shape), scale)
        for _, tables, span in self.spans if tree.buckets else ():
            below = {
                one.latent: evidence.states(self.place[one.latent], rows, span, log).T
                for one in tree.buckets
            }
            if log:
                below = {j: np.maximum(own, NEVER) for j, own in below.items()}
            found.add(tree, span, tree.up(tables, below, mode), combine)
        if log:
            found.core = np.maximum(found.core, NEVER)
        return found

    def unseen(self, tables) -> dict[int, np.ndarray]:
        """P(state | joint state of the core) of each latent in a slice to come."""
        tree = self.tree
        nothing = {j: np.ones((card, 1)) for j, card in tree.cards.items()}
        core = np.eye(tree.n_states)
        return tree.states(core, tree.down(tree.up(tables, nothing).shares, core))

    def beliefs(self, shares: list, core) -> tuple[list, dict[int, np.ndarray]]:
        """P(states) of buckets by span, and P(state) of each latent.

        core: joint states, (n_slices, n, n_states); those of latents are (n, n_slices,
        n_states)
        """
        spans = [span for *_, span in self.spans] if shares else [slice(None)]
        beliefs, found = [], []
        for span, own in zip(spans, shares or [[]], strict=True):
            flat = core[span].reshape(-1, core.shape[2])
            beliefs.append(self.tree.down(own, flat))
            found.append(self.tree.states(flat, beliefs[-1]))
        shape = *core.shape[:2], -1
        parts = {j: [one[j] for one in found] for j in self.tree.cards}
        return beliefs, {
            j: np.concatenate(own).reshape(shape).swapaxes(0, 1)
            for j, own in parts.items()
        }

    def filtered(self, rows) -> tuple[Gathered, np.ndarray, np.ndarray]:
        """What slices say, and joint states of the core given the past, by slice.

        Filtered and predicted, (n_slices, n, n_states).
        """
        found = self.gather(rows, "log")
        return found, *filter_logs(self.chain, found.core)

    def drawn(self, rng) -> dict[int, np.ndarray]:
        """States of each latent, drawn given the sequences, (n_slices, n)."""
        found, filtered, _ = self.filtered(slice(0, self.n))
        path = draw_path(self.chain, filtered, lambda rows: draw_categories(rows, rng))
        return self._assigned(found, path, lambda rows: draw_categories(rows, rng))

    def most_probable(self, rows) -> tuple[dict[int, np.ndarray], np.ndarray]:
        """Best states of each latent together, (n_slices, n), and their log."""
        found = self.gather(rows, "max")
        logs = [careful_log(steps.whole) for steps in self.chain.steps]
        later = (
            (logs[e], log)
            for e, log in zip(self.chain.epoch[1:], found.core[1:], strict=True)
        )
        first = careful_log(self.chain.start) + found.core[0]
        path, best = best_path(first, later)
        states = self._assigned(found, path, lambda rows: rows.argmax(axis=1))
        return states, possible(best + found.scale)

    def _assigned(self, found: Gathered, path, pick) -> dict[int, np.ndarray]:
        """States of all latents, given joint states of the core, (n_slices, n)."""
        states = {j: own[path] for j, own in self.tree.places.items()}
        for one in self.tree.buckets:
            states[one.latent] = np.zeros(path.shape, dtype=np.intp)
        spans = [span for *_, span in self.spans]
        for span, shares in zip(spans, found.shares, strict=False):
            above = {j: states[j][span].ravel() for j in self.tree.core}
            for j, own in self.tree.assign(shares, above, pick).items():
                states[j][span] = own.reshape(states[j][span].shape)
        return states


@dataclass
class Gathered:
    """What the slices of some sequences say.

    core: of joint states of the core, scaled, (n_slices, n, n_states)
    scale: logarithm of what was taken off, (n,)
    shares: of the buckets, by span
    lost: sequences of which digits were lost, (n,)
    """

    core: np.ndarray
    scale: np.ndarray
    shares: list = field(default_factory=list)
    lost: np.ndarray | bool = False

    def add(self, tree: SliceTree, span: slice, found, combine) -> None:
        """Add what the buckets of some slices say."""
        n = len(self.scale)
        self.core = self.core.copy()
        for scope, message in found.core:
            sizes = [tree.cards[j] for j in scope]
            own = message.reshape(prod(sizes), -1)
            if scope:
                own = own[np.ravel_multi_index([tree.places[j] for j in scope], sizes)]
            own = own.T.reshape(-1, n, own.shape[0])
            self.core[span] = combine(self.core[span], own)
        self.scale = self.scale + found.scale.reshape(-1, n).sum(axis=0)
        self.lost = self.lost | found.lost.reshape(-1, n).any(axis=0)
        self.shares.append(found.shares)


class _Sums:
    """Expected states and counts of a part, collected over rows."""

    def __init__(self, part: Part, weights):
        self.part, self.weights = part, weights
        tree, shape = part.tree, weights.shape
        self.log_likelihood = np.empty(len(weights))
        self.states = {j: np.empty((*shape, card)) for j, card in tree.cards.items()}
        self.first = np.zeros(tree.n_states)
        self.pairs: np.ndarray = np.zeros(1)
        # Counts of the latents outside the core, by epoch; -1 is the first slice.
        self.outside: dict[tuple[int, int], np.ndarray] = {}

    def run(self) -> _Sums:
        """Go through all sequences; those of which digits are lost twice."""
        for rows in self.part.chunks():
            found = self.part.gather(rows)
            forward = Forward(self.part.chain, found.core)
            smoothed, ratio = forward.backward()
            weights = self.weights[rows].T.copy()
            low = np.flatnonzero(found.lost | forward.lost)
            # What was lost is not a number.
            ratio[:, low] = forward.filtered[:, low] = smoothed[:, low] = 0.0
            weights[:, low] = 0.0
            pairs = self.part.chain.pairs(forward.filtered, ratio, weights)
            value = forward.log_likelihood + found.scale
            self._add(rows, found, value, smoothed, pairs, weights)
            size = max(1, CHUNK_ELEMENTS // self.part.tree.n_states**2)
            for some in np.split(low, range(size, len(low), size)) if len(low) else ():
                self._run_logs(rows.start + some)
        return self

    def _run_logs(self, rows) -> None:
        """The same in logarithms."""
        found, weights = self.part.gather(rows, "log"), self.weights[rows].T
        value, smoothed, pairs = smooth_logs(self.part.chain, found.core, weights)
        value = possible(value + found.scale)
        self._add(rows, found, value, smoothed, pairs, weights)

    def _add(self, rows, found: Gathered, value, smoothed, pairs, weights) -> None:
        """Add what was found of some sequences."""
        part = self.part
        self.log_likelihood[rows] = value
        self.first += weights[0] @ smoothed[0]
        self.pairs = self.pairs + pairs
        beliefs, states = part.beliefs(found.shares, smoothed)
        for j, state in states.items():
            self.states[j][rows] = state
        for (e, _, span), belief in zip(part.spans, beliefs, strict=False):
            for j, own in part.tree.counts(belief, weights[span].ravel()).items():
                self.outside[e, j] = self.outside.get((e, j), 0.0) + own

    def counts(self, later: bool, j: int, e: int = 0) -> np.ndarray:
        """Expected counts of the table of a latent in an epoch."""
        part = self.part
        if j not in part.tree.core:
            return self.outside.get((e if later else -1, j), np.zeros(1))
        family = family_of(part.tree.graph, j, later=later)
        return self.family_counts(family, later, e)

    def family_counts(self, family, later: bool, e: int = 0) -> np.ndarray:
        """Expected counts of some latents of the core."""
        tree = self.part.tree
        cards = [tree.cards[j] for j in tree.core]
        joint = self.first.reshape(cards)
        if later:
            joint = self.pairs[e].reshape(*self.part.past, *cards)
        return family_counts(joint, tree.core, family)


def expectation(
    network, data: ChainData, mean_fields=None, *, together: bool = False
) -> Expectation:
    """E-step: states of all latents and expected counts of all tables.

    `together`: whether all latents make one chain, so that any of them have counts
    """
    n_latents = network.graph.n_latents
    n_epochs = len(network._spans(data.values.shape[1]))
    states: list = [None] * n_latents
    start: list = [None] * n_latents
    transition: list = [None] * (n_epochs * n_latents)
    log_likelihood = data.alone_log_likelihood(network)
    fields, families = {}, None
    found: _Sums | MeanField
    for number, tree in enumerate(network._trees(together)):
        if tree.width <= network.max_joint_states or len(tree.cards) == 1:
            found = _Sums(Part(network, data, tree), data.weights).run()
        else:
            field = MeanField(network, data, tree)
            found = field.fit((mean_fields or {}).get(number))
            fields[number] = field.chains
        families = found.family_counts
        log_likelihood = log_likelihood + found.log_likelihood
        for j in tree.cards:
            states[j] = found.states[j]
            start[j] = found.counts(False, j)
            for e in range(n_epochs):
                steps = found.counts(True, j, e)
                # Of a single slice there are no counts of steps.
                shape = network.transition[j].shape
                transition[e * n_latents + j] = np.broadcast_to(steps, shape)
    weights = data.of_sequences
    # The model may rule out a sequence that does not count.
    seen = weights > 0
    total = float(weights[seen] @ log_likelihood[seen])
    emission = data.emission_statistics(network, states)
    counts = ChainCounts(total, start, transition, emission)
    return Expectation(
        log_likelihood, states, counts, families if together else None, fields
    )


def sequence_log_likelihood(network, data: ChainData) -> np.ndarray:
    """Log-likelihood of each sequence, by the forward pass alone where exact."""
    total = data.alone_log_likelihood(network)
    for tree in network._trees():
        if not network.is_exact(list(tree.cards)):
            total = total + MeanField(network, data, tree).fit().log_likelihood
            continue
        part = Part(network, data, tree)
        for rows in part.chunks():
            found = part.gather(rows)
            forward = Forward(part.chain, found.core)
            value = forward.log_likelihood + found.scale
            low = np.flatnonzero(found.lost | forward.lost)
            if len(low):
                careful = part.gather(rows.start + low, "log")
                nothing = np.zeros(careful.core.shape[:2])
                again, *_ = smooth_logs(part.chain, careful.core, nothing)
                value[low] = possible(again + careful.scale)
            total[rows] += value
    return total


def most_probable_states(network, data: ChainData):
    """Most probable path of all latents, (n, n_slices, n_latents), and its log."""
    n, n_slices, _ = data.values.shape
    paths = np.zeros((n, n_slices, network.graph.n_latents), dtype=np.intp)
    total = data.alone_log_likelihood(network)
    for tree in network._trees():
        if network.is_exact(list(tree.cards)):
            part = Part(network, data, tree)
            for rows in part.chunks():
                states, best = part.most_probable(rows)
                total[rows] += best
                for j, own in states.items():
                    paths[rows, :, j] = own.T
        else:
            states, best = MeanField(network, data, tree).fit().most_probable()
            total = total + best
            for j, own in states.items():
                paths[:, :, j] = own
    return paths, total


def warn_if_approximate(network, *, together: bool = False) -> None:
    """Say so if latents that are kept together have too many states."""
    widths = [
        tree.width
        for tree in network._trees(together)
        if tree.width > network.max_joint_states and len(tree.cards) > 1
    ]
    if widths:
        warn(
            f"Latents that depend on each other have {max(widths):,} joint states, "
            f"more than max_joint_states={network.max_joint_states}, so inference is "
            "factored: each latent keeps its own chain and sees the others through "
            "their expected states (structured mean field). Likelihoods are lower "
            "bounds; raise max_joint_states for exact ones.",
            ApproximateInferenceWarning,
        )
