"""Samples of distinct rows, for searches and for judging them."""

from __future__ import annotations

import numpy as np

from .._statistics.patterns import Patterns, components

# Coupled latents whose states are enumerated, and numbers of rows whose likelihood is
# computed at the end of a fit: within that reach, and beyond it.
MAX_COUPLED, SCORED_ROWS = 12, (200_000, 2000)

# Rows of a pattern that are drawn one by one.
MOST_DRAWN = 2**30

# Rows times features times EM steps of a fit: some seconds.
STEPPED_VALUES = 2**21


def affordable_steps(patterns: Patterns, least: int, most: int) -> int:
    """EM steps from a good start: many on small tables, where they cost nothing."""
    return int(np.clip(STEPPED_VALUES // max(1, patterns.on.size), least, most))


def thin(patterns: Patterns, most: int, rng) -> Patterns:
    """A random sample of the rows, if there are too many distinct ones."""
    if len(patterns.weights) <= most:
        return patterns
    share = patterns.weights / patterns.weights.sum()
    drawn = rng.multinomial(most, share).astype(float)
    squares = patterns.squares
    if squares is not None:
        # A heavy row that is drawn twice is still one row.
        squares = drawn * np.maximum(1.0, drawn / patterns.copies)
    return patterns._replace(weights=drawn, squares=squares).take(drawn > 0)


def folds(patterns: Patterns, n_folds: int, rng) -> list[tuple[Patterns, Patterns]]:
    """Rows to learn from and rows to judge by; each row judges once.

    A pattern of w copies is w rows, each of which goes its own way, so that it may be
    in both; what is left of a row always learns.
    """
    copies = patterns.copies
    unit = patterns.weights / copies
    left = np.floor(copies)
    splits = []
    for n_left in range(n_folds, 0, -1):
        # Of very many rows the share is as good as certain.
        many = left > MOST_DRAWN
        held = rng.binomial(np.where(many, 0, left).astype(np.int64), 1.0 / n_left)
        held = np.where(many, np.floor(left / n_left), held)
        left = left - held
        kept = copies - held
        splits.append(
            (
                patterns._replace(weights=kept * unit, squares=None).take(kept > 0),
                patterns._replace(weights=held * unit, squares=None).take(held > 0),
            )
        )
    return splits


def scored_rows(patterns: Patterns, structure) -> Patterns:
    """The rows whose likelihood is computed at the end of a fit: all, or a sample."""
    largest = max((len(part.latents) for part in components(structure)), default=0)
    most = SCORED_ROWS[int(largest > MAX_COUPLED)]
    return thin(patterns, most, np.random.RandomState(0))
