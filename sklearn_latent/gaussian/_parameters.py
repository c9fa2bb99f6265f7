"""From the parameters of an estimator to the options of a search."""

from __future__ import annotations

from numbers import Real

import numpy as np

from .._graphs import topological_order
from .._validation import check_choice, check_count, check_flag, check_tol
from ._constraints import parse_constraints
from ._options import SearchOptions, is_linear

__all__ = ["check_parameters", "make_options"]

# Moves per line of progress; verbose > 1 shows all.
REPORT_EVERY = 100

_CHOICES = {
    "search": ("auto", "greedy", "order"),
    "similarity": ("C1", "C2", "C3"),
}
# Smallest value, and whether None is allowed.
_COUNTS = {
    "n_candidates": (1, True),
    "max_parents": (0, True),
    "max_latents": (0, False),
    "max_iter": (0, False),
}


def check_parameters(estimator) -> None:
    """Refuse parameters that no data can make sense of."""
    for name, choices in _CHOICES.items():
        check_choice(name, getattr(estimator, name), choices)
    for name, (least, optional) in _COUNTS.items():
        check_count(name, getattr(estimator, name), least, optional=optional)
    check_tol(estimator.tol)
    for name in ("bipartite", "warm_start"):
        check_flag(name, getattr(estimator, name))
    penalty = estimator.penalty
    if not (isinstance(penalty, str) and penalty in ("ebic", "auto")) and not (
        isinstance(penalty, Real) and 0 <= float(penalty) < np.inf
    ):
        raise ValueError(
            f"penalty must be a non-negative number, 'ebic' or 'auto', got {penalty!r}."
        )
    if estimator.search == "order" and not is_linear(estimator):
        raise ValueError(
            "search must be 'greedy' or 'auto' unless link='linear' and "
            f"noise='additive', got 'order' with link={estimator.link!r} and "
            f"noise={estimator.noise!r}."
        )


def make_options(estimator, names, before, progress) -> SearchOptions:
    """Options of a search over the features."""
    forbidden, required = parse_constraints(
        estimator.forbidden,
        estimator.required,
        names,
        max_parents=estimator.max_parents,
    )
    if estimator.bipartite and required.any():
        i, j = np.argwhere(required)[0]
        raise ValueError(
            "required must be empty with bipartite=True, which has no edges between "
            f"features, got {names[i]!r} -> {names[j]!r}."
        )
    if estimator.bipartite:
        forbidden[:] = True
    linear = is_linear(estimator)
    fields = (
        "search",
        "similarity",
        "n_candidates",
        "max_parents",
        "max_latents",
        "bipartite",
        "max_iter",
        "tol",
        "penalty",
        "random_state",
    )
    return SearchOptions(
        forbidden,
        required,
        link="linear" if linear else estimator.link,
        noise="additive" if linear else estimator.noise,
        **{name: getattr(estimator, name) for name in fields},
        published=estimator.search == "greedy",
        initial=_initial(before, forbidden, required, estimator.max_parents),
        progress=_Throttle(progress, estimator.verbose),
    )


def _initial(before, forbidden, required, max_parents):
    """Graph to start from, or None if it does not keep the rules of today."""
    n = len(forbidden)
    if before is None or before.n_features != n:
        return None
    graph = (before.adjacency[:n, :n] & ~forbidden) | required
    if max_parents is not None and graph.sum(axis=0).max(initial=0) > max_parents:
        return None
    try:
        topological_order(graph)
    except ValueError:
        return None
    return graph


class _Throttle:
    """Pass on one message of many: a large network takes thousands of moves."""

    def __init__(self, progress, verbose):
        self.progress = progress
        self.every = 1 if verbose > 1 else REPORT_EVERY
        self.count = 0

    def __call__(self, message: str) -> bool:
        self.count += 1
        if self.count % self.every:
            return False
        return bool(self.progress(f"step {self.count}: {message}"))
