"""Whatever comes in: a documented exception, or a valid noisy-or model."""

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
    numbers,
    options,
    probabilities,
    relabelled,
    structures,
    tables,
    weights,
    width_of,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.exceptions import NotFittedError

from sklearn_latent import (
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
    datasets,
    metrics,
)
from sklearn_latent.noisy_or import find_schedule, identifiability_order, quartet_depth


def assert_valid(network):
    for values in (network.prior, network.failure, network.leak):
        assert values.dtype == np.float64
        assert ((values >= 0) & (values <= 1)).all()
    assert network.failure.shape == (len(network.prior), len(network.leak))


def drive(name, model, X, other):
    """Use a fitted model on the rows it has seen, and on others."""
    assert_valid(model.network_)
    assert model.network_.n_features == model.n_features_in_
    for rows in (X, other):
        posterior = attempt(name, model.transform, rows)
        if posterior is not None:
            posterior = np.asarray(posterior)
            assert posterior.shape == (n_rows_of(rows), model.network_.n_latents)
            assert ((posterior >= 0) & (posterior <= 1)).all()
        log_likelihood = attempt(name, model.score_samples, rows)
        if log_likelihood is not None:
            assert (log_likelihood <= 1e-9).all()
    assert attempt(name, model.transform, X) is not None
    drawn, latents = model.sample(3, random_state=0)
    assert np.isin(drawn, [0, 1]).all()
    assert np.isin(latents, [0, 1]).all()
    assert nx.is_directed_acyclic_graph(model.to_networkx())
    of_classes = model.network_.n_latents * (model.network_.n_classes > 1)
    assert len(model.to_frame()) == model.network_.structure.sum() + of_classes
    assert NoisyOrNetwork.from_json(model.network_.to_json()) == model.network_


def fit_and_drive(data, name, model, X):
    sample_weight = data.draw(weights(n_rows_of(X)))
    fitted = attempt(name, model.fit, X, sample_weight=sample_weight)
    if fitted is None:
        assert not hasattr(model, "network_")
        with pytest.raises(NotFittedError):
            model.transform([[0.0]])
        return
    drive(name, model, X, data.draw(tables()))
    drive_common(data, name, model, X)
    if hasattr(model, "latents_frame"):
        assert len(model.latents_frame()) == model.n_latents_
    if hasattr(model, "prior_stderr_"):
        assert not (np.asarray(model.prior_stderr_) < 0).any()
    # A second fit that fails leaves the first one.
    before = model.network_
    again = attempt(name, model.fit, data.draw(tables()))
    assert again is not None or model.network_ is before


BINARIZE = [0.0, 0.0, 0.0, None, 1.5, -0.5]
SEEDS = [0, None, 7]
RUNNING = {"n_jobs": [None, 1], "verbose": [0, True]}


THRESHOLD = ["auto", "auto", 0.01, 0.1]
OPTIONS = {
    NoisyOrMoMLearner: {"use_pairs": [True, False], "clean_up": [True, False]},
    NoisyOrEM: {
        "n_latents": [None, None, 0, 1, 2, 3],
        "inference": ["exact", "variational"],
        "n_init": [1, 2],
        "max_iter": [1, 10, 60],
        "tol": [1e-3, 0.0, 1e-6],
        "warm_start": [True, False],
        "random_state": SEEDS,
    },
    QuartetStructureLearner: {
        "test": ["rank", "coherence"],
        "quartet_threshold": THRESHOLD,
        "coherence_threshold": THRESHOLD,
        "extend_threshold": THRESHOLD,
        "max_depth": [None, 0, 2],
        "dependence": ["auto", None],
        "polarity": ["auto", None],
        "random_state": SEEDS,
    },
}


@pytest.mark.parametrize("kind", OPTIONS)
@fuzz(50)
@given(data=st.data())
def test_estimators(kind, data):
    X = data.draw(tables())
    valid = OPTIONS[kind] | {"binarize": BINARIZE} | RUNNING
    given = {} if kind is NoisyOrEM else {"refine": [True, False]}
    model = kind(**data.draw(options(**valid, **given)))
    if kind is not QuartetStructureLearner:
        model.set_params(structure=data.draw(st.none() | structures(width_of(X))))
    fit_and_drive(data, kind.__name__, model, X)


@fuzz(50)
@given(st.data())
def test_batches(data):
    """A batch that is refused does not count; the others do."""
    kind = data.draw(st.sampled_from([NoisyOrMoMLearner, QuartetStructureLearner]))
    model, n_rows, weighted = kind(), 0.0, data.draw(st.booleans())
    for _ in range(3):
        X = data.draw(hnp.arrays(bool, (5, 4)) if weighted else tables(max_columns=3))
        options = {"update": data.draw(arguments(True, False))}
        if weighted:
            options["sample_weight"] = data.draw(weights(5))
        name = f"{kind.__name__}.partial_fit"
        if attempt(name, model.partial_fit, X, **options) is not None:
            n_rows += n_rows_of(X)
            if options["update"] is True:
                assert_valid(model.network_)
                known = kind is NoisyOrMoMLearner and not np.isnan(_floats(X)).any()
                if known and not weighted:
                    assert model.n_samples_seen_ <= n_rows
        if not hasattr(model, "network_"):
            for method in (model.sample, model.to_frame, model.get_feature_names_out):
                assert attempt(kind.__name__, method) is None


@fuzz(30)
@given(st.data())
def test_other_names(data):
    """Columns are found by place; names that say otherwise are refused."""
    frame = pd.DataFrame(data.draw(hnp.arrays(bool, (6, 3))), columns=list("abc"))
    kind = data.draw(
        st.sampled_from([NoisyOrMoMLearner, NoisyOrEM, QuartetStructureLearner])
    )
    model, name = kind(), kind.__name__
    assert attempt(name, model.fit, frame.astype(float)) is not None
    other = data.draw(relabelled(frame.astype(float)))
    attempt(name, model.transform, other)
    attempt(name, model.score_samples, other)


def _floats(X):
    try:
        return np.asarray(X, dtype=float)
    except (TypeError, ValueError):
        return np.array([np.nan])


@fuzz(60)
@given(st.data())
def test_network(data):
    n_latents, n_features = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 5))
    sizes = [(n_latents,), (n_latents, n_features), (n_features,)]
    if data.draw(st.integers(0, 9)) == 9:
        sizes = [data.draw(hnp.array_shapes(min_dims=0, max_dims=3)) for _ in sizes]
    elements = st.sampled_from(
        [st.floats(0, 1), st.sampled_from([0.0, 1.0]), probabilities]
    )
    values = [
        data.draw(hnp.arrays(np.float64, size, elements=data.draw(elements)))
        for size in sizes
    ]
    network = attempt("NoisyOrNetwork", NoisyOrNetwork, *values)
    if network is None:
        return
    assert_valid(network)

    def ask(method, *arguments):
        return attempt(f"NoisyOrNetwork.{method}", getattr(network, method), *arguments)

    X = data.draw(fitting(n_features, st.sampled_from([0.0, 1.0, 1.0, np.nan])))
    method = data.draw(arguments("auto", "exact"))
    log_likelihood = ask("log_likelihood", X, method)
    assert log_likelihood is None or (log_likelihood <= 1e-9).all()
    posterior = ask("posterior", X, method)
    assert posterior is None or ((posterior >= 0) & (posterior <= 1)).all()
    features = [[], [0], [0, 1], [[0, 1], [1, 1]], [9], [-1], [0.5], "a"]
    moment = ask("negative_moment", data.draw(st.sampled_from(features)))
    if moment is not None:
        assert ((np.asarray(moment) >= 0) & (np.asarray(moment) <= 1 + 1e-12)).all()
    ask("sample", data.draw(arguments(1, 5)), data.draw(arguments(0, None)))
    ask("to_frame", data.draw(arguments(None)), data.draw(arguments(None)))
    ask("from_dict", data.draw(damaged(network.to_dict())))
    ask("from_json", data.draw(st.sampled_from(JUNK)))


@fuzz(60)
@given(st.data())
def test_functions_of_structures(data):
    structure = data.draw(structures(data.draw(st.integers(0, 5))))
    schedule = attempt(
        "find_schedule",
        find_schedule,
        structure,
        use_pairs=data.draw(arguments(True, False)),
    )
    if schedule is not None:
        assert schedule.depth.ndim == 2
        assert (schedule.depth[np.isfinite(schedule.depth)] >= 0).all()
    depth = attempt("quartet_depth", quartet_depth, structure)
    if depth is not None:
        assert (depth >= 0).all()
    order = attempt(
        "identifiability_order",
        identifiability_order,
        structure,
        max_order=data.draw(arguments(None, 1, 3)),
        random_state=data.draw(arguments(None, 0)),
    )
    assert order is None or order >= -1


@fuzz(60)
@given(st.data())
def test_metrics(data):
    shapes = st.tuples(st.integers(0, 3), st.integers(0, 3))
    one, two = (
        data.draw(
            tables(max_rows=3, max_columns=3)
            | hnp.arrays(np.float64, shapes, elements=st.floats(0, 1))
            | hnp.arrays(bool, shapes)
        )
        for _ in range(2)
    )
    prior = data.draw(arguments(None, None, [0.1], [0.1, 0.0]))
    result = attempt("match_latents", metrics.match_latents, one, two, prior)
    if result is not None:
        pairs, recovered = result
        assert pairs.shape[1] == 2
        assert recovered.dtype == bool
    score = attempt("edge_f1", metrics.edge_f1, one, two)
    assert score is None or 0 <= score <= 1
    if data.draw(st.booleans()):
        one = tuple([one] * data.draw(st.integers(0, 4)))
    distances = attempt(
        "structural_hamming_distance", metrics.structural_hamming_distance, one, two
    )
    assert distances is None or all(distance >= 0 for distance in distances)


@fuzz(40)
@given(st.data())
def test_datasets(data):
    small = arguments(1, 2, 5)
    attempt(
        "make_noisy_or_images",
        datasets.make_noisy_or_images,
        data.draw(small),
        random_state=data.draw(arguments(0, None)),
    )
    bunch = attempt(
        "make_noisy_or",
        datasets.make_noisy_or,
        data.draw(st.none() | structures(4)),
        data.draw(small),
        prior=data.draw(arguments((0.2, 0.8), 0.5)),
        failure=data.draw(st.one_of(arguments((0.2, 0.8), 0.5), numbers)),
        leak=data.draw(st.one_of(arguments(0.01), numbers)),
        random_state=data.draw(arguments(0, None)),
    )
    if bunch is not None:
        assert_valid(bunch.network)
        assert np.isin(bunch.X, [0, 1]).all()
    attempt(
        "make_qmr_like",
        datasets.make_qmr_like,
        n_latents=data.draw(small),
        n_features=data.draw(small),
        n_edges=data.draw(small),
        n_samples=data.draw(small),
        random_state=data.draw(arguments(0, None)),
    )
