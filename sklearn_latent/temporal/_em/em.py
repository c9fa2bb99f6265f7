"""Parameters of a latent dynamic Bayesian network by expectation-maximisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from sklearn.utils import check_random_state

from .._graph import TemporalGraph
from .._inference.evidence import SlicePatterns
from .._inference.inference import (
    ChainCounts,
    ChainData,
    expectation,
    warn_if_approximate,
)
from .._model import MAX_JOINT_STATES, LatentDBN
from .._panels.encoding import MISSING
from .._tables import normalized, outer_sum

__all__ = ["EMResult", "fit_chain", "merge_sequences"]

# Starts and steps of the latent-class models that the chain starts from.
N_CLASS_STARTS = 4
N_CLASS_STEPS = 30


@dataclass(frozen=True)
class EMResult:
    """How EM went.

    log_likelihoods: Log-likelihood of all sequences before each step, weighted,
        (n_iter,)
    log_posteriors: the same plus the logarithm of the prior; this never falls,
        (n_iter,)
    log_likelihood: Log-likelihood of all sequences under the result, a lower bound
        where inference is factored
    counts: expected counts under the result
    n_iter: number of steps
    converged: whether EM stopped by itself
    """

    log_likelihoods: np.ndarray
    log_posteriors: np.ndarray
    log_likelihood: float
    counts: ChainCounts
    n_iter: int
    converged: bool


def fit_chain(
    codes,
    n_categories,
    graph: TemporalGraph,
    cardinality,
    *,
    sample_weight=None,
    initial=None,
    n_init: int = 1,
    max_iter: int = 200,
    tol: float = 1e-4,
    smoothing: float = 0.1,
    random_state=None,
    max_joint_states: int = MAX_JOINT_STATES,
    progress: Callable | None = None,
    warn: bool = True,
    tied: bool = False,
) -> tuple[LatentDBN, EMResult]:
    """Fit the tables of a network whose graph is known.

    codes (n, n_slices, n_observed), sample_weight (n,).
    """
    rng = check_random_state(random_state)
    codes, weights = merge_sequences(codes, sample_weight)
    data = ChainData.of(codes, graph.structure, weights)
    cardinality = np.asarray(cardinality, dtype=int).reshape(-1)
    best: tuple[LatentDBN, EMResult] | None = None
    for _ in range(1 if initial is not None else n_init):
        network = _start(
            data, n_categories, graph, cardinality, initial, smoothing, rng
        )
        if tied:
            tables = _tie(graph, network.start, network.transition)
            network = LatentDBN(graph, cardinality, **tables, emission=network.emission)
        network.max_joint_states = max_joint_states
        if best is None and warn:
            warn_if_approximate(network)
        found = _climb(network, data, max_iter, tol, smoothing, progress, tied)
        if best is None or found[1].log_posteriors[-1] > best[1].log_posteriors[-1]:
            best = found
    assert best is not None
    return best


def merge_sequences(codes, sample_weight=None):
    """Merge identical sequences.

    codes (n, n_slices, n_observed), sample_weight (n,) -> codes (n_distinct, n_slices,
    n_observed), weights (n_distinct,).
    """
    codes = np.asarray(codes)
    weights = np.ones(len(codes)) if sample_weight is None else sample_weight
    patterns = SlicePatterns.of(codes.reshape(len(codes), 1, -1))
    index = patterns.index.ravel()
    total = np.bincount(index, weights, minlength=len(patterns.codes))
    return patterns.codes.reshape(-1, *codes.shape[1:]), total


def _climb(network, data, max_iter, tol, smoothing, progress, tied):
    """EM steps until the log-posterior stops to rise."""
    total = data.weights.max(axis=1, initial=0.0).sum()
    likelihoods: list[float] = []
    posteriors: list[float] = []
    fields, converged, stopped = None, False, False
    while True:
        result = expectation(network, data, fields)
        fields = result.mean_fields
        weights = data.weights.max(axis=1, initial=0.0)
        likelihoods.append(float(weights @ result.log_likelihood))
        posteriors.append(likelihoods[-1] + _log_prior(network, smoothing))
        if len(posteriors) > 1:
            # Without any weight nothing is gained, and no more is asked.
            converged = posteriors[-1] - posteriors[-2] <= tol * total
        if converged or stopped or len(posteriors) > max_iter:
            break
        counts = result.counts
        if tied:
            tables = _tie(network.graph, counts.start, counts.transition)
            counts = replace(counts, **tables)
        network = _maximize(network, counts, smoothing)
        if progress is not None:
            stopped = bool(progress(f"log-likelihood {likelihoods[-1]:.6g}"))
    summary = EMResult(
        np.asarray(likelihoods),
        np.asarray(posteriors),
        likelihoods[-1],
        result.counts,
        len(likelihoods) - 1,
        bool(converged),
    )
    return network, summary


def _maximize(network: LatentDBN, counts: ChainCounts, smoothing: float) -> LatentDBN:
    """M-step: tables from expected counts."""
    return LatentDBN(
        network.graph,
        network.cardinality,
        [normalized(count, smoothing) for count in counts.start],
        [normalized(count, smoothing) for count in counts.transition],
        [normalized(count, smoothing) for count in counts.emission],
        max_joint_states=network.max_joint_states,
    )


def _tie(graph: TemporalGraph, start, transition) -> dict[str, list]:
    """Both tables of a latent without memory, or their counts, become their mean.

    Not the sum of counts: the prior is that of two tables.
    """
    start, transition = list(start), list(transition)
    for j in np.flatnonzero(~graph.inter.any(axis=0)):
        start[j] = transition[j] = (start[j] + transition[j]) / 2
    return {"start": start, "transition": transition}


def _log_prior(network: LatentDBN, smoothing: float) -> float:
    """Logarithm of the Dirichlet prior of all tables, up to a constant."""
    if smoothing == 0:
        return 0.0
    tables = [*network.start, *network.transition, *network.emission]
    return float(
        sum(
            smoothing / table.shape[-1] * np.log(np.maximum(table, 1e-300)).sum()
            for table in tables
        )
    )


def _start(data, n_categories, graph, cardinality, initial, smoothing, rng):
    """First guess of all tables."""
    if isinstance(initial, LatentDBN):
        same = np.array_equal(initial.cardinality, cardinality)
        if same and initial.directed_graph == graph.directed():
            return LatentDBN(
                graph, cardinality, initial.start, initial.transition, initial.emission
            )
        initial = initial.emission
    if initial is not None:
        emission = list(initial)
    else:
        emission = _class_tables(data, n_categories, graph, cardinality, rng)
    return _from_emission(data, graph, cardinality, emission, smoothing)


def _class_tables(data, n_categories, graph, cardinality, rng) -> list:
    """Emission tables of each latent, as if slices and latents were independent."""
    emission: list = [None] * graph.n_observed
    for j, patterns in enumerate(data.patterns):
        features = graph.features_of(j)
        widths = [int(n_categories[f]) for f in features]
        mass = np.bincount(
            patterns.index.ravel(), data.weights.ravel(), minlength=len(patterns.codes)
        )
        tables = _latent_class(patterns.codes, mass, widths, int(cardinality[j]), rng)
        for f, table in zip(features, tables, strict=True):
            emission[f] = table
    for f in data.alone:
        codes = data.codes[:, :, f]
        known = codes != MISSING
        width = int(n_categories[f])
        count = np.bincount(codes[known], data.weights[known], minlength=width)
        emission[f] = normalized(count[None], 0.1)
    return emission


def _latent_class(codes, mass, widths, n_states: int, rng) -> list:
    """Short EM runs of a latent class model on weighted patterns; the best tables."""
    patterns = SlicePatterns(codes, np.arange(len(codes))[:, None])
    best, best_value = [], -np.inf
    for _ in range(N_CLASS_STARTS if n_states > 1 else 1):
        tables = [rng.dirichlet(np.ones(width), n_states) for width in widths]
        prior = np.full(n_states, 1.0 / n_states)
        value = 0.0
        for _ in range(N_CLASS_STEPS):
            joint = patterns.log_likelihood(tables) + np.log(prior)
            peak = joint.max(axis=1, keepdims=True)
            joint = np.exp(joint - peak)
            total = joint.sum(axis=1, keepdims=True)
            value = float(mass @ (np.log(total) + peak)[:, 0])
            joint *= mass[:, None] / total
            prior = normalized(joint.sum(axis=0), 0.1)
            tables = [normalized(c, 0.1) for c in patterns.counts(joint, widths)]
        if value > best_value:
            best, best_value = tables, value
    return best


def _from_emission(data, graph, cardinality, emission, smoothing) -> LatentDBN:
    """A network whose other tables follow from what each slice says by itself."""
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
        within = [states[i] for i in (*directed.parents_within(j), j)]
        before = [states[i] for i in directed.parents_before(j)]
        count = outer_sum([s[:, :1] for s in within], data.weights[:, :1])
        start.append(normalized(count, smoothing + 1.0))
        count = outer_sum(
            [s[:, :-1] for s in before] + [s[:, 1:] for s in within],
            data.weights[:, 1:],
        )
        transition.append(normalized(count, smoothing + 1.0))
    return LatentDBN(graph, cardinality, start, transition, emission)
