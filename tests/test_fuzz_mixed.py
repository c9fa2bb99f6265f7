"""Whatever comes in: a documented exception, or a valid latent model over time."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from hostile import (
    JUNK,
    arguments,
    attempt,
    damaged,
    drive_common,
    fuzz,
    n_rows_of,
    numbers,
    options,
    relabelled,
    tables,
    weights,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from sklearn_latent import datasets, metrics
from sklearn_latent.mixed import (
    LPCC,
    SEMDBN,
    LatentDBN,
    LGLPCCTemporal,
    TemporalGraph,
    sequences_from_frame,
)
from sklearn_latent.mixed._tables import table_shape


def assert_valid(model):
    n_latents = len(model.cardinality_)
    assert (model.cardinality_ >= 1).all()
    assert model.structure_.shape[0] == n_latents
    assert model.intra_.shape == (n_latents, n_latents)
    assert (model.structure_.sum(axis=0) <= 1).all()
    directed = model.intra_ & ~model.intra_.T
    assert nx.is_directed_acyclic_graph(nx.DiGraph(directed.astype(int)))
    assert_tables(model.network_)


def assert_tables(network):
    typical = [emission.typical for emission in network.emissions]
    for kind in (network.start, network.transition, typical):
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
            # A density may exceed 1.
            numeric = any(emission.is_numeric for emission in model.network_.emissions)
            assert (log_likelihood <= (np.inf if numeric else 1e-9)).all()
        attempt(name, model.predict, rows)
        for strategy in ("posterior", "hybrid"):
            attempt(name, model.impute, rows, strategy)
    assert attempt(name, model.transform, X) is not None


def fit_and_drive(data, name, model):
    X = data.draw(tables(max_columns=6))
    sample_weight = data.draw(weights(n_rows_of(X)))
    if attempt(name, model.fit, X, sample_weight=sample_weight) is None:
        assert not hasattr(model, "network_")
        with pytest.raises(NotFittedError):
            model.transform([[0.0]])
        return
    drive(name, model, X, data.draw(tables(max_columns=6)))
    drive_common(data, name, model, X)
    attempt(f"{name}.impute", model.impute, X, data.draw(arguments("posterior")))
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
    "emissions": ["auto", "categorical", "memory", "ordinal", "gaussian"],
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
                warm_start=[True, False],
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
    attempt("TemporalGraph.permuted", graph.permuted, data.draw(arguments([0])))
    stored = data.draw(damaged(graph.to_dict()))
    attempt("TemporalGraph.from_dict", TemporalGraph.from_dict, stored)


# Probabilities, up to a common factor, whose logarithms and products are extreme.
SHARES = st.sampled_from([0.0, 1.0, 1.0, 0.5, 1e-9, 1e-300, 1e-320])


@st.composite
def distributions(draw, shape):
    """Conditional tables: rows of the last axis sum to 1."""
    shares = draw(hnp.arrays(np.float64, shape, elements=SHARES))
    shares[..., 0] += ~shares.any(axis=-1)
    return shares / shares.sum(axis=-1, keepdims=True)


@fuzz(60)
@given(st.data())
def test_network(data):
    n, m = data.draw(st.integers(0, 2)), data.draw(st.integers(1, 3))
    parents = data.draw(hnp.arrays(int, m, elements=st.integers(-1, n - 1)))
    graph = TemporalGraph(
        (parents == np.arange(n)[:, None]).reshape(n, m),
        np.triu(data.draw(hnp.arrays(bool, (n, n))), 1),
        data.draw(hnp.arrays(bool, (n, n))),
    )
    cards = data.draw(hnp.arrays(int, n, elements=st.integers(1, 3)))
    network = attempt(
        "LatentDBN",
        LatentDBN,
        graph,
        data.draw(arguments(cards)),
        *(
            [
                data.draw(distributions(table_shape(graph, cards, j, later=later)))
                for j in range(n)
            ]
            for later in (False, True)
        ),
        data.draw(
            arguments(
                [
                    data.draw(distributions((int(cards[j]) if j >= 0 else 1, 2)))
                    for j in parents
                ]
            )
        ),
        max_joint_states=data.draw(arguments(500, 1)),
    )
    if network is None:
        return
    assert_tables(network)
    assert LatentDBN.from_json(network.to_json()).to_json() == network.to_json()
    stored = data.draw(damaged(network.to_dict()))
    attempt("LatentDBN.from_dict", LatentDBN.from_dict, stored)
    text = data.draw(st.sampled_from(JUNK))
    attempt("LatentDBN.from_json", LatentDBN.from_json, text)
    codes = data.draw(hnp.arrays(int, (3, 2, m), elements=st.integers(-1, 1)))
    if data.draw(st.integers(0, 3)) == 3:
        codes = data.draw(tables())
    use_network(data, network, codes)


def use_network(data, network, codes):
    log_likelihood = attempt("LatentDBN.log_likelihood", network.log_likelihood, codes)
    assert log_likelihood is None or (log_likelihood <= 1e-9).all()
    for method in (network.posterior, network.predictive):
        found = attempt(f"LatentDBN.{method.__name__}", method, codes)
        for table in found or []:
            assert ((table >= 0) & (table <= 1 + 1e-9)).all()
            np.testing.assert_allclose(table.sum(axis=-1), 1.0)
    counts = attempt(
        "LatentDBN.expected_counts",
        network.expected_counts,
        codes,
        data.draw(weights(n_rows_of(codes))),
    )
    if counts is not None:
        for table in [*counts.start, *counts.transition, *counts.emission]:
            assert (np.asarray(table) >= 0).all()
    states = attempt("LatentDBN.viterbi", network.viterbi, codes)
    assert states is None or (states < np.asarray(network.cardinality)).all()
    filled = attempt("LatentDBN.impute", network.impute, codes)
    assert filled is None or (filled >= 0).all()
    attempt(
        "LatentDBN.sample",
        network.sample,
        data.draw(arguments(1, 3)),
        data.draw(arguments(1, 2)),
        data.draw(arguments(0, None)),
    )


@fuzz(20)
@given(st.data())
def test_other_names(data):
    """Columns are found by place; names that say otherwise are refused."""
    values = data.draw(hnp.arrays(np.float64, (6, 4), elements=st.sampled_from([0, 1])))
    frame = pd.DataFrame(values, columns=list("abcd"))
    model = data.draw(st.sampled_from([LPCC(), LGLPCCTemporal(2), SEMDBN(1, 2, 2)]))
    model, name = clone(model), type(model).__name__
    assert attempt(name, model.fit, frame) is not None
    other = data.draw(relabelled(frame))
    for method in (model.transform, model.score_samples, model.predict, model.impute):
        attempt(name, method, other)


@fuzz(40)
@given(st.data())
def test_long_tables(data):
    n = data.draw(st.integers(0, 8))
    values = {
        "id": data.draw(st.sampled_from([[1, 2, 3], list("abc"), [1, 2, "a", None]])),
        "t": data.draw(st.sampled_from([range(9), range(9), [0, 1, np.nan, "x"]])),
        "y": [0.0, 1.0, np.nan, np.inf],
    }
    frame = pd.DataFrame(
        {
            name: data.draw(st.lists(st.sampled_from(some), min_size=n, max_size=n))
            for name, some in values.items()
        }
    )
    array = attempt(
        "sequences_from_frame",
        sequences_from_frame,
        frame,
        sequence=data.draw(arguments("id", "id", "t")),
        time=data.draw(arguments("t", "t", "id")),
        columns=data.draw(arguments(["y"], ["y"], ["z"], "y", None, ["y", "y"])),
    )
    if isinstance(array, tuple):
        array = array[0]
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
        **data.draw(
            options(
                cardinality=[4, 2, 1],
                n_categories=[None, 2, 1],
                reliability=[0.8, 0.0, 1.0, 1e-320],
                persistence=[0.8, 0.0, 1.0, 1e-320],
                relabel=[True, False],
                random_state=[0, None],
            )
        ),
    )
    assert bunch is None or len(bunch.X) in (1, 3)
