"""From groups of features to a graph: counts of latents, edges, and their test."""

from __future__ import annotations

import numpy as np

from ..._core.climb import Ascent, climb
from ..._core.graphs import slice_equivalence_class
from .._em.chain_em import EMOptions, fit_chain, slice_patterns
from .._emissions.emission import SMOOTHING
from .._graph import TemporalGraph, complete_graph
from .._measurement.groups import (
    COMPARED_GAIN,
    ChainFit,
    Measurement,
    SearchOptions,
    compared_chain,
    one_latent_bic,
)
from .._measurement.measurement import MeasurementSearch
from .._model import LatentDBN
from .._panels.panel import Panel, is_known
from .._tables import family_of, normalized
from .edges import AssignedCounts, JointCounts, best_edges

# Expected counts look more certain than they are, because latents are guessed. An edge
# whose evidence is less than this many penalties is tested on the sequences themselves.
DOUBT = 3.0

# Products of a step of EM of that chain; more take long, and where rows are many,
# states of single slices have found the edges of random networks as well.
MAX_PRODUCTS = 5e8

# Steps of EM of the chain in which every latent depends on all others.
COMPLETE_ITER = 100

# Steps of EM for the shares of states, given tables.
SHARES_ITER = 50


def latent_counts(panel: Panel, measurement: Measurement, options: SearchOptions):
    """Counts of latents without assuming edges, and emission tables of all features."""
    emission = measurement.emission(panel)
    cards = measurement.cardinality
    if not len(cards):
        return JointCounts(np.zeros(()), 0), emission
    if not is_small(panel, measurement, options):
        return assigned_counts(panel, measurement), emission
    em = EMOptions(
        COMPLETE_ITER,
        # Of few long sequences a gain per sequence may be very little in all.
        tol=max(EMOptions.tol, COMPARED_GAIN / max(float(panel.weights.sum()), 1.0)),
        max_joint_states=options.max_joint_states,
        patient=False,
    )
    graph = complete_graph(measurement.structure)
    ascent = fit_chain(panel, graph, cards, emission, em)
    # The family of the last latent is all latents, of both slices.
    counts = ascent.statistics
    joint = (counts.start if panel.n_slices == 1 else counts.transition)[-1]
    return JointCounts(joint, len(cards)), list(ascent.state.emission)


def is_small(panel: Panel, measurement: Measurement, options: SearchOptions) -> bool:
    """Whether EM of the chain of all latents takes little time."""
    n_joint = np.prod(measurement.cardinality.astype(float))
    n_rows = panel.codes.shape[0] * panel.codes.shape[1]
    return bool(
        n_joint <= options.max_joint_states and n_joint**2 * n_rows <= MAX_PRODUCTS
    )


def assigned_counts(panel: Panel, measurement: Measurement) -> AssignedCounts:
    """States of each slice by itself, and how often they are wrong."""
    states = np.full((*panel.codes.shape[:2], len(measurement.groups)), -1)
    confusions = []
    for j, (group, tables) in enumerate(
        zip(measurement.groups, measurement.tables, strict=True)
    ):
        patterns, emissions = slice_patterns(panel, group, tables)
        mass = np.bincount(
            patterns.index.ravel(),
            np.repeat(panel.weights, panel.n_slices),
            minlength=len(patterns.values),
        )
        posterior = _shares(patterns.log_likelihood(emissions), mass)
        suggested = posterior.argmax(axis=1)
        n_states = posterior.shape[1]
        counts = np.full((n_states, n_states), 1e-3)
        for state in range(n_states):
            chosen = suggested == state
            counts[:, state] += mass[chosen] @ posterior[chosen]
        confusions.append(counts / counts.sum(axis=1, keepdims=True))
        known = is_known(patterns.values).any(axis=1)
        states[:, :, j] = np.where(known, suggested, -1)[patterns.index]
    return AssignedCounts(states, confusions, panel.weights)


def _shares(logs, mass) -> np.ndarray:
    """P(state | pattern) from logs of P(pattern | state); shares of states by EM."""
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    mass = mass / mass.sum()

    def expect(prior):
        joint = likelihood * prior
        total = joint.sum(axis=1, keepdims=True)
        return mass @ np.log(total[:, 0]), joint / total

    start = np.full(logs.shape[1], 1.0 / logs.shape[1])
    return climb(
        expect,
        lambda _, posterior: mass @ posterior,
        start,
        tol=1e-6,
        max_iter=SHARES_ITER,
        patient=False,
    ).statistics


def learn_graph(
    panel: Panel, measurement: Measurement, options: SearchOptions
) -> tuple[TemporalGraph, list]:
    """Find the edges between latents: graph, emission tables to start EM from."""
    counts, emission = latent_counts(panel, measurement, options)
    intra, inter, doubtful = best_edges(counts, DOUBT)
    if panel.n_slices == 1:
        inter = np.zeros_like(inter)
    structure = measurement.structure
    graph = TemporalGraph(structure, intra, inter)
    if isinstance(counts, JointCounts) and doubtful:
        bic, ascent = compared_chain(panel, graph, emission)
        for kind, parent, child in doubtful:
            graph, start = _without_edge(ascent, kind, parent, child)
            trial = compared_chain(panel, graph, start)
            if trial[0] > bic:
                bic, ascent = trial
        graph, emission = ascent.state.graph, list(ascent.state.emission)
    return pattern(graph), emission


def better_graph(
    panel: Panel,
    measurement: Measurement,
    graph: TemporalGraph,
    emission: list,
    rival: TemporalGraph,
) -> tuple[TemporalGraph, list]:
    """Of a graph of sequences and one of slices, that with the better BIC.

    EM of all edges at once may end with states of one latent in another. (Of 48 random
    panels, SHD falls in four and rises in none.)
    """
    same_past = np.array_equal(graph.inter, rival.inter)
    if same_past and np.array_equal(graph.intra, pattern(rival).intra):
        return graph, emission
    bic, _ = compared_chain(panel, graph.directed(), emission)
    other, ascent = compared_chain(panel, rival, measurement.emission(panel))
    if other <= bic:
        return graph, emission
    return pattern(rival), list(ascent.state.emission)


def pattern(graph: TemporalGraph) -> TemporalGraph:
    """The graph with undirected edges where the score knows no direction."""
    intra = slice_equivalence_class(graph.intra, graph.inter)
    return TemporalGraph(graph.structure, intra, graph.inter)


def _without_edge(ascent: Ascent, kind: str, parent: int, child: int):
    """A graph without one of its edges, and a network of it to start EM from."""
    network, counts = ascent.state, ascent.statistics
    graph = network.graph
    edges = {"intra": graph.intra.copy(), "inter": graph.inter.copy()}
    edges[kind][parent, child] = False
    tables = {"start": list(network.start), "transition": list(network.transition)}
    for name, found in tables.items():
        family = family_of(graph, child, later=name == "transition")
        if (parent, kind == "intra") in family:
            axis = family.index((parent, kind == "intra"))
            count = getattr(counts, name)[child].sum(axis=axis)
            found[child] = normalized(count, SMOOTHING)
    graph = TemporalGraph(graph.structure, **edges)
    start = LatentDBN(
        graph,
        network.cardinality,
        **tables,
        emission=network.emission,
        max_joint_states=network.max_joint_states,
    )
    return graph, start


def review_by_chain(
    panel: Panel, search: MeasurementSearch, groups, options: SearchOptions
) -> list[tuple[int, ...]]:
    """Split groups whose halves move differently, by BIC of their chains.

    Slices alone do not know how latents move. (Joining groups that move alike, as well,
    merged true latents: of 32 panels each of 400 and 1,000 sequences
    the mean SHD was 1.7 and 0.9 with it, 1.3 and 0.2 without.)
    """
    review = _Review(panel, search, options)
    current = [part for group in groups for part in review.split(frozenset(group))]
    return sorted(tuple(sorted(int(i) for i in group)) for group in current)


class _Review:
    def __init__(self, panel, search, options):
        self.panel = panel
        self.search = search
        self.options = options
        self._gains: dict[frozenset, float] = {}
        self._ones: dict[frozenset, ChainFit] = {}

    def split(self, group: frozenset) -> list[frozenset]:
        """Split a group whose chain is better in two than slices are in one."""
        one = self.search.one_class(group).bic
        halves = self.search.best_halves(group)
        gains = [
            gain + self.gain_of_two(first, second, gain)
            for first, second, gain in ((*pair[:2], pair[2] - one) for pair in halves)
        ]
        if max(gains, default=0.0) <= 0:
            return [group]
        return list(halves[int(np.argmax(gains))][:2])

    def gain_of_two(self, first: frozenset, second: frozenset, lead: float) -> float:
        """BIC of the chain of two latents less that of one.

        lead: by how much two are better by slices; EM ends early if both together will
            hardly speak for two
        """
        key = frozenset([first, second])
        if key not in self._gains:
            one = self._one(first | second)
            rival = one._replace(bic=one.bic - lead)
            self._gains[key] = self._two(first, second, rival) - one.bic
        return self._gains[key]

    def _one(self, group: frozenset) -> ChainFit:
        """The chain of one latent, best over numbers of states."""
        if group not in self._ones:
            self._ones[group] = self._best_chain(group)
        return self._ones[group]

    def _best_chain(self, group: frozenset) -> ChainFit:
        rows = self.search.rows_of(group)
        panel = self.panel.of_features(sorted(group))
        models = self.search.models_of(group)
        best = max(range(len(models)), key=lambda k: models[k].bic)
        # From the largest on: chains show more states than slices, and the BIC has one
        # peak in practice.
        near = [k for k in (best + 1, best, best - 1) if 1 <= k < len(models)]
        tables = [models[k].tables(rows) for k in near or [0]]
        found = one_latent_bic(panel, tables[0])
        for smaller in tables[1:]:
            trial = one_latent_bic(panel, smaller, found)
            if trial.bic <= found.bic:
                break
            found = trial
        return found

    def _two(self, first: frozenset, second: frozenset, rival: ChainFit) -> float:
        """BIC of the chain of two latents with the best edges."""
        model = self.search.two_classes(first, second)
        if min(second) < min(first):
            first, second = second, first
        sizes = model.joint.shape
        if min(sizes) < 2 or model.joint.size > self.options.max_joint_states:
            return -np.inf
        both = sorted(first | second)
        groups = [
            tuple(both.index(i) for i in sorted(group)) for group in (first, second)
        ]
        tables = [
            self.search.rows_of(group).layout.split(emission)
            for group, emission in ((first, model.first), (second, model.second))
        ]
        measurement = Measurement(groups, tables, len(both))
        panel = self.panel.of_features(both)
        intra, inter, _ = best_edges(assigned_counts(panel, measurement))
        inter |= np.eye(2, dtype=bool)
        graph = TemporalGraph(measurement.structure, intra, inter)
        return compared_chain(panel, graph, measurement.emission(panel), rival)[0]
