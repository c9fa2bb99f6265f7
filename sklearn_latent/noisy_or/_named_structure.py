"""Structures as data frames, whose labels are names of features and latents."""

from __future__ import annotations

import numpy as np

from .._core.validation import check_columns
from ._schedule import check_structure


def read_structure(structure, feature_names) -> tuple[np.ndarray, list | None]:
    """A structure with its columns in the order of the features, and latent names.

    feature_names: those of the data, None if it has none

    Columns of a data frame are matched by name. Rows of a pandas data frame whose
    labels are strings name the latents.
    """
    columns = getattr(structure, "columns", None)
    if columns is None:
        return check_structure(structure), None
    check_columns("structure", structure)
    labels = list(getattr(structure, "index", []))
    named = bool(labels) and all(isinstance(label, str) for label in labels)
    if named and len(set(labels)) < len(labels):
        twice = next(label for label in labels if labels.count(label) > 1)
        raise ValueError(f"structure must have no two rows named {twice!r}, got them.")
    if feature_names is not None and all(isinstance(name, str) for name in columns):
        _check_same(list(columns), list(feature_names))
        structure = structure[list(feature_names)]
    edges = structure.to_numpy() if hasattr(structure, "to_numpy") else structure
    return check_structure(edges), labels if named else None


def _check_same(columns: list, feature_names: list) -> None:
    """Refuse a structure whose columns are not those of the data."""
    lacking = [name for name in feature_names if name not in set(columns)]
    surplus = [name for name in columns if name not in set(feature_names)]
    if lacking or surplus:
        parts = [
            f"{what} {', '.join(map(repr, names[:5]))}"
            + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            for what, names in (("none for", lacking), ("also", surplus))
            if names
        ]
        raise ValueError(
            "structure must have the columns of X, in any order, got "
            f"{'; '.join(parts)}."
        )
