"""EM that leaps: squared extrapolation of its steps (Varadhan and Roland, 2008)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..._climb import Ascent, climb


def climb_by_leaps(
    start,
    expect: Callable,
    maximise: Callable,
    units: Callable,
    *,
    tol: float,
    max_iter: int,
) -> Ascent:
    """Maximise a likelihood by EM with monotone extrapolation (scheme S3).

    ``expect(parameters)`` is a state, with ``parameters`` and ``log_likelihood``;
    ``maximise(state)`` are the next parameters. ``units(state)`` is a pair of
    functions, from parameters to a vector without dimensions, and back.
    """
    longest, settled = 4.0, False

    def leap(state, _):
        nonlocal longest, settled
        first = expect(maximise(state))
        if first.log_likelihood - state.log_likelihood < tol:
            # Leaps cross plateaus: where a step of plain EM gains next to nothing
            # after them, there is nothing left to gain.
            settled = True
            return first
        second = maximise(first)
        pack, unpack = units(state)
        a, b, c = pack(state.parameters), pack(first.parameters), pack(second)
        step, bend = b - a, (c - b) - (b - a)
        length = float(np.linalg.norm(step)) / max(float(np.linalg.norm(bend)), 1e-300)
        if length >= longest:
            length, longest = longest, 4.0 * longest
        length = max(length, 1.0)
        far = expect(unpack(a + 2.0 * length * step + length**2 * bend))
        # A leap that falls below plain EM is not taken, so the likelihood never falls.
        if not far.log_likelihood >= first.log_likelihood:
            far = expect(second)
            longest = max(longest / 4.0, 1.0)
        return far

    def known(state):
        return state.log_likelihood, None

    ascent = climb(
        known, leap, start, tol=tol, max_iter=max_iter, report=lambda *_: settled
    )
    return replace(ascent, converged=ascent.converged or settled, stopped=False)
