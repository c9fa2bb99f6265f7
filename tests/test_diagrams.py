"""Diagrams as text: valid, with any names, and of what the picture shows."""

import re
from html import unescape

import networkx as nx
import numpy as np
import pytest
from graph_pictures import KINDS, gaussian, noisy_or, temporal, with_classes
from hypothesis import example, given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
)
from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.export import to_dot, to_mermaid
from sklearn_latent.plotting import LatentGraphDisplay
from sklearn_latent.plotting._selection import BUDGETS, select

HOSTILE = [
    "end",
    'say "hi"',
    "a\\",
    "\\N",
    "a]b",
    "{x}",
    "<b>bold</b>",
    "&amp;",
    "#quot;",
    "1. list",
    "`code`",
    "$$x$$",
    "two\nlines",
    "a --> b",
    "%% comment",
    "style x fill:#fff;",
    "click n0",
    "日本語 é",
    "",
    " ",
    "\x00",
    "\ud800",
    ";",
    "|",
    "subgraph",
    "o",
    "x",
    "fa:fa-ban",
    "www.example.org",
    "---",
    "a_b-c",
    "_a_",
]
names = st.sampled_from(HOSTILE) | st.text(max_size=12)

QUOTED = r'"((?:[^"\\]|\\.)*)"'
DOT_NODE = re.compile(
    rf'\s*(n\d+) \[label={QUOTED}, shape=(\w+), fillcolor="#\w+"'
    r'(?:, style="filled,dashed")?\]'
)
DOT_EDGE = re.compile(
    r'\s*(n\d+) -> (n\d+) \[label="([-\d.e]+)", penwidth=([\d.]+), color="(#\w+)"'
    r"(, dir=none, style=dashed)?\]"
)
DOT_REST = re.compile(
    rf"digraph {{|  graph \[label={QUOTED}, fontsize=10\]|  node \[style=filled\]"
    r'|  subgraph cluster_\d { label="time t( \+ 1)?"|  }|}'
)
# Between quotes: letters, digits, spaces, entities; inside of words _ and -, in numbers
# a point.
LABEL = r'"((?:[^\W_]|[ ]|#\w+;|(?<=[^\W_])[_-](?=[^\W_])|(?<=\d)\.(?=\d)|<br/>)+)"'
MERMAID_NODE = re.compile(rf"\s*(n\d+)(\(\[|\[|{{{{){LABEL}(\]\)|\]|}}}})")
MERMAID_EDGE = re.compile(rf"\s*(n\d+) (-->|-\.-)\|{LABEL}\| (n\d+)")
MERMAID_REST = re.compile(
    rf"flowchart TD|  subgraph slice\d\[{LABEL}\]|  end|  note\[{LABEL}\]"
    r"|  style note fill:none,stroke:none"
    r"|  linkStyle \d+ stroke-width:[\d.]+px,stroke:#\w+"
    r"|  classDef \w+ fill:#\w+,stroke:#\w+,color:#\w+|  class n\d+(,n\d+)* \w+"
)


def parse(text, node, edge, rest):
    """Nodes and edges of a diagram; every line must be known."""
    nodes, edges = [], []
    for line in text.split("\n"):
        if found := node.fullmatch(line):
            nodes.append(found.groups())
        elif found := edge.fullmatch(line):
            edges.append(found.groups())
        else:
            assert rest.fullmatch(line), line
    return nodes, edges


def parse_dot(text):
    nodes, edges = parse(text, DOT_NODE, DOT_EDGE, DOT_REST)
    labels = [
        re.sub(r"\\(.)", lambda m: {"n": "\n"}.get(m[1], m[1]), label)
        for _, label, _ in nodes
    ]
    return [unescape(label) for label in labels], nodes, edges


def parse_mermaid(text):
    nodes, edges = parse(text, MERMAID_NODE, MERMAID_EDGE, MERMAID_REST)
    labels = [
        re.sub(r"#(\d+);", lambda m: chr(int(m[1])), label.replace("<br/>", "\n"))
        for _, _, label, _ in nodes
    ]
    return labels, nodes, edges


def expected(name):
    """What is left of a name: lines that a file can hold."""
    lines = name.splitlines() or [""]
    return "\n".join(
        "".join(c if c.isprintable() else "\ufffd" for c in line) for line in lines
    )


@settings(max_examples=60, deadline=None)
@given(chosen=st.lists(names, min_size=2, max_size=5, unique=True))
@example(chosen=HOSTILE)
def test_any_name_comes_back(chosen):
    graph = nx.DiGraph()
    graph.add_nodes_from(chosen, kind="feature")
    graph.add_edges_from((chosen[0], other) for other in chosen[1:])
    for write, read in ((to_dot, parse_dot), (to_mermaid, parse_mermaid)):
        text = write(graph)
        text.encode()
        labels, _, edges = read(text)
        if write is to_mermaid:
            labels = [label.replace("\xa0", "") for label in labels]
            wanted = [text if text.strip() else "" for text in map(expected, chosen)]
        else:
            wanted = list(map(expected, chosen))
        assert labels == wanted
        assert len(edges) == len(chosen) - 1


@pytest.mark.parametrize("n", [8, 300])
@pytest.mark.parametrize("kind", KINDS)
def test_diagrams_show_what_the_picture_shows(kind, n):
    graph = KINDS[kind](n)
    drawn = LatentGraphDisplay(graph).plot(ax=Figure(figsize=(12, 12)).add_subplot())
    for write, read in ((to_dot, parse_dot), (to_mermaid, parse_mermaid)):
        text = write(graph)
        labels, nodes, edges = read(text)
        assert len(labels) == len(drawn.positions_)
        assert len(edges) == len(drawn.edges_.get_segments())
        assert len(nodes) == len({node[0] for node in nodes})
        assert drawn.note_ in text


def test_kinds_have_shapes():
    graph = with_classes(8)
    shapes = {node[2] for node in parse_dot(to_dot(graph))[1]}
    assert shapes == {"ellipse", "box", "hexagon"}
    opened = {node[1] for node in parse_mermaid(to_mermaid(graph))[1]}
    assert opened == {"([", "[", "{{"}
    flipped = [n for n, sign in graph.nodes(data="polarity") if sign == -1]
    labels = parse_dot(to_dot(graph))[0]
    assert {f"not {name}" for name in flipped} <= set(labels)
    assert to_dot(graph).count("dashed") == len(flipped)
    assert "class\n3 classes" in labels


def test_signs_and_strengths_are_on_the_edges():
    graph = nx.DiGraph(family="gaussian")
    graph.add_edge("a", "b", weight=-2.0, strength=0.8)
    graph.add_edge("a", "c", weight=2.0, strength=0.1)
    (strong, weak) = parse_dot(to_dot(graph))[2]
    assert (strong[2], weak[2]) == ("-0.8", "0.1")
    assert float(strong[3]) > float(weak[3])
    assert strong[4] != weak[4]


def test_slices_are_clusters_and_edges_may_lack_a_direction():
    graph = temporal(8, directed=False)
    dot, mermaid = to_dot(graph), to_mermaid(graph)
    assert dot.count("subgraph cluster_") == mermaid.count("subgraph slice") == 2
    assert "dir=none" in dot
    assert "-.-" in mermaid
    without = temporal(8, time=False)
    assert "cluster" not in to_dot(without)
    assert "subgraph" not in to_mermaid(without)


def test_estimators_and_networks_export():
    on = make_noisy_or(n_samples=300, random_state=0).X
    rng = np.random.RandomState(0)
    numbers = rng.normal(size=(50, 3)).cumsum(axis=1)
    noisy_copies = (rng.uniform(size=(400, 1)) < 0.5) ^ (
        rng.uniform(size=(400, 5)) < 0.2
    )
    for model, X in (
        (NoisyOrMoMLearner(np.ones((1, 5))), on),
        (IdealParentGaussianBN(), numbers),
        (LPCC(), noisy_copies),
    ):
        model.fit(X)
        graph = model.to_networkx()
        for method, write in (("to_dot", to_dot), ("to_mermaid", to_mermaid)):
            text = getattr(model, method)(min_strength=0.0)
            assert text == write(graph, min_strength=0.0)
            of_network = getattr(model.network_, method)(min_strength=0.0)
            assert isinstance(of_network, str)


def test_names_of_a_network_are_used():
    network = NoisyOrNetwork([0.5], [[0.1, 0.2]], [0.0, 0.0])
    text = network.to_dot(["flu"], ["fever", "cough"], focus="fever")
    assert parse_dot(text)[0] == ["flu\n0.50", "fever"]


# Which edges are shown


def strengths(graph):
    return [abs(s) for *_, s in graph.edges(data="strength")]


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 90),
    n_latents=st.integers(1, 90),
    threshold=st.sampled_from(["auto", 0.0, 0.3, 0.9, np.inf]),
)
def test_the_strongest_edges_are_kept(n, n_latents, threshold):
    graph = noisy_or(n, n_latents=n_latents)
    part, note = select(graph, threshold)
    assert set(part.edges) <= set(graph.edges)
    folded = [s for u, v, s in graph.edges(data="strength") if (u, v) not in part.edges]
    assert bool(note) == (len(part) < len(graph) or bool(folded))
    if threshold == "auto":
        assert part.number_of_edges() == min(graph.number_of_edges(), BUDGETS["other"])
        spare = [  # beyond the two strongest of each latent
            sorted(strengths(part.edge_subgraph(part.out_edges(node))))[:-2]
            for node in part
            if part.out_degree(node)
        ]
        weakest = min((s for group in spare for s in group), default=1.0)
        assert max(folded, default=0.0) <= weakest
    else:
        assert all(s >= threshold for s in strengths(part))
        assert all(s < threshold for s in folded)
    if folded:
        assert note.startswith(f"{len(folded):,} edge")


def test_negative_strengths_count_by_their_size():
    graph = nx.DiGraph([("a", "b", {"strength": -0.9}), ("a", "c", {"strength": 0.1})])
    assert list(select(graph, 0.5).graph.edges) == [("a", "b")]
    assert (
        len(
            LatentGraphDisplay(graph)
            .plot(ax=Figure().add_subplot(), min_strength=0.5)
            .edges_.get_segments()
        )
        == 1
    )


def test_zero_keeps_everything():
    for make in KINDS.values():
        graph = make(300)
        part, note = select(graph, 0.0)
        assert set(part) == set(graph)
        assert set(part.edges) == set(graph.edges)
        assert note == ""


def test_slices_are_folded_alike():
    part = select(temporal(300)).graph
    slices = [
        {part.nodes[node]["name"] for node in part if part.nodes[node]["slice"] == t}
        for t in (0, 1)
    ]
    assert slices[0] == slices[1]


def test_a_focus_has_parents_children_and_rivals():
    graph = nx.DiGraph(family="noisy-or")
    graph.add_nodes_from(["flu", "cold", "fracture"], kind="latent")
    graph.add_nodes_from(["fever", "cough", "pain"], kind="feature")
    edges = [
        ("flu", "fever"),
        ("cold", "fever"),
        ("cold", "cough"),
        ("fracture", "pain"),
    ]
    graph.add_edges_from(edges, strength=0.5)
    assert set(select(graph, focus="flu").graph) == {"flu", "cold", "fever"}
    assert set(select(graph, focus="pain").graph) == {"fracture", "pain"}
    assert set(select(graph, focus="fever").graph) == {"flu", "cold", "fever"}
    both = select(graph, focus=["fracture", "flu"])
    assert set(both.graph) == set(graph) - {"cough"}
    assert both.note == "neighbours of flu and fracture"
    graph.graph["family"] = "gaussian"
    assert set(select(graph, focus="flu").graph) == {"flu", "fever"}
    everything = select(graph, focus=list(graph)).note
    assert everything.startswith("neighbours of cold, cough, fever and 3 more")


def test_a_focus_over_time_is_a_name_or_a_node():
    graph = temporal(8)
    part = select(graph, focus="latent1").graph
    assert {part.nodes[node]["slice"] for node in part} == {0, 1}
    assert set(select(graph, focus=("latent1", 0)).graph) == set(part)
    assert set(select(graph, focus=[("latent1", 0)]).graph) == set(part)


@pytest.mark.parametrize("focus", ["nobody", ["x0", "nobody"], 3, [[1]], ([],), {}])
def test_an_unknown_focus_is_named(focus):
    with pytest.raises(ValueError, match=r"focus must be the name of a node.*'x|focus"):
        select(gaussian(8), focus=focus)
