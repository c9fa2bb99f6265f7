"""Laws of structure learning over time."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import seeds

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import LGLPCCTemporal, TemporalGraph


@given(seeds, st.sampled_from(["G1", "G2", "G3"]))
@settings(max_examples=6, deadline=None)
def test_structure_is_found_whatever_the_draw(seed, name):
    data = make_latent_dbn(name, 1500, 4, random_state=seed)
    model = LGLPCCTemporal(4, random_state=0).fit(data.X)
    assert structural_hamming_distance(data.graph, model.graph_) == (0, 0)
    assert np.array_equal(model.cardinality_, data.network.cardinality)
    assert len(model.local_graphs_) == 3
    assert (model.support_.structure[model.structure_] > 0.5).all()
    assert (model.support_.inter[model.inter_] > 0.5).all()


def test_pairwise_cluster_comparison_votes():
    data = make_latent_dbn("G1", 3000, 5, random_state=0)
    model = LGLPCCTemporal(5, local="lpcc", random_state=0).fit(data.X)
    assert structural_hamming_distance(data.graph, model.graph_) == (0, 0)
    assert len(model.local_graphs_) == 4


@given(st.permutations(range(6)))
@settings(max_examples=2, deadline=None)
def test_permuting_features_permutes_the_graph(order):
    data = make_latent_dbn("G3", 1000, 3, random_state=0)
    plain = LGLPCCTemporal(random_state=0).fit(data.codes)
    permuted = LGLPCCTemporal(random_state=0).fit(data.codes[:, :, list(order)])
    expected = TemporalGraph(
        plain.structure_[:, list(order)], plain.intra_, plain.inter_
    )
    assert structural_hamming_distance(expected, permuted.graph_) == (0, 0)
    assert np.isclose(plain.log_likelihood_, permuted.log_likelihood_, rtol=1e-4)


@given(seeds)
@settings(max_examples=2, deadline=None)
def test_renaming_categories_changes_nothing(seed):
    data = make_latent_dbn("G2", 800, 3, random_state=1)
    rng = np.random.default_rng(seed)
    renamed = np.stack(
        [rng.permutation(4)[data.codes[:, :, f]] for f in range(6)], axis=2
    )
    plain = LGLPCCTemporal(random_state=0).fit(data.codes)
    other = LGLPCCTemporal(random_state=0).fit(renamed)
    assert plain.graph_ == other.graph_
    assert np.allclose(
        plain.score_samples(data.codes), other.score_samples(renamed), atol=0.05
    )
