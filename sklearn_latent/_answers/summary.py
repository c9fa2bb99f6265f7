"""Summaries of fitted models: a page of text, also as HTML.

A family says what it found and what not to conclude; latents and edges come from the
graph of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .._core.checks import CERTAIN
from .._core.text import count, label, number
from .pages import Section, Summary

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd

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


class Parts(NamedTuple):
    """What a family of models says of a fitted model.

    found: sentences
    cautions: sentences on what not to conclude
    measure: what a strength is
    size: attribute of the latents that is shown, and its heading
    errors: standard errors, of a latent's size by its name, and of strengths by ends
    further: more sections; unit: what a row is
    """

    found: list[str]
    cautions: list[str]
    measure: str
    size: tuple[str, str]
    errors: Mapping[Any, float] = MappingProxyType({})
    further: Sequence[Section] = ()
    unit: str = "row"


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


# Latents and edges


class _Edge(NamedTuple):
    """An edge of the first slice, or into the second; a strength has a sign."""

    parent: str
    child: str
    kind: str
    is_directed: bool
    strength: float


def graph_sections(graph: nx.DiGraph, parts: Parts) -> list[Section]:
    """Tables of the latents, and of the edges between nodes of each kind."""
    edges = _edges(graph)
    latents = [
        (str(own.get("name", node)), own[parts.size[0]])
        for node, own in graph.nodes(data=True)
        if own["kind"] == "latent" and own.get("slice", 0) == 0
    ]
    titles = {
        "latent to latent": "Edges between latents",
        "feature to latent": "Edges to latents",
        "inter": "Edges from slice to slice",
        "feature to feature": "Edges between features",
    }
    sections = _latents(latents, edges, parts)
    for kind, title in titles.items():
        own = sorted(
            (edge for edge in edges if edge.kind == kind),
            key=lambda edge: -abs(edge.strength),
        )
        rows = [
            (
                label(edge.parent),
                "->" if edge.is_directed else "--",
                label(edge.child),
                number(edge.strength),
            )
            for edge in own[:MOST_EDGES]
        ]
        if len(own) > len(rows):
            left = f"and {len(own) - len(rows):,} more"
            rows.append((left, "", "", "weaker; see to_frame()"))
        if rows:
            lines = [] if sections else [f"strength: {parts.measure}."]
            sections.append(Section(title, lines, ("from", "", "to", "strength"), rows))
    return sections


def _edges(graph) -> list[_Edge]:
    """Edges, those of both slices once, without those of classes."""
    nodes, found = graph.nodes, []
    for parent, child, edge in graph.edges(data=True):
        kinds = [nodes[node]["kind"] for node in (parent, child)]
        if "class" in kinds or nodes[parent].get("slice", 0) > 0:
            continue
        between = edge.get("kind")
        kind = between if between == "inter" else " to ".join(kinds)
        sign = np.sign(edge.get("weight", 1.0)) or 1.0
        above, below = (str(nodes[end].get("name", end)) for end in (parent, child))
        if nodes[child].get("polarity", 1) < 0:
            below = f"not {below}"
        directed, strength = edge.get("directed", True), float(sign * edge["strength"])
        found.append(_Edge(above, below, kind, directed, strength))
    return found


def _latents(latents, edges: list[_Edge], parts: Parts) -> list[Section]:
    """Table of latents, if any; those beyond a limit are only counted."""
    if not latents:
        return []
    children: dict[str, list[_Edge]] = {}
    for edge in edges:
        if edge.kind == "latent to feature":
            children.setdefault(edge.parent, []).append(edge)
    rows = []
    for name, size in latents[:MOST_LATENTS]:
        own = children.get(name, [])
        errors = [parts.errors.get((name, edge.child)) for edge in own]
        strongest = leading(
            [e.child for e in own], [e.strength for e in own], errors or None
        )
        text = with_error(size, parts.errors.get(name))
        rows.append((label(name), text, strongest))
    if len(latents) > len(rows):
        rows.append((f"and {len(latents) - len(rows):,} more", "", "see to_frame()"))
    lines = [f"Beside each feature: {parts.measure}."]
    header = ("latent", parts.size[1], "leading features")
    return [Section("Latents", lines, header, rows)]


# The whole page


def summarise(model: Any, X: Any = None) -> Summary:
    """Summary of a fitted estimator; with rows, whether they follow the model."""
    parts = model._describe()
    n, columns = model._n_rows_learned(), count(model.n_features_in_, "column")
    rows = "" if n is None else f"{count(n, parts.unit)} x "
    sections = [Section("What was found", parts.found)]
    sections += [*graph_sections(model.to_networkx(), parts), *parts.further]
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
