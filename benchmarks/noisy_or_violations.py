"""Structure learning on tables that no noisy-or network made.

A noisy and, item response with one and three factors, 4 and 12 latent classes, latents
that depend on each other, a chain of columns, and a noisy-or network half of whose
columns are reversed. Held-out log-likelihood of independent columns, a mixture of
Bernoullis (classes by validation rows), the Chow-Liu tree and the default learner; it
should never be below independence. Also the checks of `diagnose` that fail, where the
learner has them.

    python benchmarks/noisy_or_violations.py
    python benchmarks/noisy_or_violations.py --case chain --rows 2000 --beside tree
"""

from __future__ import annotations

import numpy as np
from _bernoulli_mixture import validated_mixture
from _binary import PARAMETERS, ChowLiuTree, Independence, held_out, learn
from _common import Report, expected, parse_arguments, random_structure
from scipy.special import expit
from scipy.stats import norm

from sklearn_latent.datasets import make_noisy_or
from sklearn_latent.exceptions import LatentWarning


def noisy_and(n, rng):
    """A column is on if all of its one to three parents are; else rarely."""
    structure = random_structure(36, 6, (1, 3), rng).T
    off = rng.uniform(size=(n, 6)) > rng.uniform(0.4, 0.9, 6)
    guess = np.where(structure, rng.uniform(0.05, 0.3, structure.shape), 1.0)
    rate = rng.uniform(0.8, 0.98, 36) * np.exp(off @ np.log(guess))
    return flip_coins(rate, rng)


def item_response(n_features, n_factors):
    """Logistic items, each with one main factor and small loadings on the others."""

    def draw(n, rng):
        main = np.arange(n_features) % n_factors == np.arange(n_factors)[:, None]
        shape = main.shape
        loading = np.where(main, rng.uniform(1, 2.5, shape), rng.uniform(0, 0.5, shape))
        level = rng.normal(size=n_features)
        return flip_coins(expit(rng.normal(size=(n, n_factors)) @ loading - level), rng)

    return draw


def classes(n_features, n_classes):
    """Each class has its own rates, from 0.05 to 0.95."""

    def draw(n, rng):
        rate = rng.uniform(0.05, 0.95, (n_classes, n_features))
        return flip_coins(rate[rng.choice(n_classes, n)], rng)

    return draw


def correlated(n, rng):
    """Noisy or over eight latents whose normal scores have correlations of 0.5."""
    network = noisy_or(rng)
    scores = np.sqrt(0.5) * (rng.normal(size=(n, 8)) + rng.normal(size=(n, 1)))
    on = scores < norm.ppf(network.prior)
    off = (1 - network.leak) * np.exp(on @ np.log(network.failure))
    return flip_coins(1 - off, rng)


def chain(n, rng):
    """Each column keeps the value of its left neighbour, or is drawn afresh."""
    fresh = rng.uniform(size=(n, 40)) < rng.uniform(0.2, 0.5, 40)
    keep = rng.uniform(size=(n, 40)) < rng.uniform(0.5, 0.8, 40)
    for column in range(1, 40):
        kept = keep[:, column]
        fresh[kept, column] = fresh[kept, column - 1]
    return fresh.astype(int)


def reversed_half(n, rng):
    """Noisy or, every other column the other way round."""
    X, _ = noisy_or(rng).sample(n, random_state=rng)
    return X.astype(int) ^ (np.arange(X.shape[1]) % 2)


def noisy_or(rng):
    structure = random_structure(8, 48, 12, rng)
    return make_noisy_or(structure, 1, **PARAMETERS, random_state=rng).network


def flip_coins(rate, rng):
    return (rng.uniform(size=rate.shape) < rate).astype(int)


# Rows as a function of their number and of a random state.
CASES = {
    "and": noisy_and,
    "one_factor": item_response(24, 1),
    "three_factors": item_response(36, 3),
    "classes_4": classes(40, 4),
    "classes_12": classes(60, 12),
    "correlated": correlated,
    "chain": chain,
    "reversed": reversed_half,
}


def failing_checks(model, X):
    """Names of the checks that fail."""
    if not hasattr(model, "diagnose"):
        return "-"
    with expected(LatentWarning):
        checks = model.diagnose(X)
    names = checks["check"][~checks["ok"].astype(bool)].unique()
    return ", ".join(map(str, names)) or "none"


def mixture(train):
    n_part = len(train) * 4 // 5
    return validated_mixture(train, train[:n_part], train[n_part:])


# What the default is compared with.
METHODS = {
    "independence": lambda train: Independence().fit(train),
    "mixture": mixture,
    "tree": lambda train: ChowLiuTree().fit(train),
}


def measure(name, methods, n_samples, draw):
    """Scores of the models, then latents, seconds and failing checks of the default."""
    X = CASES[name](2 * n_samples, np.random.RandomState(draw))
    train, test = X[:n_samples], X[n_samples:]
    seconds, model = learn(train)
    models = [*(METHODS[method](train) for method in methods), model]
    scores = [f"{held_out(fitted, test):.3f}" for fitted in models]
    checks = failing_checks(model, test)
    return [X.shape[1], *scores, model.n_latents_, f"{seconds:.1f}", checks]


def main():
    arguments = parse_arguments(
        __doc__,
        quick={"case": ("one_factor", "chain"), "rows": (2_000,), "draws": 1},
        case=tuple(CASES),
        rows=(2_000, 5_000),
        beside=tuple(METHODS),
        draws=3,
    )
    report = Report("noisy_or_violations", "Other models", quick=arguments.partial)
    report.text(
        "Held-out log-likelihood per row, on as many rows as were learned from; "
        "latents, processor seconds and failing checks of the default."
    )
    header = ["data", "rows", "draw", "columns", *arguments.beside, "default"]
    header += ["latents", "seconds", "failing checks"]
    report.begin(header, [13, 5, 4] + [7] * (len(header) - 3))
    for name in arguments.case:
        for n_samples in arguments.rows:
            for draw in range(arguments.draws):
                row = measure(name, arguments.beside, n_samples, draw)
                report.row([name, f"{n_samples:,}", draw, *row])
    report.close()


if __name__ == "__main__":
    main()
