"""Tables of a latent dynamic Bayesian network by EM: where it starts, and its steps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..._core.climb import Ascent, climb, is_hopeless
from ..._tables.blocks import Blocks, LocalBlocks
from .._emissions.emission import SMOOTHING, Emission
from .._emissions.kinds import KINDS, as_emission, column_of, marginal_tables
from .._graph import TemporalGraph
from .._hidden_classes import Rows, fit_classes
from .._inference.chain_data import ChainData, Patterns
from .._inference.expectation import ChainCounts, expectation
from .._latent_dbn import MAX_JOINT_STATES, LatentDBN
from .._panels.panel import Panel
from .._tables import family_of, log_prior, normalized, weighted_products


@dataclass(frozen=True)
class EMOptions:
    """How EM runs.

    max_iter: maximum number of steps
    tol: gain per sequence at which it has converged
    max_joint_states: joint states of coupled latents up to which inference is exact
    smoothing: pseudo-count of each row of a table
    tied: whether a latent that depends on no past has one table for all slices
    patient: whether one step of little gain is not the end yet
    beat: EM ends early if it has passed the first of two log-likelihoods and will
        hardly reach the second
    """

    max_iter: int = 200
    tol: float = 1e-4
    max_joint_states: int = MAX_JOINT_STATES
    smoothing: float = SMOOTHING
    tied: bool = False
    patient: bool = True
    beat: tuple[float, float] = (-np.inf, -np.inf)


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

    `initial` is a network, or emissions, or None: those of latent class models. A table
    is one of categories or bins, whatever kind of emission the feature has.
    """
    options = options or EMOptions()
    panel = panel.merged()
    most = options.max_joint_states
    network = first_network(panel, graph, cardinality, initial, random_state, most)
    return climb_chain(network, LocalBlocks([panel]), options, report)


def first_network(
    panel: Panel, graph, cardinality, initial, random_state=None, most=MAX_JOINT_STATES
) -> LatentDBN:
    """The network that EM starts from; see `fit_chain`."""
    cardinality = np.asarray(cardinality, dtype=int).reshape(-1)
    if initial is None:
        initial = _class_tables(panel, graph, cardinality, random_state)
    elif isinstance(initial, LatentDBN):
        same = np.array_equal(initial.cardinality, cardinality)
        if same and initial.directed_graph == graph.directed():
            tables = initial.start, initial.transition, initial.emissions
            return LatentDBN(graph, cardinality, *tables, max_joint_states=most)
        initial = initial.emissions
    tables = _tables_of(panel, graph, cardinality, list(initial))
    return LatentDBN(graph, cardinality, *tables, max_joint_states=most)


def climb_chain(
    network: LatentDBN,
    blocks: Blocks,
    options: EMOptions,
    report: Callable | None = None,
    pool: Callable | None = None,
) -> Ascent:
    """EM from a given network over blocks of sequences, wherever they are.

    Each step sends the network to the blocks, which send back expected counts; no
    sequence moves. ``pool(counts)`` is what tables are made of.
    """
    prepared = blocks.map(_PreparedBlock, network.graph.structure)
    if options.tied:
        network = replace_tables(network, **_tie(network))

    reached: list[float] = []

    def expect(network):
        counts = prepared.sum(_PreparedBlock.expected_counts, network)
        reached.append(counts.log_likelihood)
        epochs = network._epochs
        tables = [*network.start, *(t for one in epochs for t in one.transition)]
        prior = log_prior(tables, options.smoothing)
        prior += sum(
            e.log_prior(options.smoothing) for one in epochs for e in one.emissions
        )
        return counts.log_likelihood + prior, counts

    def maximize(network, counts):
        if options.tied:
            counts = replace(counts, **_tie(network, counts))
        return maximized(network, pool(counts) if pool else counts, options.smoothing)

    def ends(n_iter, objective):
        stopped = report is not None and report(n_iter, objective)
        passed, target = options.beat
        return stopped or is_hopeless(reached, target, passed)

    return climb(
        expect,
        maximize,
        network,
        tol=options.tol * prepared.sum(_PreparedBlock.weight),
        max_iter=options.max_iter,
        patient=options.patient,
        accelerate=True,
        report=ends,
    )


class _PreparedBlock:
    """Sequences of a block, and where factored inference of them ended last."""

    def __init__(self, panel: Panel, structure):
        self.data = ChainData.of(panel.values, structure, panel.weights)
        self.fields: dict = {}

    def expected_counts(self, network: LatentDBN) -> ChainCounts:
        """E-step."""
        found = expectation(network, self.data, self.fields)
        self.fields = found.mean_fields
        return found.counts

    def weight(self) -> float:
        """Weight of the sequences."""
        return self.data.total


def replace_tables(network: LatentDBN, **tables) -> LatentDBN:
    """The same network with some of its tables replaced, which are not checked again.

    Every step of EM makes a network.
    """
    # `copy` would go through the constructor.
    changed = object.__new__(type(network))
    changed.__dict__.update(network.__dict__)
    if "emission" in tables:
        changed.__dict__.pop("emission", None)
        changed.emissions = [as_emission(table) for table in tables.pop("emission")]
    for name, some in tables.items():
        for table in some:
            table.setflags(write=False)
        setattr(changed, name, some)
    return changed


def maximized(network: LatentDBN, counts: ChainCounts, smoothing: float) -> LatentDBN:
    """M-step: tables from expected counts."""
    start = [normalized(count, smoothing) for count in counts.start]
    transition, emission = iter(counts.transition), iter(counts.emission)
    *earlier, last = (
        replace_tables(
            one,
            start=start,
            transition=[
                normalized(next(transition), smoothing) for _ in one.transition
            ],
            emission=[kind.fitted(next(emission), smoothing) for kind in one.emissions],
        )
        for one in network._epochs
    )
    last.earlier = earlier
    return last


def _tie(network: LatentDBN, tables=None) -> dict[str, list]:
    """Both tables of a latent without memory, or their counts, become their mean.

    Not the sum of counts: the prior is that of two tables.
    """
    tables = tables or network
    start, transition = list(tables.start), list(tables.transition)
    for j in np.flatnonzero(~network.graph.inter.any(axis=0)):
        start[j] = transition[j] = (start[j] + transition[j]) / 2
    return {"start": start, "transition": transition}


def _class_tables(panel: Panel, graph, cardinality, random_state) -> list:
    """Emission tables of each latent, as if slices and latents were independent."""
    emission = marginal_tables(panel)
    for j in range(graph.n_latents):
        features = graph.features_of(j)
        if len(features):
            rows = Rows.pooled(panel.of_features(features))
            model = fit_classes(rows, int(cardinality[j]), random_state=random_state)
            for f, table in zip(features, model.tables(), strict=True):
                emission[f] = table
    return emission


def _tables_of(panel: Panel, graph, cardinality, emission: list) -> tuple:
    """All tables; the others follow from what each slice says by itself.

    So do emissions that are None, from the other features of the latent.
    """
    data = ChainData.of(panel.values, graph.structure, panel.weights)
    directed = graph.directed()
    states = []
    for j in range(graph.n_latents):
        features = [f for f in graph.features_of(j) if emission[f] is not None]
        own = [emission[f] for f in features]
        states.append(_slice_states(panel, features, own, int(cardinality[j])))
    start: list = []
    transition: list = []
    for j in range(graph.n_latents):
        for later, tables in ((False, start), (True, transition)):
            now = slice(1, None) if later else slice(0, 1)
            own = [
                states[i][:, now if same else slice(None, -1)]
                for i, same in family_of(directed, j, later=later)
            ]
            count = weighted_products(own, data.weights[:, now])
            tables.append(normalized(count, 1.0 + SMOOTHING))
    # The last row stands for features of no latent, which have one state.
    states.append(np.ones((*data.weights.shape, 1)))
    parents = np.vstack([graph.structure, np.ones(graph.n_observed, bool)])
    emissions = [
        _of_wanted_kind(panel, data, f, emission[f], states[j])
        for f, j in enumerate(parents.argmax(axis=0))
    ]
    return start, transition, emissions


def _slice_states(panel: Panel, features, tables, n_states: int) -> np.ndarray:
    """States of a latent that each slice suggests by itself."""
    if not tables:
        return np.full((*panel.codes.shape[:2], n_states), 1.0 / n_states)
    values = panel.values[:, :, features]
    for place, (f, table) in enumerate(zip(features, tables, strict=True)):
        # Tables are those of codes, also where values are numbers.
        if not isinstance(table, Emission) and panel.numbers is not None:
            codes = panel.codes[:, :, f]
            values[:, :, place] = np.where(codes < 0, np.nan, codes)
    emissions = [as_emission(table) for table in tables]
    patterns = Patterns(values, emissions)
    log = patterns.log_likelihood(emissions)
    state = np.exp(log - log.max(axis=1, keepdims=True))
    return (state / state.sum(axis=1, keepdims=True))[patterns.index]


def _of_wanted_kind(panel: Panel, data: ChainData, f: int, table, states) -> Emission:
    """The emission itself; another table, or None, becomes one of the first kind."""
    kind = panel.kinds_of(f)[0]
    if isinstance(table, Emission) or (table is not None and kind == "categorical"):
        return as_emission(table)
    flat = KINDS[kind].flat(column_of(panel, f))
    weighted = states * data.weights[:, :, None]
    return flat.fitted(data.statistics(f, flat, weighted))
