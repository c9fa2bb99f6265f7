"""Roll back an estimator whose fit is interrupted or fails."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from .warn import collect_messages


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore an estimator if its fit is interrupted or fails.

    Validation sets ``n_features_in_`` long before there is a model, so that without
    this an interrupted second fit would mix the old model with the width of new data.
    It goes inside of `Progress`, whose callbacks must outlive a failure. What the fit
    warned of is kept for `summary`.
    """
    before = dict(estimator.__dict__)
    handled = sys.exception()
    try:
        with collect_messages() as messages:
            yield
        estimator._cautions = messages
    except BaseException as error:
        # KeyboardInterrupt is no Exception.
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        interrupt = _interrupt_behind(error, handled)
        if interrupt is None:
            raise
        raise interrupt from None


def _interrupt_behind(
    error: BaseException, handled: BaseException | None
) -> KeyboardInterrupt | None:
    """The interrupt that some C code, or its caller, turned into another error.

    NumPy, for one, may report "returned a result with an exception set" instead.
    `handled` is an exception that was being handled before, and behind all others.
    """
    behind = error.__cause__ or error.__context__
    while behind is not None and behind is not handled:
        if isinstance(behind, KeyboardInterrupt):
            return behind
        behind = behind.__cause__ or behind.__context__
    return None
