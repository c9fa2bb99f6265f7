"""Whatever comes in: a documented exception, or a valid Gaussian network."""

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
    fitting,
    fuzz,
    n_rows_of,
    options,
    relabelled,
    tables,
    weights,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from sklearn_latent import datasets
from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN

NAME = "IdealParentGaussianBN"
# Parameters that a network may have, and some that it may not.
EXTREME = st.sampled_from([1.0, 1e-320, 1e-300, 1e-9, 1e9, 1e300, 1e308, -1e308])
ODD = st.sampled_from([0.0, -1.0, 1e-320, 1e308, np.nan, np.inf, -np.inf])
REFUSED_RANGES = [(1e-320, 1e308), (1e-320, 1e-310), (1e300, 1e308), (2.0, 1.0)]
EDGES = [
    *[None] * 12,
    [],
    [(0, 1)],
    [("f0", "f1")],
    [(0, 1), (1, 0)],
    [(0, 0)],
    [(0, 9)],
    [("a", "b")],
    "ab",
    5,
    [(0,)],
    [[0, 1], [1, 2]],
]


def assert_valid(model):
    n_nodes = model.n_features_in_ + model.n_latents_
    assert model.adjacency_.shape == (n_nodes, n_nodes)
    assert nx.is_directed_acyclic_graph(nx.DiGraph(model.adjacency_.astype(int)))
    for values in (model.weights_, model.intercept_, model.noise_variance_):
        assert np.isfinite(values).all()
    assert (model.noise_variance_ > 0).all()
    assert (model.weights_[~model.adjacency_] == 0).all()
    assert not np.isnan(model.bic_)


def drive(model, X, other):
    assert_valid(model)
    for rows in (X, other):
        completed = attempt(NAME, model.transform, rows)
        if completed is not None:
            completed = np.asarray(completed)
            assert completed.shape == (n_rows_of(rows), len(model.adjacency_))
            assert np.isfinite(completed).all()
        log_likelihood = attempt(NAME, model.score_samples, rows)
        if log_likelihood is not None:
            assert not np.isnan(log_likelihood).any()
        predicted = attempt(NAME, model.predict_nodes, rows)
        assert predicted is None or np.isfinite(predicted).all()
    assert attempt(NAME, model.transform, X) is not None
    drawn, hidden = model.sample(3, random_state=0)
    assert np.isfinite(drawn).all()
    assert hidden.shape == (3, model.n_latents_)
    assert len(model.to_frame()) == model.adjacency_.sum()


def fit_and_drive(data, model):
    X = data.draw(tables(max_columns=5))
    sample_weight = data.draw(weights(n_rows_of(X)))
    if attempt(NAME, model.fit, X, sample_weight=sample_weight) is None:
        assert not hasattr(model, "network_")
        with pytest.raises(NotFittedError):
            model.transform([[0.0]])
        return
    drive(model, X, data.draw(tables(max_columns=5)))
    drive_common(data, NAME, model, X)
    before = model.network_
    again = attempt(NAME, model.fit, data.draw(tables(max_columns=5)))
    if again is None:
        assert model.network_ is before
        assert model.n_features_in_ == before.n_features


@fuzz(60)
@given(st.data())
def test_linear(data):
    model = IdealParentGaussianBN(
        **data.draw(
            options(
                search=["auto", "greedy", "order"],
                similarity=["C1", "C2"],
                n_candidates=[5, 1, None],
                max_parents=[None, None, 1],
                forbidden=EDGES,
                required=EDGES,
                penalty=["auto", 1.0, 0.0, "ebic"],
                max_iter=[50, 5],
                tol=[1e-6, 0.0],
                warm_start=[True, False],
                random_state=[0, None],
                verbose=[0, True, 2],
            )
        )
    )
    fit_and_drive(data, model)


@fuzz(20)
@given(st.data())
def test_hidden_and_non_linear(data):
    model = IdealParentGaussianBN(
        **data.draw(
            options(
                link=["linear", "sigmoid"],
                noise=["additive", "additive", "multiplicative"],
                max_latents=[0, 1],
                bipartite=[True, False],
                max_iter=[20, 3],
                random_state=[0],
            )
        )
    )
    fit_and_drive(data, model)


@fuzz(30)
@given(st.data())
def test_batches(data):
    """A batch that is refused leaves the model as it was."""
    model = IdealParentGaussianBN()
    for _ in range(3):
        X = data.draw(tables(max_columns=3))
        before = dict(model.__dict__)
        done = attempt(
            f"{NAME}.partial_fit",
            model.partial_fit,
            X,
            sample_weight=data.draw(weights(n_rows_of(X))),
            update=data.draw(arguments(True, False)),
        )
        if done is None:
            assert model.__dict__ == before
        if hasattr(model, "network_"):
            assert_valid(model)
        else:
            for method in (model.sample, model.to_frame, model.get_feature_names_out):
                assert attempt(NAME, method) is None


@fuzz(20)
@given(st.data())
def test_other_names(data):
    """Columns are found by place; names that say otherwise are refused."""
    values = data.draw(hnp.arrays(np.float64, (6, 3), elements=st.floats(-3, 3)))
    frame = pd.DataFrame(values, columns=list("abc"))
    model = IdealParentGaussianBN()
    assert attempt(NAME, model.fit, frame) is not None
    other = data.draw(relabelled(frame))
    for method in (model.transform, model.score_samples, model.predict_nodes):
        attempt(NAME, method, other)
    attempt(
        f"{NAME}.edge_confidence",
        model.edge_confidence,
        other,
        data.draw(arguments(2)),
        random_state=data.draw(arguments(0, None)),
    )


@fuzz(80)
@given(st.data())
def test_network(data):
    n = data.draw(st.integers(0, 4))
    shapes = [(n, n), (n, n), (n,), (n,)]
    if data.draw(st.integers(0, 9)) == 9:
        shapes = [data.draw(hnp.array_shapes(min_dims=0, max_dims=3)) for _ in shapes]
    adjacency = data.draw(hnp.arrays(bool, shapes[0]))
    if adjacency.ndim == 2 and data.draw(st.integers(0, 3)):
        adjacency = np.triu(adjacency, 1)
    kinds = st.sampled_from([st.floats(0.1, 9.0), EXTREME, ODD])
    weight, intercept, variance = (
        data.draw(hnp.arrays(np.float64, shape, elements=data.draw(kinds)))
        for shape in shapes[1:]
    )
    if weight.shape == adjacency.shape and data.draw(st.integers(0, 9)):
        weight = np.where(adjacency, weight, 0.0)
    theta = data.draw(hnp.arrays(np.float64, (n, 3), elements=data.draw(kinds)))
    network = attempt(
        "GaussianNetwork",
        GaussianNetwork,
        adjacency,
        weight,
        intercept,
        variance,
        **data.draw(
            options(
                link=["linear", "linear", "sigmoid"],
                noise=["additive", "additive", "multiplicative"],
                link_parameters=[theta],
                n_latents=[0, 0, 0, 1],
                node_names=[None],
            )
        ),
    )
    if network is None:
        return
    for values in (network.weights, network.intercept, network.noise_variance):
        assert np.isfinite(values).all()
    assert GaussianNetwork.from_json(network.to_json()).to_json() == network.to_json()
    stored = data.draw(damaged(network.to_dict()))
    attempt("GaussianNetwork.from_dict", GaussianNetwork.from_dict, stored)
    text = data.draw(st.sampled_from(JUNK))
    attempt("GaussianNetwork.from_json", GaussianNetwork.from_json, text)
    use_network(network, data.draw(fitting(network.n_features)))
    n_samples, seed = data.draw(arguments(1, 3)), data.draw(arguments(0, None))
    drawn = attempt("GaussianNetwork.sample", network.sample, n_samples, seed)
    assert drawn is None or all(np.isfinite(part).all() for part in drawn)


def use_network(network, X):
    joint = attempt("GaussianNetwork.joint", network.joint)
    assert joint is None or all(np.isfinite(part).all() for part in joint)
    log_likelihood = attempt(
        "GaussianNetwork.log_likelihood", network.log_likelihood, X
    )
    if log_likelihood is not None:
        assert not np.isnan(log_likelihood).any()
        assert (log_likelihood < np.inf).all()
    for method in (network.expectation, network.leave_one_out):
        values = attempt(f"GaussianNetwork.{method.__name__}", method, X)
        assert values is None or np.isfinite(values).all()


@fuzz(30)
@given(st.data())
def test_datasets(data):
    bunch = attempt(
        "make_gaussian_bn",
        datasets.make_gaussian_bn,
        **data.draw(
            options(
                n_samples=[1, 5],
                n_features=[1, 3],
                n_latents=[0, 1],
                n_parents=[2.0, 0.5, 0.0],
                bipartite=[False, True],
                link=["linear", "sigmoid"],
                noise=["additive", "multiplicative"],
                weight=[*[(0.5, 1.5)] * 5, (1e-100, 1e100), *REFUSED_RANGES],
                noise_variance=[*[(0.5, 1.5)] * 5, (1e-90, 1e90), *REFUSED_RANGES],
                missing=[0.0, 0.5],
                random_state=[0, None],
            )
        ),
    )
    if bunch is not None:
        assert np.isfinite(bunch.X[~np.isnan(bunch.X)]).all()
