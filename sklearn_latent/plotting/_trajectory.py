"""Display of the posterior states of latents over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._core.validation import check_numbers, shown
from ._display import (
    FONT,
    PALETTE,
    Display,
    add_legend,
    fitted_to,
    labels_or_default,
    size_in_points,
    spelled,
    split_axes,
    text_width,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_SEQUENCES = 6  # more are drawn as rows of a heat map


class TrajectoryDisplay(Display):
    """Posterior probabilities of the states of latents over time.

    Few sequences are drawn as stacked bars, one row of panels per sequence and one
    column per latent. Many sequences are drawn as heat maps with one row per sequence:
    the hue is the most probable state, and paler cells are less certain.

    Parameters
    ----------
    probabilities : list of array-like of shape (n_sequences, n_slices, n_states)
        One array per latent: P(state | sequence).
    latent_names : sequence of str or None, default=None
        Names of the latents. If None, they are latent0, latent1, ...
    sequence_names : sequence of str or None, default=None
        Names of the sequences. If None, they are numbered.
    slice_names : sequence of str or None, default=None
        Names of the slices. If None, they are numbered.

    Attributes
    ----------
    ax_ : matplotlib Axes
        The axes that hold the panels.
    axes_ : ndarray of matplotlib Axes of shape (n_rows, n_latents)
        The panels, with one row per sequence or one for all.
    figure_ : matplotlib Figure
        Figure of these axes.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn_latent.plotting import TrajectoryDisplay
    >>> rising = np.linspace(0.1, 0.9, 5)
    >>> states = np.stack([1 - rising, rising], axis=1)[np.newaxis]
    >>> display = TrajectoryDisplay([states], latent_names=["mood"]).plot()
    >>> display.axes_.shape
    (1, 1)
    """

    axes_: NDArray[Any]

    def __init__(
        self,
        probabilities: Sequence[ArrayLike],
        latent_names: Sequence[str] | None = None,
        sequence_names: Sequence[str] | None = None,
        slice_names: Sequence[str] | None = None,
    ) -> None:
        self.probabilities = probabilities
        self.latent_names = latent_names
        self.sequence_names = sequence_names
        self.slice_names = slice_names

    @classmethod
    def from_estimator(cls, estimator: Any, X: Any, *, ax: Axes | None = None) -> Self:
        """Infer the states of sequences, and draw them with their names, if any.

        Parameters
        ----------
        estimator : LGLPCCTemporal, SEMDBN or LPCC
            Fitted estimator with ``cardinality_``, whose ``transform`` gives
            probabilities of states.
        X : array-like of shape (n_sequences, n_slices * n_observed) or \
(n_sequences, n_slices, n_observed)
            The sequences to draw; NaN is missing.
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        display : TrajectoryDisplay
            The drawn display.
        """
        cls._check(ax, estimator, "transform", "cardinality_")
        cardinality = np.asarray(estimator.cardinality_, dtype=int)
        X = getattr(estimator, "_sequences_of", lambda X: X)(X)
        labels = getattr(X, "labels", None)
        sequences = None if labels is None else [str(i) for i in labels.sequences]
        slices = None if labels is None else labels.time_names
        posterior = np.asarray(estimator.transform(X), dtype=float)
        parts: list[NDArray[np.float64]] = []
        if len(cardinality):
            panel = posterior.reshape(len(posterior), -1, int(cardinality.sum()))
            parts = np.split(panel, np.cumsum(cardinality)[:-1], axis=2)
        names = getattr(estimator, "latent_names_", None)
        return cls(parts, names, sequences, slices).plot(ax)

    def plot(self, ax: Axes | None = None) -> Self:
        """Draw the states: bars for up to six sequences, else a heat map.

        Parameters
        ----------
        ax : matplotlib Axes or None, default=None
            Axes to draw on. If None, a new figure is created.

        Returns
        -------
        self : TrajectoryDisplay
            With the drawing in ``ax_``, ``axes_`` and ``figure_``.
        """
        parts = self._parts()
        n_sequences, n_slices = parts[0].shape[:2] if parts else (0, 0)
        latents, sequences, slices = (
            labels_or_default("latent_names", self.latent_names, "latent", len(parts)),
            labels_or_default(
                "sequence_names", self.sequence_names, "sequence ", n_sequences
            ),
            labels_or_default("slice_names", self.slice_names, "", n_slices),
        )
        has_bars = n_sequences <= MOST_SEQUENCES
        n_rows, n_columns = n_sequences if has_bars else 1, len(parts)
        ax = self._start(
            ax,
            float(np.clip(3.4 * n_columns, 5.0, 16.0)),
            float(np.clip(1.1 * n_rows, 0.14 * n_sequences, 10.0)) + 1.6,
        )
        shape = max(n_rows, 1), max(n_columns, 1)
        self.axes_ = split_axes(ax, *shape, gap=(0.22 / shape[0], 0.04))
        if not all(states.size for states in parts) or not parts:
            message = "no sequences" if parts else "no latents"
            ax.text(0.5, 0.5, message, ha="center", color="0.5", fontsize=12)
            for panel in self.axes_.flat:
                panel.set_axis_off()
            return self
        room = size_in_points(ax)[0] / n_columns
        for column, states, name in zip(self.axes_.T, parts, latents, strict=True):
            if has_bars:
                for panel, probabilities in zip(column, states, strict=True):
                    _draw_bars(panel, probabilities)
            else:
                _draw_heatmap(column[0], states)
            column[0].set_title(
                fitted_to(name, 0.95 * room, FONT + 1), fontsize=FONT + 1
            )
            column[-1].set_xlabel("slice", fontsize=FONT + 1)
        _label_slices(self.axes_, slices, room)
        _label_sequences(self.axes_, sequences)
        _draw_legend(ax, max(states.shape[2] for states in parts))
        return self

    def _parts(self) -> list[NDArray[np.float64]]:
        """Probabilities of the states of each latent."""
        if not isinstance(self.probabilities, Sequence | np.ndarray):
            raise ValueError(
                "probabilities must be a list of one array per latent, got "
                f"{shown(self.probabilities)}."
            )
        parts = [check_numbers("probabilities", part) for part in self.probabilities]
        for number, states in enumerate(parts):
            if states.ndim != 3 or states.shape[:2] != parts[0].shape[:2]:
                raise ValueError(
                    "probabilities must hold arrays of shape (n_sequences, n_slices, "
                    f"n_states) that agree in the first two, got shape {states.shape} "
                    f"for latent {number}."
                )
            if not ((states >= 0) & (states <= 1 + 1e-6)).all():
                raise ValueError(
                    "probabilities must be within [0, 1], got others for latent "
                    f"{number}."
                )
        return parts


def _label_slices(panels, names, room: float) -> None:
    """Name slices at the bottom, as many as fit into `room` points."""
    longest = max(text_width(name, FONT) for name in names) + 4.0
    turned = 0.8 * room < longest * min(len(names), 4)
    most = int(0.8 * room / (1.4 * FONT if turned else longest))
    places = _thinned(names, min(max(most, 1), 12))
    labels = [spelled(names[t]) for t in places]
    for panel in panels.flat:
        style = {"fontsize": FONT, "rotation": 90 if turned else 0}
        panel.set_xticks(places, labels, **style)
        panel.tick_params(length=2)
    for panel in panels[:-1].flat:
        panel.tick_params(labelbottom=False)


def _label_sequences(panels, names) -> None:
    """Name sequences at the left: rows of panels, or rows of heat maps."""
    for panel in panels[:, 1:].flat:
        panel.set_yticks([])
    if len(panels) < len(names):
        places = _thinned(names, 25)
        labels = [spelled(names[i]) for i in places]
        panels[0, 0].set_yticks(places, labels, fontsize=FONT - 1)
        return
    for panel, name in zip(panels[:, 0], names, strict=True):
        level = {"rotation": 0, "ha": "right", "va": "center"}
        panel.set_ylabel(spelled(name), fontsize=FONT + 1, **level)
        panel.set_yticks([0, 1], ["0", "1"], fontsize=FONT - 1)


def _thinned(names, most: int) -> NDArray[np.intp]:
    """Places of at most `most` names, evenly spaced."""
    return np.arange(0, len(names), max(1, -(-len(names) // most)))


def _draw_bars(panel, states) -> None:
    """Bars over time, divided by the probabilities of the states."""
    bottom = np.zeros(len(states))
    for k, height in enumerate(states.T):
        style = {"width": 0.96, "color": PALETTE[k % len(PALETTE)]}
        panel.bar(np.arange(len(states)), height, bottom=bottom, **style)
        bottom += height
    panel.set(xlim=(-0.5, len(states) - 0.5), ylim=(0.0, 1.0))
    panel.spines[:].set_visible(False)


def _draw_heatmap(panel, states) -> None:
    """A row per sequence: hue is the most probable state, paler is less certain."""
    from matplotlib.colors import to_rgb

    n_states = states.shape[2]
    hues = np.array([to_rgb(PALETTE[k % len(PALETTE)]) for k in range(n_states)])
    # No more certain than chance is white.
    chance = 1.0 / n_states if n_states > 1 else 0.0
    sure = (states.max(axis=2) - chance) / (1.0 - chance)
    sure = np.clip(sure, 0.0, 1.0)[..., np.newaxis]
    image = sure * hues[states.argmax(axis=2)] + (1.0 - sure)
    panel.imshow(image, aspect="auto", interpolation="nearest")
    panel.spines[:].set_color("0.8")


def _draw_legend(ax, n_states: int) -> None:
    """Name the colours above the panels."""
    from matplotlib.patches import Patch

    entries = [
        (Patch(color=PALETTE[k % len(PALETTE)]), f"state {k}") for k in range(n_states)
    ]
    # The pad is in units of the font: above the titles, however high the panels are.
    place = {"loc": "lower center", "bbox_to_anchor": (0.5, 1.0), "borderaxespad": 2.4}
    add_legend(ax, entries, ncols=min(n_states, 7), **place)
