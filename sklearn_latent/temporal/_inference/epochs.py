"""Inference where tables differ between epochs: groups of consecutive slices."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._tables import family_counts, family_of, log_table
from .inference import ChainData, joint_matrices
from .underflow import normalized_exponentials


@dataclass(frozen=True)
class EpochCounts:
    """Expected counts of the tables of each epoch.

    log_likelihood: of all sequences together, weighted
    start: per latent
    transition, emission: per epoch, then per latent or feature
    """

    log_likelihood: float
    start: list
    transition: list
    emission: list


class EpochChain:
    """Sequences under one network per epoch.

    networks: of the same graph, one per epoch; the start is that of the first
    epoch: number of the epoch of each slice, (n_slices,)
    data: the sequences
    """

    def __init__(self, networks, epoch: np.ndarray, data: ChainData):
        self.networks, self.epoch, self.data = networks, epoch, data
        first = networks[0]
        self.log_likelihood = self._log_likelihood_alone()
        self.states: list = [None] * first.n_latents
        self.start: list = [None] * first.n_latents
        self.transition: list = [[None] * first.n_latents for _ in networks]
        self.filtered: list = []
        for latents in first.directed_graph.components():
            self._smooth(latents)

    def counts(self) -> EpochCounts:
        """Expected counts of all tables."""
        weights = self.data.weights.max(axis=1, initial=0.0)
        present = weights > 0
        total = float(weights[present] @ self.log_likelihood[present])
        emission = [self._emission_counts(e) for e in range(len(self.networks))]
        return EpochCounts(total, self.start, self.transition, emission)

    def _smooth(self, latents) -> None:
        """Forward and backward pass over the joint states of some latents."""
        network = self.networks[0]
        start, _ = joint_matrices(network, latents)
        tables = [joint_matrices(one, latents)[1] for one in self.networks]
        filtered, predicted = self._filter(start, tables, latents)
        smoothed = filtered.copy()
        pairs = [np.zeros((len(start), len(start))) for _ in self.networks]
        for t in range(len(self.epoch) - 1, 0, -1):
            e = self.epoch[t]
            possible = predicted[t] > 1e-290
            ratio = smoothed[t] / np.where(possible, predicted[t], 1.0) * possible
            weighted = filtered[t - 1] * self.data.weights[:, t, None]
            pairs[e] += weighted.T @ ratio * tables[e]
            back = filtered[t - 1] * (ratio @ tables[e].T)
            total = back.sum(axis=1, keepdims=True)
            smoothed[t - 1] = np.where(
                total > 0, back / np.where(total > 0, total, 1.0), filtered[t - 1]
            )
        self._store(latents, smoothed, pairs)

    def _filter(self, start, tables, latents):
        """Filtered and predicted states by slice; adds to the log-likelihood."""
        evidence = [self.data.evidence(one, latents) for one in self.networks]
        rows = np.arange(len(self.data.values))
        shape = (len(self.epoch), len(rows), len(start))
        filtered, predicted = np.empty(shape), np.empty(shape)
        for t, e in enumerate(self.epoch):
            predicted[t] = filtered[t - 1] @ tables[e] if t else start
            log_joint = log_table(predicted[t]) + evidence[e].log_at(rows, t)
            filtered[t], log_total = normalized_exponentials(log_joint)
            self.log_likelihood += log_total + evidence[e].scale_at(rows, t)
        self.filtered.append(filtered)
        return filtered, predicted

    def _store(self, latents, smoothed, pairs) -> None:
        """States and counts of single latents from those of their joint states."""
        network = self.networks[0]
        graph = network.directed_graph
        cards = tuple(int(network.cardinality[j]) for j in latents)
        parts = np.unravel_index(np.arange(smoothed.shape[2]), cards)
        first = (self.data.weights[:, 0] @ smoothed[0]).reshape(cards)
        for j, part in zip(latents, parts, strict=True):
            marginal = np.eye(network.cardinality[j])[part]
            self.states[j] = (smoothed @ marginal).swapaxes(0, 1)
            own = family_of(graph, j, later=False)
            self.start[j] = family_counts(first, latents, own)
            own = family_of(graph, j, later=True)
            for e, both in enumerate(pairs):
                joint = both.reshape(cards + cards)
                self.transition[e][j] = family_counts(joint, latents, own)

    def _emission_counts(self, e: int) -> list:
        """Expected statistics of all features in an epoch."""
        network = self.networks[e]
        weights = (self.data.weights * (self.epoch == e))[:, :, None]
        return [
            self.data.statistics(
                f, emission, (self.states[j] if j >= 0 else 1.0) * weights
            )
            for f, (j, emission) in enumerate(
                zip(network._parents, network.emissions, strict=True)
            )
        ]

    def _log_likelihood_alone(self) -> np.ndarray:
        """Log-likelihood of the features that measure no latent."""
        total = np.zeros(len(self.data.values))
        for e, network in enumerate(self.networks):
            for f in self.data.alone:
                own = [network.emissions[f]]
                patterns = self.data.patterns([f], own)
                logs = patterns.log_likelihood(own)[patterns.index, 0]
                total += logs[:, self.epoch == e].sum(axis=1)
        return total


def epoch_paths(networks, epoch: np.ndarray, data: ChainData):
    """Most probable states of all latents, and their log-probability (Viterbi)."""
    network = networks[0]
    shape = (*data.values.shape[:2], network.n_latents)
    paths, total = np.zeros(shape, dtype=np.intp), np.zeros(len(data.values))
    rows = np.arange(len(data.values))
    for latents in network.directed_graph.components():
        start = log_table(joint_matrices(network, latents)[0])
        tables = [log_table(joint_matrices(one, latents)[1]) for one in networks]
        evidence = [data.evidence(one, latents) for one in networks]
        best, sources = np.broadcast_to(start, (len(rows), len(start))), []
        for t, e in enumerate(epoch):
            if t:
                through = best[:, :, None] + tables[e]
                sources.append(through.argmax(axis=1))
                best = through.max(axis=1)
            best = best + evidence[e].log_at(rows, t)
            total += evidence[e].scale_at(rows, t)
        state = best.argmax(axis=1)
        total += best[rows, state]
        cards = tuple(int(network.cardinality[j]) for j in latents)
        for t in range(len(epoch) - 1, -1, -1):
            paths[:, t, latents] = np.stack(np.unravel_index(state, cards), axis=-1)
            state = sources[t - 1][rows, state] if t else state
    return paths, total
