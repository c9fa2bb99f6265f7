"""What a fit reads: rows, or sums over them, and the margins of their columns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .._blocks import Blocks
from .._rows import is_blockwise, read_blocks
from .._warn import warn
from ..exceptions import PoorDataWarning
from ._margins.choice import few_values, ordered_sample, resolve
from ._margins.margins import Margins, check_margins
from ._margins.sample import RowSample, SeenRows
from ._model import check_block
from ._nonlinear.noise import get_noise
from ._options import is_linear
from ._statistics.rows import Rows

NO_GAPS = (
    "X must have no missing values for batches and Dask collections, got NaN; fit rows "
    "in memory instead."
)

# Names that a warning lists.
MOST_NAMES = 10


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
) -> tuple[Rows | SeenRows, Blocks | None]:
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
        seen = blocks.sum(_sum_up, _bends(estimator))
        if seen is None:
            raise ValueError(
                "X must have at least one row of positive weight, got none."
            )
        return seen, None if isinstance(X, Iterator) else blocks
    rows = blocks.gather(_as_rows)[0]
    if adds_up(estimator) and not rows.has_gaps:
        return SeenRows.of(rows, _bends(estimator)), blocks
    return rows, None


def _as_rows(block) -> Rows:
    """A block of rows without those of no weight."""
    return Rows.of(*block)


def _sum_up(block, sampled) -> SeenRows:
    """What is needed of a block, whose rows must be complete."""
    rows = Rows.of(*block)
    if rows.has_gaps:
        raise ValueError(NO_GAPS)
    return SeenRows.of(rows, sampled)


def _bends(estimator) -> bool:
    """Whether margins may be other than normal."""
    if get_noise(estimator.noise).positive:
        return False
    return not isinstance(estimator.margins, str) or estimator.margins != "normal"


def estimate_margins(estimator, data: Rows | SeenRows, names) -> Margins:
    """Margins of all features, None if they are their own scores."""
    if not _bends(estimator):
        return None
    if isinstance(data, SeenRows):
        sample = data.sample
    else:
        sample = RowSample.of(data.X, data.weights)
    if sample is None:
        raise ValueError(
            "margins must stay 'normal' once partial_fit or fit had them so, because "
            f"no rows were kept, got {estimator.margins!r}."
        )
    _warn_few_values(sample, names)
    margins = resolve(estimator.margins, sample.X, sample.weights)
    return check_margins(margins, len(names))


def warn_unseen(seen, names) -> None:
    """Say which features have no value at all."""
    if not seen.all():
        warn(
            f"{(~seen).sum()} of {len(seen)} features are missing in all rows and stay "
            f"standard normal variables without edges: {_listed(names, ~seen)}.",
            PoorDataWarning,
        )


def _warn_few_values(sample: RowSample, names) -> None:
    """Say which features have so few different values that they have no density."""
    few = few_values(ordered_sample(sample.X, sample.weights)[0])
    if few.any():
        warn(
            f"{few.sum()} of {len(names)} features have few different values, as "
            "counts and grades have, and are treated as continuous ones: "
            f"{_listed(names, few)}.",
            PoorDataWarning,
        )


def _listed(names, chosen) -> str:
    """Names of some features, the first ones if they are many."""
    shown = [names[i] for i in np.flatnonzero(chosen)]
    return ", ".join(shown[:MOST_NAMES]) + (", ..." if shown[MOST_NAMES:] else "")
