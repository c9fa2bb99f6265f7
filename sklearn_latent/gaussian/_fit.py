"""From what was read of the rows to a network with its margins and classes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from sklearn.base import clone

from .._core.criteria import bic
from .._core.warn import unheard, warn
from ..exceptions import ModelMisfitWarning
from ._atom_margins import ConstantMargin
from ._background import Background
from ._class_em import learn_classes
from ._gaussian_answers import describe_edges
from ._gaussian_network import GaussianNetwork
from ._groups import warn_groups
from ._learn import choose_search, learn_network, log_likelihood
from ._margin_fit import estimate_margins, rank_statistics, score
from ._margin_kinds import NormalMargin
from ._noise import Additive, get_noise
from ._options import SearchOptions
from ._reading import (
    adds_up,
    has_background,
    keeps_rows,
    seeks_classes,
    wanted_margins,
    warn_constant,
    warn_degenerate,
    warn_few_rows,
    warn_unseen,
    warn_without_noise,
)
from ._rows import Rows, RowSums
from ._structural_em import LearnedNetwork
from ._table_margins import Margins, atom_columns, estimated


@dataclass(frozen=True, eq=False)
class Fit:
    """What a fit found.

    network: with names, margins and classes
    learned: the search for it
    options: which search, and which penalty
    log_likelihood: of all rows, whose weights sum to `weight`
    is_exact: whether that is more than an estimate
    scored: sums of scores of the rows; None if these do not add up
    """

    network: GaussianNetwork
    learned: LearnedNetwork
    options: SearchOptions
    log_likelihood: float
    weight: float
    is_exact: bool
    scored: RowSums | None

    @property
    def bic(self) -> float:
        """BIC of all rows, margins included."""
        return bic(self.log_likelihood, self.network.n_parameters, self.weight)

    @property
    def score(self) -> float:
        """Log-likelihood of all rows, margins included, less what searches pay."""
        penalty = self.options.penalties(self.weight)[0]
        price = penalty.parameter * self.network.n_parameters
        price += penalty.structure(self.learned.network.adjacency)
        return self.log_likelihood - price


def fit_rows(
    estimator, rows: Rows | RowSums, options: SearchOptions, names, again
) -> Fit:
    """Margins, a network of the scores, and classes of rows if these are wanted.

    again: blocks that can be read again, or None
    """
    fit = _fit_once(estimator, rows, options, names, again)
    if not isinstance(rows, Rows) or not estimator.max_latents:
        return fit
    behind = False
    if fit.network.is_jointly_gaussian and not options.published:
        # Latents come one by one, and a network of them may be behind that of edges.
        plain = _without_latents(estimator, rows, options, names)
        classes = plain.network.n_classes > 1
        if plain.score > fit.score and not (classes and fit.network.n_latents):
            return plain
        behind = classes and plain.bic < fit.bic
    told = wanted_margins(estimator) == "auto" and warn_groups(fit.network, rows)
    if behind and not told:
        warn(
            f"With max_latents=0 the BIC is {plain.bic:.8g}, where it "
            f"{describe_edges(plain.network)}, instead of {fit.bic:.8g}. "
            "Classes of rows describe the table better than latents do.",
            ModelMisfitWarning,
        )
    return fit


def _without_latents(estimator, rows: Rows, options: SearchOptions, names) -> Fit:
    """What the estimator would find with ``max_latents=0``."""
    estimator = clone(estimator).set_params(max_latents=0)
    seen: Rows | RowSums = rows
    if adds_up(estimator) and not rows.has_gaps:
        seen = RowSums.of(rows, sampled=keeps_rows(estimator))
    with unheard():
        return _fit_once(estimator, seen, replace(options, max_latents=0), names, None)


def _fit_once(
    estimator, rows: Rows | RowSums, options: SearchOptions, names, again
) -> Fit:
    """The same, with latents wherever the search adds them."""
    data: Rows | RowSums
    is_scored = False
    if isinstance(rows, RowSums) and rows.log_slope is not None:
        is_scored = True
        margins = estimated(estimator.network_.margins)
        data, log_slope = rows, rows.log_slope
    else:
        # Probabilities of intervals are those of normal scores.
        atoms = isinstance(get_noise(estimator.noise), Additive)
        wanted = wanted_margins(estimator)
        margins = estimate_margins(wanted, rows, names, atoms=atoms)
        data, log_slope = score(rows, margins, again)
    seen, known, constants = _seen_features(estimator, data, names)
    options = choose_search(options.restricted(seen))
    ranked = rank_statistics(rows, margins) if isinstance(rows, RowSums) else None
    learned = learn_network(known, options, ranked and ranked.columns(seen))
    own_names, n_known = np.array(names)[seen], int(seen.sum()) + len(constants)
    warn_degenerate(known, learned.network, own_names, n_known)
    warn_few_rows(data.weight, learned.network)
    network = learned.network._over(np.flatnonzero(seen), names)
    unseen = network.n_latents > 0 or (isinstance(data, Rows) and data.has_gaps)
    is_exact = network.is_jointly_gaussian or not unseen
    network = network.with_margins(margins)
    scored = None
    if isinstance(data, RowSums):
        scored = replace(data, log_slope=log_slope, kept=None)
    choices, everywhere = [network], has_background(estimator)
    if not is_scored:
        choices = _with_classes(estimator, rows, network, seen, options, n_known)
    choices = [_with_constants(choice, constants) for choice in choices]
    network = choices[-1]
    atoms = bool(atom_columns(margins))
    if not is_scored and (everywhere or atoms or network.classes):
        rated = [_with_atoms(own, rows, again, everywhere) for own in choices]
        prices = [bic(own[1], own[0].n_parameters, data.weight) for own in rated]
        network, fitted = rated[int(np.argmin(prices))]
        scored = None if network.classes else scored
    else:
        fitted = log_likelihood(learned.network, known) + log_slope
    if is_scored:
        # Of rows that are gone, the share of those far away stays as it was.
        network = _settled(network)._with(background=estimator.network_.background)
        if network.background is not None:
            fitted += data.weight * np.log1p(-network.background.share)
        is_exact = network.background is None and not atoms
    return Fit(network, learned, options, fitted, data.weight, is_exact, scored)


def _kept(rows: Rows | RowSums) -> Rows:
    """Rows that are in memory, with the weight of all."""
    return rows if isinstance(rows, Rows) else rows.rows


def _with_atoms(
    network: GaussianNetwork, rows: Rows | RowSums, again, everywhere: bool
) -> tuple[GaussianNetwork, float]:
    """Network whose atoms have probabilities, and its log-likelihood.

    everywhere: whether also to let rows be anywhere
    """
    kept = _kept(rows)
    network = _settled(network)
    found = network.log_likelihood(kept.X)
    if everywhere:
        background = Background.of(kept)
        far = background.log_densities(kept.X, network.margins).sum(axis=1)
        background = background.fitted(found, far, kept)
        found = background.mixed(found, kept.X, network.margins)
        network = network._with(background=background)
    if again is None or isinstance(rows, Rows) or rows.keeps_all:
        return network, kept.sum(found)
    return network, again.sum(_log_likelihood_of, network)


def _log_likelihood_of(block, network) -> float:
    """Log-likelihood of a block that was read before."""
    rows = Rows.of(*block)
    return rows.sum(network.log_likelihood(rows.X))


def _seen_features(
    estimator, data: Rows | RowSums, names
) -> tuple[np.ndarray, Rows | RowSums, dict[int, float]]:
    """Which features have different values, with a warning of the others.

    Also data of these, and the values of those that are constant.
    """
    if isinstance(data, Rows):
        seen = ~np.isnan(data.X).all(axis=0)
        warn_unseen(seen, names)
        values = np.where(seen, np.nan_to_num(np.fmin.reduce(data.X)), 0.0)
        varies = seen & (np.fmax.reduce(data.X) > values)
    else:
        seen, values = np.ones(len(names), dtype=bool), data.moments.mean
        varies = data.moments.variance > 0.0
    constants = {j: float(values[j]) for j in np.flatnonzero(seen & ~varies).tolist()}
    warn_constant(list(constants), names)
    known = data.columns(varies)
    if isinstance(known, Rows) and adds_up(estimator) and not known.has_gaps:
        known = RowSums.of(known)
    return varies, known, constants


def _with_classes(
    estimator,
    rows: Rows | RowSums,
    network: GaussianNetwork,
    seen,
    options: SearchOptions,
    n_known: int,
) -> list[GaussianNetwork]:
    """The network, or one with classes of rows if it is better, or both in doubt."""
    if not seeks_classes(estimator) or not seen.any():
        return [network]
    atoms = bool(atom_columns(network.margins))
    rows = _kept(rows)
    known = network if seen.all() else network._among(seen)
    choices: list[Margins] = [known.margins]
    if wanted_margins(estimator) == "auto" and known.margins is not None and not atoms:
        choices.append(None)
    own = rows.columns(seen)
    found = learn_classes(own, known, options, estimator.n_classes, choices)
    if found is None:
        return [network]
    # Within classes: however far these are apart, it is no noise that they lack.
    each = [np.diagonal(part.joint()[1]) for part in found.classes]
    spread = found.class_weight @ np.array(each)
    warn_without_noise(spread, found, np.array(network.node_names)[seen], n_known)
    mixed = found._over(np.flatnonzero(seen), network.node_names)
    # Classes may have spikes on the scores of atoms, where they will gain nothing.
    return [network, mixed] if atoms and estimator.n_classes == "auto" else [mixed]


def _with_constants(network: GaussianNetwork, constants) -> GaussianNetwork:
    """Network with the values of features that have only one, by number."""
    if not constants:
        return network
    margins = list(network.margins or [NormalMargin()] * network.n_features)
    for number, value in constants.items():
        margins[number] = ConstantMargin(value)
    # With a density of 1 at its score, a column adds nothing.
    noise = network._parameters[2].copy()
    density = network._noise.root.log_density(np.zeros(1), np.zeros(1), np.ones(1))
    noise[..., list(constants)] = np.exp(2.0 * density)
    return network._with(margins=margins, noise_variance=noise)


def _settled(network: GaussianNetwork) -> GaussianNetwork:
    """Network with as much noise as the scores have behind atoms.

    A network learns from a single score for each atom. How much these vary less than
    all is explained by parents to the same extent as the rest.
    """
    factor = np.ones(network.n_nodes)
    for column, margin in atom_columns(network.margins).items():
        factor[column] = 1.0 / (1.0 - margin.hidden_variance)
    if (factor == 1.0).all():
        return network
    return network._with(noise_variance=network._parameters[2] * factor)
