"""The report of a fitted model: summary, graph, latents, diagnosis, data."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping
from html import escape
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from .._core.text import count
from .._core.validation import shown
from .._tables.blocks import is_blockwise
from .._version import __version__
from ..plotting import FitDisplay, LatentGraphDisplay
from ..plotting._display import check_plot
from . import pages
from .pages import section_html
from .summary import diagnosis_section

# Labels of a column that are listed.
MOST_LABELS = 3
# Lines of a table of edges or columns; a page of thousands would not be read.
MOST_LINES = 200

GRAPH_TEXT = (
    "The graph of the model. Latents are filled circles; stronger edges are wider and "
    "darker."
)
FIT_TEXT = (
    "What was observed against what the model expects. Points on the line agree; "
    "coloured ones differ by more than chance explains."
)


class Topic(NamedTuple):
    """A fitted estimator, and rows to check it with, None if there are none."""

    estimator: Any
    X: Any = None

    @property
    def line(self) -> str:
        """Which estimator found how many latents behind how many features."""
        name = type(self.estimator).__name__
        latents, features = map(
            count, self.estimator.structure_.shape, ("latent", "feature")
        )
        return f"{name}: {latents} behind {features}."


def report(models: dict[str, Any], path: Any, *, title: str = "Latent models") -> None:
    """Write one HTML page about several fitted models.

    The page is one file that loads nothing and runs no scripts. The method ``report``
    of every estimator writes a page about one model.

    Parameters
    ----------
    models : dict
        Fitted estimators of this library by the names of their chapters. A pair
        ``(estimator, X)`` also has rows, which are checked and described.
    path : str or path-like
        File to write.
    title : str, default="Latent models"
        Heading of the page.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from sklearn_latent import NoisyOrEM, report
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> X = make_noisy_or(n_samples=200, random_state=0).X
    >>> model = NoisyOrEM(n_latents=2, random_state=0).fit(X)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "report.html")
    ...     report({"Symptoms": (model, X), "Without rows": model}, path)
    ...     path.exists()
    True
    """
    if not isinstance(models, Mapping):
        raise TypeError(f"models must be a dict of estimators, got {shown(models)}.")
    if not models:
        raise ValueError("models must have at least one estimator, got none.")
    subjects = {}
    for name, model in models.items():
        pair = model if isinstance(model, tuple) else (model, None)
        if len(pair) != 2 or not hasattr(pair[0], "_feature_values"):
            raise TypeError(
                "models must hold estimators of this library, or pairs of them and "
                f"rows, got {shown(model)} for {name!r}."
            )
        subjects[str(name)] = Topic(*pair)
    write_report(path, title, subjects)


def write_report(path: Any, title: str, subjects: dict[str, Topic]) -> None:
    """Write a page about one model, or about several with a chapter each."""
    if not isinstance(path, str | os.PathLike):
        raise TypeError(f"path must be the name of a file, got {shown(path)}.")
    if not isinstance(title, str):
        raise TypeError(f"title must be a string, got {shown(title)}.")
    check_plot("LatentGraphDisplay")
    for subject in subjects.values():
        check_is_fitted(subject.estimator)
        if is_blockwise(subject.X):
            raise TypeError(
                "X must be rows in memory, got an iterator of batches or a Dask "
                "collection; pass some of the rows."
            )
    if len(subjects) == 1:
        (subject,) = subjects.values()
        intro, sections = subject.line, list(_sections(subject, 3))
    else:
        intro = f"{len(subjects)} models."
        sections = [
            pages.Chapter(
                name, pages.paragraph(subject.line) + _below(_sections(subject, 4))
            )
            for name, subject in subjects.items()
        ]
    text = pages.page(
        title, intro, sections, f"Made with sklearn_latent {__version__}."
    )
    with open(path, "w", encoding="utf-8", newline="\n") as file:
        file.write(text)


def _sections(subject: Topic, level: int) -> Iterator[pages.Chapter]:
    """What there is to say of a model, in the order in which a person reads it."""
    estimator, X = subject
    yield pages.Chapter("Summary", _summary(estimator, level))
    drawing = _draw(lambda: LatentGraphDisplay.from_estimator(estimator))
    yield pages.Chapter("Graph", pages.picture(drawing, GRAPH_TEXT))
    edges = pages.Chapter("Edges", _edges(estimator.to_frame()))
    if X is None:
        note = "Rows passed as X of report(path, X) are checked and described here."
        yield from (pages.Chapter("Diagnosis", pages.paragraph(note, "note")), edges)
        return
    yield pages.Chapter("Diagnosis", _diagnosis(estimator, X, level))
    yield edges
    yield pages.Chapter(
        "Data", _data(estimator._node_names(), estimator._feature_values(X))
    )


def _below(chapters) -> str:
    """Chapters below one heading."""
    return "".join(f"<h3>{escape(part.title)}</h3>\n{part.body}\n" for part in chapters)


def _diagnosis(estimator, X, level: int) -> str:
    """Whether rows follow the model: in words, as a picture, and all checks."""
    checks = estimator.diagnose(X)
    words = diagnosis_section(checks, estimator._describe().unit)
    drawing = _draw(lambda: FitDisplay.from_estimator(estimator, X))
    return (
        section_html(words, level) + pages.picture(drawing, FIT_TEXT) + _checks(checks)
    )


def _summary(estimator, level: int) -> str:
    """The summary, whose title stands above it already."""
    return "".join(section_html(part, level) for part in estimator.summary().sections)


def _draw(draw) -> bytes:
    """The picture of a display, as SVG that is the same every time."""
    import matplotlib as mpl
    import matplotlib.pyplot as plt

    # Outlines of letters: the reader may not have the font.
    fixed = {"svg.hashsalt": "sklearn_latent", "svg.fonttype": "path"}
    with plt.style.context("default"), mpl.rc_context(fixed):
        figure = draw().figure_
        file = io.BytesIO()
        try:
            figure.savefig(file, format="svg", metadata={"Date": None})
        finally:
            plt.close(figure)
    return file.getvalue()


def _edges(frame) -> str:
    """Table of the edges, strongest first."""
    if not len(frame):
        return pages.paragraph("The model has no edges.", "note")
    text = count(len(frame), "edge")
    if "strength" in frame:
        text += ", the strongest first"
        order = np.argsort(-frame["strength"].abs().to_numpy(), kind="stable")
        frame = frame.iloc[order]
    rows = frame.head(MOST_LINES).astype(object).itertuples(index=False)
    body = pages.table(list(frame.columns), map(_plain, rows))
    return pages.folded(text, _rest(len(frame), "edges") + body)


def _checks(checks) -> str:
    """Table of the checks; those that fail stand out and come first."""
    checks = checks.sort_values("ok", kind="stable")
    n_bad = int((~checks.ok).sum())
    head = (
        f"{n_bad} of the {len(checks)} checks listed fail."
        if n_bad
        else f"All {len(checks)} checks listed pass."
    )
    rows = checks.astype(object).itertuples(index=False)
    body = pages.table(list(checks.columns), map(_plain, rows), bad=range(n_bad))
    return pages.paragraph(head) + body


def _data(names, columns) -> str:
    """Table of the columns."""
    named = zip(names, columns, strict=False)
    rows = [describe(*pair) for pair in islice(named, MOST_LINES)]
    header = ["column", "missing, %", "distinct", "values"]
    return _rest(len(names), "columns") + pages.table(header, rows)


def _rest(n: int, noun: str) -> str:
    """What to say of a table that is cut."""
    if n <= MOST_LINES:
        return ""
    return pages.paragraph(f"The first {MOST_LINES} of {n:,} {noun}.", "note")


def _plain(row) -> list:
    """Cells as Python's own types, nothing where there is no number."""
    return [_plain_cell(value) for value in row]


def _plain_cell(value):
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, tuple):  # a node of a temporal model
        return ", slice ".join(map(str, value))
    return "" if value is None or value != value else value


# What the columns of a table hold


def columns_of(X: Any) -> Iterator[np.ndarray]:
    """The columns of a data frame, a sparse matrix or an array, one at a time."""
    if hasattr(X, "iloc"):
        for j in range(X.shape[1]):
            yield X.iloc[:, j].to_numpy(dtype=object, na_value=np.nan)
    elif hasattr(X, "to_series"):
        for j in range(X.shape[1]):
            yield np.array(X.to_series(j).to_list(), dtype=object)
    elif sparse.issparse(X):
        by_column = sparse.csc_array(X)
        for j in range(X.shape[1]):
            yield by_column[:, [j]].toarray().ravel()
    else:
        yield from np.asarray(X).T


def describe(name: Any, values: np.ndarray) -> tuple:
    """Name of a column, percentage of missing values, distinct ones, and which."""
    import pandas as pd

    missing = np.asarray(pd.isna(values), dtype=bool)
    known = values[~missing]
    try:
        known, is_number = known.astype(np.float64), True
    except (TypeError, ValueError, OverflowError):
        known, is_number = np.array([str(value) for value in known], object), False
    found, counts = np.unique(known, return_counts=True)
    if is_number and len(found) > MOST_LABELS:
        low, middle, high = np.quantile(known, [0.0, 0.5, 1.0])
        text = f"{low:.4g} to {high:.4g}, median {middle:.4g}"
    else:
        order = np.argsort(-counts, kind="stable")[:MOST_LABELS]
        words = [f"{v:.4g}" if is_number else v for v in found[order]]
        shares = counts[order] / len(known)
        pairs = zip(words, shares, strict=True)
        text = ", ".join(f"{word} {share:.1%}" for word, share in pairs) or "no value"
        if len(found) > len(order):
            text += f" and {len(found) - len(order)} more"
    return str(name), 100.0 * float(missing.mean()), len(found), text
