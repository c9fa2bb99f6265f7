"""Numbers of states when memory is known."""

import numpy as np
import pytest

from sklearn_latent import LGLPCCTemporal
from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.temporal import CategoricalMemory, LatentDBN, TemporalGraph
from sklearn_latent.temporal._em.choice import choose_emissions, with_memory
from sklearn_latent.temporal._em.em import EMOptions, fit_chain
from sklearn_latent.temporal._measurement.groups import SearchOptions
from sklearn_latent.temporal._measurement.revision import _score, revise_states
from sklearn_latent.temporal._panels.panel import Panel

EM = EMOptions()


def sticky(n=400, seed=0):
    """A latent of two states whose three features keep their own values."""
    table = np.array([[0.8, 0.2], [0.2, 0.8]])
    after = 0.7 * np.eye(2) + 0.3 * table[:, None, :]
    network = LatentDBN(
        TemporalGraph([[1, 1, 1]], [[0]], [[1]]),
        [2],
        [[0.5, 0.5]],
        [[[0.8, 0.2], [0.2, 0.8]]],
        [CategoricalMemory(table, after)] * 3,
    )
    codes, _ = network.sample(n, 8, random_state=seed)
    return network.graph, Panel.of(codes, [2, 2, 2])


@pytest.mark.parametrize("seed", range(3))
def test_states_that_stood_in_for_memory_are_taken_back(seed):
    graph, panel = sticky(seed=seed)
    ascent = fit_chain(panel, graph, [5], options=EM)
    found = revise_states(panel, ascent, SearchOptions(), EM)
    assert found.state.cardinality.tolist() == [2]
    assert [emission.kind for emission in found.state.emissions] == ["memory"] * 3
    assert _score(panel, found) > _score(panel, ascent)


def test_states_stay_where_there_is_no_memory():
    data = make_latent_dbn("G2", 500, 4, random_state=0)
    panel = Panel.of(data.codes, [4] * 6)
    ascent = fit_chain(panel, data.graph, [4, 4], options=EM)
    ascent = choose_emissions(panel, ascent, EM)
    assert revise_states(panel, ascent, SearchOptions(), EM) is ascent


def test_memory_everywhere_is_what_kinds_allow():
    panel = sticky(5)[1]
    kinds = (("categorical",), ("ordinal", "ordinal memory"), ("gaussian memory",))
    some = Panel(panel.codes, panel.weights, panel.n_categories, kinds)
    assert with_memory(some).kinds == (
        ("categorical",),
        ("ordinal memory",),
        ("gaussian memory",),
    )


def test_published_graphs_have_no_memory():
    codes = sticky()[1].codes
    model = LGLPCCTemporal(8, local="lpcc", random_state=0).fit(codes)
    kinds = {emission.kind for emission in model.network_.emissions}
    assert kinds == {"categorical"}
