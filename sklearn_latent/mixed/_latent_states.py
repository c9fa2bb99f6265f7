"""Latents by themselves: their numbers of states, and the states that slices suggest.

Slices show the states of a latent to a latent class model, numbers more of them than
their bins. Where few or poor features measure a latent, neighbours show further states,
and so do the slices before and after: given its state they are independent of its
features, so that their guessed states are further columns of the latent class model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._core.choose import grow
from .._core.climb import Ascent, climb
from .._core.criteria import bic_score
from ._column_groups import SearchOptions
from ._em.chain_em import EMOptions, fit_chain
from ._emissions.emission import SMOOTHING
from ._emissions.kinds import marginal_tables
from ._graph import TemporalGraph, complete_graph
from ._hidden_classes import Classes, Rows, fit_classes, grow_classes
from ._latent_edges import GuessedStates, best_edges
from ._panels.panel import Panel, distinct_rows
from ._tables import normalized

# Neighbours whose guessed states are columns beside the features of a latent: those
# that depend on it, which it makes independent of each other, and one that it depends
# on. (Two parents are dependent given their child, and show as false states.)
N_CHILDREN, N_PARENTS = 2, 1

# EM of networks whose BIC is compared ends at a gain of this many nats, far below the
# differences that matter.
COMPARED_GAIN = 0.1


class Latent(NamedTuple):
    """A latent by itself.

    features: those that measure it
    shares: of its states, (n_states,)
    tables: P(category | state) of each of its features
    """

    features: tuple[int, ...]
    shares: np.ndarray
    tables: list[np.ndarray]

    @classmethod
    def of(cls, features, model: Classes) -> Latent:
        """The hidden class of a model, whose first columns are the features."""
        return cls(tuple(features), model.joint, model.tables()[: len(features)])

    @classmethod
    def of_states(cls, slices: Panel, features: tuple[int, ...], states) -> Latent:
        """The latent whose states are known, (n_rows, n_states), of separate slices."""
        states = states * slices.weights[:, None]
        tables = []
        for codes, width in zip(slices.codes[:, 0].T, slices.n_categories, strict=True):
            counts = [states[codes == value].sum(axis=0) for value in range(width)]
            tables.append(normalized(np.array(counts).T, SMOOTHING))
        return cls(features, normalized(states.sum(axis=0)), tables)


@dataclass(frozen=True)
class Latents:
    """Latents with the features that they explain, and the edges between them."""

    latents: list[Latent]
    intra: np.ndarray
    inter: np.ndarray

    @property
    def cardinality(self) -> list[int]:
        """Number of states of each latent."""
        return [len(latent.shares) for latent in self.latents]

    def graph(self, n_observed: int) -> TemporalGraph:
        """The graph of these latents and so many features."""
        structure = structure_of([own.features for own in self.latents], n_observed)
        return TemporalGraph(structure, self.intra, self.inter)

    def emission(self, panel: Panel) -> list[np.ndarray]:
        """Tables of all features; those of no latent have a single row."""
        emission = marginal_tables(panel)
        for latent in self.latents:
            for feature, table in zip(latent.features, latent.tables, strict=True):
                emission[feature] = table
        return emission


def structure_of(groups, n_observed: int) -> np.ndarray:
    """Groups of features as a boolean matrix, one row per latent."""
    structure = np.zeros((len(groups), n_observed), dtype=bool)
    for row, group in zip(structure, groups, strict=True):
        row[list(group)] = True
    return structure


def learn_latents(
    panel: Panel, groups, options: SearchOptions, max_rounds: int = 2
) -> Latents:
    """States of the latents behind groups of features, and edges between them."""
    latents = [alone(panel, group, options) for group in groups]
    # What neighbours say is about categories, and takes nothing back of what numbers
    # show.
    numeric = panel.is_numeric
    least = [
        len(own.shares) if numeric[list(own.features)].any() else 2 for own in latents
    ]
    for _ in range(max_rounds):
        guessed = guess_states(panel, latents)
        intra, inter = best_edges(guessed)
        if options.n_states is not None:
            break
        settled = [
            in_context(
                panel, latent, _context(j, intra, inter), guessed, least[j], options
            )
            for j, latent in enumerate(latents)
        ]
        if all(one is two for one, two in zip(latents, settled, strict=True)):
            break
        latents = settled
    else:
        intra, inter = best_edges(guess_states(panel, latents))
    return Latents(latents, intra, inter)


def alone(panel: Panel, group, options: SearchOptions) -> Latent:
    """The latent behind some features, as far as single slices show its states."""
    own = panel.of_features(group)
    rows = Rows.pooled(own)
    if options.n_states is not None:
        model = fit_classes(rows, options.n_states, random_state=options.seed)
        return Latent.of(group, model)
    model = _best_of_several(rows, options)
    if not own.is_numeric.any():
        return Latent.of(group, model)
    slices = own.pooled()
    graph = complete_graph(np.ones((1, len(group))))

    def fit(n_states):
        first = fit_classes(rows, n_states, random_state=options.seed)
        return compared(slices, graph, [n_states], first.tables())

    sizes = range(model.n_classes, max(options.max_states, model.n_classes) + 1)
    best = grow(fit, sizes, lambda one: -score(slices, one), patience=1)
    if best.size == model.n_classes:
        return Latent.of(group, model)
    states = best.best.state.posterior(slices.values)[0][:, 0]
    return Latent.of_states(slices, tuple(group), states)


def in_context(panel, latent: Latent, context, guessed, least: int, options) -> Latent:
    """The latent with as many states as it shows beside its neighbours."""
    if not context:
        return latent
    own = list(latent.features)
    around = [guessed.shifted(i, step)[:, :, None] for i, step in context]
    codes = np.concatenate([panel.codes[:, :, own], *around], axis=2)
    rows = Rows.of(
        codes.reshape(-1, codes.shape[2]),
        np.repeat(panel.weights, panel.n_slices),
        [*panel.n_categories[own], *(guessed.cardinality[i] for i, _ in context)],
    )
    model = _best_of_several(rows, options, least)
    fits = model.n_classes >= least and model.n_classes != len(latent.shares)
    return Latent.of(own, model) if fits else latent


def _context(j: int, intra, inter) -> list[tuple[int, int]]:
    """Some neighbours of a latent, by number, and how many slices later they are."""

    def around(earlier, now, step):
        far = sorted(np.flatnonzero(earlier).tolist(), key=lambda i: i != j)
        return [(i, step) for i in far] + [(i, 0) for i in np.flatnonzero(now).tolist()]

    children = around(inter[j], intra[j], 1)
    parents = around(inter[:, j], intra[:, j], -1)
    return children[:N_CHILDREN] + parents[:N_PARENTS]


def _best_of_several(rows: Rows, options: SearchOptions, least: int = 2) -> Classes:
    """The best model with several states; with the most if all have fewer."""
    found = grow_classes(rows, options.max_states, random_state=options.seed)
    return max(found.fits[least - 1 :] or found.fits[-1:], key=lambda model: model.bic)


def guess_states(panel: Panel, latents: list[Latent]) -> GuessedStates:
    """The most probable state of each latent in each slice by itself."""
    states = np.full((*panel.codes.shape[:2], len(latents)), -1)
    confusions = []
    for j, latent in enumerate(latents):
        codes = panel.codes[:, :, list(latent.features)]
        codes = codes.reshape(-1, codes.shape[2])
        first, index = distinct_rows(codes)
        weights = np.bincount(index, np.repeat(panel.weights, panel.n_slices))
        rows = Rows(codes[first], weights, panel.n_categories[list(latent.features)])
        logs = rows.one_hot @ np.log(np.hstack(latent.tables).T)
        posterior = _posterior(logs, weights, latent.shares)
        suggested = posterior.argmax(axis=1)
        picked = np.eye(posterior.shape[1])[suggested] * weights[:, None]
        confusions.append(normalized(posterior.T @ picked + 1e-3))
        known = (rows.codes >= 0).any(axis=1)
        suggested = np.where(known, suggested, -1)[index]
        states[:, :, j] = suggested.reshape(states.shape[:2])
    return GuessedStates(states, confusions, panel.weights)


def _posterior(logs, weights, shares) -> np.ndarray:
    """P(state | row) from logs of P(row | state); shares of states by EM."""
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = weights / max(weights.sum(), 1e-300)

    def expect(shares):
        joint = likelihood * shares
        total = joint.sum(axis=1, keepdims=True)
        return weights @ np.log(total[:, 0]), joint / total

    return climb(
        expect,
        lambda _, posterior: normalized(weights @ posterior, 1e-6),
        shares,
        tol=1e-6,
        max_iter=50,
        patient=False,
    ).statistics


def compared(
    panel: Panel, graph: TemporalGraph, cardinality, emission, max_iter: int = 100
) -> Ascent:
    """EM of a network whose BIC is compared with that of others."""
    tol = COMPARED_GAIN / max(float(panel.weights.sum()), 1.0)
    options = EMOptions(max_iter, tol=tol, tied=True, patient=False)
    return fit_chain(panel, graph, cardinality, emission, options)


def score(panel: Panel, ascent: Ascent) -> float:
    """BIC of a network with as many rows as there are recorded slices."""
    n_rows = (panel.weights @ (panel.codes >= 0).any(axis=2)).sum()
    value = ascent.statistics.log_likelihood
    return bic_score(value, ascent.state.n_parameters, n_rows)
