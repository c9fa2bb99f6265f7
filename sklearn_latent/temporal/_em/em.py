"""Parameters of a latent dynamic Bayesian network by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._blocks import Blocks, LocalBlocks
from ..._climb import Ascent, climb
from .._classes.latent_class import Rows, fit_classes
from .._emission import (
    SMOOTHING,
    emission_log_prior,
    marginal_tables,
    tables_from,
)
from .._graph import TemporalGraph
from .._inference.inference import ChainCounts, ChainData, expectation
from .._model import MAX_JOINT_STATES, LatentDBN
from .._panels.panel import Panel
from .._tables import family_of, log_prior, normalized, outer_sum


@dataclass(frozen=True)
class EMOptions:
    """How EM runs.

    max_iter: maximum number of steps
    tol: gain per sequence at which it has converged
    max_joint_states: joint states of coupled latents up to which inference is exact
    smoothing: pseudo-count of each row of a table
    tied: whether a latent that depends on no past has one table for all slices
    patient: whether one step of little gain is not the end yet
    """

    max_iter: int = 200
    tol: float = 1e-4
    max_joint_states: int = MAX_JOINT_STATES
    smoothing: float = SMOOTHING
    tied: bool = False
    patient: bool = True


def fit_chain(
    panel: Panel,
    graph: TemporalGraph,
    cardinality,
    initial=None,
    options: EMOptions | None = None,
    *,
    random_state=None,
    report: Callable | None = None,
) -> Ascent:
    """Fit the tables of a network whose graph is known; the state is the network.

    `initial` is a network, or emission tables, or None: those of latent class models.
    """
    options = options or EMOptions()
    panel = panel.merged()
    cardinality = np.asarray(cardinality, dtype=int).reshape(-1)
    network = _first_network(panel, graph, cardinality, initial, options, random_state)
    return climb_chain(network, LocalBlocks([panel]), options, report)


def climb_chain(
    network: LatentDBN,
    blocks: Blocks,
    options: EMOptions,
    report: Callable | None = None,
) -> Ascent:
    """EM from a given network over blocks of sequences, wherever they are.

    Each step sends the network to the blocks, which send back expected counts; no
    sequence moves.
    """
    prepared = blocks.map(_PreparedBlock, network.graph.structure)
    if options.tied:
        network = replace_tables(network, **_tie(network))

    def expect(network):
        counts = prepared.sum(_expected_counts, network)
        prior = log_prior([*network.start, *network.transition], options.smoothing)
        prior += emission_log_prior(network.emission, options.smoothing)
        return counts.log_likelihood + prior, counts

    def maximize(network, counts):
        if options.tied:
            counts = replace(counts, **_tie(network, counts))
        return _maximize(network, counts, options.smoothing)

    return climb(
        expect,
        maximize,
        network,
        tol=options.tol * prepared.sum(_weight),
        max_iter=options.max_iter,
        patient=options.patient,
        accelerate=True,
        report=report,
    )


class _PreparedBlock:
    """Sequences of a block, and where factored inference of them ended last."""

    def __init__(self, panel: Panel, structure):
        self.data = ChainData.of(panel.codes, structure, panel.weights)
        self.fields: dict = {}

    def expected_counts(self, network: LatentDBN) -> ChainCounts:
        """E-step."""
        found = expectation(network, self.data, self.fields)
        self.fields = found.mean_fields
        return found.counts


def _expected_counts(block: _PreparedBlock, network) -> ChainCounts:
    return block.expected_counts(network)


def _weight(block: _PreparedBlock) -> float:
    return block.data.total


def replace_tables(network: LatentDBN, **tables) -> LatentDBN:
    """The same network with some of its tables replaced."""
    names = ("start", "transition", "emission")
    tables = {name: getattr(network, name) for name in names} | tables
    return LatentDBN(
        network.graph,
        network.cardinality,
        **tables,
        max_joint_states=network.max_joint_states,
    )


def _maximize(network: LatentDBN, counts: ChainCounts, smoothing: float) -> LatentDBN:
    """M-step: tables from expected counts."""
    return replace_tables(
        network,
        start=[normalized(count, smoothing) for count in counts.start],
        transition=[normalized(count, smoothing) for count in counts.transition],
        emission=tables_from(counts.emission, smoothing),
    )


def _tie(network: LatentDBN, tables=None) -> dict[str, list]:
    """Both tables of a latent without memory, or their counts, become their mean.

    Not the sum of counts: the prior is that of two tables.
    """
    tables = tables or network
    start, transition = list(tables.start), list(tables.transition)
    for j in np.flatnonzero(~network.graph.inter.any(axis=0)):
        start[j] = transition[j] = (start[j] + transition[j]) / 2
    return {"start": start, "transition": transition}


def _first_network(
    panel, graph, cardinality, initial, options, random_state
) -> LatentDBN:
    """First guess of all tables."""
    if isinstance(initial, LatentDBN):
        same = np.array_equal(initial.cardinality, cardinality)
        if same and initial.directed_graph == graph.directed():
            tables = initial.start, initial.transition, initial.emission
        else:
            tables = _from_emission(panel, graph, cardinality, initial.emission)
    elif initial is not None:
        tables = _from_emission(panel, graph, cardinality, list(initial))
    else:
        emission = _class_tables(panel, graph, cardinality, random_state)
        tables = _from_emission(panel, graph, cardinality, emission)
    return LatentDBN(
        graph, cardinality, *tables, max_joint_states=options.max_joint_states
    )


def _class_tables(panel: Panel, graph, cardinality, random_state) -> list:
    """Emission tables of each latent, as if slices and latents were independent."""
    emission = marginal_tables(panel)
    for j in range(graph.n_latents):
        features = graph.features_of(j)
        if len(features):
            rows = Rows.pooled(panel.of_features(features))
            model = fit_classes(rows, int(cardinality[j]), random_state=random_state)
            for f, table in zip(features, model.tables(rows), strict=True):
                emission[f] = table
    return emission


def _from_emission(panel: Panel, graph, cardinality, emission):
    """All tables; the others follow from what each slice says by itself."""
    data = ChainData.of(panel.codes, graph.structure, panel.weights)
    directed = graph.directed()
    states = []
    for j, patterns in enumerate(data.patterns):
        tables = [emission[f] for f in graph.features_of(j)]
        if not tables:
            n, n_slices = patterns.index.shape
            card = int(cardinality[j])
            states.append(np.full((n, n_slices, card), 1.0 / card))
            continue
        log = patterns.log_likelihood(tables)
        state = np.exp(log - log.max(axis=1, keepdims=True))
        states.append((state / state.sum(axis=1, keepdims=True))[patterns.index])
    start, transition = [], []
    for j in range(graph.n_latents):
        own = [states[i][:, :1] for i, _ in family_of(directed, j, later=False)]
        count = outer_sum(own, data.weights[:, :1])
        start.append(normalized(count, 1.0 + SMOOTHING))
        own = [
            states[i][:, 1:] if now else states[i][:, :-1]
            for i, now in family_of(directed, j, later=True)
        ]
        count = outer_sum(own, data.weights[:, 1:])
        transition.append(normalized(count, 1.0 + SMOOTHING))
    return start, transition, emission
