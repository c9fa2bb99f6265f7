"""Summaries of fitted models: a page of text, also as HTML."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.checks import CERTAIN
from .._core.text import count, label, number

if TYPE_CHECKING:
    import pandas as pd

WIDTH = 80
# Names, edges and latents that are listed before "... more".
MOST_NAMES, MOST_EDGES, MOST_LATENTS = 6, 12, 20
# Rows per parameter below which estimates are vague.
FEW_ROWS = 5.0
# What it means that a check of `diagnose` fails.
MEANING = {
    "likelihood": "the model describes X worse than independent columns do",
    "rate": "features have other rates or means than the model says",
    "mean": "features have other means than the model says",
    "spread": "features vary more, or less, than the model says",
    "pair": "features depend on each other more, or less, than the model says",
    "negative dependence": "features exclude each other, which independent latents "
    "cannot cause",
    "row total": "rows have more, or fewer, features on than the model says",
    "dependent latents": "latents depend on each other, in another way than the model "
    "says",
    "own past": "features repeat their own values more, or less, than latents explain",
    "older past": "features depend on values from before the last slice",
    "slice": "the process differs between slices: rates change",
    "step": "the process differs between slices: transitions change",
    "tails": "extreme values are more, or less, frequent than the model says",
    "skewed noise": "the noise of features is skewed",
    "curvature": "responses are curved in a way that the model does not have",
    "changing spread": "the noise of features varies with other features",
    "groups": "a mixture describes rows better: they may form groups",
    "certainty": "latents are hardly ever certain",
    "near-duplicates": "features say almost the same",
}


class Section(NamedTuple):
    """A part of a summary.

    lines: paragraphs, or items of a list if `listed`
    header, rows: a table below them, of text; the last column may be long
    """

    title: str
    lines: Sequence[str] = ()
    header: Sequence[str] = ()
    rows: Sequence[Sequence[str]] = ()
    listed: bool = False


class Parts(NamedTuple):
    """What a family of models says of a fitted model.

    found: sentences
    sections: tables of latents and edges
    cautions: sentences on what not to conclude
    unit: what a row is
    """

    found: list[str]
    sections: list[Section]
    cautions: list[str]
    unit: str = "row"


class Summary(str):
    """Text of a summary, of which notebooks show HTML.

    Attributes
    ----------
    heading : str
        The first line.
    sections : tuple of Section
        Parts, each with a title, lines and perhaps a table.
    """

    heading: str
    sections: tuple[Section, ...]

    def __new__(cls, title: str, sections: Iterable[Section]) -> Summary:
        sections = tuple(sections)
        text = "\n\n".join([_underlined(title, "="), *map(_as_text, sections)])
        summary = super().__new__(cls, text)
        summary.heading, summary.sections = title, sections
        return summary

    def __getnewargs__(self) -> Any:
        return self.heading, self.sections

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """The same as a fragment of HTML, without scripts or outside requests."""
        parts = "".join(map(section_html, self.sections))
        label = escape(self.heading)
        return f'<section aria-label="{label}"><h3>{label}</h3>{parts}</section>'


def _underlined(title: str, mark: str) -> str:
    lines = textwrap.wrap(title, WIDTH)
    return "\n".join([*lines, mark * max(map(len, lines), default=0)])


def _as_text(section: Section) -> str:
    """Title, wrapped lines and table of a section."""
    bullet, indent = ("- ", "  ") if section.listed else ("", "")
    lines = [
        textwrap.fill(line, WIDTH, initial_indent=bullet, subsequent_indent=indent)
        for line in section.lines
    ]
    table = _table_lines([section.header, *section.rows]) if section.rows else []
    return "\n".join([_underlined(section.title, "-"), *lines, *table])


def _table_lines(rows: Sequence[Sequence[str]]) -> list[str]:
    """Columns side by side; the last one is wrapped."""
    fixed = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)]
    start = sum(fixed) + 2 * len(fixed)
    lines = []
    for row in rows:
        cells = [f"{c:<{w}}  " for c, w in zip(row, fixed, strict=False)]
        last = textwrap.wrap(row[-1], max(WIDTH - start, 20)) or [""]
        lines.append(("".join(cells) + last[0]).rstrip())
        lines += [" " * start + more for more in last[1:]]
    return lines


def section_html(section: Section, level: int = 4) -> str:
    """Heading of a level, list or paragraphs, and table of a section."""
    lines = [escape(line) for line in section.lines]
    if section.listed:
        body = "<ul>" + "".join(f"<li>{line}</li>" for line in lines) + "</ul>"
    else:
        body = "".join(f"<p>{line}</p>" for line in lines)
    if section.rows:
        # Cell by cell, since notebooks align the cells of tables to the right.
        left = 'style="text-align: left"'
        head = "".join(
            f'<th scope="col" {left}>{escape(c)}</th>' for c in section.header
        )
        rows = "".join(
            f'<tr><th scope="row" {left}>{escape(row[0])}</th>'
            + "".join(f"<td {left}>{escape(cell)}</td>" for cell in row[1:])
            + "</tr>"
            for row in section.rows
        )
        # Wide tables scroll by themselves, not the page.
        body += (
            '<div style="overflow-x: auto" tabindex="0">'
            f"<table><thead><tr>{head}</tr></thead>"
            f"<tbody>{rows}</tbody></table></div>"
        )
    return f"<h{level}>{escape(section.title)}</h{level}>{body}"


# Words and numbers


def with_error(value: float, error: float | None = None) -> str:
    """Value, and its standard error if there is one, to the same digit."""
    if error is None or not 0.0 < error < np.inf:
        return number(value if abs(value) >= 0.0005 else 0.0)
    digits = int(np.clip(1 - np.floor(np.log10(error)), 0, 6))
    return f"{value:.{digits}f} ± {error:.{digits}f}"


def leading(names: Sequence, strengths, errors=None, most: int = MOST_NAMES) -> str:
    """Names with their strengths, the strongest first: "x1 0.9, x2 0.4, 3 more"."""
    strengths = np.asarray(strengths, dtype=np.float64)
    order = np.argsort(-np.abs(strengths), kind="stable")
    parts = [
        f"{label(names[i])} "
        + with_error(strengths[i], None if errors is None else errors[i])
        for i in order[:most].tolist()
    ]
    if len(order) > most:
        parts.append(f"and {len(order) - most} more")
    return ", ".join(parts) or "none"


def edges_section(
    title: str, edges: Iterable[tuple[Any, str, Any, float]], lines: Sequence[str] = ()
) -> list[Section]:
    """Table of edges (parent, arrow, child, strength), if any, the strongest first."""
    ordered = sorted(edges, key=lambda edge: -abs(edge[3]))
    if not ordered:
        return []
    rows = [
        (label(parent), arrow, label(child), number(strength))
        for parent, arrow, child, strength in ordered[:MOST_EDGES]
    ]
    left = len(ordered) - len(rows)
    if left:
        rows.append((f"and {left:,} more", "", "", "weaker; see to_frame()"))
    return [Section(title, lines, ("from", "", "to", "strength"), rows)]


def latents_section(
    header: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[str] = ()
) -> list[Section]:
    """Table of latents, if any; those beyond a limit are only counted."""
    if not rows:
        return []
    kept = list(rows[:MOST_LATENTS])
    if len(rows) > len(kept):
        blank = [""] * (len(header) - 2)
        kept.append([f"and {len(rows) - len(kept):,} more", *blank, "see to_frame()"])
    return [Section("Latents", lines, header, kept)]


# Parts that all families share


def summarise(model: Any, X: Any = None) -> Summary:
    """Summary of a fitted estimator; with rows, whether they follow the model."""
    parts = model._describe()
    n, columns = model._n_rows_learned(), count(model.n_features_in_, "column")
    rows = "" if n is None else f"{count(n, parts.unit)} x "
    sections = [Section("What was found", parts.found), *parts.sections]
    sections.append(Section("Fit", _fit_lines(model, parts.unit)))
    if X is not None:
        sections.append(diagnosis_section(model.diagnose(X), parts.unit))
    cautions = [" ".join(text.split()) for text in getattr(model, "_cautions", ())]
    cautions = [f"fit warned: {text}" for text in dict.fromkeys(cautions)]
    cautions += [*_shared_cautions(model, parts.unit), *parts.cautions]
    if cautions:
        sections.append(Section("Be careful about", cautions, listed=True))
    title = f"{type(model).__name__}, learned from {rows}{columns}"
    return Summary(title, sections)


def _fit_lines(model: Any, unit: str) -> list[str]:
    size = count(model._n_parameters(), "parameter")
    if not hasattr(model, "bic_"):
        return [f"{size}. fit computes no likelihood; score(X) does."]
    kind = "exact" if model.is_exact_ else "a bound or an estimate"
    per_row = model.log_likelihood_ / model._n_rows_learned()
    return [
        f"{size}, log-likelihood {number(per_row)} nats per {unit} ({kind}), BIC "
        f"{number(model.bic_)} (lower is better)."
    ]


def _shared_cautions(model: Any, unit: str) -> list[str]:
    cautions = []
    if model.n_latents_ == 0 and model._n_features_out:
        cautions.append(
            "There are no latents: transform completes missing values, and adds no "
            "column."
        )
    elif model.n_latents_ == 0:
        cautions.append(
            "There are no latents: transform returns no columns, which most steps of a "
            "pipeline refuse. More rows, columns with less noise, or a given number of "
            "latents may help."
        )
    n, n_parameters = model._n_rows_learned(), max(model._n_parameters(), 1)
    if n is not None and n / n_parameters < FEW_ROWS:
        cautions.append(
            f"There are {number(n / n_parameters)} {unit}s per parameter: estimates "
            "are vague, and a simpler model may predict better."
        )
    if not getattr(model, "is_exact_", True):
        cautions.append(
            "The likelihood is approximate: differences between models that are "
            "smaller than its error mean nothing."
        )
    return cautions


def diagnosis_section(checks: pd.DataFrame, unit: str) -> Section:
    """Likelihood of rows, and failing checks in words."""
    lines = []
    for line in checks[checks.check == "likelihood"].itertuples():
        gain = line.observed - line.expected
        lines.append(
            f"Log-likelihood {number(line.observed)} nats per {unit}, "
            f"{number(abs(gain))} {'less' if gain < 0 else 'more'} than "
            f"{line.what.removeprefix('against ')}."
        )
    failing = checks[~checks.ok]
    if failing.empty:
        lines.append("No check fails: nothing in X contradicts the model.")
    vague = (checks.check == "certainty") & (checks.observed < CERTAIN)
    failing = checks[~checks.ok | vague]
    for kind, found in failing.groupby("check", sort=False):
        worst = found.iloc[0]
        meaning = MEANING.get(kind, "X differs from what the model says")
        z = "" if np.isnan(worst.z) else f", z = {number(worst.z)}"
        more = f"; {len(found) - 1} more are listed" if len(found) > 1 else ""
        lines.append(
            f"{kind}: {meaning}. Worst: {label(worst.what, 50)}, "
            f"{number(worst.observed)} observed, {number(worst.expected)} expected{z}"
            f"{more}."
        )
    return Section("Does X follow the model?", lines, listed=True)
