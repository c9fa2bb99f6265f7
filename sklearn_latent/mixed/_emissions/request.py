"""The parameter that says which kinds of emissions columns have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..._core.validation import shown
from .kinds import KINDS

AUTO = "auto"


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
