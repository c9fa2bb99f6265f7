"""What the summary of a model of categorical features, or of a panel, says."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._answers.summary import Parts, Section, edges_section, latents_section, leading
from .._core.text import count, label


def describe(model: Any) -> Parts:
    """Latents, their states and leading features, and edges between them."""
    network = model.network_
    has_time = model.n_features_in_ > network.n_observed
    edges = _edges(model)
    sections = [
        *_latents(model, edges),
        *edges_section(
            f"Edges between latents{' of a slice' if has_time else ''}", edges["intra"]
        ),
        *edges_section("Edges from slice to slice", edges["inter"]),
    ]
    unit = "sequence" if has_time else "row"
    return Parts(_found(model, has_time), sections, _cautions(model), unit)


def _edges(model) -> dict[str, list[tuple]]:
    """Edges of each kind, those of both slices once: parent, arrow, child, strength."""
    graph = model.to_networkx()
    found: dict[str, list[tuple]] = {"measurement": [], "intra": [], "inter": []}
    for parent, child, edge in graph.edges(data=True):
        if graph.nodes[parent].get("slice", 0) == 0:
            ends = (graph.nodes[node].get("name", node) for node in (parent, child))
            one, two = ends
            arrow = "->" if edge["directed"] else "--"
            found[edge["kind"]].append((one, arrow, two, float(edge["strength"])))
    return found


def _found(model, has_time: bool) -> list[str]:
    network = model.network_
    states = ", ".join(map(str, np.unique(network.cardinality).tolist()))
    slices = f" in {model.n_slices_} slices" if has_time else ""
    found = [
        f"{count(network.n_latents, 'latent')} behind "
        f"{count(int(model.structure_.any(axis=0).sum()), 'feature')} of "
        f"{network.n_observed}{slices}."
    ]
    if network.n_latents:
        found.append(f"Numbers of states: {states}.")
    epochs = getattr(model, "epochs_", ())
    if has_time and len(epochs) > 1:
        starts = ", ".join(map(str, np.asarray(epochs).tolist()))
        found.append(f"The process changes; its parts start at slices {starts}.")
    return found


def _latents(model, edges) -> list[Section]:
    rows = []
    for name, cardinality in zip(model.latent_names_, model.cardinality_, strict=True):
        own = [
            (feature, strength)
            for parent, _, feature, strength in edges["measurement"]
            if parent == name
        ]
        names, strengths = zip(*own, strict=True) if own else ((), ())
        rows.append((label(name), str(cardinality), leading(names, strengths)))
    line = (
        "Beside each feature the share of its information that the latent has, from 0 "
        "to 1."
    )
    return latents_section(("latent", "states", "leading features"), rows, [line])


def _cautions(model) -> list[str]:
    cautions = []
    if model.n_latents_:
        cautions.append(
            "States of a latent have no order and no names: state 1 is not more than "
            "state 0."
        )
    if bool((model.intra_ & model.intra_.T).any()):
        cautions.append("Edges '--' have a direction that rows cannot tell.")
    if model.inter_.any() or model.intra_.any():
        cautions.append(
            "Edges are causes only if no common cause of the latents is missing."
        )
    if not model.converged_:
        cautions.append("EM stopped before it converged; raise max_iter.")
    return cautions
