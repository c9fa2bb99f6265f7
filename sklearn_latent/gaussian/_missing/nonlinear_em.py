"""Structural EM for networks that are not jointly Gaussian, by mean field."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..._core.climb import climb
from .._bent_inference import MeanField
from .._bent_scores import NonlinearEvaluator
from .._conditional import Joint
from .._families import fit_network
from .._greedy import greedy_search
from .._network import GaussianNetwork
from .._noise import get_noise
from .._options import SearchOptions
from .._rules import Penalty
from .structural_em import LearnedNetwork, StructuralEM

MAX_ROUNDS = 10
# Steps of EM between two searches, and the gain per row at which they stop.
MAX_EM_STEPS = 15
EM_TOLERANCE = 1e-4


@dataclass(frozen=True, eq=False)
class _State:
    """A network, the posterior of what is missing, and the bound they reach."""

    network: GaussianNetwork
    field: MeanField
    bound: float
    score: float


class _NonlinearEM:
    """Alternate between inference, fits of families and search."""

    def __init__(self, X, sample_weight, base: StructuralEM):
        self.X, self.sample_weight, self.base = X, sample_weight, base
        self.options = base.options
        self.weight = np.ones(len(X)) if sample_weight is None else sample_weight

    def state(self, network: GaussianNetwork, field: MeanField, bounds) -> _State:
        """Put together a state whose rows have these bounds."""
        bound = float(self.weight @ bounds)
        n_parents = network.adjacency.sum(axis=0)
        cost = self.base.penalty.parameter * network.n_parameters
        cost += float(self.base.penalty.parents(len(n_parents))[n_parents].sum())
        return _State(network, field, bound, bound - cost)

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

    def fit(self, state: _State, trace=None, max_steps=MAX_EM_STEPS) -> _State:
        """Inference and fits in turn, structure fixed, until the bound stays."""
        adjacency, n_latents = state.network.adjacency, state.network.n_latents
        field = state.field

        def expect(network):
            bounds = field.improve(network, max_steps=3, tol=1e-4)
            return float(self.weight @ bounds), bounds

        def maximise(network, _):
            return self.maximise(adjacency, n_latents, field, network)

        ascent = climb(
            expect,
            maximise,
            state.network,
            tol=EM_TOLERANCE * self.weight.sum(),
            max_iter=max_steps,
        )
        if trace is not None:
            trace += ascent.objectives.tolist()
        return self.state(ascent.state, field, ascent.statistics)

    def refine(self, state: _State) -> _State:
        """Search for better structures on the points, and fit them, until none is."""
        base, options = self.base, self.options
        n_latents = state.network.n_latents
        rules = options.rules(base.data.weight, n_latents)
        for _ in range(MAX_ROUNDS):
            steps: list[float] = []
            state = self.fit(state, steps)
            entry = {"log_likelihood": steps, "score": state.score}
            base.trace.append(entry)
            adjacency = state.network.adjacency
            if base.report(
                f"{int(adjacency.sum())} edges, {n_latents} latents, "
                f"bound of the score {state.score:.8g}"
            ):
                break
            table, weight = state.field.table(self.sample_weight)
            evaluator = make_evaluator(table, weight, options, base.penalty)
            result = greedy_search(evaluator, rules, initial=adjacency)
            base.n_evaluated += evaluator.n_evaluated
            base.n_considered += evaluator.n_considered
            if (result.adjacency == adjacency).all():
                break
            network = self.maximise(
                result.adjacency, n_latents, state.field, state.network
            )
            trial = self.state(network, state.field, state.field.bound(network))
            entry["expected_score"] = state.score, max(trial.score, state.score)
            # Scores of the search are fits from other starts: the bound decides.
            if trial.score <= state.score + base.tol:
                break
            base.history += result.history
            state = trial
        return state

    def drop_latents(self, state: _State) -> _State:
        """Prune latents that do not improve the score, the least useful first."""
        network = state.network
        n_features = self.X.shape[1]
        effect = network.adjacency[n_features:].sum(axis=1)
        for latent in np.argsort(effect, kind="stable"):
            if self.base.stopped:
                break
            kept = np.delete(np.arange(network.n_nodes), n_features + int(latent))
            trial = self.refine(
                self.first(
                    network.adjacency[np.ix_(kept, kept)],
                    network.n_latents - 1,
                    state.field.expectation()[:, kept],
                    np.sqrt(network.noise_variance[kept]),
                )
            )
            gain = trial.score - state.score
            if gain > self.base.tol:
                self.base.history.append((("drop latent", int(latent)), float(gain)))
                return self.drop_latents(trial)
        return state

    def first(self, adjacency, n_latents, completed, deviation) -> _State:
        """State of a structure, from a guess of what is missing."""
        positive = get_noise(self.options.noise).positive
        field = MeanField(self.X, len(adjacency), positive=positive)
        field.start(completed, deviation)
        network = self.maximise(adjacency, n_latents, field)
        return self.state(network, field, field.bound(network))


def learn_nonlinear(
    X, sample_weight, linear: GaussianNetwork, base: StructuralEM
) -> LearnedNetwork:
    """Learn a network of any link and noise, starting from a linear one."""
    options, network = base.options, linear
    em = _NonlinearEM(X, sample_weight, base)
    completed = network.expectation(X)
    joint = Joint(network.weights, network.intercept, network.noise_variance)
    deviation = 1.0 / np.sqrt(np.diagonal(joint.precision))
    if get_noise(options.noise).positive:
        completed, deviation = _make_positive(X, completed, deviation)
    adjacency = network.adjacency if network.n_latents else options.required
    state = em.first(adjacency, network.n_latents, completed, deviation)
    state = em.drop_latents(em.refine(state))
    steps: list[float] = []
    state = em.fit(state, steps, max_steps=4 * MAX_EM_STEPS)
    base.trace.append({"log_likelihood": steps, "score": state.score})
    return LearnedNetwork(
        standardised(state.network, state.field.expectation()),
        state.score,
        base.history,
        base.n_evaluated,
        base.n_considered,
        base.trace,
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
