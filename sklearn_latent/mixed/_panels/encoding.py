"""Panels as integer codes: categories of any label type, bins of numbers, gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from ..._core.warn import warn
from ..._tables.odd_columns import Column
from ..._tables.schema import (
    MAX_LABELS,
    MISSING,
    OTHERS,
    Feature,
    check_slices,
    is_missing,
    numbers_or_nan,
)
from ...exceptions import PoorDataWarning
from .panel import DEFAULT_KINDS as LABELS
from .panel import Panel

# Kinds of emissions by which features begin, and may go on, if nothing is requested.
NORMAL = ("gaussian", "gaussian memory")
LOGARITHMIC = ("lognormal", "lognormal memory")
NUMERIC = (*NORMAL, *LOGARITHMIC)
ORDERED = ("ordinal", "ordinal memory", *LABELS)


@dataclass
class PanelEncoder:
    """Turn values into codes 0, 1, ... per feature, and back.

    A feature has the same categories in all slices. Labels of any type are
    categories, and so are numbers if there are few and all are integers. Other
    numbers stay numbers, unless an emission of categories is requested; either way they
    have codes too, those of bins of about equal weight. Of many labels the rare ones
    are one category; labels that name the rows are none, and count as missing.

    n_bins: number of bins of a numeric feature
    max_categories: most values of a feature of integers that stay categories
    requested: kind of emission of each feature; "auto" follows from the values, and so
        do all if it is None
    orders: labels of features that the table says are categories, by number of the
        feature, if it says their order, else none
    names: of the features, for messages; None numbers them
    features_: labels and bins
    kinds_: kinds of emissions that each feature may have, the first to begin with
    """

    n_bins: int = 4
    max_categories: int = 10
    requested: Sequence[str] | None = None
    orders: Mapping[int, Sequence] = field(default_factory=dict)
    names: Sequence | None = None
    features_: list[Feature] = field(default_factory=list, init=False)
    kinds_: list = field(default_factory=list, init=False)

    def name_of(self, j: int) -> str:
        """What to call a feature in a message."""
        return f"feature {j}" if self.names is None else repr(self.names[j])

    def names_of(self, features) -> str:
        """What to call several features in a message."""
        return ", ".join(map(self.name_of, features))

    @property
    def n_categories(self) -> np.ndarray:
        """Number of categories or bins of each feature; at least 1."""
        return np.array([max(len(f.labels), 1) for f in self.features_], dtype=int)

    @property
    def set_aside(self) -> np.ndarray:
        """Features whose labels name the rows."""
        return np.flatnonzero([feature.names_rows for feature in self.features_])

    @property
    def labels(self) -> list:
        """Labels of each feature by code; none for numbers."""
        pairs = zip(self.features_, self.is_numeric, strict=True)
        return [np.empty(0) if numeric else f.labels for f, numeric in pairs]

    @property
    def is_numeric(self) -> np.ndarray:
        """Which features stay numbers."""
        return np.array([kinds[0] in NUMERIC for kinds in self.kinds_], dtype=bool)

    def fit(self, panel, sample_weight=None) -> PanelEncoder:
        """Learn the categories and bins of each feature."""
        n, n_slices, n_observed = panel.shape
        weights = np.ones(n) if sample_weight is None else sample_weight
        # A sequence of weight 0 is not there, so it brings no category either.
        panel = panel[weights > 0]
        weights = np.repeat(weights[weights > 0], n_slices)
        found = [
            self._fit_feature(panel[:, :, j], weights, j) for j in range(n_observed)
        ]
        self.features_, self.kinds_ = map(list, zip(*found, strict=True))
        self._warn_of_labels()
        return self

    def _warn_of_labels(self):
        """Say which features are set aside, and which have rare labels that are one."""
        if len(self.set_aside):
            warn(
                "Features whose labels are nearly all different name the rows and are "
                f"set aside, as if missing: {self.names_of(self.set_aside[:10])}. They "
                "measure no latent; consider leaving them out.",
                PoorDataWarning,
            )
        merged = [j for j, f in enumerate(self.features_) if f.others and f.others > 0]
        if merged:
            warn(
                f"Features with many labels: {self.names_of(merged[:10])}. All but the "
                f"{MAX_LABELS - 1} most frequent of each are one category, {OTHERS!r}.",
                PoorDataWarning,
            )

    def _fit_feature(self, values, weights, j) -> tuple[Feature, tuple[str, ...]]:
        """Labels or bins, and kinds of emissions; values (n, n_slices)."""
        name, order = self.name_of(j), self.orders.get(j)
        kind = "auto" if self.requested is None else self.requested[j]
        flat = values.ravel()
        is_plain = flat.dtype.kind in "biuf"
        column = Column(j, None, flat if is_plain else flat.astype(object))
        known = ~column.missing
        is_plain = is_plain or column.kind == "numbers"
        if not is_plain or (order is not None and kind not in NUMERIC):
            if kind in NUMERIC:
                raise ValueError(
                    f"emissions must be {kind!r} for features of numbers alone, got "
                    f"other labels in {name}."
                )
            check_slices(values, name)
            feature = Feature.of_labels(
                name, column, weights[known], order, self.max_categories
            )
            auto = ORDERED if feature.is_ordered else LABELS
            return feature, auto if kind == "auto" else (kind,)
        numbers = column.known.astype(np.float64)
        feature = Feature.of_numbers(
            name, numbers, weights[known], self.n_bins, self.max_categories
        )
        if kind in LOGARITHMIC and numbers.min(initial=1.0) <= 0:
            raise ValueError(
                f"emissions must be {kind!r} for features of positive numbers alone, "
                f"got {numbers.min():g} in {name}."
            )
        if kind != "auto":
            return feature, (kind,)
        is_few = feature.edges is None
        return feature, LABELS if is_few else _numeric_kinds(numbers, weights[known])

    def panel(self, values, sample_weight=None) -> Panel:
        """Encoded sequences."""
        weights = np.ones(len(values)) if sample_weight is None else sample_weight
        codes, numbers = self.encode(values), None
        if self.is_numeric.any():
            numbers = np.full(values.shape, np.nan)
            for j in np.flatnonzero(self.is_numeric):
                known = ~is_missing(values[:, :, j])
                numbers[known, j] = numbers_or_nan(values[known, j])
        return Panel(
            codes,
            np.asarray(weights, dtype=float),
            self.n_categories,
            tuple(self.kinds_),
            numbers,
        )

    def encode(self, panel) -> np.ndarray:
        """Codes of a panel."""
        if panel.shape[2] != len(self.features_):
            raise ValueError(
                f"X must have {len(self.features_)} features per slice, as in fit, "
                f"got {panel.shape[2]}."
            )
        codes = np.full(panel.shape, MISSING, dtype=np.int64)
        unseen = []
        for j, feature in enumerate(self.features_):
            known = ~is_missing(panel[:, :, j])
            values = panel[known, j]
            found = feature.encode(values)
            if feature.others is not None:
                found[found == MISSING] = feature.others
            elif (found == MISSING).any():
                example = values[found == MISSING][:1].tolist()[0]
                unseen.append(f"{feature.name} ({example!r})")
            codes[known, j] = found
        if unseen:
            warn(
                "X has categories that were not seen in fit and count as missing: "
                f"{', '.join(unseen)}.",
                PoorDataWarning,
            )
        return codes

    def decode(self, codes) -> np.ndarray:
        """Labels of codes; numbers stay as they are."""
        codes = np.asarray(codes)
        numeric = all(feature.labels.dtype.kind != "O" for feature in self.features_)
        values = np.empty(codes.shape, dtype=float if numeric else object)
        gap = np.array([np.nan if numeric else None], dtype=values.dtype)
        for j, feature in enumerate(self.features_):
            if self.is_numeric[j]:
                values[..., j] = codes[..., j]
                continue
            # The gap comes last, where code -1 finds it.
            labels = np.concatenate([feature.labels.astype(values.dtype), gap])
            values[..., j] = labels[codes[..., j].astype(np.intp)]
        return values


def _numeric_kinds(numbers, weights) -> tuple[str, ...]:
    """Kinds of emissions of numbers, those that fit the whole column better first."""
    largest = np.abs(numbers).max()
    if numbers.min() <= 0:
        return NORMAL
    logs = np.log(numbers) - np.log(largest)
    # Log-likelihoods of a normal and of a log-normal distribution.
    normal = -np.log(_spread(numbers / largest, weights))
    logarithmic = -np.log(_spread(logs, weights)) - np.average(logs, weights=weights)
    skewed = logarithmic > normal
    return (*LOGARITHMIC, *NORMAL) if skewed else (*NORMAL, *LOGARITHMIC)


def _spread(values, weights) -> float:
    """Standard deviation of values that are not all the same."""
    center = np.average(values, weights=weights)
    return np.sqrt(np.average((values - center) ** 2, weights=weights))
