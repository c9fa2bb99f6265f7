"""Networks, rows and references for the tests of the Gaussian family."""

import numpy as np
from hypothesis import strategies as st
from strategies import seeds

from sklearn_latent._core.criteria import bic_score
from sklearn_latent.gaussian import GaussianNetwork, Margin
from sklearn_latent.gaussian._learn import learn_incomplete, learn_network
from sklearn_latent.gaussian._linear_scores import LinearEvaluator
from sklearn_latent.gaussian._options import SearchOptions, is_linear
from sklearn_latent.gaussian._rows import Rows
from sklearn_latent.gaussian._statistics import GaussianStatistics


def random_graph(n_nodes, rng, density=0.4):
    """A random acyclic graph."""
    upper = np.triu(rng.random((n_nodes, n_nodes)) < density, 1)
    order = rng.permutation(n_nodes)
    graph = np.zeros((n_nodes, n_nodes), dtype=bool)
    graph[np.ix_(order, order)] = upper
    return graph


def network_of(weights, noise=1.0, intercept=0.0, **options):
    """A network whose edges are its weights that are not 0."""
    own = np.zeros(len(weights)) + intercept, np.zeros(len(weights)) + noise
    return GaussianNetwork(weights != 0, weights, *own, **options)


def with_gaps(X, share, seed=0):
    """Rows of which a share of the values is missing at random."""
    gaps = np.random.RandomState(seed).uniform(size=X.shape) < share
    return np.where(gaps, np.nan, X)


def standard(X):
    """Columns with mean 0 and variance 1."""
    return (X - X.mean(axis=0)) / X.std(axis=0)


class Log(Margin):
    """A margin of one's own: logarithms."""

    name = "log"

    def scores(self, values):
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.log(values)

    def log_slopes(self, values):
        return -self.scores(values)

    def values(self, scores):
        return np.exp(scores)


def random_linear_network(n_nodes, seed, density=0.4, n_latents=0):
    """A linear network whose weights are away from zero."""
    rng = np.random.default_rng(seed)
    graph = random_graph(n_nodes, rng, density)
    weights = rng.uniform(0.5, 1.5, graph.shape) * rng.choice([-1, 1], graph.shape)
    return GaussianNetwork(
        graph,
        np.where(graph, weights, 0.0),
        rng.normal(size=n_nodes),
        rng.uniform(0.5, 2.0, n_nodes),
        n_latents=n_latents,
    )


@st.composite
def sampled_tables(draw, max_features=6, max_rows=60):
    """Rows of a random network, some columns shifted and scaled."""
    n_features = draw(st.integers(2, max_features))
    n_rows = draw(st.integers(2 * n_features + 4, max_rows))
    seed = draw(seeds)
    X = random_linear_network(n_features, seed).sample(n_rows, seed % 2**32)[0]
    rng = np.random.default_rng(seed)
    return X * 10.0 ** rng.integers(-2, 3, n_features) + rng.normal(size=n_features)


def lstsq_score(X, child, parents, parameter_cost):
    """Score of a family by a regression on the rows."""
    design = np.column_stack([np.ones(len(X)), X[:, list(parents)]])
    residual = X[:, child] - design @ np.linalg.lstsq(design, X[:, child])[0]
    variance = np.mean(residual**2)
    likelihood = -0.5 * len(X) * (np.log(2 * np.pi * variance) + 1)
    return likelihood - parameter_cost * (len(parents) + 2)


def total_score(evaluator, graph):
    """Sum over the families of a graph."""
    return sum(
        evaluator.family_score(child, tuple(np.flatnonzero(column).tolist()))
        for child, column in enumerate(graph.T)
    )


def free_options(n_nodes, **options):
    """Options of a search without forbidden or required edges."""
    nothing = np.zeros((n_nodes, n_nodes), dtype=bool)
    return SearchOptions(np.eye(n_nodes, dtype=bool), nothing, **options)


def learn_rows(X, options, weights=None):
    """Learn from rows that may have gaps, or with latents."""
    learn = learn_incomplete if is_linear(options) else learn_network
    return learn(Rows.of(X, weights), options)


def score(network, X, weights=None):
    """Log-likelihood of rows less the price of the parameters under the BIC."""
    weights = np.ones(len(X)) if weights is None else weights
    fit = weights @ network.log_likelihood(X)
    return bic_score(fit, network.n_parameters, weights.sum())


def sampled_evaluator(n_features=8, n_rows=300, seed=0, **options):
    """Scores of linear families, of rows of a random network."""
    X = random_linear_network(n_features, seed).sample(n_rows, seed)[0]
    return LinearEvaluator(GaussianStatistics.of(X), **options)


def exact_evaluator(network, n_rows=1e9):
    """Scores of linear families, of rows as the network has them on average."""
    mean, covariance = network.joint()
    return LinearEvaluator(GaussianStatistics(n_rows, mean, n_rows * covariance))
