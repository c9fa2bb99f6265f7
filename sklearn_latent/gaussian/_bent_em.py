"""Structural EM for networks that are not jointly Gaussian, by mean field."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._core.climb import climb
from ._bent_inference import MeanField
from ._bent_scores import NonlinearEvaluator
from ._families import fit_network
from ._gaussian_network import GaussianNetwork
from ._greedy import greedy_search
from ._noise import get_noise
from ._options import SearchOptions
from ._rules import Penalty
from ._structural_em import LearnedNetwork, StructuralEM, drop_latents, learn

# Steps of EM between two searches, and the gain per row at which they stop.
MAX_EM_STEPS = 15
EM_TOLERANCE = 1e-4


class Bound(NamedTuple):
    """A network, the posterior of what is missing, and the bound that they reach."""

    network: GaussianNetwork
    field: MeanField
    log_likelihood: float


class NonlinearEM:
    """Inference, fits of families and search, in turn.

    base: what networks cost, the history, and how far the search has come
    """

    def __init__(self, X, sample_weight, base: StructuralEM):
        self.X, self.sample_weight, self.base = X, sample_weight, base
        self.options, self.score = base.options, base.score
        self.weight = np.ones(len(X)) if sample_weight is None else sample_weight

    def maximise(self, adjacency, n_latents, field, start=None) -> GaussianNetwork:
        """M-step: fit all families to the points of the posterior.

        A family keeps the parameters of `start` where they are better than what the
        optimiser found, so the bound never falls.
        """
        table, weight = field.table(self.sample_weight)
        weights, theta, noise, _ = fit_network(
            table,
            adjacency,
            link=self.options.link,
            noise=self.options.noise,
            sample_weight=weight,
            centred_parents=True,
        )
        network = bent_network(
            self.options, adjacency, weights, theta, noise, n_latents
        )
        if start is None:
            return network
        new = weight @ network._family_log_likelihoods(table)
        old = weight @ start._family_log_likelihoods(table)
        keep = (start.adjacency == adjacency).all(axis=0) & ~(new >= old)
        weights[:, keep] = start.weights[:, keep]
        theta = np.where(keep[:, None], start.link_parameters, theta)
        noise = np.where(keep, start.noise_variance, noise)
        return bent_network(self.options, adjacency, weights, theta, noise, n_latents)

    def fit(self, start: Bound, max_steps=MAX_EM_STEPS) -> Bound:
        """Inference and fits in turn, structure fixed, until the bound stays."""
        adjacency, n_latents = start.network.adjacency, start.network.n_latents
        field = start.field

        def expect(network):
            bounds = field.improve(network, max_steps=3, tol=1e-4)
            return float(self.weight @ bounds), bounds

        def fitted(network, _):
            return self.maximise(adjacency, n_latents, field, network)

        ascent = climb(
            expect,
            fitted,
            start.network,
            tol=EM_TOLERANCE * self.weight.sum(),
            max_iter=max_steps,
        )
        return Bound(ascent.state, field, float(ascent.objective))

    def search(self, state: Bound) -> Bound | None:
        """Search for a better structure on the points of the posterior."""
        base, network = self.base, state.network
        if base.report(state):
            return None
        table, weight = state.field.table(self.sample_weight)
        evaluator = make_evaluator(table, weight, self.options, base.penalty)
        rules = self.options.rules(base.data.weight, network.n_latents)
        result = greedy_search(evaluator, rules, initial=network.adjacency)
        base.n_evaluated += evaluator.n_evaluated
        base.n_considered += evaluator.n_considered
        if (result.adjacency == network.adjacency).all():
            return None
        found = self.maximise(result.adjacency, network.n_latents, state.field, network)
        trial = self.bound(found, state.field)
        # Scores of the search are fits from other starts: the bound decides.
        if self.score(trial) <= self.score(state) + base.tol:
            return None
        base.history += result.history
        return trial

    def refine(self, start: Bound) -> Bound:
        """Fit and search in turn until no structure is better."""
        tol = self.base.tol
        return learn(start, self.fit, self.search, self.score, tol=tol, max_rounds=10)

    def without(self, state: Bound, latent: int) -> Bound:
        """The state without a latent, adapted."""
        network = state.network
        kept = np.delete(np.arange(network.n_nodes), network.n_features + latent)
        start = self.first(
            network.adjacency[np.ix_(kept, kept)],
            network.n_latents - 1,
            state.field.expectation()[:, kept],
            np.sqrt(network.noise_variance[kept]),
        )
        return self.refine(start)

    def bound(self, network: GaussianNetwork, field: MeanField) -> Bound:
        """The state of a network and a posterior."""
        return Bound(network, field, float(self.weight @ field.bound(network)))

    def first(self, adjacency, n_latents, completed, deviation) -> Bound:
        """State of a structure, from a guess of what is missing."""
        positive = get_noise(self.options.noise).positive
        field = MeanField(self.X, len(adjacency), positive=positive)
        field.start(completed, deviation)
        return self.bound(self.maximise(adjacency, n_latents, field), field)


def learn_nonlinear(
    X, sample_weight, linear: GaussianNetwork, base: StructuralEM
) -> LearnedNetwork:
    """Learn a network of any link and noise, starting from a linear one."""
    options = base.options
    em = NonlinearEM(X, sample_weight, base)
    completed = linear.expectation(X)
    deviation = 1.0 / np.sqrt(np.diagonal(linear._joint().precision))
    if get_noise(options.noise).positive:
        completed, deviation = _make_positive(X, completed, deviation)
    adjacency = linear.adjacency if linear.n_latents else options.required
    state = em.refine(em.first(adjacency, linear.n_latents, completed, deviation))
    state = drop_latents(base, state, em.without, em.score)
    state = em.fit(state, max_steps=4 * MAX_EM_STEPS)
    return LearnedNetwork(
        standardised(state.network, state.field.expectation()),
        base.history,
        base.n_evaluated,
        base.n_considered,
    )


def _make_positive(X, completed, deviation):
    """Guesses for data that must be positive; latent values by their exponential."""
    n_features = X.shape[1]
    completed, deviation = completed.copy(), deviation.copy()
    lowest = np.nanmin(X, axis=0)
    completed[:, :n_features] = np.maximum(completed[:, :n_features], 0.5 * lowest)
    completed[:, n_features:] = np.exp(0.5 * completed[:, n_features:])
    deviation[n_features:] *= 0.5
    return completed, deviation


def standardised(network: GaussianNetwork, values) -> GaussianNetwork:
    """The same model with latent values of unit variance: their scale is arbitrary."""
    n_features = network.n_features
    scale = np.ones(network.n_nodes)
    scale[n_features:] = values[:, n_features:].std(axis=0)
    scale[~(scale > 1e-12)] = 1.0
    has_parents = network.adjacency.any(axis=0)
    weights = network.weights * scale[:, None]
    theta = np.array(network.link_parameters)
    theta[:, 0] /= scale
    if network._link.scaled:
        theta[:, 1] /= scale
    else:
        weights = weights / scale
    relative = network._noise.positive & has_parents
    noise = network.noise_variance / np.where(relative, 1.0, scale**2)
    return bent_network(
        network, network.adjacency, weights, theta, noise, network.n_latents
    )


def make_evaluator(
    X, weight, options: SearchOptions, penalty: Penalty | None = None
) -> NonlinearEvaluator:
    """Scores of families of complete rows; without a penalty by the BIC."""
    return NonlinearEvaluator(
        X,
        link=options.link,
        noise=options.noise,
        sample_weight=weight,
        centred_parents=True,
        parameter_cost=None if penalty is None else penalty.parameter,
        edge_cost=0.0 if penalty is None else penalty.parents(X.shape[1]),
        n_candidates=options.n_candidates,
        similarity=options.similarity,
    )


def bent_network(
    model, adjacency, weights, theta, noise_variance, n_latents=0
) -> GaussianNetwork:
    """Network with the link and the noise of some options, or of another network."""
    return GaussianNetwork(
        adjacency,
        weights,
        theta[:, 0],
        noise_variance,
        link=model.link,
        noise=model.noise,
        link_parameters=theta,
        n_latents=n_latents,
    )
