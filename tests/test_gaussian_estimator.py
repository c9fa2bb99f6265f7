import warnings
from contextlib import nullcontext

import numpy as np
import pytest
from gaussian_strategies import random_linear_network
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sklearn_latent._core.graphs import equivalence_class, topological_order
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import ApproximateInferenceWarning, PoorDataWarning
from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN
from sklearn_latent.gaussian import _orders as order_module

SEARCHES = ["greedy", "order", "auto"]


@pytest.fixture(scope="module")
def data():
    return make_gaussian_bn(8, n_samples=400, n_parents=1.5, random_state=0)


@pytest.fixture(scope="module")
def fitted(data):
    return IdealParentGaussianBN(random_state=0).fit(data.X)


@pytest.mark.parametrize("search", SEARCHES)
def test_attributes(data, search):
    model = IdealParentGaussianBN(search=search, random_state=0).fit(data.X)
    assert model.adjacency_.shape == model.weights_.shape == (8, 8)
    assert model.adjacency_.dtype == bool
    topological_order(model.adjacency_)
    assert (model.weights_[~model.adjacency_] == 0).all()
    assert model.intercept_.shape == model.noise_variance_.shape == (8,)
    assert (model.noise_variance_ > 0).all()
    assert model.n_latents_ == 0
    assert model.node_names_.tolist() == [f"x{i}" for i in range(8)]
    assert isinstance(model.network_, GaussianNetwork)
    assert model.search_ in ("greedy", "order")
    assert 0 < model.n_evaluated_ <= model.n_considered_
    assert all(gain > 0 or move == ("restart",) for move, gain in model.history_)
    assert model.structure_.shape == (0, 8) and model.structure_.dtype == bool
    assert model.latent_names_.tolist() == []
    assert_allclose(model.bic_, model.bic(data.X))
    assert_allclose(model.log_likelihood_, model.score_samples(data.X).sum())
    assert model.is_exact_


@pytest.mark.parametrize("search", ["order", "auto"])
def test_the_true_class_is_found(search):
    network = random_linear_network(6, 5)
    X, _ = network.sample(20_000, 0)
    model = IdealParentGaussianBN(search=search, penalty=1.5, random_state=0).fit(X)
    assert_array_equal(
        equivalence_class(model.adjacency_), equivalence_class(network.adjacency)
    )


def test_score_is_the_multivariate_normal(data, fitted):
    model = clone(fitted).set_params(margins="normal").fit(data.X)
    expected = multivariate_normal(*fitted.network_.joint()).logpdf(data.X)
    assert_allclose(model.score_samples(data.X), expected)
    assert_allclose(model.score(data.X), expected.mean())
    # By default a few rows may be anywhere.
    far = fitted.network_.background
    expected = far.mixed(expected, data.X, None)
    assert_allclose(fitted.score_samples(data.X), expected)
    # One parameter is the share of these rows.
    price = (fitted.adjacency_.sum() + 16 + 1) * np.log(len(data.X))
    assert_allclose(fitted.bic_, price - 2 * expected.sum())


def test_transform_completes_and_leaves_the_rest(data, fitted):
    X = data.X[:20].copy()
    assert_array_equal(fitted.transform(X), X)
    X[3, 2] = np.nan
    completed = fitted.transform(X)
    assert completed.shape == (20, 8) and not np.isnan(completed).any()
    seen = ~np.isnan(X)
    assert_array_equal(completed[seen], X[seen])
    assert_allclose(completed[3, 2], fitted.predict_nodes(data.X)[3, 2])
    assert_allclose(fitted.transform(X[3:4]), completed[3:4])


def test_predictions_of_nodes_do_not_use_the_node(data, fitted):
    X = data.X[:10].copy()
    before = fitted.predict_nodes(X)[:, 4]
    X[:, 4] += 100.0
    assert_allclose(fitted.predict_nodes(X)[:, 4], before)


def test_names(data):
    pd = pytest.importorskip("pandas")
    names = ["a", "b", "c", "d", "e", "f", "g", "h"]
    frame = pd.DataFrame(data.X, columns=names)
    model = IdealParentGaussianBN(
        required=[("a", "b")], forbidden=[("c", "d"), (3, "c")], random_state=0
    ).fit(frame)
    assert model.adjacency_[0, 1]
    assert not model.adjacency_[2, 3] and not model.adjacency_[3, 2]
    assert model.get_feature_names_out().tolist() == names
    out = model.set_output(transform="pandas").transform(frame)
    assert out.columns.tolist() == names
    table = model.to_frame()
    assert set(table["parent"]) | set(table["child"]) <= set(names)
    assert len(table) == model.adjacency_.sum()
    assert_allclose(sorted(table["weight"]), sorted(model.weights_[model.adjacency_]))


def test_latents_give_way_to_features_of_their_name():
    network = random_linear_network(3, 0, n_latents=2)
    names = network._over(np.zeros(1), ["latent1"]).node_names
    assert names == ["latent1", "latent0", "latent1_"]


def test_sigmoid_networks():
    data = make_gaussian_bn(
        6, n_samples=400, link="sigmoid", noise_variance=(0.1, 0.2), random_state=0
    )
    model = IdealParentGaussianBN(link="sigmoid").fit(data.X)
    linear = IdealParentGaussianBN(search="greedy").fit(data.X)
    assert model.search_ == "greedy"
    assert model.bic_ < linear.bic_
    assert model.is_exact_
    assert_allclose(model.bic_, model.bic(data.X))
    assert model.predict_nodes(data.X[:5]).shape == (5, 6)
    X, _ = model.sample(50, random_state=0)
    assert np.isfinite(model.score(X))
    with pytest.raises(ValueError, match="to_pgmpy needs link='linear'"):
        model.to_pgmpy()


def test_multiplicative_noise():
    data = make_gaussian_bn(
        5, n_samples=300, noise="multiplicative", n_parents=1, random_state=0
    )
    model = IdealParentGaussianBN(noise="multiplicative").fit(data.X)
    assert np.isfinite(model.bic_) and model.adjacency_.any()
    X = data.X.copy()
    X[0, 0] = 0.0
    with pytest.raises(ValueError, match="multiplicative noise needs positive values"):
        IdealParentGaussianBN(noise="multiplicative").fit(X)
    with pytest.raises(ValueError, match="multiplicative noise needs positive values"):
        model.score_samples(X)


@pytest.mark.parametrize("search", SEARCHES)
def test_missing_values_in_fit(data, search):
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    model = IdealParentGaussianBN(search=search, random_state=0).fit(X)
    complete = IdealParentGaussianBN(search=search, random_state=0).fit(data.X)
    assert np.isfinite(model.bic_)
    assert not np.isnan(model.transform(X)).any()
    assert model.score(data.X) > complete.score(data.X) - 0.2


def test_latents():
    data = make_gaussian_bn(
        12,
        1,
        400,
        n_parents=1,
        bipartite=True,
        noise_variance=(0.2, 0.4),
        random_state=0,
    )
    model = IdealParentGaussianBN(max_latents=2, bipartite=True, random_state=0)
    model.fit(data.X)
    assert model.n_latents_ == 1
    assert model.node_names_[-1] == "latent0"
    completed = model.transform(data.X)
    assert completed.shape == (400, 13)
    assert abs(np.corrcoef(completed[:, -1], data.Z[:, 0])[0, 1]) > 0.95
    X, Z = model.sample(7, random_state=0)
    assert X.shape == (7, 12) and Z.shape == (7, 1)
    kinds = dict(model.to_networkx().nodes(data="kind"))
    assert kinds["latent0"] == "latent"
    assert model.to_pgmpy().latents == {"latent0"}


POOR = {
    "constant": lambda X: np.column_stack([X, np.full(len(X), 3.0)]),
    "duplicate": lambda X: np.column_stack([X, X[:, 0]]),
    "collinear": lambda X: np.column_stack([X, X.sum(axis=1)]),
    "more features than rows": lambda X: np.hstack([X, X**2, X**3])[:12],
    "one row": lambda X: X[:1],
    "one column": lambda X: X[:, :1],
}
SAID = {
    "constant": "1 of 9 features are constant and have no edges: x8",
    "duplicate": "1 of 9 features are fitted without noise",
    "collinear": "1 of 9 features are fitted without noise",
    "one row": "8 of 8 features are constant",
}


@pytest.mark.parametrize("kind", POOR)
@pytest.mark.parametrize("search", SEARCHES)
def test_poor_data_make_a_usable_model(data, kind, search):
    X = POOR[kind](data.X)
    model = IdealParentGaussianBN(search=search, random_state=0)
    said = SAID.get(kind)
    with pytest.warns(PoorDataWarning, match=said) if said else nullcontext():
        model.fit(X)
    assert np.isfinite(model.score_samples(X)).all()
    assert np.isfinite(model.predict_nodes(X)).all()
    assert np.isfinite(model.weights_).all()
    limit = max(len(X) // 2 - 1, 0)
    assert model.adjacency_.sum(axis=0).max() <= limit


def test_a_column_without_values(data):
    X = data.X.copy()
    X[:, 2] = np.nan
    with pytest.warns(PoorDataWarning, match="1 of 8 features are missing in all"):
        model = IdealParentGaussianBN(required=[(2, 3)], random_state=0).fit(X)
    assert not model.adjacency_[2].any() and not model.adjacency_[:, 2].any()
    assert_allclose(model.transform(X)[:, 2], 0.0)
    assert np.isfinite(model.score(data.X))
    others = np.delete(data.X, 2, axis=1)
    alone = IdealParentGaussianBN(random_state=0).fit(others)
    assert_array_equal(
        np.delete(np.delete(model.adjacency_, 2, 0), 2, 1), alone.adjacency_
    )


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"link": "cubic"}, ValueError, "link must be one of"),
        ({"noise": "pink"}, ValueError, "noise must be one of"),
        ({"search": "random"}, ValueError, "search must be one of"),
        ({"similarity": "C9"}, ValueError, "similarity must be one of"),
        ({"n_candidates": 0}, ValueError, "n_candidates must be an integer"),
        ({"max_parents": -1}, ValueError, "max_parents must be an integer"),
        ({"max_latents": None}, ValueError, "max_latents must be an integer"),
        ({"tol": -1.0}, ValueError, "tol must be a number of at least 0"),
        ({"penalty": "aic"}, ValueError, "penalty must be"),
        ({"penalty": np.inf}, ValueError, "penalty must be"),
        (
            {"search": "order", "link": "sigmoid"},
            ValueError,
            "search must be 'greedy' or 'auto'",
        ),
        (
            {"required": [(0, 1), (1, 2), (2, 0)]},
            ValueError,
            "no directed cycle, got 'x0' -> 'x1' -> 'x2' -> 'x0'",
        ),
        ({"required": [("x0", "y")]}, ValueError, "required must name .* got 'y'"),
        ({"forbidden": [(0, 8)]}, ValueError, "from 0 to 7, got 8"),
        ({"forbidden": [(0, 1.5)]}, TypeError, "names or numbers"),
        ({"forbidden": "x0"}, TypeError, "list of .parent, child. pairs"),
        ({"forbidden": ["ab"]}, ValueError, "forbidden must hold"),
        ({"forbidden": [(1, 2, 3)]}, ValueError, "forbidden must hold"),
        ({"required": [(1, 1)]}, ValueError, "join a feature with itself"),
        (
            {"required": [(0, 1)], "forbidden": [("x0", "x1")]},
            ValueError,
            "no edge in common, got 'x0' -> 'x1'",
        ),
        (
            {"required": [(0, 1), (2, 1)], "max_parents": 1},
            ValueError,
            "more than max_parents=1",
        ),
        (
            {"required": [(0, 1)], "bipartite": True, "max_latents": 1},
            ValueError,
            "empty with bipartite=True",
        ),
        ({"forbidden": np.eye(3, dtype=bool)}, ValueError, "shape .8, 8. as a matrix"),
    ],
)
def test_wrong_parameters(data, parameters, error, message):
    with pytest.raises(error, match=message):
        IdealParentGaussianBN(**parameters).fit(data.X)


def test_infinite_values_and_unfitted_models(data):
    X = data.X.copy()
    X[0, 0] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        IdealParentGaussianBN().fit(X)
    for method in ("transform", "score_samples", "predict_nodes"):
        with pytest.raises(NotFittedError):
            getattr(IdealParentGaussianBN(), method)(data.X)


def test_constraints_as_matrices(data):
    forbidden = np.zeros((8, 8), dtype=bool)
    forbidden[:, :4] = True
    model = IdealParentGaussianBN(forbidden=forbidden, random_state=0).fit(data.X)
    assert not model.adjacency_[:, :4].any()


def test_max_parents_and_penalty(data):
    model = IdealParentGaussianBN(max_parents=1, random_state=0).fit(data.X)
    assert model.adjacency_.sum(axis=0).max() <= 1
    n_edges = [
        IdealParentGaussianBN(search="order", penalty=penalty, random_state=0)
        .fit(data.X)
        .adjacency_.sum()
        for penalty in (1.0, "ebic", 1e6)
    ]
    assert n_edges[0] >= n_edges[1] > n_edges[2] == 0
    empty = IdealParentGaussianBN(penalty=1e6, random_state=0).fit(data.X)
    assert_allclose(
        empty.predict_nodes(data.X), np.tile(data.X.mean(axis=0), (len(data.X), 1))
    )


def test_warm_start(data):
    model = IdealParentGaussianBN(search="greedy", warm_start=True).fit(data.X)
    graph = model.adjacency_
    assert model.history_
    model.fit(data.X)
    assert_array_equal(model.adjacency_, graph)
    assert model.history_ == []
    # A graph that breaks new rules is no start.
    i, j = np.argwhere(graph)[0]
    model.set_params(required=[(int(j), int(i))]).fit(data.X)
    assert model.adjacency_[j, i]
    model.fit(data.X[:, :5])
    assert model.adjacency_.shape == (5, 5)


def test_edge_confidence(data, fitted):
    confidence = fitted.edge_confidence(data.X, n_bootstraps=10)
    assert confidence.shape == (8, 8)
    assert (confidence >= 0).all() and (confidence <= 1).all()
    # An edge of no direction is a half in either.
    assert_allclose(confidence * 20, np.round(confidence * 20))
    either = confidence + confidence.T
    true = data.network.adjacency | data.network.adjacency.T
    assert either[true].mean() > 0.8 > 0.3 > either[~true].mean()
    again = fitted.edge_confidence(data.X, n_bootstraps=10)
    assert_array_equal(confidence, again)
    with pytest.raises(ValueError, match="n_bootstraps must be an integer from 1"):
        fitted.edge_confidence(data.X, n_bootstraps=0)


def test_edge_confidence_without_fit_and_with_missing_values(data):
    X = data.X[:100].copy()
    X[::7, 0] = np.nan
    model = IdealParentGaussianBN(search="greedy", random_state=1)
    confidence = model.edge_confidence(X, n_bootstraps=3)
    assert confidence.max() == 1.0
    assert not hasattr(model, "network_")


def test_weights_of_zero_are_no_rows(data):
    weights = np.ones(len(data.X))
    weights[200:] = 0
    model = IdealParentGaussianBN(random_state=0)
    graph = clone(model).fit(data.X, sample_weight=weights)
    assert_array_equal(graph.adjacency_, model.fit(data.X[:200]).adjacency_)
    assert_allclose(graph.bic_, model.bic_)


def test_progress(data, capsys):
    IdealParentGaussianBN(search="greedy", verbose=2).fit(data.X)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 5 and "add" in lines[0] and "BIC" in lines[-1]
    IdealParentGaussianBN(search="order", verbose=1).fit(data.X)
    assert "BIC" in capsys.readouterr().out


def test_model_selection(data):
    pipeline = make_pipeline(StandardScaler(), IdealParentGaussianBN(search="greedy"))
    assert np.isfinite(cross_val_score(pipeline, data.X, cv=3)).all()
    grid = GridSearchCV(
        IdealParentGaussianBN(search="order", random_state=0),
        {"penalty": [1.0, "ebic", 100.0]},
        cv=3,
    ).fit(data.X)
    assert grid.best_params_["penalty"] != 100.0


def test_no_warnings_on_good_data(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        IdealParentGaussianBN().fit(data.X)


@pytest.mark.parametrize("container", ["array", "pandas", "polars", "list"])
def test_impute_fills_gaps_and_nothing_else(data, fitted, container):
    X = data.X[:30].copy()
    gaps = np.random.default_rng(0).random(X.shape) < 0.2
    X[gaps] = np.nan
    names = list("abcdefgh")
    given = X
    if container == "list":
        given = X.tolist()
    elif container != "array":
        given = pytest.importorskip(container).DataFrame(X)
        given.columns = names
    model = fitted if container in ("array", "list") else None
    if model is None:
        frame = type(given)(data.X)
        frame.columns = names
        model = IdealParentGaussianBN(search="greedy").fit(frame)
    filled = model.impute(given)
    assert isinstance(filled, np.ndarray if container == "list" else type(given))
    values = np.asarray(filled)
    assert_array_equal(values[~gaps], X[~gaps])
    assert_allclose(values, model.transform(given)[:, :8])
    assert_array_equal(np.isnan(np.asarray(given)), gaps)


def test_impute_keeps_types():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.integers(0, 9, 40), "b": rng.normal(size=40).astype(np.float32)}
    )
    frame.loc[3, "b"] = np.nan
    filled = IdealParentGaussianBN().fit(frame).impute(frame)
    assert filled.dtypes.tolist() == frame.dtypes.tolist()
    assert not filled.isna().any().any()


def test_latents_are_named_and_placed():
    data = make_gaussian_bn(12, 2, 400, bipartite=True, random_state=0)
    model = IdealParentGaussianBN(max_latents=3, bipartite=True).fit(data.X)
    assert model.n_latents_ == 2
    assert_array_equal(model.structure_, model.adjacency_[12:, :12])
    assert model.latent_names_.tolist() == ["latent0", "latent1"]
    assert_allclose(model.bic_, model.bic(data.X))
    completed = model.transform(data.X)
    assert_allclose(model.network_.posterior(data.X), completed[:, 12:])
    # Imputing leaves latents out.
    X = data.X[:20].copy()
    X[3, 5] = np.nan
    assert_array_equal(model.impute(X), model.transform(X)[:, :12])


def test_an_estimate_of_the_likelihood_says_so(data):
    X = data.X[:60, :3].copy()
    X[0, 0] = np.nan
    with pytest.warns(ApproximateInferenceWarning) as caught:
        model = IdealParentGaussianBN(link="sigmoid").fit(X)
    assert not model.is_exact_
    # The warning points to the user's own line.
    assert {warning.filename for warning in caught} == {__file__}
    assert IdealParentGaussianBN().fit(X).is_exact_


def test_chance_is_scikit_learns(data, monkeypatch):
    assert IdealParentGaussianBN().random_state == 0
    seen = []
    plain = order_module.check_random_state

    def watched(random_state):
        seen.append(random_state)
        return plain(random_state)

    monkeypatch.setattr(order_module, "check_random_state", watched)
    rng = np.random.RandomState(0)
    for random_state in (None, rng, 5):
        model = IdealParentGaussianBN(search="order", random_state=random_state)
        assert np.isfinite(model.fit(data.X).bic_)
    assert seen == [None, rng, 5]


@pytest.mark.filterwarnings("ignore:X looks suspicious")
def test_a_larger_tolerance_per_row_makes_fewer_moves(data):
    moves = [
        IdealParentGaussianBN(search="greedy", tol=tol).fit(data.X).n_iter_
        for tol in (1e-8, 0.05, 10.0)
    ]
    assert moves[0] > moves[1] > moves[2] == 1
    twice = np.vstack([data.X, data.X])
    gains = [
        gain
        for _, gain in IdealParentGaussianBN(search="greedy", tol=0.05)
        .fit(twice)
        .history_
    ]
    assert min(gains) > 0.05 * len(twice)


def test_jobs_of_the_bootstrap(data):
    model = IdealParentGaussianBN(search="greedy")
    alone = model.edge_confidence(data.X[:50], 4, random_state=3)
    shared = model.edge_confidence(data.X[:50], 4, n_jobs=2, random_state=3)
    assert_array_equal(alone, shared)
    with pytest.raises(ValueError, match="n_jobs must be"):
        model.edge_confidence(data.X[:50], 4, n_jobs=0)


@pytest.mark.parametrize("name", ["hidden_search", "n_restarts", "tabu", "n_jobs"])
def test_parameters_that_are_gone(name):
    with pytest.raises(TypeError, match=name):
        IdealParentGaussianBN(**{name: 1})
    with pytest.raises(ValueError, match=name):
        IdealParentGaussianBN().set_params(**{name: 1})
