"""From a setting and rows to margins."""

from __future__ import annotations

import numpy as np

from ..._core.warn import warn
from ...exceptions import PoorDataWarning
from .._statistics.rows import Rows
from .atoms import AtomMargin, find_atoms
from .choice import MOST_ROWS, choose_bent, few_values, ordered_sample
from .columns import Margins, check_margins
from .margins import Margin, MixtureMargin, NormalMargin
from .mixtures import fit_mixtures
from .sample import RowSample, SeenRows

# Values beside atoms below which a column has no density to speak of.
FEWEST_VALUES = 8


def estimate_margins(setting, seen: Rows | SeenRows, names, *, atoms: bool) -> Margins:
    """Margins of all features; None if these are their own scores.

    atoms: whether frequent values may have a probability
    """
    if isinstance(setting, str) and setting == "normal":
        return None
    if isinstance(seen, SeenRows):
        sample = seen.sample
    else:
        sample = RowSample.of(seen.X, seen.weights)
    if sample is None:
        raise ValueError(
            "margins must stay 'normal' once partial_fit or fit had them so, because "
            f"no rows were kept, got {setting!r}."
        )
    _warn_few_values(sample, names)
    return check_margins(
        resolve(setting, sample.X, sample.weights, atoms=atoms), len(names)
    )


def _warn_few_values(sample: RowSample, names) -> None:
    """Say which features have so few different values that they have no density."""
    X = sample.X
    if len(X) > MOST_ROWS:
        X = ordered_sample(X, sample.weights)[0]
    few = np.flatnonzero(few_values(X))
    if len(few):
        shown = ", ".join(names[i] for i in few[:10])
        warn(
            f"{len(few)} of {len(names)} features have few different values, as counts "
            f"and grades have, and are treated as continuous ones: {shown}"
            f"{', ...' if len(few) > 10 else ''}.",
            PoorDataWarning,
        )


def resolve(setting, X, weights, *, atoms: bool = True) -> list[Margin]:
    """Margins that a setting stands for, given rows to estimate them from."""
    n_features = X.shape[1]
    if isinstance(setting, Margin):
        return [setting] * n_features
    X, found = _without_atoms(X, weights) if atoms else (X, {})
    margins = fit_mixtures(X, weights)
    wanted: list = [setting] * n_features if isinstance(setting, str) else list(setting)
    if len(wanted) != n_features:
        raise ValueError(
            f"margins must have one entry per feature, {n_features}, got {len(wanted)}."
        )
    if setting == "auto":
        bent = choose_bent(X, weights, margins)
        wanted = ["smooth" if smooth else "normal" for smooth in bent]
    normal = {"normal": NormalMargin()}
    chosen = [
        own if isinstance(own, Margin) else normal.get(own, margin)
        for own, margin in zip(wanted, margins, strict=True)
    ]
    for column, (places, share) in found.items():
        if not isinstance(setting, str) and setting[column] != "smooth":
            continue
        rest = chosen[column]
        if not isinstance(rest, MixtureMargin):
            seen = ~np.isnan(X[:, column])
            values, own = X[seen, column], weights[seen]
            mean = np.average(values, weights=own)
            spread = np.sqrt(np.average((values - mean) ** 2, weights=own))
            rest = MixtureMargin([1.0], [mean], [spread])
        chosen[column] = AtomMargin(places, share, rest)
    return chosen


def _without_atoms(X, weights) -> tuple[np.ndarray, dict]:
    """Rows without the values that have a probability, and these, by column.

    Counts and grades have no density beside them.
    """
    rest, found = X.copy(), {}
    for column in np.flatnonzero(~few_values(X)):
        values, share = find_atoms(X[:, column], weights)
        if not len(values):
            continue
        left = np.where(np.isin(X[:, column], values), np.nan, X[:, column])
        if len(np.unique(left[~np.isnan(left)])) >= FEWEST_VALUES:
            rest[:, column], found[column] = left, (values, share)
    return rest, found
