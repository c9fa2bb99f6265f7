"""At which size a share of trials succeeds: a sequential search.

The probability of success is taken as a logistic function of the logarithm of the size.
Its two parameters, the size that is sought and the steepness, have a posterior on a
grid, which is defined also where all small sizes failed and all large ones succeeded.
Further trials go where they tell most, around the size that is sought, so that the
form of the curve elsewhere hardly matters.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np
from scipy.special import expit, log_expit, logit

# Between failing in nine of ten trials and succeeding in nine of ten, rows grow by a
# factor of about three; the prior of the steepness is wide around that.
STEEPNESS, STEEPNESS_SPREAD = 4.0, 0.8
SLOPES = STEEPNESS * np.exp(np.linspace(-2.5, 2.5, 21) * STEEPNESS_SPREAD)
N_PLACES = 201

# Sizes farther than this factor from the one that is sought do not count for it.
WINDOW = 4.0

# Further trials are at these multiples of the size that is sought.
PLACES = (1.0, 0.7, 1.4)

# Preferred numbers (E24 of IEC 60063), a tenth apart or less.
PREFERRED = np.array(
    [
        *(1.0, 1.1, 1.2, 1.3, 1.5, 1.6, 1.8, 2.0, 2.2, 2.4, 2.7, 3.0, 3.3),
        *(3.6, 3.9, 4.3, 4.7, 5.1, 5.6, 6.2, 6.8, 7.5, 8.2, 9.1, 10.0),
    ]
)

# Trials per size while the range of sizes is sought.
N_SCOUTS = 6


@dataclass
class Trials:
    """How often trials of each size were made and succeeded."""

    tried: dict[int, int] = field(default_factory=dict)
    succeeded: dict[int, int] = field(default_factory=dict)

    def add(self, size: int, successes) -> None:
        """Count further trials of a size."""
        self.tried[size] = self.tried.get(size, 0) + len(successes)
        self.succeeded[size] = self.succeeded.get(size, 0) + int(np.sum(successes))

    @property
    def total(self) -> int:
        """Number of trials of all sizes."""
        return sum(self.tried.values())

    def share(self, size: int) -> float:
        """Share of the trials of a size that succeeded."""
        return self.succeeded[size] / self.tried[size]

    def arrays(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Sizes in order, trials and successes of each."""
        sizes = sorted(self.tried)
        counts = [[d[size] for size in sizes] for d in (self.tried, self.succeeded)]
        return np.array(sizes), *np.array(counts)


@dataclass(frozen=True)
class Curve:
    """Probability of success by size: what trials say of it.

    log_size, sd: of the logarithm of the size at which the probability is reached
    slope: steepness of the logistic function
    probability: that which is sought
    """

    log_size: float
    sd: float
    slope: float
    probability: float

    @property
    def size(self) -> float:
        """The size at which the probability is reached."""
        return float(np.exp(self.log_size))

    def __call__(self, sizes) -> np.ndarray:
        """Probability of success at each size."""
        steps = np.log(np.asarray(sizes, dtype=float)) - self.log_size
        return expit(logit(self.probability) + self.slope * steps)


def fit_curve(trials: Trials, probability: float) -> Curve:
    """Posterior of the curve, from the sizes around the one that is sought."""
    sizes, tried, succeeded = trials.arrays()
    near = np.ones(len(sizes), dtype=bool)
    for _ in range(2):
        curve = _posterior(sizes[near], tried[near], succeeded[near], probability)
        near = np.abs(np.log(sizes) - curve.log_size) <= np.log(WINDOW)
        if near.all() or not near.any():
            break
    return curve


def _posterior(sizes, tried, succeeded, probability: float) -> Curve:
    """Means and spread of the parameters over a grid of both."""
    logs = np.log(sizes)
    places = np.linspace(logs[0] - 2.0, logs[-1] + 2.0, N_PLACES)
    steps = logs[None, None] - places[:, None, None]
    value = logit(probability) + SLOPES[None, :, None] * steps
    weight = log_expit(value) @ succeeded + log_expit(-value) @ (tried - succeeded)
    weight -= 0.5 * (np.log(SLOPES / STEEPNESS) / STEEPNESS_SPREAD) ** 2
    weight = np.exp(weight - weight.max())
    weight /= weight.sum()
    place = weight.sum(axis=1)
    mean = float(place @ places)
    sd = float(np.sqrt(place @ (places - mean) ** 2))
    slope = float(np.exp(weight.sum(axis=0) @ np.log(SLOPES)))
    return Curve(mean, sd, slope, probability)


def wilson_interval(succeeded, tried, z: float = 1.96) -> tuple:
    """Ends of Wilson's interval of a probability."""
    share = succeeded / tried
    width = 1.0 + z**2 / tried
    center = (share + z**2 / (2 * tried)) / width
    half = z * np.sqrt(share * (1 - share) / tried + z**2 / (4 * tried**2)) / width
    # Ends at 0 and 1 are exact, but for rounding.
    return np.clip(center - half, 0.0, share), np.clip(center + half, share, 1.0)


@dataclass(frozen=True)
class Search:
    """A sequential search for the size at which a share of trials succeeds.

    run: makes a number of trials of a size, and says which of them succeeded
    precision: standard deviation of the logarithm of the size at which it ends
    """

    run: Callable
    probability: float
    n_repeats: int
    min_size: int
    max_size: int
    precision: float
    max_trials: int

    def __call__(self, first: int) -> tuple[Trials, Curve | None]:
        """Trials, and the curve; None if the probability is not reached."""
        trials = Trials()
        if not self._find_range(trials, first):
            return trials, None
        places = self._places()
        while trials.total < self.max_trials:
            curve = fit_curve(trials, self.probability)
            # The spread of the first few trials is largely that of the prior.
            if curve.sd <= self.precision and trials.total >= 4 * self.n_repeats:
                break
            self._try(trials, curve.size * next(places), self.n_repeats)
        curve = fit_curve(trials, self.probability)
        return trials, curve if curve.size <= self.max_size else None

    def _places(self) -> Iterator[float]:
        """Multiples of the size that is sought, in turn."""
        while True:
            yield from PLACES

    def _try(self, trials: Trials, size: float, n: int) -> int:
        """Make trials of a round size within the limits."""
        size = round_size(np.clip(size, self.min_size, self.max_size))
        size = int(np.clip(size, self.min_size, self.max_size))
        trials.add(size, self.run(size, min(n, self.max_trials - trials.total)))
        return size

    def _find_range(self, trials: Trials, first: int) -> bool:
        """Double until trials succeed, halve until they fail; False if never."""
        size = self._try(trials, first, N_SCOUTS)
        start = size
        while trials.share(size) < self.probability and trials.total < self.max_trials:
            if size >= self.max_size:
                return self._succeeds_at(trials, size)
            size = self._try(trials, 2 * size, N_SCOUTS)
        size = start
        while trials.share(size) > 0.5 and size > self.min_size:
            if trials.total >= self.max_trials:
                break
            size = self._try(trials, size / 2, N_SCOUTS)
        return True

    def _succeeds_at(self, trials: Trials, size: int) -> bool:
        """Whether enough trials of the largest size succeed."""
        self._try(trials, size, self.n_repeats)
        return trials.share(size) >= self.probability


def round_size(size: float) -> int:
    """The nearest of 24 sizes per factor of ten, so that trials share sizes."""
    unit = 10.0 ** np.floor(np.log10(size))
    nearest = np.argmin(np.abs(np.log(PREFERRED * unit / size)))
    return round(PREFERRED[nearest] * unit)
