"""How many? One loop for groups, classes, components, states and latents."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

# Sizes in a row that are no better than the best so far: two classes can lose to one
# where three would win.
PATIENCE = 2

Fit = TypeVar("Fit")


@dataclass
class Growth(Generic[Fit]):
    """Fits of growing size and what each costs; lower is better."""

    sizes: list[float] = field(default_factory=list)
    fits: list[Fit] = field(default_factory=list)
    costs: list[float] = field(default_factory=list)

    @property
    def place(self) -> int:
        """Where the best fit is, the smallest of equals."""
        return self.costs.index(min(self.costs))

    @property
    def best(self) -> Fit:
        """The best fit."""
        return self.fits[self.place]

    @property
    def size(self) -> float:
        """Size of the best fit."""
        return self.sizes[self.place]


def grow(
    fit: Callable[..., Fit],
    sizes: Iterable,
    cost: Callable[[Fit], float],
    *,
    is_hopeless: Callable[[Growth[Fit]], bool] | None = None,
    patience: int = PATIENCE,
) -> Growth[Fit]:
    """Fit size after size until `patience` in a row are no better than the best.

    ``fit(size)`` makes a fit, ``cost(fit)`` is a criterion such as the BIC.
    ``is_hopeless(growth)`` may end the loop earlier, where something else has won.
    """
    growth: Growth[Fit] = Growth()
    for size in sizes:
        growth.fits.append(fit(size))
        growth.sizes.append(size)
        growth.costs.append(float(cost(growth.fits[-1])))
        if len(growth.fits) - 1 - growth.place >= patience:
            break
        if is_hopeless is not None and is_hopeless(growth):
            break
    return growth
