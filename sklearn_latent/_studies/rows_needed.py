"""How many rows recover the latents of a network."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment
from scipy.stats import beta
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.isotonic import isotonic_regression
from sklearn.utils import check_random_state

from .._core.validation import (
    MOST_ROWS,
    check_count,
    check_counts,
    check_jobs,
    shown,
)
from ..exceptions import LatentWarning
from ..gaussian import GaussianNetwork, IdealParentGaussianBN
from ..metrics import match_latents, structural_hamming_distance
from ..mixed import LPCC, LatentDBN, LGLPCCTemporal
from ..noisy_or import NoisyOrNetwork, QuartetStructureLearner

if TYPE_CHECKING:
    import pandas as pd

# Fewer rows than this say nothing of latents, and are not tried. Such fits are fast, so
# that sizes double from here on.
FEWEST_ROWS = 10

# Further sizes, as multiples of the first that is enough.
NEAR = (0.6, 0.8, 1.2)


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
    if not isinstance(probability, Real) or not 0 < float(probability) < 1:
        raise ValueError(
            "probability must be a number between 0 and 1, both excluded, got "
            f"{shown(probability)}."
        )
    check_count("n_repeats", n_repeats)
    check_count("max_rows", max_rows, FEWEST_ROWS, MOST_ROWS)
    if criterion is not None and not callable(criterion):
        raise TypeError(f"criterion must be callable or None, got {shown(criterion)}.")
    check_jobs(n_jobs)
    trial, network, estimator = plan_trial(network, estimator, n_slices, criterion)
    rng = check_random_state(random_state)
    found: dict[int, int] = {}

    def try_out(size: int) -> None:
        if size in found:
            return
        start = time.perf_counter()
        # Seeds are drawn here, so that the number of jobs does not matter.
        seeds = rng.randint(np.iinfo(np.int32).max, size=n_repeats)
        found[size] = sum(
            Parallel(n_jobs)(delayed(trial)(size, int(seed)) for seed in seeds)
        )
        if verbose:
            seconds = time.perf_counter() - start
            print(
                f"[rows_needed] {size} rows: {found[size]} of {n_repeats} fits "
                f"recover the latents ({seconds:.1f} s)"
            )

    if sizes is not None:
        wanted = np.unique(check_counts("sizes", sizes)).tolist()
        if not wanted:
            raise ValueError("sizes must hold at least one number of rows, got none.")
    else:
        size = FEWEST_ROWS
        try_out(size)
        while found[size] < probability * n_repeats and size < max_rows:
            size = min(2 * size, max_rows)
            try_out(size)
        wanted = []
        if found[size] >= probability * n_repeats:
            wanted = [min(round(part * size), max_rows) for part in NEAR]
            wanted = [size for size in wanted if size >= FEWEST_ROWS]
    for size in wanted:
        try_out(size)
    return _result(found, n_repeats, probability, network, estimator)


def _result(found, n_repeats, probability, network, estimator) -> RowsNeeded:
    """What users get."""
    sizes = np.array(sorted(found))
    recovered = np.array([found[size] for size in sizes.tolist()])
    # What the shares may be, given these fits, by Jeffreys' prior.
    draws = np.random.RandomState(0).beta(
        recovered + 0.5, n_repeats - recovered + 0.5, size=(400, len(sizes))
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
        network=network,
        estimator=estimator,
    )


def _crossing(sizes, shares, probability: float) -> float:
    """Where rising shares, joined by lines over log rows, reach the probability."""
    rising = isotonic_regression(shares)
    above = int(np.argmax(rising >= probability))
    if rising[above] < probability:
        return np.inf
    if above == 0:
        return float(sizes[0])
    ends = slice(above - 1, above + 1)
    return float(np.exp(np.interp(probability, rising[ends], np.log(sizes[ends]))))


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
            the ends ``low`` and ``high`` of its 95% interval (Jeffreys).
        """
        import pandas as pd

        found, failed = self.n_recovered, self.n_fits - self.n_recovered
        low, high = (beta.ppf(p, found + 0.5, failed + 0.5) for p in (0.025, 0.975))
        columns = {
            "n_rows": self.sizes,
            "n_fits": self.n_fits,
            "n_recovered": found,
            "share": found / self.n_fits,
            "low": np.where(found == 0, 0.0, low),
            "high": np.where(failed == 0, 1.0, high),
        }
        return pd.DataFrame(columns)


# Data from a known network, and whether a fit recovered its latents


def plan_trial(network, estimator, n_slices, criterion) -> tuple[Callable, Any, Any]:
    """Whether a fit to so many rows by a seed succeeds; the network, what is fitted."""
    fitted = network if hasattr(network, "network_") else None
    network = getattr(network, "network_", network)
    if not isinstance(network, NoisyOrNetwork | GaussianNetwork | LatentDBN):
        raise TypeError(
            "network must be a NoisyOrNetwork, GaussianNetwork or LatentDBN, or an "
            f"estimator that was fitted to one, got {shown(network)}."
        )
    if estimator is not None and not isinstance(estimator, BaseEstimator):
        raise TypeError(f"estimator must be an estimator, got {shown(estimator)}.")
    if not network.n_latents:
        raise ValueError("network must have at least one latent, got none.")
    if fitted is not None:
        draw = partial(redraw, fitted)
        estimator = clone(fitted) if estimator is None else estimator
    else:
        n_slices = _check_slices(network, estimator, n_slices)
        draw = partial(_draw, network, n_slices)
        estimator = _learner(network, n_slices) if estimator is None else estimator
    is_recovered = is_same if criterion is None else criterion
    return partial(_trial, network, estimator, draw, is_recovered), network, estimator


def _trial(network, estimator, draw, is_recovered, n_rows: int, seed: int) -> bool:
    """Whether the latents are recovered from new rows."""
    X = draw(n_rows, seed)
    with warnings.catch_warnings():
        # Small samples are poor data: this is what the study is about.
        warnings.simplefilter("ignore", LatentWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return bool(is_recovered(network, clone(estimator).fit(X), X))


def _check_slices(network, estimator, n_slices) -> int:
    """Number of slices of the sequences of a network."""
    check_count("n_slices", n_slices, 1, optional=True)
    if not isinstance(network, LatentDBN):
        if n_slices not in (None, 1):
            raise ValueError(
                f"n_slices must be None for a network without time, got {n_slices}."
            )
        return 1
    found = n_slices or getattr(estimator, "n_slices", None)
    if found is None and network.has_time:
        raise ValueError(
            "n_slices must be the number of slices of a sequence for a network that "
            "has time, got None."
        )
    return found or 1


def _draw(network, n_slices: int, n_rows: int, seed: int) -> np.ndarray:
    """Rows of a network."""
    if not isinstance(network, LatentDBN):
        return network.sample(n_rows, random_state=seed)[0]
    return network.sample(n_rows, n_slices, random_state=seed)[0].reshape(n_rows, -1)


def redraw(estimator, n_rows: int, seed: int) -> Any:
    """Rows of a fitted estimator, like those that it was fitted to."""
    X = estimator.sample(n_rows, random_state=seed)[0]
    names = getattr(estimator, "feature_names_in_", None)
    if names is not None:
        import pandas as pd

        return pd.DataFrame(X, columns=names).infer_objects()
    n_slices = getattr(estimator, "n_slices_", 1)
    return X if n_slices == 1 else X.reshape(n_rows, n_slices, -1)


def _learner(network, n_slices: int) -> Any:
    """What is fitted if nothing is said."""
    if isinstance(network, NoisyOrNetwork):
        return QuartetStructureLearner(random_state=0)
    if isinstance(network, LatentDBN):
        # Codes are categories, however many there are.
        most = max(10, *network.n_categories)
        if n_slices == 1:
            return LPCC(max_categories=most, random_state=0)
        return LGLPCCTemporal(n_slices, max_categories=most, random_state=0)
    n = network.n_features
    bipartite = not (network.adjacency[:, n:].any() or network.adjacency[:n].any())
    return IdealParentGaussianBN(
        link=network.link,
        noise=network.noise,
        max_latents=network.n_latents + 2,
        bipartite=bipartite,
    )


def is_same(network, model, X) -> bool:
    """As many latents, and the same ones; see `rows_needed`."""
    learned = model.network_
    if model.n_latents_ != network.n_latents:
        return False
    if isinstance(network, NoisyOrNetwork):
        if not np.array_equal(network.polarity, learned.polarity):
            return False
        found = match_latents(network.failure, learned.failure, learned.prior)[1]
        return bool(found.all())
    if isinstance(network, LatentDBN):
        structures = (network.graph.structure,), (model.structure_,)
        return structural_hamming_distance(*structures)[1] == 0
    values = np.hstack([network.posterior(X), learned.posterior(X)])
    if (values.std(axis=0) == 0).any():
        return False
    n = network.n_latents
    close = np.abs(np.corrcoef(values.T)[:n, n:])
    return bool((close[linear_sum_assignment(-close)] >= 0.9).all())
