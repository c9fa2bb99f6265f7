"""Graphs as text that other programs draw: DOT and Mermaid."""

from __future__ import annotations

from numbers import Real
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from ._selection import name_of, select

if TYPE_CHECKING:
    import networkx as nx

COLORS = {"latent": "#DAD3EC", "feature": "#FFFFFF", "class": "#D9D9D9"}
LINE = "#404040"
SIGNS = {1: "#0072B2", -1: "#D55E00"}
DOT_SHAPES = {"latent": "ellipse", "feature": "box", "class": "hexagon"}
MERMAID_SHAPES = {"latent": ("([", "])"), "feature": ("[", "]"), "class": ("{{", "}}")}


class _Node(NamedTuple):
    """A node: generated identifier, lines of its label, kind, slice or None."""

    key: str
    lines: list[str]
    kind: str
    slice: int | None
    is_flipped: bool

    @classmethod
    def of(cls, graph, number: int, node) -> _Node:
        """Name of a node, and its prior or number of states."""
        data = graph.nodes[node]
        kind = data["kind"] if data.get("kind") in COLORS else "feature"
        is_flipped = data.get("polarity") == -1
        name = f"not {name_of(graph, node)}" if is_flipped else name_of(graph, node)
        lines = str(name).splitlines() or [""]
        if isinstance(data.get("prior"), Real) and kind == "latent":
            lines.append(f"{data['prior']:#.2g}")
        for attribute, noun in (("cardinality", "states"), ("n_classes", "classes")):
            if attribute in data:
                lines.append(f"{data[attribute]} {noun}")
        return cls(f"n{number}", lines, kind, data.get("slice"), is_flipped)


class _Edge(NamedTuple):
    """An edge: identifiers of its ends, label, width and colour."""

    parent: str
    child: str
    label: str
    width: float
    color: str
    is_directed: bool

    @classmethod
    def of(cls, parent: str, child: str, data) -> _Edge:
        """Strength as a width, sign of the weight as a colour."""
        size, weight = abs(float(data.get("strength", 1.0))), data.get("weight")
        weight = float(weight) if isinstance(weight, Real) else 0.0
        sign = (weight > 0) - (weight < 0)
        label = f"{'-' if sign < 0 else ''}{size:.2g}"
        width = 0.5 + 4.0 * min(size, 1.0)
        is_directed = bool(data.get("directed", True))
        return cls(parent, child, label, width, SIGNS.get(sign, LINE), is_directed)


def _parts(graph, min_strength, focus):
    """Nodes by the title of their slice, edges, and what is not shown."""
    part, note = select(graph, min_strength, focus)
    note = "; ".join(text for text in (str(part.graph.get("note", "")), note) if text)
    nodes = {node: _Node.of(part, i, node) for i, node in enumerate(part)}
    edges = [
        _Edge.of(nodes[parent].key, nodes[child].key, data)
        for parent, child, data in part.edges(data=True)
    ]
    groups: dict[str, list[_Node]] = {"": list(nodes.values())}
    if {node.slice for node in nodes.values()} == {0, 1}:
        groups = {"time t": [], "time t + 1": []}
        for node in nodes.values():
            groups["time t + 1" if node.slice else "time t"].append(node)
    return groups, edges, note


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
        Edges below it are left out, as by `LatentGraphDisplay.plot`.
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
    groups, edges, note = _parts(graph, min_strength, focus)
    lines = ["digraph {", f'  graph [label="{_dot_text(note)}", fontsize=10]']
    lines.append("  node [style=filled]")
    for number, (title, nodes) in enumerate(groups.items()):
        inner = [f"  {_dot_node(node)}" for node in nodes]
        if title:
            opening = f'  subgraph cluster_{number} {{ label="{title}"'
            inner = [opening, *(f"  {line}" for line in inner), "  }"]
        lines += inner
    lines += [f"  {_dot_edge(edge)}" for edge in edges]
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
        Edges below it are left out, as by `LatentGraphDisplay.plot`.
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
    groups, edges, note = _parts(graph, min_strength, focus)
    lines = ["flowchart TD"]
    for number, (title, nodes) in enumerate(groups.items()):
        inner = [f"  {_mermaid_node(node)}" for node in nodes]
        if title:
            opening = f'  subgraph slice{number}["{_mermaid_text(title)}"]'
            inner = [opening, *(f"  {line}" for line in inner), "  end"]
        lines += inner
    if note:
        lines.append(f'  note["{_mermaid_text(note)}"]')
        lines.append("  style note fill:none,stroke:none")
    lines += [f"  {_mermaid_edge(edge)}" for edge in edges]
    for number, edge in enumerate(edges):
        style = f"stroke-width:{edge.width:.1f}px,stroke:{edge.color}"
        lines.append(f"  linkStyle {number} {style}")
    for kind, color in COLORS.items():
        keys = [n.key for nodes in groups.values() for n in nodes if n.kind == kind]
        if keys:
            style = f"fill:{color},stroke:{LINE},color:#000000"
            lines.append(f"  classDef {kind}Node {style}")
            lines.append(f"  class {','.join(keys)} {kind}Node")
    return "\n".join(lines)


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
