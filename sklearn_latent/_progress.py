"""Progress of long fits: a line per step with ``verbose``, and scikit-learn callbacks.

scikit-learn has a callback protocol from 1.9 on. Before that the same code runs with
stand-ins that do nothing, so estimators are written once.
"""

from __future__ import annotations

import time
from typing import Any

from ._validation import check_running

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn < 1.9
    # mypy sees the class of newer versions, of which this is a stand-in.
    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stand-in: an estimator without callbacks."""

    def with_callbacks(method):
        """Stand-in: the method as it is."""
        return method


__all__ = ["CallbackSupportMixin", "Progress", "with_callbacks"]


class Progress:
    """Tell the user, and scikit-learn's callbacks, how far a fit has come.

    Use it as a context manager around the whole of ``fit``, and call it once at the
    end of each step.

    estimator: whose ``fit`` it is; its ``verbose`` decides what is printed
    max_steps: upper limit of the number of steps, if known
    X: training data, handed on to callbacks that ask for it
    """

    def __init__(self, estimator, max_steps=None, X=None):
        # Every fit begins here.
        check_running(estimator)
        self.estimator = estimator
        self.max_steps = max_steps
        self.X = X
        self._context = None

    def __enter__(self):
        self._start = time.perf_counter()
        if hasattr(self.estimator, "_init_callback_context"):
            self._context = self.estimator._init_callback_context(
                max_subtasks=self.max_steps
            )
            self._context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return self

    def __call__(self, message: str, **fitted: Any) -> bool:
        """Report that a step has ended."""
        if self.estimator.verbose:
            elapsed = time.perf_counter() - self._start
            print(f"[{type(self.estimator).__name__}] {message} ({elapsed:.1f} s)")
        if self._context is None:
            return False
        step = self._context.subcontext(task_name=message)
        step.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return step.call_on_fit_task_end(
            estimator=self.estimator,
            X=self.X,
            reconstruction_attributes=fitted or None,
        )

    def __exit__(self, exc_type, exc, traceback):
        if self._context is not None and exc_type is None:
            self._context.call_on_fit_task_end(estimator=self.estimator, X=self.X)
        return False
