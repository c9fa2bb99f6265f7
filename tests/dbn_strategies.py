"""Hypothesis strategies for panels: small temporal graphs, networks and sequences."""

import itertools

import numpy as np
from hypothesis import strategies as st
from scipy.stats import cauchy, halfcauchy, norm

from sklearn_latent.mixed import LatentDBN, TemporalGraph
from sklearn_latent.mixed._em.chain_em import replace_tables
from sklearn_latent.mixed._emissions.categories import (
    CategoricalMemory,
    CategoricalRepeat,
    Ordinal,
    OrdinalMemory,
)
from sklearn_latent.mixed._emissions.numbers import (
    Gaussian,
    GaussianMemory,
    LogNormal,
    LogNormalMemory,
)

KINDS = (
    "categorical",
    "repeat",
    "memory",
    "gaussian",
    "gaussian memory",
    "lognormal",
    "lognormal memory",
    "ordinal",
    "ordinal memory",
)

DISCRETE = tuple(kind for kind in KINDS if "normal" not in kind and "gauss" not in kind)

seeds = st.integers(0, 2**32 - 1)


def alone_graph(n_observed):
    """Features of no latent."""
    return TemporalGraph(np.zeros((0, n_observed)), np.zeros((0, 0)), np.zeros((0, 0)))


def one_latent(n_observed, memory=1):
    """Features of one latent."""
    return TemporalGraph(np.ones((1, n_observed)), [[0]], [[memory]])


def assert_same(ones, twos, **tolerance):
    """Two lists of tables are the same."""
    for one, two in zip(ones, twos, strict=True):
        np.testing.assert_allclose(one, two, **tolerance)


def assert_same_counts(one, two, **tolerance):
    """Two results of `expected_counts` are the same, but for their likelihoods."""
    for name in ("start", "transition", "emission"):
        assert_same(getattr(one, name), getattr(two, name), **tolerance)


@st.composite
def graphs(draw, max_latents=3, max_observed=4, undirected=True):
    """Graphs whose features have at most one parent."""
    n_latents = draw(st.integers(1, max_latents))
    n_observed = draw(st.integers(1, max_observed))
    rng = np.random.default_rng(draw(seeds))
    measurement = np.zeros((n_latents, n_observed), dtype=bool)
    parent = rng.integers(-1, n_latents, n_observed)
    measurement[parent[parent >= 0], np.flatnonzero(parent >= 0)] = True
    order = rng.permutation(n_latents)
    intra = np.triu(rng.random((n_latents, n_latents)) < 0.6, 1)
    intra = intra[np.ix_(order, order)]
    if undirected and rng.random() < 0.3:
        intra |= intra.T
    inter = rng.random((n_latents, n_latents)) < rng.choice([0.0, 0.15, 0.5])
    return TemporalGraph(measurement, intra, inter)


def random_emission(kind, n_states, width, rng, contamination=0.0):
    """An emission with random parameters; numbers may be contaminated."""
    table = rng.dirichlet(np.ones(width), n_states)
    if kind.startswith(("gaussian", "lognormal")):
        # Exponentials of logarithms of a wide range would have no stable moments.
        size = 1.0 if kind.startswith("gaussian") else 0.3
        low, high = 0.2 * size, size
        center, scale = size * rng.normal(), size * rng.uniform(0.5, 2.0)
        parameters = [size * rng.normal(size=n_states)]
        parameters.append(rng.uniform(low, high, n_states))
        single = {"gaussian": Gaussian, "lognormal": LogNormal}
        if kind in single:
            return single[kind](*parameters, center, scale, contamination)
        parameters.append(size * rng.normal(size=n_states))
        parameters.append(rng.uniform(-0.8, 0.9, n_states))
        noise = rng.uniform(low, high, n_states)
        memory = GaussianMemory if kind == "gaussian memory" else LogNormalMemory
        return memory(*parameters, noise, center, scale, contamination)
    if kind.startswith("ordinal"):
        parts = [np.sort(rng.normal(size=width - 1)), rng.normal(size=n_states)]
        if kind == "ordinal":
            return Ordinal(*parts)
        parts += [np.sort(rng.normal(size=width - 1)), rng.normal(size=n_states)]
        return OrdinalMemory(*parts, 1.5 * rng.normal(size=width))
    if kind == "repeat":
        return CategoricalRepeat(table, rng.uniform(0.1, 0.9, width))
    if kind == "memory":
        after = rng.dirichlet(np.ones(width), (n_states, width))
        return CategoricalMemory(table, after, rng.dirichlet(np.ones(width), width))
    return table


def emission_likelihood(emission, state, value, before):
    """P(value | state, value before), plainly; -1 or NaN is missing."""
    if not isinstance(emission, np.ndarray) and emission.is_numeric:
        return _number_likelihood(emission, state, value, before)
    if np.isnan(value) or value < 0:
        return 1.0
    if isinstance(emission, np.ndarray):
        return emission[state, int(value)]
    if emission.kind.startswith("ordinal"):
        return _ordinal_likelihood(emission, state, int(value), before)
    if emission.kind == "categorical" or np.isnan(before) or before < 0:
        return emission.table[state, int(value)]
    if emission.kind == "repeat":
        kept = emission.repeat[int(before)]
        drawn = (1 - kept) * emission.table[state, int(value)]
        return drawn + kept * (before == value)
    return emission.after[state, int(before), int(value)]


def _ordinal_likelihood(emission, state, value, before):
    """P(value) by the formula of the cumulative logit."""
    cuts, location = emission.thresholds, emission.location[state]
    if emission.kind == "ordinal memory" and before >= 0:
        cuts = emission.after_thresholds
        location = emission.after_location[state] + emission.shift[int(before)]
    below = [0.0, *(1 / (1 + np.exp(location - cuts))), 1.0]
    return below[value + 1] - below[value]


def _number_likelihood(emission, state, value, before):
    """Density of a number, plainly; NaN is missing."""
    if np.isnan(value):
        return 1.0
    factor, far = 1.0, cauchy.pdf(value, emission.center, emission.scale)
    if emission.kind.startswith("lognormal"):
        far = halfcauchy.pdf(value, 0, np.exp(emission.center))
        factor, value, before = 1 / value, np.log(value), np.log(before)
    mean, std = emission.mean[state], emission.std[state]
    if emission.kind.endswith("memory") and not np.isnan(before):
        mean = emission.level[state] + emission.slope[state] * (
            before - emission.center
        )
        std = emission.noise[state]
    own = factor * norm.pdf(value, mean, std)
    return own + emission.contamination * (far - own)


def random_dbn(
    graph, cardinality, n_categories, seed, zeros=False, kinds=None, contamination=0.0
):
    """A network with random tables, some of whose entries may be 0."""
    kinds = kinds or ["categorical"] * len(n_categories)
    rng = np.random.default_rng(seed)
    directed = graph.directed()

    def table(family):
        shape = [cardinality[i] for i in family]
        values = rng.uniform(0.05, 1.0, shape) ** 2
        if zeros:
            values *= rng.random(shape) < 0.8
            values[..., 0] += values.sum(axis=-1) == 0
        return values / values.sum(axis=-1, keepdims=True)

    latents = range(graph.n_latents)
    start = [table((*directed.parents_within(j), j)) for j in latents]
    transition = [
        table((*directed.parents_before(j), *directed.parents_within(j), j))
        for j in latents
    ]
    emission = []
    for f, width in enumerate(n_categories):
        parents = np.flatnonzero(graph.structure[:, f])
        rows = cardinality[parents[0]] if len(parents) else 1
        emission.append(random_emission(kinds[f], rows, width, rng, contamination))
    return LatentDBN(graph, cardinality, start, transition, emission)


@st.composite
def dbns(draw, zeros=False, **options):
    """Networks of at most eight joint states."""
    graph = draw(graphs(**options))
    most = 2 if graph.n_latents == 3 else 3
    cardinality = [draw(st.integers(1, most)) for _ in range(graph.n_latents)]
    n_categories = [draw(st.integers(1, 3)) for _ in range(graph.n_observed)]
    return random_dbn(graph, cardinality, n_categories, draw(seeds), zeros)


@st.composite
def mixed_dbns(draw, kinds=KINDS, most_far=0.3, **options):
    """Networks whose features have emissions of several kinds."""
    graph = draw(graphs(**options))
    cardinality = [draw(st.integers(1, 2)) for _ in range(graph.n_latents)]
    n_categories = [draw(st.integers(1, 3)) for _ in range(graph.n_observed)]
    chosen = [draw(st.sampled_from(kinds)) for _ in range(graph.n_observed)]
    far = draw(st.sampled_from([0.0, most_far]))
    seed = draw(seeds)
    return random_dbn(graph, cardinality, n_categories, seed, False, chosen, far)


def rotated(network):
    """The same network with its tables turned round."""
    return replace_tables(
        network,
        transition=[np.roll(table, 1, axis=-1) for table in network.transition],
        emission=[
            np.roll(table, 1, axis=-1) if isinstance(table, np.ndarray) else table
            for table in network.emission
        ],
    )


def of_epochs(networks, points):
    """The last network, after the others."""
    return networks[-1].with_earlier(networks[:-1], points)


@st.composite
def changing_dbns(draw):
    """Networks of two or three epochs."""
    network = draw(mixed_dbns(DISCRETE, max_latents=2))
    points = draw(st.sampled_from([[1], [2], [1, 2]]))
    networks = [network, rotated(network), network][: len(points) + 1]
    return of_epochs(networks, points)


def sequences(network, n, n_slices, seed, missing=0.3):
    """Codes with gaps and ragged ends."""
    rng = np.random.default_rng(seed)
    widths = np.maximum(network.n_categories, 1)
    codes = rng.integers(0, widths, (n, n_slices, network.n_observed))
    gap = -1
    numeric = network.n_categories == 0
    if numeric.any():
        numbers = rng.uniform(0.1, 3.0, size=codes.shape)
        codes, gap = np.where(numeric, numbers, codes), np.nan
    codes[rng.random(codes.shape) < missing] = gap
    ends = rng.integers(0, n_slices + 1, n)
    codes[
        np.arange(n_slices) >= np.where(rng.random(n) < 0.3, ends, n_slices)[:, None]
    ] = gap
    return codes


def brute_force(network, codes):
    """Enumerate all paths of one sequence, plainly.

    Returns the paths (n_paths, n_slices, n_latents) and P(path, sequence).
    """
    graph = network.directed_graph
    n_slices = len(codes)
    joint = list(itertools.product(*[range(c) for c in network.cardinality]))
    paths = list(itertools.product(joint, repeat=n_slices))
    probability = np.ones(len(paths))
    for number, path in enumerate(paths):
        for t, state in enumerate(path):
            epoch = network._epochs[sum(t >= point for point in network.change_points)]
            for j in range(network.n_latents):
                index = [*(state[i] for i in graph.parents_within(j)), state[j]]
                table = epoch.start[j]
                if t:
                    index = [path[t - 1][i] for i in graph.parents_before(j)] + index
                    table = epoch.transition[j]
                probability[number] *= table[tuple(index)]
            for f, emission in enumerate(epoch.emission):
                parents = np.flatnonzero(graph.structure[:, f])
                row = state[parents[0]] if len(parents) else 0
                before = codes[t - 1, f] if t else np.nan
                probability[number] *= emission_likelihood(
                    emission, row, codes[t, f], before
                )
    return np.array(paths).reshape(len(paths), n_slices, -1), probability
