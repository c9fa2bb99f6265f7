"""What `LPCC` and `LGLPCCTemporal` say about data that support no latent."""

from __future__ import annotations

import numpy as np

from .._warn import warn
from ..exceptions import PoorDataWarning
from ._panels.panel import Panel


def warn_of_poor_data(panel: Panel) -> None:
    """Say what cannot be learned from."""
    codes = panel.codes
    empty = int((codes < 0).all(axis=(1, 2)).sum())
    if empty == len(codes):
        warn(
            "X has no value at all, so nothing can be learned from it.",
            PoorDataWarning,
        )
    elif empty:
        warn(
            f"{empty} of {len(codes)} sequences have no value at all and say nothing.",
            PoorDataWarning,
        )
    constant = np.flatnonzero(panel.n_categories < 2)
    if len(constant):
        names = ", ".join(str(j) for j in constant[:10])
        warn(
            f"Features with one value measure no latent: {names} (numbers within "
            "a slice).",
            PoorDataWarning,
        )


def warn_if_no_latent(n_latents: int, panel: Panel, local: str) -> None:
    """Say so if no latent was found."""
    if n_latents or not (panel.n_categories > 1).any():
        return
    if local == "lpcc":
        reason = (
            "no two features change together in all comparisons of large clusters, "
            'which takes clean data; local="bic" needs less'
        )
    elif panel.n_slices == 1:
        reason = "the features show no dependence, or the rows are too few to tell"
    else:
        reason = (
            "the features depend neither on each other nor on their own past, or the "
            "sequences are too few to tell"
        )
    warn(
        f"No latent found: {reason}. The model treats all values as independent.",
        PoorDataWarning,
    )
