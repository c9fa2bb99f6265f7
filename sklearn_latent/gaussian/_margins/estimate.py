"""From a setting and rows to margins."""

from __future__ import annotations

import numpy as np

from ..._warn import warn
from ...exceptions import PoorDataWarning
from .._statistics.rows import Rows
from .choice import MOST_ROWS, choose_bent, few_values, ordered_sample
from .columns import Margins, check_margins
from .margins import Margin, NormalMargin
from .mixtures import fit_mixtures
from .sample import RowSample, SeenRows


def estimate_margins(setting, seen: Rows | SeenRows, names) -> Margins:
    """Margins of all features; None if these are their own scores."""
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
    return check_margins(resolve(setting, sample.X, sample.weights), len(names))


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


def resolve(setting, X, weights) -> list[Margin]:
    """Margins that a setting stands for, given rows to estimate them from."""
    n_features = X.shape[1]
    if isinstance(setting, Margin):
        return [setting] * n_features
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
    return [
        own if isinstance(own, Margin) else normal.get(own, margin)
        for own, margin in zip(wanted, margins, strict=True)
    ]
