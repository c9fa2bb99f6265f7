"""What `LPCC` and `LGLPCCTemporal` say about data that support no latent."""

from __future__ import annotations

import warnings

import numpy as np

from ..exceptions import PoorDataWarning

__all__ = ["warn_if_no_latent", "warn_of_poor_data"]

# Both are called by what `fit` calls, and point to the caller of `fit`.
STACKLEVEL = 4


def warn_of_poor_data(codes, n_categories) -> None:
    """Say what cannot be learned from.

    codes (n, n_slices, n_observed), n_categories (n_observed,).
    """
    empty = int((codes < 0).all(axis=(1, 2)).sum())
    if empty == len(codes):
        warnings.warn(
            "X has no value at all, so nothing can be learned from it.",
            PoorDataWarning,
            stacklevel=STACKLEVEL,
        )
    elif empty:
        warnings.warn(
            f"{empty} of {len(codes)} sequences have no value at all and say nothing.",
            PoorDataWarning,
            stacklevel=STACKLEVEL,
        )
    constant = np.flatnonzero(n_categories < 2)
    if len(constant):
        names = ", ".join(str(j) for j in constant[:10])
        warnings.warn(
            f"Features with one value measure no latent: {names} (numbers within "
            "a slice).",
            PoorDataWarning,
            stacklevel=STACKLEVEL,
        )


def warn_if_no_latent(n_latents, n_slices, n_categories, local) -> None:
    """Say so if no latent was found.

    n_categories (n_observed,).
    """
    if n_latents or not (n_categories > 1).any():
        return
    if local == "lpcc":
        reason = (
            "no two features change together in all comparisons of large clusters, "
            'which takes clean data; local="bic" needs less'
        )
    elif n_slices == 1:
        reason = "the features show no dependence, or the rows are too few to tell"
    else:
        reason = (
            "the features depend neither on each other nor on their own past, or the "
            "sequences are too few to tell"
        )
    warnings.warn(
        f"No latent found: {reason}. The model treats all values as independent.",
        PoorDataWarning,
        stacklevel=STACKLEVEL,
    )
