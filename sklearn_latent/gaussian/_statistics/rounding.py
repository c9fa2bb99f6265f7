"""Statistics without their last digits, so that searches do not depend on rounding."""

from __future__ import annotations

import numpy as np

from .statistics import GaussianStatistics

# Digits of the statistics that a search sees.
DIGITS = 10


def rounded(statistics: GaussianStatistics) -> GaussianStatistics:
    """Statistics to ten digits.

    Many moves of a search gain the same, and which one a computer takes for the best
    depends on the last digits of the sums. Without them, rows in another order or in
    other blocks, whose sums differ there, lead down the same path.
    """
    deviation = _round_digits(np.sqrt(np.diag(statistics.scatter)))
    scale = np.where(deviation > 0.0, deviation, 1.0)
    correlation = np.round(statistics.scatter / scale / scale[:, None], DIGITS)
    return GaussianStatistics(
        float(_round_digits(np.array(statistics.weight))),
        _round_digits(statistics.mean),
        correlation * scale * scale[:, None],
    )


def _round_digits(values):
    """Round to so many significant digits."""
    # Numbers this small have lost digits already, and their unit would be zero.
    size = np.abs(np.where(np.abs(values) < 1e-280, 1.0, values))
    unit = 10.0 ** (np.floor(np.log10(size)) - DIGITS)
    return np.round(values / unit) * unit
