"""Networks with heavy-tailed noise."""

import numpy as np
import pytest
from scipy.stats import t

from sklearn_latent._core.graphs import equivalence_class
from sklearn_latent.datasets import make_gaussian_bn
from sklearn_latent.exceptions import ApproximateInferenceWarning
from sklearn_latent.gaussian import GaussianNetwork, IdealParentGaussianBN, Student


@pytest.fixture(scope="module")
def data():
    return make_gaussian_bn(8, n_samples=600, noise="student(3)", random_state=1)


@pytest.fixture(scope="module")
def model(data):
    return IdealParentGaussianBN(noise="student").fit(data.X)


def test_degrees_of_freedom_are_those_of_the_errors(data, model):
    network = model.network_
    df = Student(float(network.noise[len("student(") : -1])).df
    assert df == pytest.approx(3.0, rel=0.15)
    # The referee fits each node by itself, with the degrees of freedom of all.
    errors = data.X - network.conditional_means(data.X)
    for column, variance in zip(errors.T, network.noise_variance, strict=True):
        _, location, scale = t.fit(column, fdf=df)
        assert abs(location) < 0.02 * scale
        assert np.sqrt(variance) == pytest.approx(scale, rel=0.01)


def test_the_density_is_that_of_the_errors(data, model):
    network = model.network_
    df = float(network.noise[len("student(") : -1])
    errors = data.X - network.conditional_means(data.X)
    expected = t.logpdf(errors, df, scale=np.sqrt(network.noise_variance)).sum(axis=1)
    np.testing.assert_allclose(model.score_samples(data.X), expected)
    assert model.bic_ == pytest.approx(model.bic(data.X))


def test_heavy_tails_are_better_described(data, model):
    test = data.network.sample(2000, random_state=5)[0]
    normal = IdealParentGaussianBN(margins="normal").fit(data.X)
    assert model.score(test) > normal.score(test) + 0.1 * 8
    np.testing.assert_array_equal(
        equivalence_class(model.adjacency_), equivalence_class(data.network.adjacency)
    )


def test_samples_follow_the_network(model):
    X, _ = model.sample(4000, random_state=0)
    again = model.network_.log_likelihood(X)
    assert np.isfinite(again).all()
    errors = (X - model.network_.conditional_means(X)) / np.sqrt(model.noise_variance_)
    df = float(model.network_.noise[len("student(") : -1])
    for quantile in (0.01, 0.25, 0.9):
        share = (errors < t.ppf(quantile, df)).mean()
        assert share == pytest.approx(quantile, abs=0.01)


def test_json_keeps_the_degrees_of_freedom(model):
    network = model.network_
    again = GaussianNetwork.from_json(network.to_json())
    assert again == network
    assert again.noise == network.noise
    assert again.n_parameters == network.n_parameters


def test_many_degrees_of_freedom_are_normal():
    X = make_gaussian_bn(5, n_samples=300, random_state=0).X
    student = IdealParentGaussianBN(noise="student(1e6)", search="greedy").fit(X)
    normal = IdealParentGaussianBN(
        search="greedy", n_candidates=None, margins="normal"
    ).fit(X)
    np.testing.assert_allclose(student.score(X), normal.score(X), rtol=1e-3)


def test_outliers_alone_make_no_edges():
    with_edges = sum(
        IdealParentGaussianBN(noise="student")
        .fit(np.random.default_rng(seed).standard_t(3, (200, 10)))
        .adjacency_.any()
        for seed in range(5)
    )
    assert with_edges <= 1


def test_sigmoid_link(data):
    model = IdealParentGaussianBN(noise="student(3)", link="sigmoid").fit(data.X)
    assert model.network_.noise == "student(3.0)"
    normal = IdealParentGaussianBN(link="sigmoid", margins="normal").fit(data.X)
    assert model.score(data.X) > normal.score(data.X)


def test_gaps_are_inferred_but_not_learned_from(data, model):
    X = data.X[:5].copy()
    X[0, 2] = np.nan
    with pytest.warns(ApproximateInferenceWarning):
        filled = model.impute(X)
    assert np.isfinite(filled).all()
    with pytest.raises(ValueError, match="complete rows and max_latents=0"):
        IdealParentGaussianBN(noise="student").fit(X)
    with pytest.raises(ValueError, match="complete rows and max_latents=0"):
        IdealParentGaussianBN(noise="student", max_latents=1).fit(data.X)
