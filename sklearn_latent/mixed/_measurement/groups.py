"""Groups of features, and the number of states of the latent behind each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import compress
from typing import NamedTuple

import numpy as np

from ..._core.climb import Ascent
from ..._core.criteria import bic_price
from ..._tables.blocks import LocalBlocks
from .._classes.latent_class import Rows, fit_classes, fit_classes_bic
from .._em.chain_em import EMOptions, climb_chain, first_network, fit_chain
from .._em.choice import choose_emissions
from .._emissions.kinds import marginal_tables, n_free
from .._graph import complete_graph
from .._model import MAX_JOINT_STATES, LatentDBN
from .._panels.panel import Panel
from .._tables import free_parameters

# EM of the chains whose BIC is compared ends at a gain of this many nats, far below
# the differences that matter.
COMPARED = EMOptions(max_iter=100, tied=True, patient=False)
COMPARED_GAIN = 0.1

# Slices that show what neighbours do to a number of states, and by how much sequences
# may be thinned out for that.
FEW_SLICES = 5_000
MAX_THINNING = 5


@dataclass(frozen=True)
class SearchOptions:
    """What a search for latents and edges is told.

    max_states: largest number of states of a latent
    n_states: number of states of all latents, None = chosen by BIC
    max_joint_states: as in `LatentDBN`
    seed: of the random starts of latent class models
    """

    max_states: int = 6
    n_states: int | None = None
    max_joint_states: int = MAX_JOINT_STATES
    seed: int = 0


def slice_states(panel: Panel, options: SearchOptions) -> list[np.ndarray]:
    """Emission tables of the latent behind all features, by slices alone."""
    rows = Rows.pooled(panel)
    if options.n_states is not None:
        model = fit_classes(rows, options.n_states, random_state=options.seed)
        return model.tables(rows)
    models = fit_classes_bic(rows, options.max_states, random_state=options.seed)
    return max(models[1:], key=lambda model: model.bic).tables(rows)


def thinned(panel: Panel) -> Panel:
    """A sample of the sequences that weighs as much; all if they are few."""
    n_rows = max(len(panel.codes) / MAX_THINNING, FEW_SLICES / panel.n_slices)
    if n_rows > len(panel.codes) / 2:
        return panel
    panel = panel.merged()
    ends = np.cumsum(panel.weights)
    # Neighbours are alike, so that even steps make a representative sample.
    places = (np.arange(int(n_rows)) + 0.5) / int(n_rows) * ends[-1]
    rows, counts = np.unique(np.searchsorted(ends, places), return_counts=True)
    return panel.of_sequences(rows, counts * (ends[-1] / counts.sum()))


class ChainFit(NamedTuple):
    """BIC of a chain, higher is better, its emissions and log-likelihood.

    ascent: where its EM ended; None of a latent class model
    """

    bic: float
    emission: list
    log_likelihood: float
    ascent: Ascent | None = None


def best_states(first: int, fit: Callable, options: SearchOptions) -> ChainFit:
    """Climb in the number of states while BIC gains, which has one peak in practice.

    ``fit(n_states, rival)`` is given the best fit so far, if there is one.
    """
    best, n_states = fit(first, None), first
    for step, last in ((-1, 2), (1, options.max_states)):
        while step * n_states < step * last:
            trial = fit(n_states + step, best)
            if trial.bic <= best.bic:
                break
            best, n_states = trial, n_states + step
        if n_states != first:
            break
    return best


def chain_states(panel: Panel, options, n_states: int, rival=None) -> ChainFit:
    """The chain of one latent with a number of states."""
    rows = Rows.pooled(panel)
    model = fit_classes(rows, n_states, random_state=options.seed)
    if panel.n_slices == 1:  # a chain of one slice is the latent class model
        return ChainFit(model.bic, model.tables(rows), model.log_likelihood)
    return one_latent_bic(panel, model.tables(rows), rival)


def one_latent_bic(panel: Panel, emission, rival=None) -> ChainFit:
    """The chain of one latent that changes over time."""
    graph = complete_graph(np.ones((1, panel.n_observed)))
    return chain_bic(panel, graph, emission, rival)


def chain_bic(panel: Panel, graph, initial, rival=None) -> ChainFit:
    """The chain with a given graph."""
    value, ascent = compared_chain(panel, graph, initial, rival)
    emission = list(ascent.state.emission)
    return ChainFit(value, emission, ascent.statistics.log_likelihood, ascent)


def compared_chain(
    panel: Panel, graph, initial, rival: ChainFit | None = None
) -> tuple[float, Ascent]:
    """BIC of the chain with a given graph, and where its EM ended.

    initial: a network, or emission tables
    rival: another chain; EM ends early once it has passed the log-likelihood of a
        special case, or from the start if it is one itself, if the BIC of the rival is
        out of reach
    """
    emission = initial.emission if isinstance(initial, LatentDBN) else initial
    cardinality = [len(emission[features.argmax()]) for features in graph.structure]
    total = max(float(panel.weights.sum()), 1.0)
    panel = panel.merged()
    network = first_network(panel, graph, cardinality, initial)
    penalty = chain_penalty(network, panel)
    options = replace(COMPARED, tol=COMPARED_GAIN / total)
    if rival is not None:
        # Fewer parameters have less to gain, so that there is nothing to pass.
        is_larger = penalty > rival.log_likelihood - rival.bic
        passed = rival.log_likelihood if is_larger else -np.inf
        options = replace(options, beat=(passed, rival.bic + penalty))
    ascent = climb_chain(network, LocalBlocks([panel]), options)
    return ascent.statistics.log_likelihood - penalty, ascent


def chain_penalty(network, panel: Panel) -> float:
    """Penalty of BIC: each free parameter has the price of the rows behind it."""
    n_rows = panel.weights @ (panel.codes >= 0).any(axis=2)
    memory = network.graph.inter.any(axis=0)
    behind = (
        (compress(network.start, memory), n_rows[0]),
        (compress(network.transition, memory), n_rows[1:].sum()),
        (compress(network.transition, ~memory), n_rows.sum()),
    )
    return bic_price(n_rows.sum()) * n_free(network.emission) + sum(
        bic_price(total) * free_parameters(tables) for tables, total in behind
    )


def no_latent_bic(panel: Panel) -> float:
    """BIC of features that follow nothing or their own past, higher is better."""
    graph = complete_graph(np.zeros((0, panel.n_observed)))
    first = fit_chain(panel, graph, [], marginal_tables(panel), COMPARED)
    found = choose_emissions(panel, first, COMPARED)
    return found.statistics.log_likelihood - chain_penalty(found.state, panel)


def lone_states(panel: Panel, options: SearchOptions) -> list | None:
    """A latent for the one feature of a panel, if its own values explain it less."""
    width = int(panel.n_categories[0])
    rows = Rows.pooled(panel)
    if panel.n_slices == 1 or width < 2 or not rows.total:
        return None
    marginal = fit_classes(rows, 1)
    best, tables = no_latent_bic(panel), None
    for n_states in range(2, min(width, options.max_states) + 1):
        # States that each favour one category, the rare ones sharing the last.
        favoured = np.argsort(-marginal.emission[0], kind="stable")[:n_states]
        emission = 0.3 * np.repeat(marginal.emission, n_states, axis=0)
        emission[np.arange(n_states), favoured] += 0.7
        found = one_latent_bic(panel, [emission])
        if found.bic > best:
            best, tables = found.bic, found.emission
    return tables


@dataclass(frozen=True)
class Measurement:
    """Groups of features with the tables of the latent that each measures.

    groups: features of each latent
    tables: P(category | state) of each feature of each group
    n_observed: number of features, also those in no group
    chains: BIC and tables of the chains of single latents that were fitted to the
        panel, by group and number of states
    """

    groups: list
    tables: list
    n_observed: int
    chains: dict = field(default_factory=dict, compare=False, repr=False)

    @property
    def cardinality(self) -> np.ndarray:
        """Number of states of each latent."""
        return np.array([len(tables[0]) for tables in self.tables], dtype=int)

    @property
    def structure(self) -> np.ndarray:
        """Groups as a boolean matrix, one row per latent."""
        structure = np.zeros((len(self.groups), self.n_observed), dtype=bool)
        for row, group in zip(structure, self.groups, strict=True):
            row[list(group)] = True
        return structure

    def emission(self, panel: Panel) -> list[np.ndarray]:
        """Tables of all features; those of no group have a single row."""
        emission = marginal_tables(panel)
        for group, tables in zip(self.groups, self.tables, strict=True):
            for feature, table in zip(group, tables, strict=True):
                emission[feature] = table
        return emission

    def with_tables(self, j: int, tables) -> Measurement:
        """Other tables of one latent."""
        changed = [*self.tables[:j], tables, *self.tables[j + 1 :]]
        return replace(self, tables=changed)

    def chain(
        self, j: int, panel: Panel, options, n_states: int, rival=None
    ) -> ChainFit:
        """The chain of a latent by itself, fitted once."""
        key = tuple(self.groups[j]), n_states
        if key not in self.chains:
            own = panel.of_features(self.groups[j])
            self.chains[key] = chain_states(own, options, n_states, rival)
        return self.chains[key]

    def with_groups(self, groups, panel: Panel, options: SearchOptions) -> Measurement:
        """Other groups, and the latents of their own of features in none of them.

        Tables are kept where a group is the same.
        """
        known = dict(zip(self.groups, self.tables, strict=True))
        taken = {feature for group in groups for feature in group}
        alone = [g for g in self.groups if len(g) == 1 and g[0] not in taken]
        groups = sorted([*groups, *alone])
        tables = [
            known[group]
            if group in known
            else slice_states(panel.of_features(group), options)
            for group in groups
        ]
        return Measurement(groups, tables, self.n_observed)

    def with_chain_states(self, panel: Panel, options: SearchOptions) -> Measurement:
        """Numbers of states by BIC of the chain of each latent by itself.

        Two features, or poor ones, do not show more than a few states in a slice, but
        sequences do.
        """
        if panel.n_slices == 1 or options.n_states is not None:
            return self
        tables = [
            best_states(
                len(found[0]), partial(self.chain, j, panel, options), options
            ).emission
            for j, found in enumerate(self.tables)
        ]
        return replace(self, tables=tables)

    def with_lone_features(
        self, panel: Panel, options: SearchOptions, copies: Mapping[int, Panel]
    ) -> Measurement:
        """Further latents, for features that depend on their own past alone.

        copies: near-duplicates of features, which share a latent in any case
        """
        found = dict(zip(self.groups, self.tables, strict=True))
        taken = {feature for group in self.groups for feature in group}
        for feature in range(self.n_observed):
            if feature in taken:
                continue
            if feature in copies:
                found[(feature,)] = slice_states(copies[feature], options)[:1]
            elif tables := lone_states(panel.of_features([feature]), options):
                found[(feature,)] = tables
        groups = sorted(found)
        return Measurement(groups, [found[g] for g in groups], self.n_observed)
