"""EM that leaps: squared extrapolation of its steps [1]_.

References
----------
.. [1] Varadhan, R., Roland, C. (2008). Simple and globally convergent methods for
   accelerating the convergence of any EM algorithm. Scandinavian Journal of
   Statistics, 35.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..._climb import Ascent, climb

__all__ = ["climb_by_leaps"]


def climb_by_leaps(
    start,
    expect: Callable,
    maximise: Callable,
    units: Callable,
    *,
    tol: float,
    max_iter: int,
) -> Ascent:
    """Maximise a likelihood by EM with monotone extrapolation (scheme S3 of [1]_).

    ``expect(parameters)`` is a state, with ``parameters`` and ``log_likelihood``;
    ``maximise(state)`` are the next parameters. ``units(state)`` is a pair of
    functions, from parameters to a vector without dimensions, and back.
    """
    longest = 4.0

    def leap(state, _):
        nonlocal longest
        first = expect(maximise(state))
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

    # A leap stands for several steps, so that one that gains little is enough.
    return climb(known, leap, start, tol=tol, max_iter=max_iter, patience=1)
