"""Parameters that make no network, and networks whose numbers leave all bounds."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

from .._core.validation import check_count, check_numbers, shown
from ._links import Linear

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


def check_class_weight(class_weight, parameters) -> np.ndarray:
    """P(class), checked against the arrays that have an axis of classes."""
    if class_weight is None:
        return np.ones(1)
    weight = np.asarray(check_numbers("class_weight", class_weight))
    if (
        weight.ndim != 1
        or not len(weight)
        or not (weight > 0).all()
        or abs(weight.sum() - 1.0) > 1e-8
    ):
        raise ValueError(
            "class_weight must hold positive numbers that sum to 1, got "
            f"{shown(class_weight)}."
        )
    names = ("weights", "intercept", "noise_variance")
    for name, ndim, values in zip(names, (3, 2, 2), parameters, strict=True):
        if values.ndim != ndim or len(values) != len(weight):
            raise ValueError(
                f"{name} must have {ndim} dimensions with class_weight, the first for "
                f"{len(weight)} classes, got shape {values.shape}."
            )
    return weight


def check_network(network) -> None:
    """Refuse arrays that do not describe a network together."""
    if network.intercept.ndim != 1:
        raise ValueError(
            "intercept must have one value per node, got shape "
            f"{network.intercept.shape}."
        )
    n_nodes = len(network.intercept)
    if network.link_parameters is None and not isinstance(network._link, Linear):
        raise ValueError(f"link_parameters must be given with link={network.link!r}.")
    for name, shape in (
        ("adjacency", (n_nodes, n_nodes)),
        ("weights", (n_nodes, n_nodes)),
        ("noise_variance", (n_nodes,)),
    ):
        if getattr(network, name).shape != shape:
            raise ValueError(
                f"{name} must have shape {shape} for {n_nodes} intercepts, got "
                f"{getattr(network, name).shape}."
            )
    theta = network.link_parameters
    if theta is not None and theta.shape not in ((n_nodes, 2), (n_nodes, 3)):
        raise ValueError(
            f"link_parameters must have 2 or 3 values for each of {n_nodes} nodes, got "
            f"shape {theta.shape}."
        )
    check_count("n_latents", network.n_latents, 0, n_nodes)
    for name in ("weights", "intercept", "noise_variance", "link_parameters"):
        values = getattr(network, name)
        if values is not None and not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, got NaN or infinity.")
    if network.weights[~network.adjacency].any():
        i, j = np.argwhere((network.weights != 0) & ~network.adjacency)[0]
        raise ValueError(
            "weights must be 0 where adjacency has no edge, got "
            f"{network.weights[i, j]} from node {i} to node {j}."
        )
    if not (network.noise_variance > 0).all():
        raise ValueError(
            "noise_variance must be positive, got a minimum of "
            f"{network.noise_variance.min()}."
        )


def within_range(method: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Let a method of a network raise where its numbers overflow."""

    @wraps(method)
    def checked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        # What comes out is looked at, so NumPy need not warn on the way.
        result: Any
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            try:
                result = method(*args, **kwargs)
            except np.linalg.LinAlgError:
                result = np.array(np.nan)
        parts = result if isinstance(result, tuple) else (result,)
        least = -np.inf if method.__name__ == "log_likelihood" else -np.finfo(float).max
        if not all(((part >= least) & (part < np.inf)).all() for part in parts):
            raise ValueError(
                "weights, intercept and noise_variance must differ by fewer orders of "
                f"magnitude from each other and from the data, got {args[0]!r}, for "
                f"which {method.__name__} overflows."
            )
        return result

    return checked
