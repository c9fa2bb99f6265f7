"""Whatever comes in: a documented exception, or a valid latent model over time."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hostile import (
    arguments,
    attempt,
    fuzz,
    n_rows_of,
    numbers,
    options,
    tables,
    weights,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from sklearn_latent import datasets, metrics
from sklearn_latent.temporal import (
    LPCC,
    SEMDBN,
    LatentDBN,
    LGLPCCTemporal,
    TemporalGraph,
    sequences_from_frame,
)


def assert_valid(model):
    n_latents = len(model.cardinality_)
    assert (model.cardinality_ >= 1).all()
    assert model.measurement_.shape[0] == n_latents
    assert model.intra_.shape == (n_latents, n_latents)
    assert (model.measurement_.sum(axis=0) <= 1).all()
    directed = model.intra_ & ~model.intra_.T
    assert nx.is_directed_acyclic_graph(nx.DiGraph(directed.astype(int)))
    assert_tables(model.network_)


def assert_tables(network):
    for kind in (network.start, network.transition, network.emission):
        for table in kind:
            table = np.asarray(table)
            assert ((table >= 0) & (table <= 1)).all()
            np.testing.assert_allclose(table.sum(axis=-1), 1.0)


def drive(name, model, X, other):
    assert_valid(model)
    for rows in (X, other):
        posterior = attempt(name, model.transform, rows)
        if posterior is not None:
            posterior = np.asarray(posterior)
            assert len(posterior) == n_rows_of(rows)
            assert ((posterior >= -1e-12) & (posterior <= 1 + 1e-9)).all()
        log_likelihood = attempt(name, model.score_samples, rows)
        if log_likelihood is not None:
            assert (log_likelihood <= 1e-9).all()
        attempt(name, model.predict, rows)
        attempt(name, model.impute, rows)
    assert attempt(name, model.transform, X) is not None
    model.sample(2, random_state=0)
    model.to_networkx()
    model.to_frame()


def fit_and_drive(data, name, model):
    X = data.draw(tables(max_columns=6))
    sample_weight = data.draw(weights(n_rows_of(X)))
    if attempt(name, model.fit, X, sample_weight=sample_weight) is None:
        assert not hasattr(model, "network_")
        with pytest.raises(NotFittedError):
            model.transform([[0.0]])
        return
    drive(name, model, X, data.draw(tables(max_columns=6)))
    before = model.network_
    again = attempt(name, model.fit, data.draw(tables(max_columns=6)))
    assert again is not None or model.network_ is before


COMMON = {
    "n_bins": [4, 2],
    "max_categories": [10, 2],
    "max_iter": [20, 1],
    "tol": [1e-4, 0.0],
    "random_state": [0, None],
    "verbose": [0, True],
}
LEARNED = {
    "local": ["bic", "lpcc"],
    "cardinality": ["auto", 2],
    "max_cardinality": [3, 2],
}


@fuzz(20)
@given(st.data())
def test_static(data):
    model = LPCC(**data.draw(options(**COMMON, **LEARNED)))
    fit_and_drive(data, "LPCC", model)


@fuzz(20)
@given(st.data())
def test_over_time(data):
    model = LGLPCCTemporal(
        **data.draw(
            options(n_slices=[1, 1, 2, 3], n_jobs=[None, 1], **COMMON, **LEARNED)
        )
    )
    fit_and_drive(data, "LGLPCCTemporal", model)


@fuzz(10)
@given(st.data())
def test_structural_em(data):
    model = SEMDBN(
        **data.draw(
            options(
                n_latents=[1, 2],
                cardinality=[2, 3],
                n_slices=[1, 2],
                n_init=[1],
                max_rounds=[3],
                n_jobs=[None, 1],
                **COMMON,
            )
        )
    )
    fit_and_drive(data, "SEMDBN", model)


@fuzz(60)
@given(st.data())
def test_graph_and_metric(data):
    n, m = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 4))
    shapes = [(n, m), (n, n), (n, n)]
    if data.draw(st.integers(0, 9)) == 9:
        shapes = [data.draw(hnp.array_shapes(min_dims=0, max_dims=3)) for _ in shapes]
    matrices = [data.draw(hnp.arrays(bool, shape)) for shape in shapes]
    if data.draw(st.booleans()) and matrices[1].ndim == 2:
        matrices[1] = np.triu(matrices[1], 1)
    graph = attempt("TemporalGraph", TemporalGraph, *matrices)
    if graph is None:
        return
    distances = attempt(
        "structural_hamming_distance",
        metrics.structural_hamming_distance,
        graph,
        data.draw(st.just(graph) | tables(max_rows=3, max_columns=3)),
    )
    assert distances is None or all(value >= 0 for value in distances)
    tables_ = [
        [data.draw(hnp.arrays(np.float64, (2, 2), elements=numbers))] * n
        for _ in range(3)
    ]
    network = attempt("LatentDBN", LatentDBN, graph, [2] * n, *tables_)
    if network is not None:
        assert_tables(network)


@fuzz(40)
@given(st.data())
def test_long_tables(data):
    n = data.draw(st.integers(0, 8))
    frame = pd.DataFrame(
        {
            "id": data.draw(
                st.lists(st.sampled_from([1, 2, "a", None]), min_size=n, max_size=n)
            ),
            "t": data.draw(
                st.lists(
                    st.sampled_from([0, 1, 2, np.nan, "x"]), min_size=n, max_size=n
                )
            ),
            "y": data.draw(
                st.lists(
                    st.sampled_from([0.0, 1.0, np.nan, np.inf]), min_size=n, max_size=n
                )
            ),
        }
    )
    array = attempt(
        "sequences_from_frame",
        sequences_from_frame,
        frame,
        sequence=data.draw(arguments("id", "id", "t")),
        time=data.draw(arguments("t", "t", "id")),
        columns=data.draw(arguments(["y"], ["y"], ["z"], "y")),
    )
    assert array is None or np.asarray(array).ndim == 3


@fuzz(20)
@given(st.data())
def test_datasets(data):
    bunch = attempt(
        "make_latent_dbn",
        datasets.make_latent_dbn,
        data.draw(arguments("G1", "G2", "G3")),
        data.draw(arguments(1, 3)),
        data.draw(arguments(1, 3)),
        random_state=data.draw(arguments(0, None)),
    )
    assert bunch is None or len(bunch.X) in (1, 3)
