"""The model object: validation, sampling, prediction, export."""

import numpy as np
import pytest
from dbn_strategies import dbns, one_latent, random_dbn, seeds, sequences
from hypothesis import given, settings

from sklearn_latent.export import edges_to_frame
from sklearn_latent.mixed import LatentDBN, TemporalGraph
from sklearn_latent.mixed._emissions.categories import CategoricalMemory
from sklearn_latent.mixed._local_graphs import Support

few = settings(max_examples=30, deadline=None)

GRAPH = TemporalGraph([[1, 1, 0], [0, 0, 1]], [[0, 1], [0, 0]], [[1, 0], [0, 1]])


def network(seed=0):
    return random_dbn(GRAPH, [2, 3], [2, 3, 2], seed)


@few
@given(dbns(), seeds)
def test_posterior_does_not_depend_on_the_order_of_latents(model, seed):
    order = np.random.default_rng(seed).permutation(model.n_latents)
    graph = model.directed_graph.permuted(order)
    rank = np.argsort(order)

    def moved(table, family):
        """Axes of parents follow the new numbers; the latent itself stays last."""
        parents = [[int(rank[i]) for i in part] for part in family]
        axes, shift = [], 0
        for part in parents:
            axes += [shift + place for place in np.argsort(part)]
            shift += len(part)
        return table.transpose([*axes, table.ndim - 1])

    old = model.directed_graph
    permuted = LatentDBN(
        graph,
        model.cardinality[order],
        [moved(model.start[j], [old.parents_within(j)]) for j in order],
        [
            moved(model.transition[j], [old.parents_before(j), old.parents_within(j)])
            for j in order
        ],
        model.emission,
    )
    codes = sequences(model, 3, 3, seed)
    # Of a certain sequence nothing but a rounding error is left.
    np.testing.assert_allclose(
        permuted.log_likelihood(codes), model.log_likelihood(codes), atol=1e-10
    )
    for i, j in enumerate(order):
        np.testing.assert_allclose(
            permuted.posterior(codes)[i], model.posterior(codes)[j], atol=1e-12
        )


def test_samples_follow_the_tables():
    model = network()
    codes, states = model.sample(40_000, 2, random_state=0)
    assert codes.shape == (40_000, 2, 3)
    assert states.shape == (40_000, 2, 2)
    np.testing.assert_allclose(
        np.bincount(states[:, 0, 0]) / 40_000, model.start[0], atol=0.02
    )
    before, after = states[:, 0], states[:, 1]
    for a, b in [(0, 0), (1, 2)]:
        chosen = (after[:, 0] == a) & (before[:, 1] == b)
        share = np.bincount(after[chosen, 1], minlength=3) / chosen.sum()
        np.testing.assert_allclose(share, model.transition[1][b, a], atol=0.05)
    for f, j in enumerate([0, 0, 1]):
        chosen = states[:, :, j] == 1
        share = np.bincount(codes[:, :, f][chosen], minlength=model.n_categories[f])
        np.testing.assert_allclose(
            share / chosen.sum(), model.emission[f][1], atol=0.02
        )
    again = model.sample(40_000, 2, random_state=0)
    np.testing.assert_array_equal(again[0], codes)


def test_mean_log_likelihood_of_samples_is_minus_the_entropy():
    model = network()
    all_codes = np.array(list(np.ndindex(*(2, 3, 2) * 2))).reshape(-1, 2, 3)
    log_likelihood = model.log_likelihood(all_codes)
    np.testing.assert_allclose(np.exp(log_likelihood).sum(), 1.0)
    codes, _ = model.sample(20_000, 2, random_state=1)
    entropy = -(np.exp(log_likelihood) * log_likelihood).sum()
    np.testing.assert_allclose(-model.log_likelihood(codes).mean(), entropy, atol=0.05)


def test_number_of_parameters():
    # start: 1 + 2 * 2, transition: 2 * 1 + 3 * 2 * 2, emission: 2 * 1 + 2 * 2 + 3 * 1.
    assert network().n_parameters == 5 + 14 + 9


def test_model_without_latents():
    graph = TemporalGraph(np.zeros((0, 2)), [], [])
    model = LatentDBN(graph, [], [], [], [[[0.25, 0.75]], [[1.0]]])
    codes = np.array([[[0, 0], [1, -1]]])
    np.testing.assert_allclose(model.log_likelihood(codes), np.log(0.25 * 0.75))
    assert model.posterior(codes) == []
    assert model.viterbi(codes).shape == (1, 2, 0)
    assert model.impute(codes)[0, 1, 1] == 0
    assert model.sample(3, 2, random_state=0)[0].shape == (3, 2, 2)


def test_no_sequences_and_no_slices_known():
    model = network()
    assert model.log_likelihood(np.zeros((0, 2, 3), dtype=int)).shape == (0,)
    nothing = np.full((1, 2, 3), -1)
    np.testing.assert_allclose(model.log_likelihood(nothing), 0.0, atol=1e-12)
    np.testing.assert_allclose(model.posterior(nothing)[0][0, 0], model.start[0])


def test_wrong_parameters():
    model = network()
    tables = (model.start, model.transition, model.emission)
    with pytest.raises(TypeError, match="graph must be a TemporalGraph, got str"):
        LatentDBN("G1", [2, 3], *tables)
    with pytest.raises(ValueError, match=r"cardinality must hold one number per"):
        LatentDBN(GRAPH, [2], *tables)
    with pytest.raises(ValueError, match=r"start\[1\] must have shape \(2, 2\)"):
        LatentDBN(GRAPH, [2, 2], *tables)
    with pytest.raises(ValueError, match="emission must hold 3 tables, got 2"):
        LatentDBN(GRAPH, [2, 3], model.start, model.transition, model.emission[:2])
    with pytest.raises(ValueError, match=r"start\[0\] must hold probabilities"):
        LatentDBN(GRAPH, [2, 3], [[0.5, 0.6], model.start[1]], *tables[1:])
    for cardinality in ([2, 2.5], [2, np.inf], "ab"):
        with pytest.raises(ValueError, match="cardinality must"):
            LatentDBN(GRAPH, cardinality, *tables)
    with pytest.raises(ValueError, match="emission must be a list of tables, got 3"):
        LatentDBN(GRAPH, [2, 3], *tables[:2], 3)
    with pytest.raises(ValueError, match="max_joint_states must be an integer from 1"):
        LatentDBN(GRAPH, [2, 3], *tables, max_joint_states=10**30)
    with pytest.raises(ValueError, match="n_samples must be an integer from 1 to"):
        model.sample(10**30)
    with pytest.raises(ValueError, match="n_slices must be an integer from 1 to"):
        model.sample(1, 0)
    impure = TemporalGraph([[1, 1], [1, 0]], np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(ValueError, match="at most one latent, got more for feature 0"):
        LatentDBN(impure, [2, 2], [], [], [[], []])


@pytest.mark.parametrize(
    "codes",
    [
        np.zeros((2, 3)),
        np.zeros((2, 1, 2), int),
        np.full((2, 1, 3), 0.5),
        [[[np.inf, 0, 0]]],
        [[[5, 0, 0]]],
        np.zeros((2, 1, 3), bool),
        [[1], 2],
    ],
)
def test_wrong_codes(codes):
    with pytest.raises(ValueError, match="codes must"):
        network().log_likelihood(codes)


# Importing pgmpy's inference warns about pgmpy's own modules.
@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize("inter", [[[1, 0], [0, 1]], [[0, 0], [0, 1]]])
def test_pgmpy_agrees(inter):
    from pgmpy.inference import DBNInference

    graph = TemporalGraph(GRAPH.structure, GRAPH.intra, inter)
    model = random_dbn(graph, [2, 3], [2, 3, 2], seed=7)
    exported = model.to_pgmpy()
    assert exported.check_model()
    exported.initialize_initial_state()
    inference = DBNInference(exported)
    codes = np.array([[[0, 1, 1], [1, -1, 0], [-1, 2, 1]]])
    evidence = {
        (f"x{f}", int(t)): int(codes[0, t, f]) for t, f in np.argwhere(codes[0] >= 0)
    }
    posterior = model.posterior(codes)
    for j in range(2):
        for t in range(3):
            node = (f"latent{j}", t)
            found = inference.query([node], evidence=evidence)[node]
            np.testing.assert_allclose(found.values, posterior[j][0, t], atol=1e-10)


@few
@given(dbns())
def test_exports_have_all_edges(model):
    graph = model.to_networkx()
    n_within = model.graph.structure.sum() + model.directed_graph.intra.sum()
    assert graph.number_of_edges() == 2 * n_within + model.graph.inter.sum()
    assert graph.number_of_nodes() == 2 * (model.n_latents + model.n_observed)
    frame = edges_to_frame(graph)
    assert len(frame) == graph.number_of_edges()
    if len(frame):
        assert frame["strength"].between(0, 1).all()
        assert frame["support"].isna().all()
        inter = frame[frame["kind"] == "inter"]
        assert all(
            p[1] == 0 and c[1] == 1 for p, c in inter[["parent", "child"]].values
        )
        undirected = frame[(frame["kind"] == "intra") & ~frame["directed"]]
        assert len(undirected) == (model.graph.intra & model.graph.intra.T).sum()


@pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning")
@settings(max_examples=10, deadline=None)
@given(dbns())
def test_pgmpy_accepts_every_model(model):
    assert model.to_pgmpy().check_model()


def test_names_and_support_of_exports():
    model = network()
    support = Support(
        np.full((2, 3), 0.75), np.full((2, 2), 0.5), np.full((2, 2), 0.25)
    )
    graph = model._graph(
        *model._names(["a", "b"], ["b", "c", "d"]), support=support
    ).write()
    assert ("b_", 0) in graph  # a latent gives way to a feature of its name
    assert graph.edges[("a", 0), ("c", 0)]["support"] == 0.75
    assert graph.edges[("a", 0), ("b_", 0)]["support"] == 0.5
    assert graph.edges[("a", 0), ("a", 1)]["support"] == 0.25
    with pytest.raises(ValueError, match="latent_names must hold 2 names, got 1"):
        model.to_networkx(["a"])


def certain(transition):
    """A latent that its one feature shows, and that starts in state 0."""
    graph = one_latent(1)
    return LatentDBN(graph, [2], [[1.0, 0.0]], [transition], [np.eye(2)])


@pytest.mark.parametrize("leap", [1e-150, 1e-250, 1e-300, 1e-320])
def test_a_leap_that_was_hardly_possible(leap):
    model = certain([[1.0, leap], [0.0, 1.0]])
    codes = [[[0], [1], [1]]]
    expected = [[[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]]
    np.testing.assert_allclose(model.posterior(codes)[0], expected)
    pairs = model.expected_counts(codes).transition[0]
    np.testing.assert_allclose(pairs, [[0.0, 1.0], [0.0, 1.0]])
    np.testing.assert_allclose(model.log_likelihood(codes), np.log(leap))


def test_states_of_an_impossible_sequence_are_a_distribution():
    model = certain(np.eye(2))
    codes = [[[0], [1], [1]]]
    assert model.log_likelihood(codes) == -np.inf
    np.testing.assert_allclose(model.posterior(codes)[0].sum(axis=2), 1.0)


def test_a_network_without_time_has_one_slice():
    graph = one_latent(2, 0)
    table, emission = [0.3, 0.7], [[0.9, 0.1], [0.2, 0.8]]
    still = LatentDBN(graph, [2], [table], [table], [emission] * 2)
    assert not still.has_time
    assert still.n_parameters == 1 + 4
    assert set(still.to_networkx()) == {"latent0", "x0", "x1"}
    assert len(still.to_frame()) == 2
    assert still.to_pgmpy().check_model()
    start = LatentDBN(graph, [2], [[0.4, 0.6]], [table], [emission] * 2)
    assert start.has_time and start.n_parameters == 2 + 4
    memory = CategoricalMemory(emission, [emission] * 2)
    assert LatentDBN(graph, [2], [table], [table], [emission, memory]).has_time
