"""Margins of all columns of a table: scores, values, and their plain form."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._atom_margins import AtomMargin, ConstantMargin
from ._margin_kinds import Margin, MixtureMargin, NormalMargin

WRITTEN = MixtureMargin, AtomMargin, ConstantMargin

# Of all features; None if all columns are their own scores.
Margins = tuple[Margin, ...] | None


def check_margins(margins: Any, n_features: int) -> Margins:
    """Margins of all features, or None if all columns are their own scores."""
    if margins is None:
        return None
    if isinstance(margins, str | bytes) or not isinstance(margins, Sequence):
        raise TypeError(f"margins must be a list of margins or None, got {margins!r}.")
    wrong = [margin for margin in margins if not isinstance(margin, Margin)]
    if wrong:
        raise TypeError(f"margins must hold instances of Margin, got {wrong[0]!r}.")
    if len(margins) != n_features:
        raise ValueError(
            f"margins must have one entry per feature, {n_features}, got "
            f"{len(margins)}."
        )
    bent = any(not isinstance(margin, NormalMargin) for margin in margins)
    return tuple(margins) if bent else None


def estimated(margins: Margins) -> Margins:
    """Margins as they were estimated, without those that say what is constant."""
    if margins is None:
        return None
    own = [
        NormalMargin() if isinstance(margin, ConstantMargin) else margin
        for margin in margins
    ]
    return check_margins(own, len(own))


def atom_columns(margins: Margins) -> dict[int, AtomMargin]:
    """Margins of the columns that have atoms beside a density."""
    return {j: m for j, m in bent_columns(margins) if isinstance(m, AtomMargin)}


def bent_columns(margins: Sequence[Margin] | None) -> list[tuple[int, Margin]]:
    """Numbers and margins of the columns that are not their own scores."""
    pairs = enumerate(margins or ())
    return [(j, m) for j, m in pairs if not isinstance(m, NormalMargin)]


def to_scores(margins: Sequence[Margin] | None, X) -> tuple[np.ndarray, np.ndarray]:
    """Scores of rows, NaN where values are missing, and sums of the log-slopes.

    X (n_samples, n_features) -> scores (n_samples, n_features), log_slope (n_samples,).
    """
    Z = np.array(X, dtype=float)
    log_slope = np.zeros(len(Z))
    for column, margin in bent_columns(margins):
        seen = ~np.isnan(Z[:, column])
        values = Z[seen, column]
        Z[seen, column], slopes = margin.scored(values)
        if not np.isfinite(Z[seen, column]).all() or not (slopes < np.inf).all():
            raise ValueError(
                f"margins must give finite scores, got others of {margin!r} for values "
                f"of column {column} from {values.min():g} to {values.max():g}."
            )
        log_slope[seen] += slopes
    return Z, log_slope


def to_values(margins: Sequence[Margin] | None, Z) -> np.ndarray:
    """Values of the columns from the scores of rows."""
    X = np.array(Z, dtype=float)
    for column, margin in bent_columns(margins):
        X[:, column] = margin.values(X[:, column])
    return X


def expected_values(margins, mean, variance, where) -> np.ndarray:
    """Expected values of nodes whose scores have these means and variances.

    mean, variance, where: (n_samples, n_nodes); only cells of `where` are computed.
    """
    expected = np.array(mean, dtype=float)
    for column, margin in bent_columns(margins):
        rows = where[:, column]
        expected[rows, column] = margin.expectation(
            mean[rows, column], variance[rows, column]
        )
    return expected


@dataclass(frozen=True)
class MarginsField:
    """Margins of a network in its plain form; normal ones are null."""

    omitted: bool = True

    def encode(self, value):
        """List of plain forms."""
        return [self._plain(margin) for margin in value]

    @staticmethod
    def _plain(margin):
        if isinstance(margin, NormalMargin):
            return None
        if isinstance(margin, WRITTEN):
            return margin.to_dict()
        raise ValueError(
            f"Only normal and smooth margins can be written, got {margin!r}."
        )

    def decode(self, name, value):
        """List of margins."""
        if type(value) is not list:
            raise ValueError(f"{name} must be a list, got {type(value).__name__}.")
        return [
            NormalMargin() if plain is None else _margin_type(plain).from_dict(plain)
            for plain in value
        ]


def _margin_type(plain) -> Any:
    """The class that a plain form names; its own check says if that is wrong."""
    name = plain.get("type") if isinstance(plain, dict) else None
    return next((kind for kind in WRITTEN if kind.__name__ == name), MixtureMargin)
