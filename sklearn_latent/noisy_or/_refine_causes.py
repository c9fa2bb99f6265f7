"""From quartets to a refined network: which columns are turned, which rows are seen."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from .._core.choose import grow
from .._core.criteria import bic
from .._tables.thin import thinned_weights
from ._beam import FINE, Beam
from ._cause_search import Search, search_independent
from ._expected import maximize
from ._maximum_likelihood import climb_beams, errors_of, expect_block
from ._noisy_or_network import NoisyOrNetwork
from ._posterior import infer_network
from ._probabilities import clip_probability
from ._quartets import Causes, Thresholds, discover
from ._statistics.patterns import Patterns, components
from ._statistics.rows import BlockMoments

# Rows of the first rounds, and of all others: what a structure needs. On random
# networks of 40 latents, 4,000 rows find all.
FIRST_ROWS, MOST_ROWS = 4000, 20_000

# Rounds of births on the first rows. (Without them the F1 of edges of 4 latents in 500
# rows falls from .95 to .89, and that of 3 latents in 2,000 rows from .92 to .89.)
FIRST_ROUNDS = 2

# Rows that choose between columns as they are and read the other way; and rounds.
JUDGING_ROWS, JUDGING_ROUNDS = 1000, 1

# Gain in nats that columns read as their opposite must bring, because they are harder
# to read. (Of 11 real tables, the opposite of all columns gains 2 nats in two.)
LEAST_GAIN = 10.0

# Correlations in standard errors that are not due to chance. Columns are turned if at
# least this share of the squared correlations is negative, and turning makes it this
# many times smaller.
LEAST_CORRELATION_Z, LEAST_SHARE, LEAST_FACTOR = 4.0, 0.02, 3.0

# Rows that each parameter of a network with classes needs, at least.
ROWS_PER_PARAMETER = 5.0

# Least and largest number of EM steps of networks that are compared, and of the last
# EM; and gains per row that end them.
STEPS, TOLERANCE = (15, 100), 1e-5
FINAL_STEPS, FINAL_TOLERANCE = (5, 100), 1e-6

# Rows times features times EM steps of a fit: some seconds.
STEPPED_VALUES = 2**21

# Steps over all rows, if the search has seen only some of them; and rows times features
# that a block looks at in each: some seconds.
POLISHING_STEPS, POLISHED_VALUES = 5, 2**24

# Rows of which standard errors are computed.
ERROR_ROWS = 5000

# Coupled latents whose states are enumerated, and numbers of rows whose likelihood is
# computed at the end of a fit: within that reach, and beyond it.
MAX_COUPLED, SCORED_ROWS = 12, (200_000, 2000)

# Least share of common children of a latent and of the one that a quartet revealed.
LEAST_LIKENESS = 0.3


class Settings(NamedTuple):
    """How to learn; see the parameters of `QuartetStructureLearner`."""

    thresholds: Thresholds
    max_depth: int | None
    refine: bool
    dependence: bool
    polarity: bool
    n_jobs: int | None


def learn_table(
    source: BlockMoments, patterns: Patterns, settings: Settings, rng, report=None
) -> tuple[Causes, np.ndarray]:
    """Causes of all columns together, and the polarity of the columns."""
    polarity = np.ones(source.n_features, dtype=np.int8)
    if settings.refine and settings.polarity:
        polarity = choose_polarity(patterns, settings.thresholds, rng)
    learned = _learn_as_read(source, patterns, settings, rng, report, polarity)
    if learned.network.n_classes == 1 or not settings.polarity:
        return learned, polarity
    # An and of causes is an or of their absence.
    other = _learn_as_read(source, patterns, settings, rng, report, -polarity)
    gain = network_bic(learned.network, patterns.turn(polarity))
    gain -= network_bic(other.network, patterns.turn(-polarity))
    return (other, -polarity) if gain > 2.0 * LEAST_GAIN else (learned, polarity)


def _learn_as_read(source, patterns, settings, rng, report, polarity) -> Causes:
    """Learn a table of which some columns are read as their opposite."""
    if (polarity < 0).any():
        source, patterns = source.turn(polarity), patterns.turn(polarity)
    found = discover(source, settings.thresholds, settings.max_depth, report)
    if not settings.refine:
        return found
    start, dependence = found.network, settings.dependence
    network = refine_network(source, patterns, start, dependence, rng, report)
    depth, quartets = assign_quartets(network.structure, found)
    # By depth, then by the number of features that latents switch on.
    effect = network.prior * (1.0 - network.failure).sum(axis=1)
    order = np.lexsort((-effect, depth))
    network = network._keep(order)
    errors = search_errors(network, patterns, rng)
    return Causes(network, depth[order], quartets[order], *errors)


def thin(patterns: Patterns, most: int, rng) -> Patterns:
    """A sample of the rows, if there are too many distinct ones."""
    weights = patterns.weights
    if len(weights) <= most:
        return patterns
    scaled = weights * (len(weights) / weights.sum())
    drawn = thinned_weights(scaled, most, rng.random_sample())
    squares = patterns.squares
    if squares is not None:
        # A heavy row that is drawn twice is still one row.
        squares = drawn * np.maximum(1.0, drawn / patterns.copies)
    return patterns._replace(weights=drawn, squares=squares).take(drawn > 0)


def scored_rows(patterns: Patterns, structure) -> Patterns:
    """The rows whose likelihood is computed at the end of a fit: all, or a sample."""
    largest = max((len(part.latents) for part in components(structure)), default=0)
    most = SCORED_ROWS[int(largest > MAX_COUPLED)]
    return thin(patterns, most, np.random.RandomState(0))


def refine_network(
    source: BlockMoments, patterns, start: NoisyOrNetwork, dependence, rng, report=None
) -> NoisyOrNetwork:
    """Search by likelihood, from what quartets found."""
    # Two threads on small matrices take longer than one.
    with threadpool_limits(1):
        few, rows = thin(patterns, FIRST_ROWS, rng), thin(patterns, MOST_ROWS, rng)
        first = search_independent(few, start, FIRST_ROUNDS, report)
        found = [Search(rows, report).run(first.parameters).parameters]
        if dependence:
            above = classes_above(found[0], rows)
            found += [above] if above.n_classes > 1 else []
        finished = [
            _climb(network, rows, FINE, FINAL_STEPS, FINAL_TOLERANCE).state
            for network in found
        ]
        if len(rows.weights) < len(patterns.weights):
            finished = [_polish(network, source) for network in finished]
    if len(finished) == 1:
        return finished[0]
    return min(finished, key=lambda network: network_bic(network, patterns))


def _climb(start: NoisyOrNetwork, patterns: Patterns, width, steps, tol):
    """EM to the end, or as far as many rows allow."""
    beam = Beam(patterns, start.n_latents, width)
    most = int(np.clip(STEPPED_VALUES // max(1, patterns.on.size), *steps))
    return climb_beams(start, [beam], tol=tol, max_iter=most)


def _polish(network, source: BlockMoments) -> NoisyOrNetwork:
    """EM steps over all blocks, wherever they are."""
    for _ in range(POLISHING_STEPS):
        expected = source.sum(expect_block, network, POLISHED_VALUES)
        network = maximize(network, expected, smooth=True)
    return network


def network_bic(network: NoisyOrNetwork, patterns: Patterns) -> float:
    """The BIC as users see it, of all rows or of some."""
    rows, n_rows = scored_rows(patterns, network.structure), patterns.weights.sum()
    found = infer_network(network, rows.on, rows.observed)
    log_likelihood = rows.weights @ found.log_likelihood * n_rows / rows.weights.sum()
    return bic(log_likelihood, network.n_parameters, n_rows)


def classes_above(independent: NoisyOrNetwork, patterns: Patterns) -> NoisyOrNetwork:
    """The same latents, under as many classes as the BIC of the whole supports."""
    n_rows, n_features = float(patterns.weights.sum()), patterns.on.shape[1]
    most = min(n_rows / ROWS_PER_PARAMETER, 2.0**n_features - 1.0)
    first = Beam(patterns, independent.n_latents)
    first.search(independent._clipped())

    def fit(n_classes):
        start = independent
        if n_classes > 1:
            start = _with_classes(independent, first, n_classes)
        ascent = _climb(start, patterns, first.width, STEPS, TOLERANCE)
        return ascent.state, ascent.objective

    def cost(fitted) -> float:
        network, log_likelihood = fitted
        if network.n_classes > 1 and network.n_parameters > most:
            return np.inf
        return bic(log_likelihood, network.n_parameters, n_rows)

    # A class for each latent could be a mixture in the dress of latents.
    sizes = range(1, max(2, independent.n_latents))
    return grow(fit, sizes, cost).best[0]


def _with_classes(
    network: NoisyOrNetwork, beam: Beam, n_classes: int
) -> NoisyOrNetwork:
    """Classes that begin with rows of their own, as in a clustering of the latents."""
    rng, posterior = np.random.RandomState(0), beam.posterior
    chance, seeds = beam.patterns.weights, []
    for _ in range(n_classes):
        seeds.append(int(rng.choice(len(chance), p=chance / chance.sum())))
        apart = ((posterior[:, None] - posterior[seeds]) ** 2).sum(axis=2).min(axis=1)
        chance = beam.patterns.weights * apart + 1e-12
    prior = 0.5 * posterior[seeds] + 0.5 * network.prior
    weight = np.full(n_classes, 1.0 / n_classes)
    return network._with(class_weight=weight, class_prior=clip_probability(prior))


def assign_quartets(structure, found: Causes) -> tuple[np.ndarray, np.ndarray]:
    """Depth and quartet of each latent, those of the most similar one that has some."""
    depth = np.full(len(structure), np.inf)
    quartets = np.full((len(structure), 4), -1, dtype=np.int64)
    if not len(found.depth):
        return depth, quartets
    edges, others = structure.astype(float), found.network.structure.astype(float)
    common = edges @ others.T
    union = edges.sum(axis=1)[:, None] + others.sum(axis=1) - common
    inside = structure[:, found.quartets].all(axis=2)
    likeness = np.where(inside, common / np.maximum(union, 1.0), 0.0)
    best = likeness.argmax(axis=1)
    sure = likeness.max(axis=1) > LEAST_LIKENESS
    depth[sure] = found.depth[best[sure]]
    quartets[sure] = found.quartets[best[sure]]
    return depth, quartets


def search_errors(network: NoisyOrNetwork, patterns: Patterns, rng):
    """Standard errors by likelihood, from a sample of the rows if there are many."""
    sample = thin(patterns, ERROR_ROWS, rng)
    with threadpool_limits(1):
        beam = Beam(sample, network.n_latents, FINE)
        beam.search(network._clipped())
        errors = errors_of(network._clipped(), beam)
    scale = np.sqrt(sample.weights.sum() / patterns.weights.sum())
    return scale * errors[0], scale * errors[1]


def choose_polarity(patterns: Patterns, thresholds, rng) -> np.ndarray:
    """Which columns to read as their opposite: -1, or 1 as they are.

    Causes that switch features on make them depend on each other positively. Votes,
    reverse-scored items and wrong answers among right ones depend negatively on the
    rest.
    """
    as_it_is = np.ones(patterns.on.shape[1], dtype=np.int8)
    polarity = propose_polarity(patterns)
    if polarity is None:
        return as_it_is
    sample = thin(patterns, JUDGING_ROWS, rng)
    ways = (as_it_is, polarity, -polarity)
    scores = [_short_score(sample.turn(way), thresholds) for way in ways]
    scores[0] += LEAST_GAIN
    return ways[int(np.argmax(scores))]


def _short_score(patterns: Patterns, thresholds) -> float:
    """How well independent latents explain the rows, by quartets and a short search."""
    found = discover(BlockMoments.of_patterns(patterns), thresholds)
    return search_independent(patterns, found.network, JUDGING_ROUNDS).score


def propose_polarity(patterns: Patterns) -> np.ndarray | None:
    """Signs that make columns depend on each other positively; None: all are +1.

    The smaller group is -1. Its opposite, the larger group turned, is the other way to
    read the table.
    """
    z = correlations(patterns)
    z = np.where(np.abs(z) > LEAST_CORRELATION_Z, z, 0.0)
    before = _negative_share(z, np.ones(len(z)))
    if before < LEAST_SHARE:
        return None
    signs = np.where(np.linalg.eigh(z)[1][:, -1] < 0, -1.0, 1.0)
    # One column at a time, so that every change lowers the negative part.
    for _ in range(10 * len(z)):
        pull = signs * (z @ signs)
        worst = int(pull.argmin())
        if pull[worst] >= 0:
            break
        signs[worst] *= -1.0
    if _negative_share(z, signs) * LEAST_FACTOR > before:
        return None
    involved = np.any(z != 0.0, axis=1)
    if signs[involved].sum() < 0:
        signs = -signs
    signs[~involved] = 1.0
    return signs.astype(np.int8)


def correlations(patterns: Patterns) -> np.ndarray:
    """z-scores of the correlations of columns; missing values count as the mean."""
    weights, known = patterns.weights, patterns.known
    seen = np.maximum(weights @ known, 1e-300)
    centred = np.where(known, patterns.on - weights @ patterns.on / seen, 0.0)
    scale = np.sqrt(weights @ centred**2)
    centred /= np.where(scale > 1e-9, scale, np.inf)
    z = (centred * weights[:, np.newaxis]).T @ centred * np.sqrt(weights.sum())
    np.fill_diagonal(z, 0.0)
    return z


def _negative_share(z, signs) -> float:
    """Share of the squared correlations that is negative."""
    turned = z * np.outer(signs, signs)
    total = (z**2).sum()
    return float((turned[turned < 0] ** 2).sum() / total) if total else 0.0
