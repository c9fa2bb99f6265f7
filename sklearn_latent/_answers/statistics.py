"""Statistics of a table in which data and tables of a model can differ."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import erf, ndtr, ndtri
from scipy.stats import rankdata

from .._core.checks import FARTHEST_CORRELATION

# Statistics by kind.
Sums = dict[str, np.ndarray]

# Marks of numbers: the number itself, and its square.
NUMBER, SIZE = -1, -2
# Pairs are compared among at most this many marks, those that vary most.
MOST_PAIRED = 256
# Rows that show the scale of a network which has no formula for it.
REFERENCE = 20_000
# Scores whose quantiles make a scale. Values beyond them are all alike: how far they
# are says little, and would vary more than 40 tables can tell.
GRID = np.linspace(-3.5, 3.5, 57)
# Scores beyond this say nothing where the tails of a scale are guesses.
CLIPPED = 2.0
# Scores that are farther away are all alike: fourth powers must not overflow.
FARTHEST = 1e30
# Rows to compare at most, fewer where tables are wide: values and pairs of marks.
MOST_ROWS, LEAST_ROWS, MOST_VALUES, MOST_PRODUCTS = 5000, 200, 1 << 20, 1e8


def row_limit(n_marks: int, n_slices: int = 1) -> int:
    """Number of rows to compare."""
    marks = max(n_marks, 1)
    most = min(
        MOST_ROWS,
        MOST_VALUES / (marks * n_slices),
        MOST_PRODUCTS / (min(marks, MOST_PAIRED) ** 2 * n_slices),
    )
    return int(max(most, LEAST_ROWS / n_slices, 1))


class Mark(NamedTuple):
    """A number of each cell of a column that is compared.

    code: a category, which is there or not; or NUMBER or SIZE
    """

    column: int
    name: str
    code: int


class Scale(NamedTuple):
    """Values and their standard normal scores, with lines in between.

    is_normal: whether the two values are one standard deviation off the mean
    """

    values: np.ndarray
    scores: np.ndarray
    is_normal: bool = False

    @classmethod
    def of(cls, sample) -> Scale:
        """Scale of values of a model."""
        values, first = np.unique(np.quantile(sample, ndtr(GRID)), return_index=True)
        return cls(values, GRID[first])

    @classmethod
    def normal(cls, mean: float, spread: float) -> Scale:
        """Scale of a normal distribution."""
        ends = np.array([-1.0, 1.0])
        return cls(mean + spread * ends, ends, True)

    def score(self, values) -> np.ndarray:
        """Scores of values."""
        if not self.is_normal:
            return np.interp(values, self.values, self.scores)
        mean, spread = self.values.mean(), 0.5 * np.ptp(self.values)
        return np.clip((values - mean) / spread, -FARTHEST, FARTHEST)

    def value(self, scores) -> np.ndarray:
        """Values of scores."""
        if not self.is_normal:
            return np.interp(scores, self.scores, self.values)
        return self.values.mean() + 0.5 * np.ptp(self.values) * scores


class Statistics:
    """All statistics of tables of a subject, data and drawn ones alike.

    first, second: marks of the pairs
    tells: marks that vary, or are not where the model expects them
    is_number: columns of numbers
    shapes: kinds of shapes, and names of what each is about
    """

    def __init__(self, subject: Any, rng: np.random.RandomState):
        self.subject, self.marks = subject, subject.marks
        n_columns = subject.values.shape[2]
        numbers = [mark.column for mark in self.marks if mark.code < 0]
        self.is_number = np.isin(np.arange(n_columns), numbers)
        self.bent = np.isin(np.arange(n_columns), subject.bent)
        self.scales: dict[int, Scale] = {}
        self._read_scales(rng)
        marks = self._marks(subject.values)
        spread, place = np.ptp(marks, axis=(0, 1)), np.abs(marks[0, 0])
        self.tells = np.array([mark.code >= 0 for mark in self.marks], dtype=bool)
        # A number that does not vary, where it is expected, tells nothing.
        self.tells |= (spread > 0) | (place > 3.0)
        self._tells_column = np.zeros(n_columns, dtype=bool)
        for mark, tells in zip(self.marks, self.tells, strict=True):
            self._tells_column[mark.column] |= tells
        self._read_pairs(marks)
        self._name_shapes()

    def _read_scales(self, rng) -> None:
        """Scales of numbers."""
        subject, numbers = self.subject, np.flatnonzero(self.is_number).tolist()
        if subject.scale is not None:
            mean, spread = subject.scale
            self.scales = {j: Scale.normal(mean[j], spread[j]) for j in numbers}
        elif numbers:
            n_slices = subject.values.shape[1]
            rows = subject.draw(max(REFERENCE // n_slices, 1), rng)
            flat = rows.reshape(-1, rows.shape[2])
            self.scales = {j: Scale.of(flat[:, j]) for j in numbers}

    def _read_pairs(self, marks) -> None:
        """Pairs of marks of different columns, of those that vary most."""
        codes = np.array([mark.code for mark in self.marks], dtype=int)
        # Sizes of numbers are compared with others by what columns leave of them.
        usable = codes != SIZE if self.subject.noise is not None else codes > SIZE - 1
        variance = np.where(usable, marks.var(axis=(0, 1)), -1.0)
        order = np.argsort(-variance, kind="stable")[: min(MOST_PAIRED, usable.sum())]
        self.paired = np.sort(order)
        owner = np.array([self.marks[k].column for k in self.paired], dtype=int)
        self._i, self._j = np.nonzero(np.triu(owner[:, None] != owner, 1))
        self.first, self.second = self.paired[self._i], self.paired[self._j]

    def _name_shapes(self) -> None:
        """What shapes are about: columns, or pairs of them."""
        names, before = self.subject.names, self.subject.before
        own = [str(names[j]) for j in np.flatnonzero(self.is_number)]
        if self.subject.noise is None:
            self.shapes = [("tails", own)]
            return
        pairs = np.argwhere(before).tolist()
        given = [f"{names[j]} given {names[i]}" for i, j in pairs]
        sizes = [f"{names[j]} given size of {names[i]}" for i, j in pairs]
        self.shapes = [
            ("skewed noise", own),
            ("tails", own),
            ("curvature", given),
            ("changing spread", given + sizes),
        ]

    def __call__(self, values) -> Sums:
        """Statistics of a table (n, n_slices, n_columns)."""
        n, n_slices, n_columns = values.shape
        marks = self._marks(values)
        level = self._levelled(values)
        flat = (marks if level is values else self._marks(level)).reshape(
            n * n_slices, -1
        )
        column = marks.mean(axis=(0, 1))
        sizes = np.array([mark.code == SIZE for mark in self.marks], dtype=bool)
        # Their cube roots are almost normal (Wilson and Hilferty, 1931).
        found = {"column": np.where(sizes, np.cbrt(column), column)}
        r = correlations(flat[:, self.paired], flat[:, self.paired])[self._i, self._j]
        found["pair"] = np.arctanh(
            np.clip(r, -FARTHEST_CORRELATION, FARTHEST_CORRELATION)
        )
        if self.subject.causes:
            total = values.sum(axis=(1, 2)).astype(np.intp)
            found["row total"] = np.bincount(total, minlength=n_columns + 1) / n
        if n_slices > 1:
            found["slice"] = marks.mean(axis=0).ravel()
            found["own past"] = self._repeats(values, 1)
            found["older past"] = self._repeats(values, 2)
        if any(len(names) for _, names in self.shapes):
            found |= self._shapes_of(level.reshape(n * n_slices, n_columns))
        return found

    def _marks(self, values) -> np.ndarray:
        """Marks of values, (n, n_slices, n_marks)."""
        marks = np.empty((*values.shape[:2], len(self.marks)))
        for k, mark in enumerate(self.marks):
            column = values[:, :, mark.column]
            if mark.code >= 0:
                marks[:, :, k] = column == mark.code
                continue
            score = self.scales[mark.column].score(column)
            if mark.code == SIZE:
                end = CLIPPED if self.bent[mark.column] else FARTHEST
                score = np.clip(score, -end, end) ** 2
            marks[:, :, k] = score
        return marks

    def _levelled(self, values) -> np.ndarray:
        """Values; of columns whose scale was estimated, what their ranks stand for.

        So small errors of the tails of scales are not taken for those of the network.
        """
        if not self.bent.any():
            return values
        level = values.copy()
        for j in np.flatnonzero(self.bent).tolist():
            level[:, 0, j] = self.scales[j].value(normal_ranks(values[:, 0, j]))
        return level

    def _repeats(self, values, lag: int) -> np.ndarray:
        """How often a value is that of so many slices before; products of numbers."""
        found = np.zeros(values.shape[2])
        if values.shape[1] <= lag:
            return found
        for j in range(len(found)):
            now, then = values[:, lag:, j], values[:, :-lag, j]
            if self.is_number[j]:
                now, then = (self.scales[j].score(part) for part in (now, then))
                found[j] = (now * then).mean()
            else:
                found[j] = (now == then).mean()
        return found

    def _shapes_of(self, rows) -> Sums:
        """Shapes of rows (n, n_columns)."""
        subject, numbers = self.subject, np.flatnonzero(self.is_number).tolist()
        scores = np.stack([self.scales[j].score(rows[:, j]) for j in numbers], axis=1)
        if subject.noise is None:
            return {"tails": _shape(scores)[1]}
        noise = subject.noise(rows)
        noise[:, ~self._tells_column] = 0.0
        before = np.nonzero(subject.before)
        sizes, causes = _sizes(noise), _sizes(scores)
        # What goes together, as for want of an edge, has sizes that do.
        expected = dependence_of_sizes(correlations(scores, noise))
        skewness, tails = _shape(noise)
        return {
            "skewed noise": skewness,
            "tails": tails,
            "curvature": correlations(_bends(scores), noise)[before],
            "changing spread": np.concatenate(
                [
                    correlations(scores, sizes)[before],
                    (correlations(causes, sizes) - expected)[before],
                ]
            ),
        }

    def in_units(self, seen, mean) -> tuple[np.ndarray, np.ndarray]:
        """Statistics of columns in the scale of the network."""
        seen, mean = seen.copy(), mean.copy()
        for k, mark in enumerate(self.marks):
            if mark.code >= 0:
                continue
            scale = self.scales[mark.column]
            low, centre, high = scale.value(np.array([-1.0, 0.0, 1.0]))
            spread = 0.5 * (high - low)
            for own in (seen, mean):
                own[k] = spread * own[k] + (centre if mark.code == NUMBER else 0.0)
        return seen, mean


def normal_ranks(columns) -> np.ndarray:
    """Normal scores of the ranks of columns, the same for equal values."""
    return ndtri(rankdata(columns, axis=0) / (len(columns) + 1.0))


def _sizes(scores) -> np.ndarray:
    """Absolute values as normal scores, whose products have no long tails."""
    least = 0.5 / len(scores)
    return ndtri(np.clip(erf(np.abs(scores) / np.sqrt(2.0)), least, 1.0 - least))


def correlations(X, Y) -> np.ndarray:
    """Correlations of columns of two tables, 0 where one is constant, (p, q)."""
    n = max(len(X), 1)
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    scale = np.outer((X**2).mean(axis=0), (Y**2).mean(axis=0))
    zeros = np.zeros_like(scale)
    r = np.divide(X.T @ Y / n, np.sqrt(scale), out=zeros, where=scale > 1e-24)
    return np.clip(r, -1.0, 1.0)


def dependence_of_sizes(r) -> np.ndarray:
    """Correlations of absolute values of normal columns with correlations r."""
    return (np.sqrt(1.0 - r**2) + r * np.arcsin(r) - 1.0) / (0.5 * np.pi - 1.0)


def _bends(scores) -> np.ndarray:
    """Squares of the columns, less what is linear in them."""
    centred = scores - scores.mean(axis=0)
    squares = centred**2
    variance, third = (p.sum(axis=0) for p in (squares, squares * centred))
    slope = np.divide(third, variance, out=np.zeros_like(third), where=variance > 0)
    return squares - variance / max(len(scores), 1) - slope * centred


def _shape(columns) -> tuple[np.ndarray, np.ndarray]:
    """Skewness of columns, and the logarithm of their kurtosis, which is less skewed.

    0 and log 3 where a column is constant.
    """
    centred = columns - columns.mean(axis=0)
    squares = centred * centred
    second, third, fourth = (
        part.mean(axis=0) for part in (squares, squares * centred, squares * squares)
    )
    varies = second > 0
    spread = np.sqrt(np.where(varies, second, 1.0))
    return third / spread**3, np.log(np.where(varies, fourth / spread**4, 3.0))
