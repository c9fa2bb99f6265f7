"""Graphs as text that other programs draw: DOT and Mermaid."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from ._selection import name_of, select

if TYPE_CHECKING:
    import networkx as nx

COLORS = {"latent": "#DAD3EC", "feature": "#FFFFFF", "class": "#D9D9D9"}
NEGATIVE, POSITIVE, USUAL = "#D55E00", "#0072B2", "#404040"
DOT_SHAPES = {"latent": "ellipse", "feature": "box", "class": "hexagon"}
MERMAID_SHAPES = {"latent": ("([", "])"), "feature": ("[", "]"), "class": ("{{", "}}")}
SLICES = ("time t", "time t + 1")


class _Node(NamedTuple):
    """A node: generated identifier, lines of its label, kind, slice or None."""

    key: str
    lines: list[str]
    kind: str
    slice: int | None
    is_flipped: bool


class _Edge(NamedTuple):
    """An edge: identifiers of its ends, label, width and colour."""

    parent: str
    child: str
    label: str
    width: float
    color: str
    is_directed: bool


class _Diagram(NamedTuple):
    """What both formats write."""

    nodes: list[_Node]
    edges: list[_Edge]
    note: str

    def groups(self) -> list[tuple[str, list[_Node]]]:
        """Titles of slices and their nodes; an empty title stands for no slices."""
        if {node.slice for node in self.nodes} != {0, 1}:
            return [("", self.nodes)]
        return [
            (title, [node for node in self.nodes if node.slice == when])
            for when, title in enumerate(SLICES)
        ]


def to_dot(
    graph: nx.DiGraph,
    *,
    min_strength: Literal["auto"] | float = "auto",
    focus: Any = None,
) -> str:
    r"""Graph in the DOT language, for Graphviz.

    Latents are ellipses, features boxes and classes hexagons; slices are clusters.
    Stronger edges are wider and labelled with their strength.

    Parameters
    ----------
    graph : networkx.DiGraph
        Graph as returned by ``to_networkx``.
    min_strength : "auto" or float, default="auto"
        Edges below this strength, in absolute value, are left out; 0.0 keeps all.
        "auto" keeps as many as `LatentGraphDisplay.plot` draws.
    focus : str, list of str or None, default=None
        Names of nodes. Only these are kept, with their neighbours.

    Returns
    -------
    text : str
        The diagram. A label says what was left out.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_latent.export import to_dot
    >>> graph = nx.DiGraph()
    >>> graph.add_node("flu", kind="latent", prior=0.1)
    >>> graph.add_edge("flu", "fever", strength=0.75)
    >>> print(to_dot(graph))
    digraph {
      graph [label="", fontsize=10]
      node [style=filled]
      n0 [label="flu\n0.10", shape=ellipse, fillcolor="#DAD3EC"]
      n1 [label="fever", shape=box, fillcolor="#FFFFFF"]
      n0 -> n1 [label="0.75", penwidth=3.5, color="#404040"]
    }
    """
    diagram = _diagram_of(graph, min_strength, focus)
    lines = ["digraph {", f'  graph [label="{_dot_text(diagram.note)}", fontsize=10]']
    lines.append("  node [style=filled]")
    for number, (title, nodes) in enumerate(diagram.groups()):
        inner = [f"  {_dot_node(node)}" for node in nodes]
        if title:
            opening = f'  subgraph cluster_{number} {{ label="{title}"'
            inner = [opening, *(f"  {line}" for line in inner), "  }"]
        lines += inner
    lines += [f"  {_dot_edge(edge)}" for edge in diagram.edges]
    return "\n".join([*lines, "}"])


def to_mermaid(
    graph: nx.DiGraph,
    *,
    min_strength: Literal["auto"] | float = "auto",
    focus: Any = None,
) -> str:
    """Graph as a Mermaid flowchart, which GitHub and many editors draw.

    Latents have round ends, features are boxes and classes hexagons; slices are
    subgraphs. Stronger edges are wider and labelled with their strength. Mermaid draws
    at most 500 edges unless it is configured otherwise.

    Parameters
    ----------
    graph : networkx.DiGraph
        Graph as returned by ``to_networkx``.
    min_strength : "auto" or float, default="auto"
        Edges below this strength, in absolute value, are left out; 0.0 keeps all.
        "auto" keeps as many as `LatentGraphDisplay.plot` draws.
    focus : str, list of str or None, default=None
        Names of nodes. Only these are kept, with their neighbours.

    Returns
    -------
    text : str
        The diagram. A comment says what was left out.

    Examples
    --------
    >>> import networkx as nx
    >>> from sklearn_latent.export import to_mermaid
    >>> graph = nx.DiGraph()
    >>> graph.add_node("flu", kind="latent", prior=0.1)
    >>> graph.add_edge("flu", "fever", strength=0.75)
    >>> print(to_mermaid(graph))
    flowchart TD
      n0(["flu<br/>0.10"])
      n1["fever"]
      n0 -->|"0.75"| n1
      linkStyle 0 stroke-width:3.5px,stroke:#404040
      classDef latentNode fill:#DAD3EC,stroke:#404040,color:#000000
      class n0 latentNode
      classDef featureNode fill:#FFFFFF,stroke:#404040,color:#000000
      class n1 featureNode
    """
    diagram = _diagram_of(graph, min_strength, focus)
    lines = ["flowchart TD"]
    for number, (title, nodes) in enumerate(diagram.groups()):
        inner = [f"  {_mermaid_node(node)}" for node in nodes]
        if title:
            opening = f'  subgraph slice{number}["{_mermaid_text(title)}"]'
            inner = [opening, *(f"  {line}" for line in inner), "  end"]
        lines += inner
    if diagram.note:
        lines.append(f'  note["{_mermaid_text(diagram.note)}"]')
        lines.append("  style note fill:none,stroke:none")
    lines += [f"  {_mermaid_edge(edge)}" for edge in diagram.edges]
    lines += [
        f"  linkStyle {number} stroke-width:{edge.width:.1f}px,stroke:{edge.color}"
        for number, edge in enumerate(diagram.edges)
    ]
    for kind, color in COLORS.items():
        keys = [node.key for node in diagram.nodes if node.kind == kind]
        if keys:
            style = f"fill:{color},stroke:{USUAL},color:#000000"
            lines.append(f"  classDef {kind}Node {style}")
            lines.append(f"  class {','.join(keys)} {kind}Node")
    return "\n".join(lines)


def _diagram_of(graph, min_strength, focus) -> _Diagram:
    """The part of the graph that is shown, with generated identifiers."""
    part, note = select(graph, min_strength, focus)
    note = "; ".join(text for text in (str(part.graph.get("note", "")), note) if text)
    key = {node: f"n{i}" for i, node in enumerate(part)}
    nodes = [
        _Node(
            key[node],
            _label_lines(part, node, data),
            data["kind"] if data.get("kind") in COLORS else "feature",
            data.get("slice"),
            data.get("polarity") == -1,
        )
        for node, data in part.nodes(data=True)
    ]
    edges = [
        _edge(key[parent], key[child], data)
        for parent, child, data in part.edges(data=True)
    ]
    return _Diagram(nodes, edges, note)


def _label_lines(graph, node, data) -> list[str]:
    """Name of a node, and its prior or number of states."""
    name = str(name_of(graph, node))
    lines = (f"not {name}" if data.get("polarity") == -1 else name).splitlines() or [""]
    prior = data.get("prior")
    if isinstance(prior, Real) and data.get("kind") == "latent":
        lines.append(f"{prior:#.2g}")
    for attribute, noun in (("cardinality", "states"), ("n_classes", "classes")):
        if attribute in data:
            lines.append(f"{data[attribute]} {noun}")
    return lines


def _edge(parent: str, child: str, data) -> _Edge:
    """Label, width and colour of an edge."""
    size = abs(float(data.get("strength", 1.0)))
    weight = data.get("weight")
    is_signed = isinstance(weight, Real) and weight == weight and weight != 0
    color, sign = USUAL, ""
    if is_signed:
        color, sign = (POSITIVE, "") if weight > 0 else (NEGATIVE, "-")
    return _Edge(
        parent,
        child,
        f"{sign}{size:.2g}",
        0.5 + 4.0 * float(np.clip(size, 0.0, 1.0)),
        color,
        bool(data.get("directed", True)),
    )


def _printable(text: str) -> str:
    """Text without control characters and halves of letters, which no file holds."""
    return "".join(c if c.isprintable() else "\ufffd" for c in text)


def _dot_text(text: str) -> str:
    """Text between double quotes; Graphviz reads backslashes and entities."""
    text = _printable(text).replace("\\", "\\\\").replace('"', r"\"")
    return text.replace("&", "&amp;")


def _dot_node(node: _Node) -> str:
    label = r"\n".join(map(_dot_text, node.lines))
    shape, color = DOT_SHAPES[node.kind], COLORS[node.kind]
    dashed = ', style="filled,dashed"' if node.is_flipped else ""
    return f'{node.key} [label="{label}", shape={shape}, fillcolor="{color}"{dashed}]'


def _dot_edge(edge: _Edge) -> str:
    style = f'label="{edge.label}", penwidth={edge.width:.1f}, color="{edge.color}"'
    undirected = "" if edge.is_directed else ", dir=none, style=dashed"
    return f"{edge.parent} -> {edge.child} [{style}{undirected}]"


def _mermaid_text(text: str) -> str:
    """Text between double quotes.

    Mermaid reads quotes, HTML, Markdown, icons and entities in labels, so that all but
    letters, digits and spaces are written as entities, except inside of words.
    """
    text = _printable(text)
    letters = []
    for i, letter in enumerate(text):
        around = text[max(i - 1, 0) : i] + text[i + 1 : i + 2]
        inside = len(around) == 2 and (
            (letter in "_-" and around.isalnum())
            or (letter == "." and around.isdecimal())
        )
        plain = letter.isalnum() or letter == " " or inside
        letters.append(letter if plain else f"#{ord(letter)};")
    return "".join(letters)


def _mermaid_node(node: _Node) -> str:
    opening, closing = MERMAID_SHAPES[node.kind]
    label = "<br/>".join(map(_mermaid_text, node.lines))
    if not label.strip():
        label = "#160;"  # a label without letters is an error
    return f'{node.key}{opening}"{label}"{closing}'


def _mermaid_edge(edge: _Edge) -> str:
    arrow = "-->" if edge.is_directed else "-.-"
    return f'{edge.parent} {arrow}|"{_mermaid_text(edge.label)}"| {edge.child}'
