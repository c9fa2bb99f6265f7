"""Panels as integer codes: categories of any label type, bins of numbers, gaps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from ..._core.warn import warn
from ..._tables.odd_columns import ordered
from ...exceptions import PoorDataWarning
from .labels import MAX_LABELS, OTHERS, check_labels, check_slices, common_labels
from .panel import DEFAULT_KINDS as LABELS
from .panel import MISSING, Panel

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
    categories_: labels of each feature by code; for bins, the median of the values in
        it
    edges_: inner edges of the bins of each feature, None for categories
    others_: code of other labels of each feature, None if there should be none
    kinds_: kinds of emissions that each feature may have, the first to begin with
    """

    n_bins: int = 4
    max_categories: int = 10
    requested: Sequence[str] | None = None
    orders: Mapping[int, Sequence] = field(default_factory=dict)
    names: Sequence | None = None
    categories_: list = field(default_factory=list, init=False)
    edges_: list = field(default_factory=list, init=False)
    others_: list = field(default_factory=list, init=False)
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
        sizes = [max(len(labels), 1) for labels in self.categories_]
        return np.array(sizes, dtype=int)

    @property
    def set_aside(self) -> np.ndarray:
        """Features whose labels name the rows."""
        return np.flatnonzero([code == MISSING for code in self.others_])

    @property
    def labels(self) -> list:
        """Labels of each feature by code; none for numbers."""
        return [
            np.empty(0) if numeric else labels
            for labels, numeric in zip(self.categories_, self.is_numeric, strict=True)
        ]

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
            self._fit_feature(panel[:, :, j].ravel(), weights, j, n_slices)
            for j in range(n_observed)
        ]
        columns = map(list, zip(*found, strict=True))
        self.categories_, self.edges_, self.others_, self.kinds_ = columns
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
        merged = [j for j, code in enumerate(self.others_) if code and code > 0]
        if merged:
            warn(
                f"Features with many labels: {self.names_of(merged[:10])}. All but the "
                f"{MAX_LABELS - 1} most frequent of each are one category, {OTHERS!r}.",
                PoorDataWarning,
            )

    def _fit_feature(self, column, weights, j, n_slices):
        """Labels, edges of bins, code of other labels, and kinds of emissions."""
        known = ~is_missing(column)
        kind = "auto" if self.requested is None else self.requested[j]
        numbers = _as_numbers(column[known])
        if numbers is None or (j in self.orders and kind not in NUMERIC):
            if kind in NUMERIC:
                raise ValueError(
                    f"emissions must be {kind!r} for features of numbers alone, got "
                    f"other labels in {self.name_of(j)}."
                )
            check_slices(column.reshape(-1, n_slices), self.name_of(j))
            labels = _sorted_labels(column[known], self.orders.get(j, ()))
            most = np.inf if j in self.orders else self.max_categories
            check_labels(labels.tolist(), self.name_of(j), most)
            found = common_labels(labels, column[known], weights[known], most)
            is_all = len(found) == len(labels)
            in_order = is_all and self.orders.get(j)
            kinds = (ORDERED if in_order else LABELS) if kind == "auto" else (kind,)
            return found, None, None if is_all else len(found) - 1, kinds
        labels, edges, few = self._fit_numbers(numbers, weights[known], j)
        if kind in LOGARITHMIC and numbers.min(initial=1.0) <= 0:
            raise ValueError(
                f"emissions must be {kind!r} for features of positive numbers alone, "
                f"got {numbers.min():g} in {self.name_of(j)}."
            )
        auto = LABELS if few else _numeric_kinds(numbers, weights[known])
        return labels, edges, None, auto if kind == "auto" else (kind,)

    def _fit_numbers(self, numbers, weights, j):
        """Labels and inner edges of numbers, and whether they are few."""
        if not len(numbers):
            # Nothing is known of the feature: one category, which says nothing.
            return np.zeros(1), None, True
        if not np.isfinite(numbers).all():
            raise ValueError(f"X must hold no infinity, got one in {self.name_of(j)}.")
        values, inverse = np.unique(numbers, return_inverse=True)
        whole = (values == np.round(values)).all()
        if len(values) <= (max(self.max_categories, 2) if whole else self.n_bins):
            return values, None, True
        mass = np.bincount(inverse.ravel(), weights, minlength=len(values))
        return *_quantile_bins(values, mass, self.n_bins), False

    def panel(self, values, sample_weight=None) -> Panel:
        """Encoded sequences."""
        weights = np.ones(len(values)) if sample_weight is None else sample_weight
        codes, numbers = self.encode(values), None
        if self.is_numeric.any():
            numbers = np.full(values.shape, np.nan)
            for j in np.flatnonzero(self.is_numeric):
                known = ~is_missing(values[:, :, j])
                numbers[known, j] = _numbers_or_nan(values[known, j])
        return Panel(
            codes,
            np.asarray(weights, dtype=float),
            self.n_categories,
            tuple(self.kinds_),
            numbers,
        )

    def encode(self, panel) -> np.ndarray:
        """Codes of a panel."""
        if panel.shape[2] != len(self.categories_):
            raise ValueError(
                f"X must have {len(self.categories_)} features per slice, as in fit, "
                f"got {panel.shape[2]}."
            )
        codes = np.full(panel.shape, MISSING, dtype=np.int64)
        unseen = []
        for j, (labels, edges, others) in enumerate(
            zip(self.categories_, self.edges_, self.others_, strict=True)
        ):
            known = ~is_missing(panel[:, :, j])
            values = panel[known, j]
            found = _encode_feature(values, labels, edges, self.name_of(j))
            if others is not None:
                found[found == MISSING] = others
            elif (found == MISSING).any():
                example = values[found == MISSING][:1].tolist()[0]
                unseen.append(f"{self.name_of(j)} ({example!r})")
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
        numeric = all(labels.dtype.kind != "O" for labels in self.categories_)
        values = np.empty(codes.shape, dtype=float if numeric else object)
        gap = np.array([np.nan if numeric else None], dtype=values.dtype)
        for j, labels in enumerate(self.categories_):
            if self.is_numeric[j]:
                values[..., j] = codes[..., j]
                continue
            # The gap comes last, where code -1 finds it.
            labels = np.concatenate([labels.astype(values.dtype), gap])
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


def known_orders(dtypes: Sequence) -> dict[int, list]:
    """Labels of ordered categories, none of others, by number of the column."""
    return {
        j: list(dtype.categories) if getattr(dtype, "ordered", False) else []
        for j, dtype in enumerate(dtypes)
        if is_category(dtype)
    }


def is_category(dtype) -> bool:
    """Whether a type of pandas or polars says that labels are categories."""
    return str(dtype).startswith(("category", "Categorical", "Enum"))


def is_missing(values: np.ndarray) -> np.ndarray:
    """Where a value is NaN, None or the like."""
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind != "O":
        return np.zeros(values.shape, dtype=bool)
    import pandas as pd

    return np.asarray(pd.isna(values), dtype=bool)


def _as_numbers(column: np.ndarray) -> np.ndarray | None:
    """The values as floats, or None if some are no numbers."""
    if column.dtype.kind in "biuf":
        return column.astype(np.float64)
    if column.dtype.kind != "O":
        return None
    if any(isinstance(value, (str, bytes)) for value in column):
        return None
    try:
        return column.astype(np.float64)
    except (TypeError, ValueError):
        return None


def _sorted_labels(column: np.ndarray, order=()) -> np.ndarray:
    """Distinct labels, in a known order or one that does not depend on the rows."""
    import pandas as pd

    try:
        distinct = pd.unique(pd.Series(column, dtype=object))
    except TypeError as error:
        raise TypeError(
            "X must hold labels that can be compared; an argument must be a string or "
            f"a number, got others ({error})."
        ) from error
    labels = np.empty(len(distinct), dtype=object)
    place = {label: number for number, label in enumerate(order)}
    known = len(place) and all(label in place for label in distinct)
    labels[:] = sorted(distinct, key=place.__getitem__) if known else ordered(distinct)
    return labels


def _quantile_bins(values, mass, n_bins):
    """Cut between distinct values, where the mass is closest to equal shares.

    A function of the distinct values and their weights alone, so that a weight of 2 is
    a row twice.
    """
    share = np.cumsum(mass)[:-1] / mass.sum()
    targets = np.arange(1, n_bins) / n_bins
    cuts = np.unique(np.abs(share[:, None] - targets).argmin(axis=0))
    edges = (values[cuts] + values[cuts + 1]) / 2
    bounds = [0, *(cuts + 1).tolist(), len(values)]
    medians = []
    for low, high in pairwise(bounds):
        half = np.cumsum(mass[low:high])
        medians.append(values[low + int(np.searchsorted(half, half[-1] / 2))])
    return np.asarray(medians), edges


def _encode_feature(column, labels, edges, name):
    """Codes of the known values of one feature; -1 for labels not in the list."""
    if labels.dtype.kind == "O":
        import pandas as pd

        return pd.Index(labels, dtype=object).get_indexer(
            pd.Index(column, dtype=object)
        )
    numbers = _numbers_or_nan(column)
    if np.isinf(numbers).any():
        raise ValueError(f"X must hold no infinity, got one in {name}.")
    if edges is not None:
        return np.where(
            np.isnan(numbers), MISSING, np.searchsorted(edges, numbers, side="left")
        )
    place = np.minimum(np.searchsorted(labels, numbers), len(labels) - 1)
    return np.where(labels[place] == numbers, place, MISSING)


def _numbers_or_nan(column: np.ndarray) -> np.ndarray:
    """Numbers, and NaN for labels among them."""
    numbers = _as_numbers(column)
    if numbers is None:
        singles = [_as_numbers(column[i : i + 1]) for i in range(len(column))]
        numbers = np.array([np.nan if one is None else one[0] for one in singles])
    return numbers
