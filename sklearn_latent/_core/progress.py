"""Progress of long fits: a line per step with ``verbose``, and scikit-learn callbacks.

scikit-learn has a callback protocol from 1.9 on. Before that the same code runs with
stand-ins that do nothing, so estimators are written once.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Self, TypeVar

from .validation import check_running

Method = TypeVar("Method", bound=Callable[..., Any])

# scikit-learn has no types: type checkers must not see its decorator, which would hide
# the types of the methods.
if find_spec("sklearn.callback") and not TYPE_CHECKING:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
else:  # scikit-learn < 1.9

    class CallbackSupportMixin:
        """Stand-in: an estimator without callbacks."""

    def with_callbacks(method: Method) -> Method:
        """Stand-in: return the method as it is."""
        return method


class Progress:
    """Report the progress of a fit to the user and to scikit-learn's callbacks.

    Use it as a context manager around the whole of ``fit``, and call it at the end of
    each step.

    estimator: whose ``verbose`` decides what is printed
    max_steps: maximum number of steps, if known
    X: training data, passed on to callbacks
    """

    def __init__(
        self, estimator: Any, max_steps: int | None = None, X: Any = None
    ) -> None:
        # Every fit begins here.
        check_running(estimator)
        self.estimator = estimator
        self.max_steps = max_steps
        self.X = X
        self._context: Any = None

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        if hasattr(self.estimator, "_init_callback_context"):
            self._context = self.estimator._init_callback_context(
                max_subtasks=self.max_steps
            )
            self._context.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        return self

    def __call__(self, message: str, **fitted: Any) -> bool:
        """Report the end of a step; True asks the fit to stop."""
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

    def __exit__(self, exc_type: Any, exc: Any, traceback: Any) -> None:
        if self._context is not None and exc_type is None:
            self._context.call_on_fit_task_end(estimator=self.estimator, X=self.X)
