"""What a fit reads: rows, or sums over them and a sample."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._core.warn import warn
from .._tables.blocks import Blocks, is_blockwise, read_blocks
from ..exceptions import PoorDataWarning
from ._gaussian_model import check_block
from ._gaussian_network import GaussianNetwork
from ._margin_kinds import Margin
from ._noise import get_noise
from ._options import is_linear
from ._rows import Rows, RowSums
from ._statistics import NOISE_SHARE

NO_GAPS = (
    "X must have no missing values for batches and Dask collections, got NaN; fit rows "
    "in memory instead."
)

CONSTANT = "are constant and have no edges"
# Rows below which latents are hardly evidence: of 30 independent columns the largest
# correlation is .65 in 20 rows and .91 in 8.
FEW_ROWS = 20


def adds_up(estimator) -> bool:
    """Whether sums over complete rows are all that the estimator needs of them."""
    return is_linear(estimator) and estimator.max_latents == 0


def _settings(estimator) -> str:
    """What `adds_up` depends on."""
    return (
        f"got link={estimator.link!r}, noise={estimator.noise!r}, "
        f"max_latents={estimator.max_latents!r}."
    )


def can_add_up(estimator) -> bool:
    """Whether `partial_fit` is there; the error that it is not says why."""
    if not adds_up(estimator):
        raise AttributeError(
            "partial_fit needs link='linear', noise='additive' and max_latents=0, "
            f"{_settings(estimator)}"
        )
    return True


def read(
    estimator, X, sample_weight, *, reset: bool
) -> tuple[Rows | RowSums, Blocks | None]:
    """Validated rows, or what is needed of them; blocks that can be read again."""
    if is_blockwise(X) and not adds_up(estimator):
        raise ValueError(
            "link must be 'linear', noise 'additive' and max_latents 0 for batches "
            f"and Dask collections, {_settings(estimator)}"
        )

    def check(table):
        nonlocal reset
        table = estimator._check_X(table, reset=reset)
        reset = False
        return table

    blocks = read_blocks(X, sample_weight, check, check_block)
    if is_blockwise(X):
        seen = blocks.sum(_sum_up, keeps_rows(estimator))
        if seen is None:
            raise ValueError(
                "X must have at least one row of positive weight, got none."
            )
        return seen, None if isinstance(X, Iterator) else blocks
    rows = blocks.gather(_as_rows)[0]
    if adds_up(estimator) and not rows.has_gaps:
        return RowSums.of(rows, sampled=keeps_rows(estimator)), blocks
    return rows, None


def _as_rows(block) -> Rows:
    """A block of rows without those of no weight."""
    return Rows.of(*block)


def _sum_up(block, sampled) -> RowSums:
    """What is needed of a block, whose rows must be complete."""
    rows = Rows.of(*block)
    if rows.has_gaps:
        raise ValueError(NO_GAPS)
    return RowSums.of(rows, sampled=sampled)


def wanted_margins(estimator) -> str | Margin | list:
    """Margins that are asked for; positive noise has normal ones."""
    return "normal" if get_noise(estimator.noise).positive else estimator.margins


def keeps_rows(estimator) -> bool:
    """Whether rows are needed to estimate margins, or to find classes."""
    margins = wanted_margins(estimator)
    bent = not isinstance(margins, str) or margins != "normal"
    return bent or seeks_classes(estimator)


def has_background(estimator) -> bool:
    """Whether rows may be anywhere; not in the networks of the paper."""
    margins = wanted_margins(estimator)
    free = isinstance(margins, str) and margins != "normal"
    return free and estimator.search != "greedy"


def seeks_classes(estimator) -> bool:
    """Whether rows may belong to classes.

    By default only if margins are chosen by the data as well: others lose for reasons
    of their own.
    """
    if estimator.n_classes == "auto":
        chosen = wanted_margins(estimator) == "auto"
        return adds_up(estimator) and estimator.search != "greedy" and chosen
    return estimator.n_classes > 1


def warn_unseen(seen, names) -> None:
    """Say which features have no value at all."""
    _warn_of(
        ~seen,
        names,
        "are missing in all rows and stay standard normal variables without edges",
    )


def warn_few_rows(weight: float, network: GaussianNetwork) -> None:
    """Say that latents were found in too few rows."""
    if network.n_latents and weight < FEW_ROWS:
        warn(
            f"Latents were found in {weight:g} rows, of which correlations are known "
            f"to ±{2.0 / np.sqrt(weight):.1f} only: others may show others. Have at "
            f"least {FEW_ROWS} rows, better hundreds, before you read them.",
            PoorDataWarning,
        )


def warn_constant(constant, names) -> None:
    """Say which features have a single value."""
    _warn_of(np.isin(np.arange(len(names)), constant), names, CONSTANT)


def warn_degenerate(
    data: Rows | RowSums, network: GaussianNetwork, names, n_features: int
) -> None:
    """Say which features follow from others without noise."""
    if isinstance(data, Rows):
        variance = np.nanvar(data.X, axis=0)
    else:
        variance = data.moments.variance
    warn_without_noise(variance, network, names, n_features)


def warn_without_noise(
    variance, network: GaussianNetwork, names, n_features: int
) -> None:
    """Say which features follow from others without noise, in the largest class."""
    n = len(variance)
    exact = network.noise_variance[:n] <= 2.0 * NOISE_SHARE * variance
    exact &= network.adjacency[:n, :n].any(axis=0)
    # A latent that coincides with a feature leaves it no noise either.
    exact &= ~network.adjacency[n:, :n].any(axis=0)
    _warn_of(
        exact,
        names,
        "are fitted without noise, as copies and sums of others are, so that their "
        "density has no upper limit; consider dropping them",
        n_features,
    )


def _warn_of(which, names, what: str, n_features: int | None = None) -> None:
    """Warn of some of all features."""
    named = [names[i] for i in np.flatnonzero(which)]
    if named:
        shown = ", ".join(named[:10]) + (", ..." if len(named) > 10 else "")
        total = len(which) if n_features is None else n_features
        warn(f"{len(named)} of {total} features {what}: {shown}.", PoorDataWarning)
