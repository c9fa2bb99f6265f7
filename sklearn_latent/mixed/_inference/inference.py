"""Expected states and counts of a latent dynamic Bayesian network."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from ..._core.warn import warn
from ...exceptions import ApproximateInferenceWarning
from .._panels.panel import is_known
from .._tables import family_counts, family_of, joint_table
from .chain import chain_log_likelihood, most_probable_path, smooth
from .evidence import Evidence, SlicePatterns
from .mean_field import MeanField, first_counts, step_counts
from .steps import Chain, Steps
from .underflow import careful_filter


@dataclass(frozen=True)
class ChainData:
    """Sequences, prepared for one assignment of features to latents.

    values: the sequences, (n, n_slices, n_observed): codes, -1 = missing, or floats,
        NaN = missing
    structure: features of each latent, (n_latents, n_observed)
    weights: weight of the sequence, 0 behind its last known value: a ragged end is no
        evidence for the parameters, (n, n_slices)
    """

    values: np.ndarray
    structure: np.ndarray
    weights: np.ndarray

    @cached_property
    def of_sequences(self) -> np.ndarray:
        """Weight of each sequence; one without any value has none, (n,)."""
        return self.weights.max(axis=1, initial=0.0)

    @property
    def total(self) -> float:
        """Weight of the sequences together."""
        return float(self.of_sequences.sum())

    @classmethod
    def of(cls, values, structure, sample_weight=None) -> ChainData:
        """Find where each sequence ends."""
        known = np.asarray(is_known(values).any(axis=2))
        behind = np.logical_or.accumulate(known[:, ::-1], axis=1)[:, ::-1]
        weights = (
            np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight)
        )
        return cls(values, structure, weights[:, None] * behind)

    @cached_property
    def alone(self) -> np.ndarray:
        """Features that measure no latent."""
        return np.flatnonzero(~self.structure.any(axis=0))

    def patterns(self, features, emissions) -> SlicePatterns:
        """Values of some features, with those before where emissions need them."""
        cache = self.__dict__.setdefault("_patterns", {})
        key = tuple(features), tuple((e.is_numeric, e.has_memory) for e in emissions)
        if key not in cache:
            values = self.values[:, :, list(features)]
            cache[key] = SlicePatterns.of(values, emissions)
        return cache[key]

    def statistics(self, feature: int, emission, states) -> np.ndarray:
        """Expected sufficient statistics of a feature, given weighted states."""
        own = [emission]
        return self.patterns([feature], own).statistics(states, own)[0]

    def evidence(self, network, latents) -> Evidence:
        """What the slices say about some latents."""
        found = [self._evidence(network, j) for j in latents]
        return Evidence.of(*map(list, zip(*found, strict=True)))

    def _evidence(self, network, j: int) -> tuple[np.ndarray, np.ndarray]:
        """Log-likelihoods of patterns of each epoch, and the pattern of each slice."""
        found, n_patterns = [], 0
        for own, span in self.spans(network):
            emissions = own.emissions_of(j)
            patterns = self.patterns(network.graph.features_of(j), emissions)
            log = patterns.log_likelihood(emissions)
            # A latent that nothing measures may be in any state.
            log = log if emissions else np.zeros((1, network.cardinality[j]))
            index = patterns.index[:, span]
            found.append((log, index + n_patterns if n_patterns else index))
            n_patterns += len(log)
        if len(found) == 1:
            return found[0]
        logs, indices = zip(*found, strict=True)
        return np.concatenate(logs), np.concatenate(indices, axis=1)

    def spans(self, network) -> list:
        """The network of each epoch, and the slices that it is for."""
        return network._spans(self.values.shape[1])


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
    joint: per part, counts of joint states in the first slice, one axis per latent, and
        of consecutive slices, the earlier first, where a latent that nothing follows
        has one place unless latents are `together`; None where inference was factored
    mean_fields: chains of the parts where inference was factored
    """

    log_likelihood: np.ndarray
    states: list
    counts: ChainCounts
    joint: list
    mean_fields: dict


def expectation(
    network, data: ChainData, mean_fields=None, *, together: bool = False
) -> Expectation:
    """E-step: states of all latents and expected counts of all tables.

    Parts of the graph that no edge joins are independent given their features, so each
    runs alone.
    """
    n_latents = network.graph.n_latents
    graph = network.directed_graph
    n_epochs = len(data.spans(network))
    states: list = [None] * n_latents
    start: list = [None] * n_latents
    transition: list = [None] * (n_epochs * n_latents)
    log_likelihood = _log_likelihood_alone(network, data)
    components = graph.components()
    if together and components:
        components = [np.arange(n_latents)]
    joint: list = []
    fields = {}
    for part, latents in enumerate(components):
        evidence = data.evidence(network, latents)
        cards = tuple(int(network.cardinality[j]) for j in latents)
        if network.is_exact(latents):
            chain, past = chain_of(network, data, latents, brief=not together)
            found = smooth(chain, evidence, data.weights)
            first = found.start.reshape(cards)
            pairs = found.pairs.reshape((n_epochs, *past, *cards))
            for j in latents:
                own = family_of(graph, j, later=False)
                start[j] = family_counts(first, latents, own)
                own = family_of(graph, j, later=True)
                for e, both in enumerate(pairs):
                    transition[e * n_latents + j] = family_counts(both, latents, own)
            part_states, part_log_likelihood = found.states, found.log_likelihood
            joint.append((first, pairs.sum(axis=0) if n_epochs > 1 else pairs[0]))
        else:
            field = MeanField(network, latents, evidence)
            warm = (mean_fields or {}).get(part)
            fields[part] = field.fit(warm)
            part_states, part_log_likelihood = field.states(), field.bound()
            for j in latents:
                start[j] = first_counts(field.nodes, field.start[j][0], data.weights)
                # Networks of several epochs are exact.
                transition[j] = step_counts(
                    field.nodes, field.pairs, field.later[j][0], data.weights
                )
            joint.append(None)
        log_likelihood = log_likelihood + part_log_likelihood
        for j, state in zip(latents, part_states, strict=True):
            states[j] = state
    weights = data.of_sequences
    # The model may rule out a sequence that does not count.
    present = weights > 0
    total = float(weights[present] @ log_likelihood[present])
    emission = _emission_statistics(network, data, states)
    counts = ChainCounts(total, start, transition, emission)
    return Expectation(log_likelihood, states, counts, joint, fields)


def sequence_log_likelihood(network, data: ChainData) -> np.ndarray:
    """Log-likelihood of each sequence, by the forward pass alone where exact."""
    total = _log_likelihood_alone(network, data)
    for latents in network.directed_graph.components():
        evidence = data.evidence(network, latents)
        if network.is_exact(latents):
            chain, _ = chain_of(network, data, latents)
            total = total + chain_log_likelihood(chain, evidence)
        else:
            field = MeanField(network, latents, evidence)
            field.fit()
            total = total + field.bound()
    return total


def filtered_states(network, data: ChainData) -> list[np.ndarray | None]:
    """Joint states given the past of each part, (n_slices, n, n_states).

    None where they are too many.
    """
    rows = np.arange(len(data.values))
    found: list[np.ndarray | None] = []
    for latents in network.directed_graph.components():
        filtered = None
        if network.is_exact(latents):
            chain, _ = chain_of(network, data, latents)
            evidence = data.evidence(network, latents)
            filtered = careful_filter(chain, evidence, rows)[0]
        found.append(filtered)
    return found


def most_probable_states(network, data: ChainData):
    """Most probable path of all latents, (n, n_slices, n_latents), and its log."""
    n, n_slices, _ = data.values.shape
    paths = np.zeros((n, n_slices, network.graph.n_latents), dtype=np.intp)
    total = _log_likelihood_alone(network, data)
    for latents in network.directed_graph.components():
        evidence = data.evidence(network, latents)
        if network.is_exact(latents):
            chain, _ = chain_of(network, data, latents)
            path, log_probability = most_probable_path(chain, evidence)
            cards = tuple(int(network.cardinality[j]) for j in latents)
            paths[:, :, latents] = np.stack(np.unravel_index(path, cards), axis=-1)
        else:
            field = MeanField(network, latents, evidence)
            field.fit()
            part, log_probability = field.most_probable()
            paths[:, :, latents] = part
        total = total + log_probability
    return paths, total


def warn_if_approximate(network, *, together: bool = False) -> None:
    """Say so if a part has more joint states than are enumerated."""
    parts = network.directed_graph.components()
    if together and parts:
        parts = [np.arange(network.n_latents)]
    sizes = [
        int(np.prod(network.cardinality[latents].astype(float)))
        for latents in parts
        if not network.is_exact(latents)
    ]
    if sizes:
        warn(
            f"The latents have {max(sizes):,} joint states, more than "
            f"max_joint_states={network.max_joint_states}, so inference is factored: "
            "each latent keeps its own chain and sees the others through their "
            "expected states (structured mean field). Likelihoods are lower bounds; "
            "raise max_joint_states for exact ones.",
            ApproximateInferenceWarning,
        )


def joint_matrices(network, latents) -> tuple[np.ndarray, np.ndarray]:
    """Start vector and transition matrix of the joint states of some latents."""
    start, transition = network.joint_tables(latents)
    return start.ravel(), transition.reshape(start.size, start.size)


def chain_of(
    network, data: ChainData, latents, *, brief: bool = True
) -> tuple[Chain, tuple[int, ...]]:
    """Chain of the joint states of some latents, and the shape of what is past."""
    graph = network.directed_graph
    start = joint_table(graph, network.start, latents, later=False)
    steps: list[Steps] = []
    epoch: list[int] = []
    for own, span in data.spans(network):
        table = joint_table(graph, own.transition, latents, later=True, brief=brief)
        past = table.shape[: len(latents)]
        places = np.arange(prod(past)).reshape(past)
        rows = np.broadcast_to(places, start.shape).ravel()
        epoch += [len(steps)] * (span.stop - span.start)
        steps.append(Steps(table.reshape(-1, start.size), rows))
    return Chain(start.ravel(), steps, epoch), past


def _log_likelihood_alone(network, data: ChainData) -> np.ndarray:
    """Log-likelihood of the features that measure no latent."""
    total = np.zeros(len(data.values))
    for own, span in data.spans(network):
        for f in data.alone:
            emission = [own.emissions[f]]
            patterns = data.patterns([f], emission)
            logs = patterns.log_likelihood(emission)
            total += logs[patterns.index[:, span], 0].sum(axis=1)
    return total


def _emission_statistics(network, data: ChainData, states) -> list:
    """Expected sufficient statistics of the emissions of every feature."""
    spans = data.spans(network)
    n_observed = network.graph.n_observed
    found: list = [None] * (len(spans) * n_observed)
    parts = [(network.graph.features_of(j), s) for j, s in enumerate(states)]
    parts += [([f], np.ones((*data.weights.shape, 1))) for f in data.alone]
    for e, (own, span) in enumerate(spans):
        weights = np.zeros_like(data.weights)
        weights[:, span] = data.weights[:, span]
        for features, state in parts:
            emissions = [own.emissions[f] for f in features]
            patterns = data.patterns(features, emissions)
            counts = patterns.statistics(state * weights[:, :, None], emissions)
            for f, statistics in zip(features, counts, strict=True):
                found[e * n_observed + f] = statistics
    return found
