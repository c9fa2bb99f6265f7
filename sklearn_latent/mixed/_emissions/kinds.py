"""The kinds of emissions by name, and lists of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ..._core.persistence import Array
from ..._core.validation import shown
from .._panels.panel import MISSING, Panel
from .._tables import check_length, check_table
from .categories import (
    Categorical,
    CategoricalMemory,
    CategoricalRepeat,
    Ordinal,
    OrdinalMemory,
)
from .emission import Column, Emission, as_codes
from .numbers import Gaussian, GaussianMemory, LogNormal, LogNormalMemory

KINDS: dict[str, type[Emission]] = {
    kind.kind: kind
    for kind in (
        Categorical,
        CategoricalRepeat,
        CategoricalMemory,
        Gaussian,
        GaussianMemory,
        LogNormal,
        LogNormalMemory,
        Ordinal,
        OrdinalMemory,
    )
}

AUTO = "auto"


def as_emission(emission) -> Emission:
    """The emission itself; a table of probabilities is a categorical one."""
    return emission if isinstance(emission, Emission) else Categorical(emission)


def check_emissions(emission, n_states: Sequence[int]) -> list[Emission]:
    """Validate the emissions of all features, given how many states each tells."""
    check_length("emission", emission, len(n_states))
    checked: list[Emission] = []
    for f, (one, n) in enumerate(zip(emission, n_states, strict=True)):
        if not isinstance(one, Emission):
            one = Categorical(check_table(f"emission[{f}]", one, (n, None)))
        elif one.n_states != n:
            raise ValueError(
                f"emission[{f}] must have {n} states, those of the latent that it "
                f"measures, got {one.n_states}."
            )
        checked.append(one)
    return checked


def shown_emissions(emissions: Iterable[Emission]) -> list:
    """Emissions as users see them: categorical ones are tables."""
    return [e.table if type(e) is Categorical else e for e in emissions]


class EmissionsField:
    """How the emissions of a network are written and read."""

    def encode(self, value):
        """Plain forms; a table of probabilities is an array."""
        return [
            one.to_dict() if isinstance(one, Emission) else Array().encode(one)
            for one in value
        ]

    def decode(self, name, value):
        """Tables and emissions."""
        if type(value) is not list:
            raise ValueError(f"{name} must be a list, got {shown(value)}.")
        types = {kind.__name__: kind for kind in KINDS.values()}
        decoded = []
        for number, one in enumerate(value):
            kind = one.get("type") if type(one) is dict else None
            if type(kind) is str and kind in types:
                decoded.append(types[kind].from_dict(one))
            else:
                decoded.append(Array().decode(f"{name}[{number}]", one))
        return decoded


def column_of(panel: Panel, f: int) -> Column:
    """All values of one feature of a panel."""
    values = panel.codes
    if panel.numbers is not None and KINDS[panel.kinds_of(f)[0]].is_numeric:
        values = panel.numbers
    return Column(values[:, :, f], panel.weights, int(panel.n_categories[f]))


def check_values(values: np.ndarray, emissions: Sequence[Emission]) -> np.ndarray:
    """Validate values of all features; codes, or floats if some are numbers."""
    numeric = np.array([emission.is_numeric for emission in emissions], dtype=bool)
    widths = np.array([emission.n_categories for emission in emissions], dtype=int)
    if values.dtype.kind not in "iuf":
        raise ValueError(f"codes must be numbers, got {values.dtype}.")
    codes = values[..., ~numeric]
    missing = (codes == MISSING) | np.isnan(codes)
    inside = (codes >= 0) & (codes < widths[~numeric]) & (codes == np.floor(codes))
    if not (missing | inside).all():
        raise ValueError(
            "codes must be whole numbers from 0 to the number of categories less 1, or "
            "missing (-1 or NaN), got others."
        )
    if np.isinf(values).any():
        raise ValueError("codes must hold no infinity, got one in a numeric feature.")
    if not numeric.any():
        return as_codes(np.where(missing, MISSING, values))
    values = values.astype(np.float64)
    values[..., ~numeric] = np.where(missing, np.nan, codes)
    return values


def n_free(emission) -> int:
    """Number of free parameters of the emissions of all features."""
    return sum(as_emission(one).n_free for one in emission)


def marginal_tables(panel: Panel) -> list[np.ndarray]:
    """Tables of the categories of features that measure no latent."""
    tables = []
    for f in range(panel.n_observed):
        flat = Categorical.flat(column_of(panel, f))
        codes = panel.codes[:, :, f].ravel()
        mass = np.repeat(panel.weights, panel.n_slices)
        tables.append(flat.fitted((mass @ flat.design(codes, codes))[None]).table)
    return tables


def requested_kinds(
    emissions: Any, n_observed: int, *names: Sequence | None
) -> list[str]:
    """A kind, or "auto", for each feature of a slice.

    `emissions` is one for all, a list, or a dictionary by name or number; features may
    have several lists of names.
    """
    if isinstance(emissions, str):
        return [_check_kind(emissions)] * n_observed
    if isinstance(emissions, Mapping):
        kinds = [AUTO] * n_observed
        places = {name: j for some in names for j, name in enumerate(some or ())}
        for column, kind in emissions.items():
            kinds[_place(column, n_observed, places)] = _check_kind(kind)
        return kinds
    if not isinstance(emissions, (list, tuple)) or len(emissions) != n_observed:
        raise ValueError(
            "emissions must be a kind, a dictionary, or a list of one kind per feature "
            f"of a slice ({n_observed}), got {shown(emissions)}."
        )
    return [_check_kind(kind) for kind in emissions]


def _check_kind(kind) -> str:
    """Refuse what is no name of a kind."""
    if not isinstance(kind, str) or kind not in (AUTO, *KINDS):
        raise ValueError(
            f"emissions must name kinds, {AUTO!r} or one of {', '.join(KINDS)}, got "
            f"{shown(kind)}."
        )
    return kind


def _place(column, n_observed: int, places: Mapping) -> int:
    """Number of a feature given by name or number."""
    if column in places:
        return places[column]
    if type(column) is int and 0 <= column < n_observed:
        return column
    known = f"names ({', '.join(map(str, places))}) or " if places else ""
    raise ValueError(
        f"emissions must give features of a slice by {known}numbers from 0 to "
        f"{n_observed - 1}, got {shown(column)}."
    )
