"""Starts of EM: where each is, and how it goes on by the inference that it uses."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from .._statistics.patterns import Component, Patterns
from .beam import FINE, NARROW, Width
from .exact import Parameters, climb_exact
from .layered import Layered
from .likelihood import maximize_likelihood
from .truncated import climb_pieces
from .variational import VariationalEM

# EM finds the hill in few steps and would climb it in thousands, so exact inference
# hands over to quasi-Newton steps here.
HANDOVER = 100

# Least leak of a random start of truncated EM, as a share of the rate of the feature. A
# leak near 0 stays there, since states that need it are dropped.
LEAST_LEAK = 0.1


class Stage(NamedTuple):
    """A part of truncated EM.

    width: of the beams
    smooth: whether failures learn from each other
    most: iterations of the start after which the next stage begins
    """

    width: Width
    smooth: bool
    most: float


# Smoothed failures first: in 5,000 rows of one network of 10 latents, five random
# starts without a known structure end at -53,448 nats on average, and at -53,511
# otherwise; two of them end higher, one lower. The last stages maximise the likelihood,
# with more states once they are near.
STAGES = (
    Stage(NARROW, smooth=True, most=50),
    Stage(NARROW, smooth=False, most=np.inf),
    Stage(FINE, smooth=False, most=np.inf),
)


@dataclass
class Start:
    """A start of EM on a component, how far it has come, and the bound it has there.

    inference: "exact", "truncated" or "variational"
    shares: of the features among their parents, for variational inference
    stage: of truncated EM
    """

    part: Component
    patterns: Patterns
    parameters: Parameters
    inference: str
    shares: np.ndarray | None = None
    stage: int = 0
    bound: float = -np.inf
    n_iter: int = 0
    converged: bool = False

    @property
    def structure(self) -> np.ndarray:
        """Where there is an edge."""
        return self.parameters.failure < 1.0

    def steps(self, max_iter: int, most: int) -> int:
        """How many steps to take next."""
        if self.inference == "exact":
            max_iter = min(max_iter, HANDOVER)
        return 0 if self.converged else min(most, max_iter - self.n_iter)

    def with_leak(self) -> Start:
        """The same, with a leak that truncated EM can leave."""
        if self.inference != "truncated":
            return self
        patterns = self.patterns
        known = np.maximum(patterns.weights @ patterns.known, 1e-300)
        rate = patterns.weights @ patterns.on / known
        leak = np.maximum(self.parameters.leak, LEAST_LEAK * rate)
        return replace(self, parameters=self.parameters._replace(leak=leak))


def advance(start: Start, n_steps: int, tol: float) -> Start:
    """Take some steps of EM; `tol` is per row."""
    return _ADVANCE[start.inference](start, n_steps, tol)


def _advance_exact(start: Start, n_steps, tol) -> Start:
    ascent = climb_exact(start.parameters, start.patterns, tol=tol, max_iter=n_steps)
    return _moved(start, ascent, ascent.state)


def _advance_variational(start: Start, n_steps, tol) -> Start:
    em = VariationalEM(start.structure, start.patterns)
    shares = em.start() if start.shares is None else start.shares
    ascent = em.climb(start.parameters, shares, tol=tol, max_iter=n_steps)
    return replace(_moved(start, ascent, ascent.state[0]), shares=ascent.state[1])


def _advance_truncated(start: Start, n_steps, tol) -> Start:
    """Go through the stages; the last one decides whether EM has converged."""
    end = start.n_iter + n_steps
    # Two threads on small matrices take longer than one.
    with threadpool_limits(1):
        while start.n_iter < end and not start.converged:
            width, smooth, most = STAGES[start.stage]
            ascent = climb_pieces(
                Layered.single(*start.parameters),
                start.patterns,
                width,
                tol=tol,
                max_iter=int(min(end, most) - start.n_iter),
                smooth=smooth,
            )
            parameters = ascent.state
            start = _moved(
                start,
                ascent,
                Parameters(parameters.prior[0], parameters.failure, parameters.leak),
            )
            if start.stage < len(STAGES) - 1 and (
                start.converged or start.n_iter >= most
            ):
                start = replace(start, stage=start.stage + 1, converged=False)
    return start


_ADVANCE = {
    "exact": _advance_exact,
    "truncated": _advance_truncated,
    "variational": _advance_variational,
}


def _moved(start, ascent, parameters) -> Start:
    return replace(
        start,
        parameters=parameters,
        bound=float(ascent.objective),
        n_iter=start.n_iter + ascent.n_iter,
        converged=ascent.converged,
    )


def polish(start: Start, max_iter: int) -> Start:
    """Go from where exact EM stopped to the maximum, within the iterations."""
    if start.inference != "exact" or start.n_iter >= max_iter:
        return start
    left = max_iter - start.n_iter
    fit = maximize_likelihood(
        start.parameters, start.structure, start.patterns, max_iter=left
    )
    return replace(
        start,
        parameters=Parameters(*fit[:3]),
        bound=fit.log_likelihood,
        n_iter=start.n_iter + fit.n_iter,
        converged=fit.converged,
    )


def best_starts(starts) -> list[Start]:
    """Pick the best start of each component."""
    best: dict[bytes, Start] = {}
    for start in starts:
        key = start.part.features.tobytes() + start.part.latents.tobytes()
        if key not in best or start.bound > best[key].bound:
            best[key] = start
    return list(best.values())
