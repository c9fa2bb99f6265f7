"""How many rows recover the latents of a network."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.isotonic import isotonic_regression
from sklearn.utils import check_random_state

from .._core.validation import (
    MOST_ROWS,
    check_count,
    check_counts,
    check_jobs,
    shown,
)
from .recovery import Study, plan_study

if TYPE_CHECKING:
    import pandas as pd

# Fewer rows than this say nothing of latents, and are not tried. Such fits are fast, so
# that sizes double from here on.
FEWEST_ROWS = 10

# Further sizes, as multiples of the first that is enough.
NEAR = (0.6, 0.8, 1.2)

# Larger numbers of fits are mistakes.
MOST_FITS = 1 << 20

# Draws of the shares that the interval is taken from, and two-sided 95% of a normal
# distribution.
N_DRAWS, Z = 400, 1.96


def rows_needed(
    network: Any,
    estimator: Any = None,
    *,
    probability: float = 0.9,
    sizes: ArrayLike | None = None,
    n_repeats: int = 20,
    n_slices: int | None = None,
    max_rows: int = 50_000,
    criterion: Callable[[Any, Any, Any], bool] | None = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 0,
) -> RowsNeeded:
    """Simulate how many rows recover the latents of a network.

    Tables of different numbers of rows are drawn from the network, an estimator is
    fitted to each, and the share of fits that recover the latents is counted. Sizes
    double until the share reaches `probability`, and three more are close to the last
    one. Shares are made to rise with the number of rows, and joined by lines.

    A network is recovered if the fit has as many latents, and they are the same:

    - noisy-or: all failures right up to a factor of e, priors of at least 0.02, as in
      :func:`~sklearn_latent.metrics.match_latents`;
    - continuous: each inferred latent has an absolute correlation of at least 0.9 with
      the latent that the true network infers from the same rows;
    - temporal: each latent is measured by the same features.

    Parameters
    ----------
    network : NoisyOrNetwork, GaussianNetwork, LatentDBN or fitted estimator
        The network, known or supposed. Of a fitted estimator its ``network_``: how
        many rows would recover what was found.
    estimator : estimator or None, default=None
        What is fitted. If None, that which was passed as `network`, or
        `QuartetStructureLearner`, `IdealParentGaussianBN` (with up to two latents more
        than there are), `LPCC` or, with more than one slice, `LGLPCCTemporal`.
    probability : float, default=0.9
        Probability with which the latents should be recovered.
    sizes : array-like of int or None, default=None
        Numbers of rows to try. If None, they are chosen.
    n_repeats : int, default=20
        Number of tables of each size. The answer is off by some 15% with 20 of them.
    n_slices : int or None, default=None
        Number of slices of a sequence, for a `LatentDBN` that has time; a row is a
        sequence.
    max_rows : int, default=50_000
        Largest number of rows that is tried.
    criterion : callable or None, default=None
        ``criterion(network, model, X)`` says whether the model that was fitted to `X`
        has recovered the network. If None, as above.
    random_state : int, RandomState instance or None, default=0
        Source of the tables.
    n_jobs : int or None, default=None
        Number of fits at the same time, through joblib. The result does not depend on
        it.
    verbose : int, default=0
        Whether to report progress.

    Returns
    -------
    result : RowsNeeded
        The number of rows in ``n_rows``, with ``to_frame()``.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent import NoisyOrNetwork, rows_needed
    >>> failure = np.kron(np.eye(2), np.full((1, 4), 0.3)) + np.kron(
    ...     1 - np.eye(2), np.ones((1, 4))
    ... )
    >>> network = NoisyOrNetwork([0.3, 0.3], failure, np.full(8, 0.05))
    >>> result = rows_needed(network, sizes=[50, 200], n_repeats=5)
    >>> result.to_frame()[["n_rows", "n_fits"]]
       n_rows  n_fits
    0      50       5
    1     200       5
    """
    _check_probability(probability)
    _check_options(n_repeats, max_rows, criterion)
    check_jobs(n_jobs)
    study = plan_study(network, estimator, n_slices, criterion)
    runner = Runner(study, check_random_state(random_state), n_jobs, verbose)
    if sizes is not None:
        wanted = np.unique(check_counts("sizes", sizes)).tolist()
        if not wanted:
            raise ValueError("sizes must hold at least one number of rows, got none.")
        found = {size: sum(runner(size, n_repeats)) for size in wanted}
    else:
        found, size = {}, FEWEST_ROWS
        while size not in found:
            found[size] = sum(runner(size, n_repeats))
            if found[size] < probability * n_repeats:
                size = min(2 * size, max_rows)
        if found[size] >= probability * n_repeats:
            near = (min(round(part * size), max_rows) for part in NEAR)
            found |= {
                more: sum(runner(more, n_repeats))
                for more in near
                if more not in found and more >= FEWEST_ROWS
            }
    return _result(study, found, n_repeats, probability)


@dataclass(frozen=True)
class Runner:
    """Fits to tables of a size."""

    study: Study
    rng: np.random.RandomState
    n_jobs: int | None
    verbose: int

    def __call__(self, n_rows: int, n_repeats: int) -> list[bool]:
        """Which of several fits recover the latents."""
        start = time.perf_counter()
        # Seeds are drawn here, so that the number of jobs does not matter.
        seeds = self.rng.randint(np.iinfo(np.int32).max, size=n_repeats)
        trial = delayed(self.study.trial)
        found = Parallel(self.n_jobs)(trial(n_rows, int(seed)) for seed in seeds)
        if self.verbose:
            seconds = time.perf_counter() - start
            print(
                f"[rows_needed] {n_rows} rows: {sum(found)} of {n_repeats} fits "
                f"recover the latents ({seconds:.1f} s)"
            )
        return found


def _result(study: Study, found: dict[int, int], n_repeats: int, probability: float):
    """What users get."""
    sizes = np.array(sorted(found))
    recovered = np.array([found[size] for size in sizes.tolist()])
    rng = np.random.RandomState(0)
    # What the shares may be, given these fits, by Jeffreys' prior.
    draws = rng.beta(
        recovered + 0.5, n_repeats - recovered + 0.5, size=(N_DRAWS, len(sizes))
    )
    rows = [_crossing(sizes, draw, probability) for draw in draws]
    low, high = np.quantile(rows, [0.025, 0.975], method="nearest").tolist()
    needed = _crossing(sizes, recovered / n_repeats, probability)
    return RowsNeeded(
        probability=probability,
        n_rows=needed if np.isinf(needed) else int(np.ceil(needed)),
        interval=(min(low, needed), max(high, needed)),
        sizes=sizes,
        n_fits=np.full(len(sizes), n_repeats),
        n_recovered=recovered,
        network=study.network,
        estimator=study.estimator,
    )


def _crossing(sizes, shares, probability: float) -> float:
    """Where rising shares, joined by lines over log rows, reach the probability."""
    rising = isotonic_regression(shares)
    above = int(np.argmax(rising >= probability))
    if rising[above] < probability:
        return np.inf
    if above == 0:
        return float(sizes[0])
    low, high = rising[above - 1], rising[above]
    logs = np.log(sizes[above - 1 : above + 1])
    return float(
        np.exp(logs[0] + (probability - low) / (high - low) * np.diff(logs)[0])
    )


def wilson_interval(succeeded, tried) -> tuple:
    """Ends of Wilson's interval of a probability."""
    share = succeeded / tried
    width = 1.0 + Z**2 / tried
    center = (share + Z**2 / (2 * tried)) / width
    half = Z * np.sqrt(share * (1 - share) / tried + Z**2 / (4 * tried**2)) / width
    # Ends at 0 and 1 are exact, but for rounding.
    return np.clip(center - half, 0.0, share), np.clip(center + half, share, 1.0)


@dataclass(frozen=True, repr=False)
class RowsNeeded:
    """How many rows recover the latents of a network; see `rows_needed`.

    Parameters
    ----------
    probability : float
        Probability with which the latents should be recovered.
    n_rows : int or inf
        Number of rows at which they are; inf if no size that was tried is enough.
    interval : (float, float)
        Interval that covers this number with a probability of 95%.
    sizes : ndarray of int of shape (n_sizes,)
        Numbers of rows that were tried.
    n_fits : ndarray of int of shape (n_sizes,)
        Number of fits of each.
    n_recovered : ndarray of int of shape (n_sizes,)
        Number of these that recovered the latents.
    network : NoisyOrNetwork, GaussianNetwork or LatentDBN
        The network that was simulated.
    estimator : estimator
        What was fitted.

    Examples
    --------
    >>> from sklearn_latent import NoisyOrNetwork, rows_needed
    >>> network = NoisyOrNetwork([0.3], [[0.2, 0.2, 0.2, 0.2]], [0.05] * 4)
    >>> result = rows_needed(network, sizes=[5, 10], n_repeats=2)
    >>> result.n_fits
    array([2, 2])
    """

    probability: float
    n_rows: float
    interval: tuple[float, float]
    sizes: NDArray[np.intp]
    n_fits: NDArray[np.intp]
    n_recovered: NDArray[np.intp]
    network: Any
    estimator: Any

    def __repr__(self) -> str:
        share = f"with probability {self.probability:g}"
        if np.isinf(self.n_rows):
            best = int(np.argmax(self.n_recovered / self.n_fits))
            return (
                f"RowsNeeded: the latents are not recovered {share} with up to "
                f"{self.sizes[-1]:,} rows (at best in {self.n_recovered[best]} of "
                f"{self.n_fits[best]} fits, with {self.sizes[best]:,} rows)"
            )
        low, high = self.interval
        return (
            f"RowsNeeded: {self.n_rows:,} rows recover the latents {share} "
            f"(95% interval {low:,.0f} to {high:,.0f}; {self.n_fits.sum()} fits)"
        )

    def to_frame(self) -> pd.DataFrame:
        """Table of the sizes that were tried.

        Returns
        -------
        frame : pandas.DataFrame
            One row per size: ``n_rows``, ``n_fits``, ``n_recovered``, ``share``, and
            the ends ``low`` and ``high`` of its 95% confidence interval (Wilson).
        """
        import pandas as pd

        low, high = wilson_interval(self.n_recovered, self.n_fits)
        columns = {
            "n_rows": self.sizes,
            "n_fits": self.n_fits,
            "n_recovered": self.n_recovered,
            "share": self.n_recovered / self.n_fits,
            "low": low,
            "high": high,
        }
        return pd.DataFrame(columns)


def _check_probability(probability) -> None:
    """Refuse what is no probability within 0 and 1."""
    if not isinstance(probability, Real) or not 0 < float(probability) < 1:
        raise ValueError(
            "probability must be a number between 0 and 1, both excluded, got "
            f"{shown(probability)}."
        )


def _check_options(n_repeats, max_rows, criterion) -> None:
    """Refuse options of the wrong kind."""
    check_count("n_repeats", n_repeats, 1, MOST_FITS)
    check_count("max_rows", max_rows, FEWEST_ROWS, MOST_ROWS)
    if criterion is not None and not callable(criterion):
        raise TypeError(f"criterion must be callable or None, got {shown(criterion)}.")
