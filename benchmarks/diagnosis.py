"""Checks of `diagnose`: how often they fail on data of the model, and on other data.

Under the model: random networks of each family; an estimator learns from one table, and
is asked about this table ("training"), about another one of the same network ("new"),
and about rows drawn from what it learned ("own"), from which it then learns anew
("refit"). Values are missing at random, completely or ("MAR") where the feature before
is large. Counted are tables with at least one failing check; the level is 5%.

Violations: data that no model of the family can make. The table says in how many tables
each check fails, and which of them should.

    python benchmarks/diagnosis.py
    python benchmarks/diagnosis.py --family gaussian --tables 20
"""

from __future__ import annotations

import time
import warnings
from collections import Counter

import numpy as np
from _common import Report, parse_arguments

from sklearn_latent import (
    LPCC,
    IdealParentGaussianBN,
    LGLPCCTemporal,
    NoisyOrEM,
    NoisyOrMoMLearner,
    NoisyOrNetwork,
    QuartetStructureLearner,
)
from sklearn_latent.datasets import make_gaussian_bn, make_latent_dbn

BLOCKS = np.kron(np.eye(3, dtype=bool), np.ones((1, 6), dtype=bool))
N_SLICES = 6


def hide(X, seed, missing=0.0, at_random=True):
    """Values that are missing completely at random, or where others are large.

    In the latter case every second column is, mostly where the one before is.
    """
    chance = np.full(X.shape, missing)
    if not at_random:
        chance[:, ::2] = 0.0
        before = X[:, : 2 * (X.shape[1] // 2) : 2]
        large = before > before.mean(axis=0)
        chance[:, 1::2] = np.where(large, 4.0, 0.5) * missing
    gaps = np.random.default_rng(seed).random(X.shape) < chance
    return np.where(gaps, np.nan, X)


# Gaussian networks


def gaussian_pair(seed, n=800, bend=False, missing=0.0, at_random=True, **options):
    """Two tables of one network."""
    data = make_gaussian_bn(10, n_samples=2 * n, random_state=seed, **options)
    X = data.X
    if bend:
        scale = (X - X.mean(axis=0)) / X.std(axis=0)
        X = np.where(np.arange(10) % 2, np.exp(scale), scale + 0.3 * scale**3)
    X = hide(X, seed, missing, at_random)
    return X[:n], X[n:], data.network


def known_edges(truth):
    """Parameters that leave no choice of edges.

    Of networks that are not linear, a wrong direction is a misfit that checks notice.
    """
    edges = np.argwhere(truth.adjacency).tolist()
    others = np.argwhere(~truth.adjacency & ~np.eye(truth.n_nodes, dtype=bool))
    return {"required": edges, "forbidden": others.tolist(), "margins": "normal"}


def learn_linear(X, truth=None):
    return IdealParentGaussianBN().fit(X)


def learn_normal(X, truth=None):
    return IdealParentGaussianBN(margins="normal").fit(X)


def learn_latents(X, truth=None):
    return IdealParentGaussianBN(max_latents=3, margins="normal").fit(X)


def learn_sigmoid(X, truth):
    return IdealParentGaussianBN(link="sigmoid", **known_edges(truth)).fit(X)


def learn_multiplicative(X, truth):
    return IdealParentGaussianBN(noise="multiplicative", **known_edges(truth)).fit(X)


def responses(rng, n, noise, curve=0.0):
    """A chain of five features and the noise of each."""
    X = np.empty((n, 5))
    before = np.zeros(n)
    for j in range(5):
        mean = 0.8 * before + (curve * (before**2 - 1.0) if j else 0.0)
        X[:, j] = mean + noise(n)
        before = (X[:, j] - X[:, j].mean()) / X[:, j].std()
    return X


def skewed_noise(rng, n=800):
    return responses(rng, n, lambda n: rng.exponential(size=n))


def heavy_tails(rng, n=800):
    return responses(rng, n, lambda n: rng.standard_t(3, size=n))


def curved(rng, n=800):
    return responses(rng, n, lambda n: rng.normal(size=n), curve=0.4)


def changing_noise(rng, n=800):
    cause = rng.normal(size=n)
    effect = cause + np.exp(0.5 * cause) * rng.normal(size=n)
    return np.column_stack([cause, effect, effect + rng.normal(size=n)])


def groups(rng, n=800):
    centres = 4.0 * rng.normal(size=(3, 5))
    return centres[rng.integers(3, size=n)] + rng.normal(size=(n, 5))


def product(rng, n=800):
    cause = rng.normal(size=n)
    others = rng.normal(size=(n, 2))
    return np.column_stack([cause, cause * rng.normal(size=n), others])


def hidden_cause(rng, n=800):
    return rng.normal(size=(n, 1)) + rng.normal(size=(n, 6))


def learn_one_class(X, truth=None):
    return IdealParentGaussianBN(margins="normal", n_classes=1).fit(X)


def learn_no_edges(X, truth=None):
    """Independent columns: what a missing cause leaves."""
    return IdealParentGaussianBN(max_parents=0, margins="normal").fit(X)


# Noisy-or networks


def noisy_or_pair(seed, n=2000, missing=0.0, at_random=True):
    rng = np.random.default_rng(seed)
    network = NoisyOrNetwork(
        rng.uniform(0.1, 0.4, 3),
        np.where(BLOCKS, rng.uniform(0.1, 0.5, BLOCKS.shape), 1.0),
        rng.uniform(0.01, 0.1, 18),
    )
    X = network.sample(2 * n, random_state=seed)[0].astype(float)
    X = hide(X, seed, missing, at_random)
    return X[:n], X[n:], network


def learn_em(X, truth=None):
    return NoisyOrEM(3, structure=BLOCKS, random_state=0).fit(X)


def learn_moments(X, truth=None):
    return NoisyOrMoMLearner(BLOCKS).fit(X)


def learn_quartets(X, truth=None):
    return QuartetStructureLearner(random_state=0).fit(X)


def features_of(latents, rng):
    off = 0.95 * np.where(latents[:, :, None] & BLOCKS, 0.3, 1.0).prod(axis=1)
    return (rng.random(off.shape) > off).astype(float)


def exclusive_causes(rng, n=2000):
    return features_of(np.eye(3, dtype=bool)[rng.integers(0, 3, n)], rng)


def dependent_causes(rng, n=2000):
    shared = 0.7 * rng.normal(size=(n, 1)) + 0.7 * rng.normal(size=(n, 3))
    return features_of(shared > 0.7, rng)


def chain_of_columns(rng, n=2000):
    X = np.zeros((n, 18))
    X[:, 0] = rng.random(n) < 0.4
    for j in range(1, 18):
        X[:, j] = rng.random(n) < np.where(X[:, j - 1] > 0, 0.75, 0.2)
    return X


# Panels


def panel_pair(seed, n=300, missing=0.0, at_random=True, n_slices=N_SLICES):
    data = make_latent_dbn("G2", 2 * n, n_slices, random_state=seed)
    X = hide(data.X.astype(float), seed, missing, at_random)
    return X[:n], X[n:], data.network


def learn_panel(X, truth=None):
    return LGLPCCTemporal(N_SLICES, random_state=0).fit(X)


def learn_rows(X, truth=None):
    return LPCC(random_state=0).fit(X)


def one_latent(rng, n, stay, error=0.2):
    """Two states, and three features that show them, now and then wrongly."""
    states = np.empty((n, N_SLICES), dtype=int)
    states[:, 0] = rng.integers(2, size=n)
    for t in range(1, N_SLICES):
        kept = rng.random(n) < (stay(t) if callable(stay) else stay)
        states[:, t] = np.where(kept, states[:, t - 1], 1 - states[:, t - 1])
    wrong = rng.random((n, N_SLICES, 3)) < error
    return np.where(wrong, 1 - states[:, :, None], states[:, :, None]).astype(float)


def own_past(rng, n=500):
    """A feature that repeats its own value."""
    X = one_latent(rng, n, 0.8)
    for t in range(1, N_SLICES):
        kept = rng.random(n) < 0.6
        X[kept, t, 0] = X[kept, t - 1, 0]
    return X.reshape(n, -1)


def changing_process(rng, n=500, error=0.1):
    def stay(t):
        return 0.95 if t < 3 else 0.55

    return one_latent(rng, n, stay, error).reshape(n, -1)


def changing_process_vague(rng):
    return changing_process(rng, error=0.2)


def learn_plain_panel(X, truth=None):
    """Without the memory and the states that would absorb the violation."""
    return LGLPCCTemporal(
        N_SLICES, cardinality=2, emissions="categorical", random_state=0
    ).fit(X)


SOME, MAR = {"missing": 0.15}, {"missing": 0.15, "at_random": False}
FACTORS = {"n_latents": 2, "bipartite": True}
UNDER_THE_MODEL = {
    "gaussian": [
        ("linear", learn_normal, gaussian_pair, {}),
        ("linear, margins chosen", learn_linear, gaussian_pair, {}),
        ("15% missing", learn_normal, gaussian_pair, SOME),
        ("MAR", learn_normal, gaussian_pair, MAR),
        ("latents", learn_latents, gaussian_pair, FACTORS),
        ("latents, 15% missing", learn_latents, gaussian_pair, FACTORS | SOME),
        ("latents, MAR", learn_latents, gaussian_pair, FACTORS | MAR),
        ("bent margins", learn_linear, gaussian_pair, {"bend": True}),
        ("bent margins, MAR", learn_linear, gaussian_pair, {"bend": True} | MAR),
        ("sigmoid, known edges", learn_sigmoid, gaussian_pair, {"link": "sigmoid"}),
        (
            "multiplicative, known edges",
            learn_multiplicative,
            gaussian_pair,
            {"noise": "multiplicative"},
        ),
    ],
    "noisy_or": [
        ("known structure", learn_em, noisy_or_pair, {}),
        ("known structure, 15% missing", learn_em, noisy_or_pair, SOME),
        ("known structure, MAR", learn_em, noisy_or_pair, MAR),
        ("moments", learn_moments, noisy_or_pair, {}),
        ("moments, MAR", learn_moments, noisy_or_pair, MAR),
        ("structure learned", learn_quartets, noisy_or_pair, {}),
        ("structure learned, MAR", learn_quartets, noisy_or_pair, MAR),
    ],
    "temporal": [
        ("panel", learn_panel, panel_pair, {}),
        ("panel, 15% missing", learn_panel, panel_pair, SOME),
        ("panel, MAR", learn_panel, panel_pair, MAR),
        ("rows", learn_rows, panel_pair, {"n": 500, "n_slices": 1}),
    ],
}
# Data, how it is learned from, and the check that should fail.
VIOLATIONS = {
    "gaussian": [
        ("skewed noise", skewed_noise, learn_normal, "skewed noise"),
        ("heavy tails (t3)", heavy_tails, learn_normal, "tails"),
        ("curved responses", curved, learn_normal, "curvature"),
        ("noise that grows", changing_noise, learn_normal, "changing spread"),
        ("a column times noise", product, learn_one_class, "changing spread"),
        ("rows in groups", groups, learn_one_class, "groups"),
        ("missing cause", hidden_cause, learn_no_edges, "pair"),
    ],
    "noisy_or": [
        ("exclusive causes", exclusive_causes, learn_em, "negative dependence"),
        ("dependent causes", dependent_causes, learn_em, "dependent latents"),
        ("chain of columns", chain_of_columns, learn_em, "pair"),
    ],
    "temporal": [
        ("feature follows its past", own_past, learn_plain_panel, "own past"),
        ("process that changes", changing_process, learn_plain_panel, "step"),
        ("the same, vaguer", changing_process_vague, learn_plain_panel, "step"),
    ],
}


def failing(model, X) -> set[str]:
    checks = model.diagnose(X)
    return set(checks.check[~checks.ok])


def shown(counts: Counter, total: int) -> str:
    parts = [f"{kind} {count}/{total}" for kind, count in counts.most_common()]
    return ", ".join(parts) or "none"


def under_the_model(report, family, n_tables):
    """Share of tables of the model with a failing check."""
    header = "data", "training", "new", "own", "refit", "seconds", "what fails"
    report.text(f"## {family}: {n_tables} networks, tables with a failing check")
    report.begin(header, (30, 6, 6, 6, 6, 5, 40))
    for name, learn, draw, options in UNDER_THE_MODEL[family]:
        failed, kinds, start = [0] * 4, Counter(), time.process_time()
        for seed in range(n_tables):
            first, other, truth = draw(seed, **options)
            model = learn(first, truth)
            own = model.sample(len(first), random_state=seed)[0].astype(float)
            own = hide(own, seed, **{key: options[key] for key in MAR.keys() & options})
            asked = (model, first), (model, other), (model, own)
            refit = learn(own, model.network_), own
            for place, (fitted, table) in enumerate([*asked, refit]):
                found = failing(fitted, table)
                failed[place] += bool(found)
                kinds.update(found)
        shares = [f"{count / n_tables:.0%}" for count in failed]
        seconds = f"{time.process_time() - start:.0f}"
        report.row([name, *shares, seconds, shown(kinds, 4 * n_tables)])


def violated(report, family, n_tables):
    """Which checks fail where data break an assumption."""
    report.text(f"## {family}: violations, {n_tables} tables each")
    header = "violation", "should fail", "fails in", "others"
    report.begin(header, (25, 20, 8, 50))
    for name, draw, learn, expected in VIOLATIONS[family]:
        kinds = Counter()
        for seed in range(n_tables):
            X = draw(np.random.default_rng(seed))
            kinds.update(failing(learn(X), X))
        share = f"{kinds.pop(expected, 0)}/{n_tables}"
        report.row([name, expected, share, shown(kinds, n_tables)])


def main():
    families = tuple(UNDER_THE_MODEL)
    arguments = parse_arguments(
        __doc__,
        quick={"tables": 5, "violated": 3},
        family=families,
        tables=100,
        violated=20,
    )
    warnings.simplefilter("ignore")
    report = Report("diagnosis", "Diagnosis", quick=arguments.partial)
    for family in arguments.family:
        violated(report, family, arguments.violated)
        under_the_model(report, family, arguments.tables)
    report.close()


if __name__ == "__main__":
    main()
