"""Pictures of graphs of any size: nothing is cut off, and labels can be read."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from graph_pictures import KINDS, SIZES, noisy_or, temporal
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

from sklearn_latent.plotting import LatentGraphDisplay

# Pixels by which boxes may overlap: letters do not fill their boxes.
TOLERANCE = 1.0
SMALLEST_FONT = 6.0


def draw(graph, size=None, **options):
    if size is None:
        display = LatentGraphDisplay(graph).plot(**options)
        plt.close(display.figure_)
    else:
        ax = Figure(figsize=size).add_axes((0.02, 0.02, 0.96, 0.96))
        display = LatentGraphDisplay(graph).plot(ax=ax, **options)
    return display, FigureCanvasAgg(display.figure_).get_renderer()


def written(display):
    return [text for text in display.ax_.texts if text.get_text()]


def box_of(text, renderer):
    """Extent of the letters, without the frame around them."""
    frame = text.get_bbox_patch()
    text.set_bbox(None)
    box = text.get_window_extent(renderer)
    if frame is not None:
        text.set_bbox({"boxstyle": frame.get_boxstyle()})
        text.get_window_extent(renderer)
    return box.extents


def circles(display):
    """Centres and radii of all nodes that are circles, in pixels."""
    pixels = display.figure_.dpi / 72.0
    found = []
    for nodes in display.ax_.collections:
        if isinstance(nodes, PathCollection) and len(nodes.get_paths()[0]) > 10:
            centres = display.ax_.transData.transform(nodes.get_offsets())
            radii = np.sqrt(nodes.get_sizes()) / 2 * pixels
            found += np.column_stack(np.broadcast_arrays(*centres.T, radii)).tolist()
    return np.array(found).reshape(-1, 3)


def assert_readable(display, renderer):
    """No label is cut, too small, on another label or outgrows its circle."""
    texts = written(display)
    boxes = np.array([box_of(text, renderer) for text in texts]).reshape(-1, 4)
    legend = display.ax_.get_legend()
    if legend is not None:
        boxes = np.vstack([boxes, legend.get_window_extent(renderer).extents])
    nodes = circles(display)
    (x, y, r) = nodes.T
    around = np.vstack([boxes, np.column_stack([x - r, y - r, x + r, y + r])])
    page = display.figure_.bbox.extents
    assert np.all(around[:, :2] >= page[:2] - TOLERANCE), "cut off at the left or below"
    assert np.all(around[:, 2:] <= page[2:] + TOLERANCE), (
        "cut off at the right or above"
    )
    assert min(text.get_fontsize() for text in texts) >= SMALLEST_FONT

    low, high = boxes[:, :2], boxes[:, 2:]
    common = np.minimum(high[:, None], high) - np.maximum(low[:, None], low)
    overlaps = np.argwhere(np.triu((common > TOLERANCE).all(axis=2), 1))
    assert not len(overlaps), [texts[i].get_text() for i in overlaps[0][:1]]

    for text, (left, bottom, right, top) in zip(texts, boxes, strict=False):
        inside = np.hypot((left + right) / 2 - x, (bottom + top) / 2 - y) < 0.25 * r
        for radius in r[inside]:
            assert right - left <= 2 * radius + TOLERANCE, text.get_text()


@pytest.mark.parametrize(("n", "long"), [*((n, True) for n in SIZES), (30, False)])
@pytest.mark.parametrize("kind", KINDS)
def test_pictures_are_readable(kind, n, long):
    graph = KINDS[kind](n, long)
    display, renderer = draw(graph)
    assert_readable(display, renderer)
    assert set(display.positions_) <= set(graph)
    if n <= 30:
        assert set(display.positions_) == set(graph)
    width, height = display.figure_.get_size_inches()
    assert max(width, height) <= 18.2
    if n == 300:
        assert "not shown" in display.note_
        assert display.note_ in " ".join(t.get_text() for t in written(display))


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_on_small_axes_are_readable(kind):
    assert_readable(*draw(KINDS[kind](30, True), (5, 4)))


@pytest.mark.parametrize(
    "graph",
    [
        noisy_or(120, True, n_latents=60),
        noisy_or(120, n_latents=60, n_classes=2),
        temporal(56, True, n_latents=12),
        temporal(60, n_latents=30, directed=False),
        temporal(40, time=False),
    ],
    ids=["60 latents", "60 with classes", "12 over time", "30 over time", "no time"],
)
def test_many_latents_are_readable(graph):
    assert_readable(*draw(graph))


@pytest.mark.parametrize("kind", KINDS)
def test_a_focus_is_readable(kind):
    graph = KINDS[kind](300, True)
    latent = next(n for n, k in graph.nodes(data="kind") if k == "latent")
    name = graph.nodes[latent].get("name", latent)
    display, renderer = draw(graph, focus=name)
    assert_readable(display, renderer)
    assert "neighbours of latent" in display.note_
    assert len(display.positions_) < 100
