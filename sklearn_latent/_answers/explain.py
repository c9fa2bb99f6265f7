"""Which cells of a row moved the posterior of each latent, and by how much.

The family says what a latent is believed to be, given some of the cells (`Part`); what
follows is the same for all families.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from .._core.text import label, shorten
from .._core.validation import check_count, shown
from ..plotting import ExplanationDisplay
from ..plotting._explanation import chance_text

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

# Largest log-odds, which stand for certainty: sums stay finite and still add up. The
# evidence of a hundred cells that are not deterministic stays below.
CERTAIN = 100.0

# Cells of the rows that are inferred at a time, 32 MB as floats.
BATCH_CELLS = 1 << 22

# Effects that differ by less, compared with the largest, are as large as each other.
DIGITS = 9

# Latents of the text, and cells that it names for each.
MOST_LATENTS, MOST_NAMED = 20, 3

LOG_ODDS, MEAN = "log-odds", "mean"


class Part(NamedTuple):
    """A latent, and what is believed of it given some of the cells that matter.

    cells: those that may matter, (n_cells,), first `n_near` that matter if all others
        are seen
    believed: function of which of them are seen, bool (n_rows, n_cells)
    """

    cells: NDArray[np.intp]
    n_near: int
    believed: Callable[[NDArray[np.bool_]], NDArray[np.float64]]


class Evidence(NamedTuple):
    """What a family says of a row.

    part: of each latent by its number
    values: cells as the user gave them, flat
    names: of the features of the cells; times: of their slices, None without time
    states: the state of each latent whose log-odds are explained, if not "on"
    time: the slice of the latents
    scale: LOG_ODDS or MEAN
    """

    part: Callable[[int], Part] | None
    values: NDArray[Any]
    names: Sequence[str]
    times: Sequence[str] | None = None
    states: dict[int, int] | None = None
    time: str | None = None
    scale: str = LOG_ODDS


def clipped_logit(probability: Any) -> NDArray[np.float64]:
    """Log-odds, of certainty as well."""
    return clip_log_odds(logit(probability))


def clip_log_odds(log_odds: Any) -> NDArray[np.float64]:
    """Keep log-odds finite."""
    return np.clip(log_odds, -CERTAIN, CERTAIN)


class _Weights(NamedTuple):
    """Effects of cells on one latent; cells in the order in which they are added."""

    base: float
    total: float
    cells: NDArray[np.intp]
    leave_one_out: NDArray[np.float64]
    contribution: NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Which cells of a row moved the posterior of each latent, and by how much.

    Made by ``explain`` of a fitted estimator. Printed, it is a line of text per latent.

    Parameters
    ----------
    latent_names : list of str
        Names of the latents that are explained.
    scale : {"log-odds", "mean"}
        What is explained: log-odds of a latent, or of its most probable state, in nats;
        or its mean.
    base : ndarray of shape (n_latents,)
        What is believed of each latent before any cell is seen, in this scale.
    total : ndarray of shape (n_latents,)
        What is believed once all cells are seen.
    evidence : Evidence
        The cells.
    weights : list
        Effects of the cells on each latent.

    Attributes
    ----------
    prior : ndarray of shape (n_latents,)
        `base` as a probability; with the scale "mean", the same.
    posterior : ndarray of shape (n_latents,)
        `total` as a probability; with the scale "mean", the same. These are values of
        `transform`.

    See Also
    --------
    sklearn_latent.plotting.ExplanationDisplay : Draws it.

    Notes
    -----
    ``base`` and the contributions always add up to ``total``. Log-odds are kept within
    ±100, which stands for certainty. If two cells each prove that a latent is on, none
    of them is missed: both have a ``leave_one_out`` of 0.

    Examples
    --------
    >>> from sklearn_latent import NoisyOrEM
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> X = make_noisy_or(n_samples=2000, random_state=0).X
    >>> explanation = NoisyOrEM(2, random_state=0).fit(X).explain(X[0])
    >>> table = explanation.to_frame()
    >>> list(table.columns)
    ['latent', 'feature', 'value', 'leave_one_out', 'contribution', 'posterior']
    >>> added = table.groupby("latent").contribution.sum()
    >>> bool((abs(explanation.base + added - explanation.total) < 1e-9).all())
    True
    """

    latent_names: list[str]
    scale: str
    base: NDArray[np.float64]
    total: NDArray[np.float64]
    evidence: Evidence
    weights: list[_Weights]

    @property
    def prior(self) -> NDArray[np.float64]:
        """What is believed of each latent before any cell is seen."""
        return self._shown(self.base)

    @property
    def posterior(self) -> NDArray[np.float64]:
        """What is believed of each latent once all cells are seen."""
        return self._shown(self.total)

    def _shown(self, target):
        return expit(target) if self.scale == LOG_ODDS else np.array(target)

    def to_frame(self) -> pd.DataFrame:
        """Table of the effects of cells.

        Returns
        -------
        frame : pandas.DataFrame
            One row per latent and cell that is not missing, in the order in which cells
            are added: ``latent``, ``feature`` (and ``slice``, if there are several),
            ``value``, ``leave_one_out`` (how much is lost without the cell),
            ``contribution`` (how much it adds to those above it) and ``posterior``
            (probability or mean after it).
        """
        import pandas as pd

        evidence, frames = self.evidence, []
        for name, own in zip(self.latent_names, self.weights, strict=True):
            columns: dict[str, Any] = {"latent": name}
            columns["feature"] = [evidence.names[c] for c in own.cells]
            if evidence.times is not None:
                columns["slice"] = [evidence.times[c] for c in own.cells]
            columns["value"] = evidence.values[own.cells]
            columns["leave_one_out"] = own.leave_one_out
            columns["contribution"] = own.contribution
            columns["posterior"] = self._shown(_after(own)[1:])
            frames.append(pd.DataFrame(columns))
        if not frames:
            return pd.DataFrame(columns=["latent", "feature", "value", *_EFFECTS])
        return pd.concat(frames, ignore_index=True)

    def plot(
        self, ax: Axes | None = None, *, latent: Any = None, max_cells: int = 10
    ) -> ExplanationDisplay:
        """Draw how cells move the posterior of one latent.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.
        latent : str, int or None, default=None
            Name of the latent, or its number among those that are explained; None:
            the one whose posterior differs most from its prior. A model without
            latents gets a picture that says so.
        max_cells : int, default=10
            Maximum number of cells to show; the others are added up.

        Returns
        -------
        display : ExplanationDisplay
            The drawn display.
        """
        if latent is None and not self.latent_names:
            return ExplanationDisplay([], [], None, title=str(self)).plot(ax=ax)
        if latent is None:
            place = int(np.argmax(np.abs(self.posterior - self.prior)))
        else:
            place = int(check_latents("latent", latent, self.latent_names)[0])
        own = self.weights[place]
        display = ExplanationDisplay(
            own.contribution,
            [self._label(cell) for cell in own.cells],
            own.base,
            title=self._title(place),
            scale=self.scale,
        )
        return display.plot(ax=ax, max_cells=max_cells)

    def _label(self, cell) -> str:
        """A cell, in words."""
        evidence = self.evidence
        name = label(evidence.names[cell])
        if evidence.times is not None:
            name += f" at {evidence.times[cell]}"
        return f"{name} = {_value_text(evidence.values[cell])}"

    def _title(self, place) -> str:
        """A latent, its state and slice, in words."""
        evidence, text = self.evidence, label(self.latent_names[place])
        if evidence.states is not None:
            text += f", state {evidence.states[place]}"
        return text if evidence.time is None else f"{text}, slice {evidence.time}"

    def __repr__(self) -> str:
        if not self.latent_names:
            return "The model has no latents to explain."
        lines = [self._line(place) for place in range(len(self.weights))]
        more = len(lines) - MOST_LATENTS
        if more > 0:
            lines[MOST_LATENTS:] = [f"... and {more} more latents; see to_frame()"]
        return "\n".join(lines)

    def _line(self, place) -> str:
        """What happened to a latent, in words."""
        own, before, after = (x[place] for x in (self.weights, self.base, self.total))
        if self.scale == LOG_ODDS:
            text = f"{chance_text(after)}, from a prior of {expit(before):.3g}"
        else:
            text = f"mean = {after:.3g}, from {before:.3g}"
        text = f"{self._title(place)}: {text}"
        order = np.argsort(-np.abs(own.contribution), kind="stable")
        named = [
            i for i in order[:MOST_NAMED] if abs(own.contribution[i]) > 10**-DIGITS
        ]
        if not named:
            return text + "; no cell tells anything of it"
        for first, i in zip([True] + [False] * len(named), named, strict=False):
            size = own.contribution[i]
            verb = "raised" if size > 0 else "lowered"
            most = " most" if first else ""
            text += f"; {self._label(own.cells[i])} {verb} it{most} ({size:+.2g})"
        rest = len(own.cells) - len(named)
        if rest:
            text += f"; {rest} other{'s' * (rest > 1)} "
            text += f"({np.delete(own.contribution, named).sum():+.2g})"
        return text


_EFFECTS = ("leave_one_out", "contribution", "posterior")


def check_latents(argument: str, given: Any, names: Sequence[str]) -> NDArray[np.intp]:
    """Numbers of latents that are given by names or numbers; None gives all."""
    if given is None:
        return np.arange(len(names))
    given = given.tolist() if isinstance(given, np.ndarray) else given
    alone = isinstance(given, str) or not isinstance(given, Iterable)
    chosen = [given] if alone else list(given)
    if chosen and not names:
        raise ValueError(f"{argument} must be None: the model has no latents.")
    place = {name: number for number, name in enumerate(names)}
    numbers = []
    for one in chosen:
        if isinstance(one, str) and one not in place:
            raise ValueError(
                f"{argument} must name latents of the model, {shown(list(names))}, got "
                f"{shown(one)}."
            )
        numbers.append(
            place[one]
            if isinstance(one, str)
            else check_count(argument, one, 0, len(names) - 1)
        )
    return np.array(numbers, dtype=np.intp)


def explain_row(
    evidence: Evidence, latents: NDArray[np.intp], names: Sequence[str]
) -> Explanation:
    """Weigh the evidence of the cells of a row for some latents, which have names."""
    assert evidence.part is not None
    own = [_weigh(evidence.part(j)) for j in latents.tolist()]
    states = evidence.states
    if states is not None:
        states = {place: states[j] for place, j in enumerate(latents.tolist())}
    return Explanation(
        [str(names[j]) for j in latents],
        evidence.scale,
        np.array([one.base for one in own]),
        np.array([one.total for one in own]),
        evidence._replace(part=None, states=states),
        own,
    )


def _weigh(part: Part) -> _Weights:
    """Effects of the cells on a latent; those of the largest are added first.

    Those that do not matter if all others are seen add nothing then.
    """
    n_cells, n_near = len(part.cells), part.n_near
    places = np.arange(n_cells)

    def without(rows):
        """All cells but one of those that matter, then all, then none."""
        hidden = np.append(np.arange(n_near), -1)
        row = rows[:, np.newaxis]
        return (row <= n_near) & (hidden[np.minimum(row, n_near)] != places)

    *others, total, base = _in_batches(part, without, n_near + 2)
    lost = total - np.array(others)
    size = np.abs(lost) / (np.abs(lost).max(initial=0.0) or 1.0)
    order = np.argsort(-np.round(size, DIGITS), kind="stable")
    rank = np.append(np.argsort(order), np.full(n_cells - n_near, n_cells))

    def first(rows):
        return rank <= rows[:, np.newaxis]

    path = _in_batches(part, first, max(n_near - 1, 0))
    steps = [base, *path, total] if n_near else [base]
    return _Weights(
        float(base),
        float(steps[-1]),
        part.cells[order],
        lost[order],
        np.diff(steps),
    )


def _in_batches(part: Part, seen, n_rows: int) -> NDArray[np.float64]:
    """What is believed, given many rows of seen cells, a bounded number at a time."""
    step = max(1, BATCH_CELLS // max(1, len(part.cells)))
    rows = np.arange(n_rows)
    found = [
        part.believed(seen(rows[start : start + step]))
        for start in range(0, n_rows, step)
    ]
    return np.concatenate([np.empty(0), *found])


def _after(own: _Weights) -> NDArray[np.float64]:
    """Target after each cell, from before the first one on."""
    return own.base + np.concatenate([[0.0], np.cumsum(own.contribution)])


def _value_text(value: Any) -> str:
    """A value, in words."""
    value = value.item() if isinstance(value, np.generic) else value
    return f"{value:.4g}" if isinstance(value, float) else shorten(value)
