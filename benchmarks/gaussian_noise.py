"""False edges and latents of independent features, and more features than rows.

Independent features, normal or heavy-tailed (Student's t with 3 degrees of freedom):
how many edges and latents are found, and how likely are new rows compared with the
independent model, a normal distribution per feature? Then true structures with few
rows: 100 features and 50 rows, and 3 latents over 36 features and 30 or 60 rows,
compared with FactorAnalysis and GraphicalLassoCV of scikit-learn.

    OMP_NUM_THREADS=1 python benchmarks/gaussian_noise.py
"""

from __future__ import annotations

import numpy as np
from _common import Report, clocked, expected, parse_arguments
from sklearn.covariance import GraphicalLassoCV
from sklearn.decomposition import FactorAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN

SHAPES = [(12, 30), (20, 60), (50, 100), (100, 100), (100, 30), (500, 30)]


def independent(X):
    """A normal distribution per feature."""
    n = X.shape[1]
    nothing = np.zeros((n, n))
    network = GaussianNetwork(nothing > 0, nothing, X.mean(axis=0), X.var(axis=0))
    return lambda test: network.log_likelihood(test).mean()


def factor_analysis(X):
    """Factor analysis with the number of components that predicts best."""
    grid = GridSearchCV(FactorAnalysis(), {"n_components": range(1, 6)}, cv=5)
    return grid.fit(X).score


def graphical_lasso(X):
    """Sparse precision of standardised features, penalty by cross-validation."""
    mean, deviation = X.mean(axis=0), X.std(axis=0)
    model = GraphicalLassoCV(cv=3).fit((X - mean) / deviation)
    return lambda test: model.score((test - mean) / deviation) - np.log(deviation).sum()


def learners(max_latents):
    """Methods to compare; the paper uses the plain BIC."""
    learn = IdealParentGaussianBN
    hidden = {"max_latents": max_latents}
    return {
        "no latents": lambda X: learn().fit(X),
        "bipartite": lambda X: learn(**hidden, bipartite=True).fit(X),
        "free placement": lambda X: learn(**hidden).fit(X),
        "free placement, BIC": lambda X: learn(**hidden, penalty=1.0).fit(X),
    }


def noise(report, draw, name, shapes, seeds):
    """Tables of independent features."""
    rows = []
    for n_samples, n_features in shapes:
        cells = []
        for fit in learners(2).values():
            values = []
            for seed in seeds:
                rng = np.random.default_rng(seed)
                X = draw(rng, (n_samples, n_features))
                test = draw(rng, (2000, n_features))
                model = fit(X)
                loss = model.score(test) - independent(X)(test)
                values.append(
                    [model.adjacency_.sum(), model.n_latents_, loss / n_features]
                )
            table = np.array(values)
            cells.append(
                f"{table[:, 0].mean():.1f} / {table[:, 1].mean():.1f} / "
                f"{table[:, 2].mean():+.3f}"
            )
        rows.append([f"{n_samples} x {n_features}", *cells])
    report.text(
        f"{name}, {len(seeds)} table(s) each: edges / latents / "
        "log-likelihood of 2,000 new rows per row and feature, minus that of the "
        "independent model."
    )
    report.table(["rows x features", *learners(2)], rows)


def structure(report, name, settings, max_latents, seeds):
    """Tables of few rows of a network."""
    others = {
        "independent": independent,
        "FactorAnalysis": factor_analysis,
        "GraphicalLassoCV": graphical_lasso,
    }
    results: dict[str, list] = {}
    for seed in seeds:
        data = make_gaussian_bn(**settings, random_state=seed)
        n = settings["n_features"]
        test = data.network.sample(2000, random_state=1000 + seed)[0]
        truth = data.network.log_likelihood(test).mean()
        for label, fit in learners(max_latents).items():
            times, model = clocked(fit, data.X)
            found = model.adjacency_.sum(), model.n_latents_
            gap = (model.score(test) - truth) / n
            results.setdefault(label, []).append([*found, gap, times[1]])
        for label, fit in others.items():
            with expected(ConvergenceWarning, RuntimeWarning):
                times, score = clocked(fit, data.X)
            gap = (score(test) - truth) / n
            results.setdefault(label, []).append([np.nan, np.nan, gap, times[1]])
    rows = []
    for label, values in results.items():
        edges, hidden, gap, seconds = np.mean(values, axis=0)
        found = ["-", "-"] if np.isnan(edges) else [f"{edges:.1f}", f"{hidden:.1f}"]
        rows.append([label, *found, f"{gap:+.3f}", f"{seconds:.1f}"])
    report.text(f"{name}; {len(seeds)} network(s). Held out minus the true network.")
    report.table(["model", "edges", "latents", "held out", "CPU s"], rows)


def main():
    arguments = parse_arguments(__doc__)
    quick = arguments.quick
    report = Report("gaussian_noise", "Noise and few rows", quick=quick)
    seeds = range(1 if quick else 5)
    shapes = SHAPES[:2] if quick else SHAPES
    noise(report, lambda rng, size: rng.normal(size=size), "Normal", shapes, seeds)
    noise(
        report,
        lambda rng, size: rng.standard_t(3, size=size),
        "Student's t, 3 degrees of freedom",
        shapes,
        seeds,
    )
    seeds = seeds[:3]
    large = {"n_features": 100, "n_latents": 0, "n_samples": 50}
    if not quick:
        name = "Network of 100 features and 200 edges, 50 rows"
        structure(report, name, large, 2, seeds)
    for n_samples in (30, 60):
        layers = {"n_features": 36, "n_latents": 3, "n_samples": n_samples}
        layers |= {"n_parents": 1.5, "bipartite": True}
        name = f"3 latents over 36 features, {n_samples} rows"
        structure(report, name, layers, 8, seeds)
    report.close()


if __name__ == "__main__":
    main()
