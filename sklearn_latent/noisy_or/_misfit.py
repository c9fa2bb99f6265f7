"""Whether rows follow a noisy-or network: for `diagnose`, and what `fit` checks."""

from __future__ import annotations

import numpy as np
from scipy import special

from .._answers.diagnosis import Posteriors, Subject, compare_latents
from .._answers.statistics import MOST_PAIRED, MOST_ROWS, Mark, row_limit
from .._core.checks import (
    N_KINDS,
    Check,
    Comparison,
    compare_likelihoods,
    count_z,
    critical_z,
    note_certainty,
    table_z,
)
from .._tables.thin import thinned_weights
from ._posterior import infer_network
from ._probabilities import log_not, safe_log
from ._statistics.moments import NegativeMoments
from ._statistics.patterns import Patterns, turn

# Rows to infer at most, as many as are drawn; rows of which a fit knows the likelihood.
MOST_INFERRED, MOST_SCORED = 2000, 1000
# Values that a fit counts, 128 MB as floats.
MOST_VALUES = 1 << 24
# Differences that a fit speaks of: of rates, and of correlations of pairs. No table
# follows a model to the last digit, so significance alone would warn of all.
LARGE_RATE, LARGE_CORRELATION = 0.05, 0.2
# Correlation from which two features say the same.
SAME = 0.95
# Rounds of Gibbs sampling, from latents that are drawn one by one. What these lack is
# how latents explain each other away, of which a round makes up for most.
ROUNDS = 10
# Stands for log(0) in sums of which parts are taken away again.
LOG_NEVER = -700.0


def subject_of(
    network, patterns: Patterns, feature_names, latent_names, n_learned=np.inf
) -> Subject:
    """Rows in the coding of the user, prepared for a diagnosis.

    n_learned: rows that the network was learned from, so that other rows are allowed to
        differ by what those leave open
    """
    patterns = thin_out(patterns, row_limit(network.n_features))
    sample = complete(network, patterns)
    names = read_names(network, feature_names)
    flipped = network.polarity < 0
    few = thin_out(patterns, MOST_INFERRED)
    found = infer_network(network, few.on, few.observed)
    subject = Subject(
        _rows(sample.turn(network.polarity)).astype(np.int8)[:, np.newaxis],
        lambda n, rng: (network.sample(n, rng)[0] ^ flipped)[:, np.newaxis],
        [Mark(j, name, 1) for j, name in enumerate(names)],
        names,
        _check_likelihood(found.log_likelihood, few),
        n_learned=n_learned,
        scale=(1.0 - _modelled_off(network), np.ones(network.n_features)),
        same=SAME,
        causes=True,
    )
    if network.n_latents:
        rows = whole = _posteriors(found.posterior, few.weights)
        if patterns.observed is not None:
            few = thin_out(sample, MOST_INFERRED)
            posterior = infer_network(network, few.on, few.observed).posterior
            whole = _posteriors(posterior, few.weights)
        on = network.sample(MOST_INFERRED, np.random.RandomState(0))[0] == 1
        drawn = _posteriors(
            infer_network(network, on, None).posterior, np.ones(len(on))
        )
        # That latents are independent is not learned.
        learned = n_learned if network.n_classes > 1 else np.inf
        subject.others = [
            *compare_latents(whole, drawn, latent_names, learned).lines(),
            *note_certainty(latent_names, rows.told, drawn.told),
        ]
    return subject


def _posteriors(posterior, weights) -> Posteriors:
    """Posteriors of latents, each row as often as it counts."""
    posterior = np.repeat(posterior, np.rint(weights).astype(np.intp), axis=0)
    return Posteriors(posterior, posterior * (1.0 - posterior))


def _rows(patterns: Patterns) -> np.ndarray:
    """Rows, each as often as it counts."""
    return np.repeat(patterns.on, np.rint(patterns.weights).astype(np.intp), axis=0)


def read_names(network, names) -> list[str]:
    """Names of features as the network reads them."""
    pairs = zip(names, network.polarity, strict=True)
    return [f"not {name}" if sign < 0 else str(name) for name, sign in pairs]


def thin_out(patterns: Patterns, most: int) -> Patterns:
    """A sample of at most so many rows, evenly over the distinct ones."""
    if patterns.weights.sum() <= most:
        return patterns
    weights = thinned_weights(patterns.weights, most)
    kept = np.flatnonzero(weights)
    return patterns.take(kept)._replace(weights=weights[kept])


def _check_likelihood(log_likelihood, patterns: Patterns) -> Check:
    """Likelihood of rows against that of independent columns, fitted to them.

    Constant columns count as fitted, too, because a learned probability is never 0.
    """
    weights, known = patterns.weights, patterns.known
    count = weights @ known
    rate = (weights @ patterns.on) / np.maximum(count, 1e-300)
    alone = special.xlogy(patterns.on, rate)
    alone += special.xlog1py(known & ~patterns.on, -rate)
    n_free = (count > 0).sum()
    return compare_likelihoods(
        log_likelihood, alone.sum(axis=1), n_free, weights=weights
    )


# Missing values


def complete(network, patterns: Patterns) -> Patterns:
    """Rows with a draw from the network for each missing value, given the others.

    If the network is right and values are missing at random, completed rows follow it.
    So checks need not know which values were missing, nor what that depends on.
    """
    if patterns.observed is None:
        return patterns
    full = patterns.observed.all(axis=1)
    gaps = patterns.take(~full)
    # Rows that show the same need not miss the same.
    copies = np.ceil(gaps.weights).astype(np.intp)
    rows = np.repeat(np.arange(len(copies)), copies)
    on = _draw(network, gaps.take(rows), np.random.RandomState(0))
    drawn = Patterns(on, None, (gaps.weights / copies)[rows])
    return Patterns.merge([patterns.take(full)._replace(observed=None), drawn])


def _draw(network, gaps: Patterns, rng) -> np.ndarray:
    """Values of all features given some, by Gibbs sampling of the latents."""
    found = infer_network(network, gaps.on, gaps.observed)
    gaps = gaps.turn(network.polarity)
    on, observed = gaps.on, gaps.known
    label = np.zeros(len(on), dtype=np.intp)
    if network.n_classes > 1:
        ends = found.class_posterior.cumsum(axis=1)[:, :-1]
        label = (rng.random_sample((len(on), 1)) > ends).sum(axis=1)
    draws = rng.random_sample(found.posterior.shape)
    latents = (draws < found.posterior).astype(np.float64)
    log_odds = special.logit(network.class_prior)[label]
    log_failure = np.maximum(safe_log(network.failure), LOG_NEVER)
    log_off = np.maximum(safe_log(1.0 - network.leak), LOG_NEVER)
    log_off = log_off + latents @ log_failure
    for _ in range(ROUNDS):
        for k in range(network.n_latents):
            own = np.flatnonzero(network.structure[k])
            effect = log_failure[k, own]
            others = log_off[:, own] - np.multiply.outer(latents[:, k], effect)
            others = np.minimum(others, 0.0)
            # A feature that is on, and that nothing else explains, leaves no doubt.
            ratio = log_not(others + effect) - log_not(others)
            evidence = np.where(on[:, own], ratio, effect) * observed[:, own]
            odds = log_odds[:, k] + evidence.sum(axis=1)
            latents[:, k] = rng.random_sample(len(on)) < special.expit(odds)
            log_off[:, own] = others + np.multiply.outer(latents[:, k], effect)
    drawn = np.where(observed, on, rng.random_sample(on.shape) >= np.exp(log_off))
    return turn(drawn, None, network.polarity)


# What a fit checks


def counted_rows(n_features: int) -> int:
    """Number of rows that a fit counts at most, fewer if they are wide."""
    return int(np.clip(MOST_VALUES // max(n_features, 1), 200, MOST_ROWS))


def contradictions(
    network, patterns: Patterns, feature_names, log_likelihood=None
) -> list[Check]:
    """Ways in which a network contradicts the rows that it was learned from.

    Cheap: rates, pairs and the likelihood against independent columns. Only differences
    that are large, and not due to chance, are returned.

    patterns: rows in the coding of the user
    log_likelihood: of each pattern, if known; else some rows are inferred
    """
    some = thin_out(patterns, counted_rows(network.n_features))
    read = complete(network, some).turn(network.polarity)
    off = ~read.on * 1.0
    share = read.weights / read.weights.sum()
    rate = np.clip(share @ off, 0.0, 1.0)
    order = np.argsort(-rate * (1.0 - rate), kind="stable")[:MOST_PAIRED]
    varied = np.sort(order)
    both = (off[:, varied] * share[:, np.newaxis]).T @ off[:, varied]
    i, j = np.triu_indices(len(varied), 1)
    pairs = np.column_stack([varied[i], varied[j]])
    total = np.full(max(len(rate), len(pairs)), read.weights.sum())
    found = _large_differences(
        network,
        (rate, total[: len(rate)]),
        (pairs, both[i, j], total[: len(pairs)]),
        feature_names,
    )
    if log_likelihood is None:
        patterns = thin_out(patterns, MOST_SCORED)
        log_likelihood = infer_network(
            network, patterns.on, patterns.observed
        ).log_likelihood
    likelihood = _check_likelihood(log_likelihood, patterns)
    return found if likelihood.ok else [likelihood, *found]


def contradictions_of_moments(
    network, moments: NegativeMoments, feature_names, *, rough: bool
) -> list[Check]:
    """The same where rows are gone: rates, and the pairs that were counted.

    rough: parameters are so uncertain that this matters only if independent columns
        are better
    """
    sizes = (moments.sets >= 0).sum(axis=1)
    singles, pairs = sizes == 1, (sizes == 2) & (moments.total > 0)
    total = np.maximum(moments.total, 1e-300)
    off = moments.off / total
    columns = off[singles], moments.total[singles]
    tables = moments.sets[pairs][:, -2:], off[pairs], total[pairs]
    if rough and _gain(network, *columns, *tables) >= 0.0:
        return []
    return _large_differences(network, columns, tables, feature_names)


def _gain(network, off, total_off, pairs, both_off, total) -> float:
    """Log-likelihood of columns and pairs, less that of independent columns.

    Of pairs given the rates of both, so that a rate that is off counts once.
    """
    expected = _modelled_off(network)
    rates = np.stack([off, 1.0 - off])
    ratio = _log_ratio(rates, [expected, 1.0 - expected])
    gain = float(total_off @ (rates * ratio).sum(axis=0))
    one, two = off[pairs].T
    both = _at_rates(network.negative_moment(pairs), expected[pairs].T, one, two)
    ratio = _log_ratio(_cells(one * two, one, two), _cells(both, one, two))
    return gain + float(total @ (_cells(both_off, one, two) * ratio).sum(axis=0))


def _at_rates(both, expected, one, two) -> np.ndarray:
    """P(both off) if the odds ratio of a model held at other rates (Plackett, 1965).

    A correlation may be out of reach at other rates.
    """
    cells = np.maximum(_cells(both, *expected), 1e-12)
    odds = cells[0] * cells[3] / (cells[1] * cells[2])
    total = 1.0 + (one + two) * (odds - 1.0)
    root = np.sqrt(np.maximum(total**2 - 4.0 * odds * (odds - 1.0) * one * two, 0.0))
    # Two ways to write a root of the same equation, each where it does not cancel.
    usual = total > 0.0
    found = 2.0 * odds * one * two / np.where(usual, total + root, 1.0)
    other = (total - root) / np.where(usual, 1.0, 2.0 * (odds - 1.0))
    return np.where(usual, found, other)


def _log_ratio(before, after) -> np.ndarray:
    """Logarithm of the quotient of probabilities."""
    before, after = np.maximum(before, 1e-12), np.maximum(after, 1e-12)
    return np.log(after / before)


def _cells(both, one, two) -> np.ndarray:
    """All four cells of tables of pairs, (4, n_pairs)."""
    cells = both, one - both, two - both, 1.0 - one - two + both
    return np.maximum(np.stack(cells), 0.0)


def _modelled_off(network) -> np.ndarray:
    """P(feature off) as the network reads it."""
    return network.negative_moment(np.arange(network.n_features)[:, np.newaxis])


def _correlation(both, one, two) -> np.ndarray:
    spread = np.sqrt(np.maximum(one * (1.0 - one) * two * (1.0 - two), 0.0))
    zeros = np.zeros_like(both)
    return np.divide(both - one * two, spread, out=zeros, where=spread > 1e-9)


def _large_differences(network, columns, tables, feature_names) -> list[Check]:
    """Rates and pairs that are far from the model, and not by chance.

    columns: shares of rows in which features are off, and their numbers; tables: pairs
    of features, shares in which both are off, and numbers of rows
    """
    (off, known), (pairs, both, total) = columns, tables
    names = read_names(network, feature_names)
    expected = _modelled_off(network)
    z = count_z(
        *(known * p for p in (1 - off, 1 - expected, expected * (1 - expected)))
    )
    rates = Comparison(
        "rate",
        lambda j: names[j],
        1.0 - off,
        1.0 - expected,
        np.where(known > 0, z, 0.0),
        critical_z(len(z), N_KINDS),
    )
    far = np.abs(off - expected) > LARGE_RATE
    found = rates.worst(far)
    if not len(pairs):
        return found
    r = _correlation(both, *off[pairs].T)
    given = _at_rates(network.negative_moment(pairs), expected[pairs].T, *off[pairs].T)
    rho = _correlation(given, *off[pairs].T)
    one, two = (1.0 - off[pairs]).T
    z = table_z(r, rho, one, two, total)

    def name(p):
        return ", ".join(names[j] for j in pairs[p])

    limit = critical_z(len(z), N_KINDS)
    both_kinds = Comparison("pair", name, r, rho, z, limit)
    return found + both_kinds.worst(np.abs(r - rho) > LARGE_CORRELATION)


def misfit_message(checks: list[Check]) -> str:
    """What to say of contradictions, with one example of each kind."""
    parts = []
    kinds = {check.check for check in checks}
    if "likelihood" in kinds:
        parts.append("its likelihood is below that of independent columns")
    for kind, noun in (("rate", "rates of features"), ("pair", "pairs of features")):
        lines = [check for check in checks if check.check == kind]
        if lines:
            worst = lines[0]
            parts.append(
                f"{noun} differ, as of {worst.what}: {worst.observed:.3g} observed, "
                f"{worst.expected:.3g} expected"
            )
    return (
        f"The model contradicts its training data: {'; '.join(parts)}. "
        "diagnose(X) shows more."
    )
