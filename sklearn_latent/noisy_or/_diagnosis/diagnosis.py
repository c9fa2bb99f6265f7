"""All checks of a network, and those that are cheap enough for the end of a fit."""

from __future__ import annotations

import numpy as np

from ..._core.checks import Check, Comparison, critical_z, note_certainty
from .._posterior import infer_network
from .._statistics.moments import NegativeMoments
from .._statistics.patterns import Patterns
from .completed_cells import complete
from .counts import (
    N_KINDS,
    check_negative,
    compare_pairs,
    compare_rates,
    find_duplicates,
    read_names,
)
from .inferred import (
    MOST_ROWS,
    Posteriors,
    check_latents,
    check_likelihood,
    draw_rows,
)
from .pairs import Pairs, log_loss, modelled_off, rates
from .totals import check_totals

# Rows to count at most. More would only show smaller and smaller differences.
MOST_COUNTED = 5000
# Values to look at, 128 MB as floats, unless that leaves fewer rows than these.
MOST_VALUES, LEAST_ROWS = 1 << 24, 200
# Rows whose likelihood a fit looks at.
MOST_SCORED = 1000
# Differences that a fit speaks of: of rates, and of correlations of pairs. No table
# follows a model to the last digit, so significance alone would warn of all.
LARGE_RATE, LARGE_CORRELATION = 0.05, 0.2


def diagnose_network(
    network, patterns: Patterns, feature_names, latent_names, n_learned=np.inf
) -> list[Check]:
    """All checks of a network on rows in the coding of the user.

    n_learned: rows that the network was learned from, so that other rows are allowed to
        differ by what those leave open
    """
    patterns = thin_out(patterns, MOST_COUNTED)
    sample = complete(network, patterns)
    read = sample.turn(network.polarity)
    pairs = Pairs.of(network, read)
    few = thin_out(patterns, MOST_ROWS)
    rows = whole = Posteriors.of(network, few)
    if patterns.observed is not None:
        whole = Posteriors.of(network, thin_out(sample, MOST_ROWS))
    rng = np.random.RandomState(0)
    checks = [
        check_likelihood(rows.log_likelihood, few),
        *compare_rates(network, rates(read), feature_names, n_learned).lines(),
        *compare_pairs(network, pairs, feature_names, n_learned).lines(),
        *check_negative(network, pairs, feature_names),
        *check_totals(network, read, rng, n_learned),
    ]
    if network.n_latents:
        drawn = Posteriors.of(network, draw_rows(network, whole.weights.sum(), rng))
        # That latents are independent is not learned.
        learned = n_learned if network.n_classes > 1 else np.inf
        checks += check_latents(whole, drawn, latent_names, learned)
        checks += note_certainty(latent_names, rows.told, drawn.told)
    return checks + find_duplicates(pairs, read_names(network, feature_names))


def compare_counts(
    network, patterns: Patterns, feature_names, n_learned=np.inf
) -> list[Comparison]:
    """All rates and pairs; see `diagnose_network`."""
    read = complete(network, thin_out(patterns, MOST_COUNTED)).turn(network.polarity)
    pairs = Pairs.of(network, read)
    return [
        compare_rates(network, rates(read), feature_names, n_learned),
        compare_pairs(network, pairs, feature_names, n_learned),
    ]


def contradictions(
    network, patterns: Patterns, feature_names, log_likelihood=None
) -> list[Check]:
    """Ways in which a network contradicts the rows that it was learned from.

    Cheap: rates, pairs and the likelihood against independent columns. Only differences
    that are large, and not due to chance, are returned.

    patterns: rows in the coding of the user
    log_likelihood: of each pattern, if known; else some rows are inferred
    """
    read = complete(network, thin_out(patterns, MOST_COUNTED)).turn(network.polarity)
    found = _large_differences(
        network, rates(read), Pairs.of(network, read), feature_names
    )
    if log_likelihood is None:
        patterns = thin_out(patterns, MOST_SCORED)
        log_likelihood = infer_network(
            network, patterns.on, patterns.observed
        ).log_likelihood
    likelihood = check_likelihood(log_likelihood, patterns)
    return found if likelihood.ok else [likelihood, *found]


def contradictions_of_moments(
    network, moments: NegativeMoments, feature_names, *, rough: bool
) -> list[Check]:
    """The same where rows are gone: rates, and the pairs that were counted.

    rough: parameters are so uncertain that this matters only if independent columns
        are better
    """
    sizes = (moments.sets >= 0).sum(axis=1)
    singles, pairs = sizes == 1, sizes == 2
    total = moments.total[singles]
    off = moments.off[singles] / np.maximum(total, 1e-300)
    counted = Pairs.of_off(
        network,
        off,
        moments.sets[pairs][:, -2:],
        moments.off[pairs],
        moments.total[pairs],
    )
    found = _large_differences(network, (1.0 - off, total), counted, feature_names)
    expected = modelled_off(network)
    loss = log_loss(off, expected) + log_loss(1.0 - off, 1.0 - expected)
    loss -= log_loss(off, off) + log_loss(1.0 - off, 1.0 - off)
    return found if not rough or counted.gain < float(total @ loss) else []


def _large_differences(network, known_rates, pairs: Pairs, names) -> list[Check]:
    """Rates and pairs that are far from the model, and not by chance."""
    found = [
        check
        for check in compare_rates(network, known_rates, names).lines()
        if not check.ok and abs(check.observed - check.expected) > LARGE_RATE
    ]
    gap = pairs.correlation - pairs.expected_correlation(pairs.odds)
    large = pairs.take(np.abs(gap) > LARGE_CORRELATION)
    # All pairs were looked at, large differences or not.
    limit = critical_z(len(gap), N_KINDS)
    surprising = large.take(np.abs(large.z(large.odds)) > limit)
    if len(surprising.first):
        found += compare_pairs(network, surprising, names).lines()
    return found


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


def row_limit(most: int, n_features: int) -> int:
    """Number of rows to look at, fewer if they are wide."""
    return min(most, max(LEAST_ROWS, MOST_VALUES // max(1, n_features)))


def thin_out(patterns: Patterns, most: int) -> Patterns:
    """A sample of at most so many rows, evenly over the distinct ones."""
    total = patterns.weights.sum()
    most = row_limit(most, patterns.on.shape[1])
    if total <= most:
        return patterns
    places = (np.arange(most) + 0.5) * total / most
    ends = np.cumsum(patterns.weights)
    chosen = np.minimum(np.searchsorted(ends, places, side="right"), len(ends) - 1)
    rows, counts = np.unique(chosen, return_counts=True)
    return patterns.take(rows)._replace(weights=counts.astype(np.float64))
