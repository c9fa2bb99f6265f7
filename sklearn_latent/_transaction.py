"""Roll back an estimator whose fit is interrupted or fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ._warn import collect_messages


@contextmanager
def all_or_nothing(estimator: Any) -> Iterator[None]:
    """Restore an estimator if its fit is interrupted or fails.

    Validation sets ``n_features_in_`` long before there is a model, so that without
    this an interrupted second fit would mix the old model with the width of new data.
    It goes inside of `Progress`, whose callbacks must outlive a failure. What the fit
    warned of is kept for `summary`.
    """
    before = dict(estimator.__dict__)
    try:
        with collect_messages() as messages:
            yield
        estimator._cautions = messages
    except BaseException:
        # KeyboardInterrupt is no Exception.
        estimator.__dict__.clear()
        estimator.__dict__.update(before)
        raise
