"""Panels that break the assumptions of the model: what is found, and what is said.

Two latents of four states with three features each, L1 -> L1', L1 -> L2 (G2 of
Halbersberg and Lerner, 2020), 500 sequences of 12 slices, and one thing that the model
does not know of: features that follow both latents, copies, noise, values that never
change within a sequence, features or latents with a longer memory, gaps, drop-out that
depends on the latent, a process that changes. The table lists numbers of latents and
states, wrong edges between latents and the six features, and the warnings of `fit`.

A process that changes twice, in its transitions, in its emissions, in the level or the
spread of numbers: how often `epochs="auto"` finds both change points within one slice,
and how often `fit` says nothing. The same of processes that do not change.

    python benchmarks/temporal_violations.py
"""

from __future__ import annotations

import warnings

import numpy as np
from _common import Report, clocked, parse_arguments
from sklearn.exceptions import ConvergenceWarning

from sklearn_latent.datasets import make_latent_dbn
from sklearn_latent.metrics import structural_hamming_distance
from sklearn_latent.mixed import LGLPCCTemporal, TemporalGraph

N_SLICES = 12
N_STATES = 4
CHANGES = (4, 8)
RELIABILITY = 0.8


def sticky(rng, stay):
    """A transition matrix with a given probability of staying or of one move."""
    target = rng.permutation(N_STATES)
    table = np.full((N_STATES, N_STATES), (1 - stay) / (N_STATES - 1))
    table[np.arange(N_STATES), target] = stay
    return table


def draw(rows, rng):
    """A category for each row of probabilities."""
    edges = rows.cumsum(axis=-1)
    return (rng.random(rows.shape[:-1])[..., None] >= edges[..., :-1]).sum(axis=-1)


def shown(states, rng, reliability=RELIABILITY, names=None):
    """Values of a feature: the state, or any other value."""
    names = rng.permutation(N_STATES) if names is None else names
    rows = np.full((N_STATES, N_STATES), (1 - reliability) / (N_STATES - 1))
    rows[np.arange(N_STATES), names] = reliability
    return draw(rows[states], rng)


def base(n, rng):
    """Values of six features, (n, N_SLICES, 6), and the states behind them."""
    data = make_latent_dbn("G2", n, N_SLICES, random_state=int(rng.integers(2**31)))
    return data.codes.astype(float), data.Z


def impure(n, rng):
    """A seventh feature that follows the sum of both latents."""
    X, Z = base(n, rng)
    return np.dstack([X, shown(Z.sum(axis=2) % N_STATES, rng)])


def duplicates(n, rng):
    """A copy of the first feature with 2% of its values changed."""
    X, _ = base(n, rng)
    copy = np.where(rng.random(X.shape[:2]) < 0.02, 0.0, X[:, :, 0])
    return np.dstack([X, copy])


def noise(n, rng):
    """Four features that depend on nothing."""
    X, _ = base(n, rng)
    return np.dstack([X, rng.integers(4, size=(n, N_SLICES, 4))])


def constant(n, rng):
    """Three features that never change within a sequence."""
    X, _ = base(n, rng)
    own = rng.integers(3, size=(n, 1, 3)).repeat(N_SLICES, axis=1)
    return np.dstack([X, own])


def own_past(n, rng):
    """Features that repeat their last value half of the time."""
    X, _ = base(n, rng)
    for t in range(1, N_SLICES):
        again = rng.random(X[:, t].shape) < 0.5
        X[:, t] = np.where(again, X[:, t - 1], X[:, t])
    return X


def second_order(n, rng):
    """A latent that follows its state two slices ago."""
    Z = rng.integers(N_STATES, size=(n, N_SLICES))
    for t in range(2, N_SLICES):
        Z[:, t] = shown(Z[:, t - 2], rng, names=np.arange(N_STATES))
    return np.dstack([shown(Z, rng) for _ in range(6)]).astype(float)


def missing(share):
    def gaps(n, rng):
        X, _ = base(n, rng)
        X[rng.random(X.shape) < share] = np.nan
        return X

    gaps.__doc__ = f"{100 * share:.0f}% of the values are missing."
    return gaps


def drop_out(n, rng):
    """Sequences end where the first latent is in one state, half of the time."""
    X, Z = base(n, rng)
    ends = (Z[:, :, 0] == 0) & (rng.random(Z.shape[:2]) < 0.5)
    gone = np.logical_or.accumulate(ends, axis=1)
    gone[:, :2] = False
    X[gone] = np.nan
    return X


def changing(n, rng, what="transition"):
    """A process whose transitions, or emissions, change twice."""
    Z = np.empty((n, N_SLICES), dtype=int)
    Z[:, 0] = rng.integers(N_STATES, size=n)
    epochs = np.searchsorted(CHANGES, np.arange(N_SLICES), side="right")
    tables = [sticky(rng, 0.8) for _ in range(3)]
    if what != "transition":
        tables = [tables[0]] * 3
    for t in range(1, N_SLICES):
        Z[:, t] = draw(tables[epochs[t]][Z[:, t - 1]], rng)
    columns = []
    for feature in range(6):
        names = [rng.permutation(N_STATES) for _ in range(3)]
        if what == "transition" or feature >= 2:
            names = names[:1] * 3
        values = [
            shown(Z[:, t], rng, names=names[epochs[t]])[:, None]
            for t in range(N_SLICES)
        ]
        columns.append(np.hstack(values))
    return np.dstack(columns).astype(float)


def changing_numbers(n, rng, what="level"):
    """Six numbers of a latent; the level or spread of two of them changes twice."""
    Z = np.empty((n, N_SLICES), dtype=int)
    Z[:, 0] = rng.integers(N_STATES, size=n)
    table = sticky(rng, 0.8)
    for t in range(1, N_SLICES):
        Z[:, t] = draw(table[Z[:, t - 1]], rng)
    epochs = np.searchsorted(CHANGES, np.arange(N_SLICES), side="right")
    columns = []
    for feature in range(6):
        changes = feature < 2
        shift = np.array([0.0, 1.0, -0.5])[epochs] * (changes and what == "level")
        spread = 1 + np.array([0.0, 0.6, 0.0])[epochs] * (changes and what == "spread")
        levels = 2.0 * rng.permutation(N_STATES)
        columns.append(levels[Z] + shift + spread * rng.normal(size=Z.shape))
    return np.dstack(columns)


CHANGING = {
    "transition": changing,
    "emission": lambda n, rng: changing(n, rng, "emission"),
    "level of numbers": changing_numbers,
    "spread of numbers": lambda n, rng: changing_numbers(n, rng, "spread"),
}
VIOLATIONS = {
    "none": lambda n, rng: base(n, rng)[0],
    "impure feature": impure,
    "duplicate feature": duplicates,
    "noise features": noise,
    "constant within a sequence": constant,
    "features follow their past": own_past,
    "latent of second order": second_order,
    "20% missing": missing(0.2),
    "50% missing": missing(0.5),
    "drop-out": drop_out,
    "changing transitions": changing,
    "changing emissions": lambda n, rng: changing(n, rng, "emission"),
}


UNCHANGING = {
    "nothing": VIOLATIONS["none"],
    "nothing, numbers": lambda n, rng: changing_numbers(n, rng, "nothing"),
}


def fit(X, **options):
    """The fitted model, its warnings, and seconds."""
    learner = LGLPCCTemporal(X.shape[1], random_state=0, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        (_, seconds), model = clocked(learner.fit, X)
    said = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    return model, said, seconds


def wrong_measurement(model):
    """Wrong edges between latents and the first six features, of two latents."""
    true = TemporalGraph(np.kron(np.eye(2), np.ones(3)), np.zeros((2, 2)), np.eye(2))
    own = model.structure_[:, :6]
    kept = own.any(axis=1)
    none = np.zeros((kept.sum(), kept.sum()))
    return structural_hamming_distance(true, TemporalGraph(own[kept], none, none))[1]


def violation_rows(n, seeds):
    for name, make in VIOLATIONS.items():
        for seed in seeds:
            X = make(n, np.random.default_rng(seed))
            model, said, seconds = fit(X)
            one_latent = name in ("latent of second order",) or "changing" in name
            yield [
                name,
                model.n_latents_,
                " ".join(map(str, model.cardinality_)),
                "" if one_latent else wrong_measurement(model),
                f"{seconds:.1f}",
                "; ".join(f"{w.category.__name__}: {w.message}"[:160] for w in said),
            ]


def change_rows(n, draws):
    for what, make in CHANGING.items():
        right, silent, counts = 0, 0, []
        for seed in range(draws):
            X = make(n, np.random.default_rng(seed))
            model = fit(X, epochs="auto")[0]
            found = np.asarray(model.epochs_)[1:]
            counts.append(len(found))
            close = len(found) == 2 and np.abs(found - CHANGES).max() <= 1
            right += bool(close)
            silent += not any("Misfit" in w.category.__name__ for w in fit(X)[1])
        yield [
            what,
            f"{right} of {draws}",
            f"{np.mean(counts):.1f}",
            f"{silent} of {draws}",
        ]
    for what, make in UNCHANGING.items():
        epochs, warned = 0, 0
        for seed in range(draws):
            X = make(n, np.random.default_rng(seed))
            epochs += len(fit(X, epochs="auto")[0].epochs_) - 1
            warned += any("Misfit" in w.category.__name__ for w in fit(X)[1])
        silent = f"{draws - warned} of {draws}"
        yield [what, "", f"{epochs / draws:.1f}", silent]


def main():
    options = parse_arguments(__doc__, draws=20, sequences=500, seeds=1)
    quick = options.quick
    report = Report("temporal_violations", "Violated assumptions", quick=quick)
    header = ["violation", "latents", "states", "O-SHD", "seconds", "warnings of fit"]
    report.table(header, violation_rows(options.sequences, range(options.seeds)))
    draws = 2 if quick else options.draws
    header = ["changes twice", "both found", "change points", "silent fits"]
    report.table(header, change_rows(options.sequences, draws))
    report.close()


if __name__ == "__main__":
    main()
