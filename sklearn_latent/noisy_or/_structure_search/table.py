"""From the rows of a table to its network: at once, or group by group."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ..._tables.blocks import Blocks
from .._network import NoisyOrNetwork
from .._posterior import infer_network
from .._probabilities import clip_probability
from .._statistics.packed import PackedRows
from .._statistics.patterns import Patterns, components
from .._statistics.rows import BlockMoments, open_blocks
from .._statistics.together import Singles
from .extend import Thresholds, discover
from .groups import Group, find_groups
from .polarity import LEAST_GAIN, choose_polarity
from .refine import (
    assign_quartets,
    discovery_errors,
    network_bic,
    refine_structure,
    search_errors,
)
from .sampling import scored_rows

# Share of the children of a latent that a latent of another group has too, above which
# they are the same, seen from two sides.
PART = 0.5


class Settings(NamedTuple):
    """How to learn; see the parameters of `QuartetStructureLearner`."""

    thresholds: Thresholds
    max_depth: int | None
    refine: bool
    dependence: bool
    polarity: bool
    n_jobs: int | None


class Learned(NamedTuple):
    """A network, and how each latent was found.

    depth, quartets: as in `Discovery`
    prior_errors, failure_errors: standard errors, as `search_errors` gives them
    """

    parameters: NoisyOrNetwork
    polarity: np.ndarray
    depth: np.ndarray
    quartets: np.ndarray
    prior_errors: np.ndarray
    failure_errors: np.ndarray

    @property
    def network(self) -> NoisyOrNetwork:
        """The model object."""
        return self.parameters._with(polarity=self.polarity)._checked()

    def keep(self, latents) -> Learned:
        """Some of the latents, in some order."""
        found = (values[latents] for values in self[2:])
        return Learned(self.parameters._keep(latents), self.polarity, *found)

    def widen(self, features, leak) -> Learned:
        """The same in a table of more columns, which are independent of these."""
        failure = np.ones((len(self.depth), len(leak)))
        errors = np.full(failure.shape, np.nan)
        polarity, leak = np.ones(len(leak), dtype=np.int8), np.array(leak)
        failure[:, features] = self.parameters.failure
        errors[:, features] = self.failure_errors
        leak[features], polarity[features] = self.parameters.leak, self.polarity
        # -1 stands for no quartet and is the last place here.
        quartets = np.append(features, -1)[self.quartets]
        return self._replace(
            parameters=self.parameters._with(
                failure=failure, leak=leak, polarity=polarity
            ),
            polarity=polarity,
            quartets=quartets,
            failure_errors=errors,
        )


def learn_table(
    source: BlockMoments, patterns: Patterns, settings: Settings, rng, report
) -> Learned:
    """Quartets, and what likelihood makes of them, of all columns together."""
    polarity = np.ones(source.n_features, dtype=np.int8)
    if settings.refine and settings.polarity:
        polarity = choose_polarity(patterns, settings.thresholds, rng)
    learned = _learn_as_read(source, patterns, settings, rng, report, polarity)
    if learned.parameters.n_classes == 1 or not settings.polarity:
        return learned
    # An and of causes is an or of their absence.
    other = _learn_as_read(source, patterns, settings, rng, report, -polarity)
    gain = network_bic(learned.parameters, patterns.turn(polarity))
    gain -= network_bic(other.parameters, patterns.turn(-polarity))
    return other if gain > 2.0 * LEAST_GAIN else learned


def _learn_as_read(source, patterns, settings, rng, report, polarity) -> Learned:
    """Learn a table of which some columns are read as their opposite."""
    if (polarity < 0).any():
        source, patterns = source.turn(polarity), patterns.turn(polarity)
    found = discover(source, settings.thresholds, settings.max_depth, report)
    if not settings.refine:
        model = NoisyOrNetwork._of(found.prior, found.failure, found.leaks(source))
        errors = discovery_errors(source, found)
        return Learned(model, polarity, found.depth, found.quartets, *errors)
    refined = refine_structure(
        source,
        patterns,
        found,
        dependence=settings.dependence,
        rng=rng,
        report=report,
    )
    depth, quartets = assign_quartets(refined, found)
    order = np.argsort(depth, kind="stable")
    model = refined._keep(order)
    errors = search_errors(model, patterns, rng)
    return Learned(model, polarity, depth[order], quartets[order], *errors)


def learn_groups(
    blocks: Blocks,
    settings: Settings,
    rng,
    report: Callable[[int, int], Any],
) -> Learned:
    """The same of a wide table, group by group.

    report: is called with the numbers of groups and of latents so far; what it returns
        ends the search if true
    """
    singles = blocks.sum(Singles.of)
    if singles is None:
        raise ValueError("X must have at least one row of positive weight, got none.")
    leak = clip_probability(singles.rate)
    groups = find_groups(blocks, singles)
    if len(groups) != 1:
        settings = settings._replace(dependence=False)
    learned: list[Learned] = []
    for number, group in enumerate(groups):
        source, patterns = open_group(blocks, group.features, settings.n_jobs)
        learned.append(learn_table(source, patterns, settings, rng, None))
        if report(number + 1, sum(len(one.depth) for one in learned)):
            groups = groups[: number + 1]
            break
    return _join(groups, learned, singles, leak)


def open_group(blocks: Blocks, features, n_jobs):
    """Moments and rows of some columns."""
    return open_blocks(blocks.map(PackedRows.select, features), n_jobs)


def _join(groups: list[Group], learned: list[Learned], singles, leak) -> Learned:
    """One network of the latents of all groups."""
    owner = np.full(len(leak), -1)
    for number, group in enumerate(groups):
        owner[group.core] = number
    kept = [
        one.keep(_at_home(number, owner[group.features], one.parameters.structure))
        for number, (group, one) in enumerate(zip(groups, learned, strict=True))
    ]
    if not kept:
        kept, groups = [_nothing(leak)], [Group(*2 * [np.arange(len(leak))])]
    wide = [
        one.widen(group.features, leak) for one, group in zip(kept, groups, strict=True)
    ]
    if len(wide) == 1:
        return wide[0]
    polarity, leak = np.ones(len(leak), dtype=np.int8), np.array(leak)
    for group, one in zip(groups, wide, strict=True):
        polarity[group.core] = one.polarity[group.core]
        leak[group.core] = one.parameters.leak[group.core]
    together = Learned(
        NoisyOrNetwork._of(
            np.concatenate([one.parameters.prior for one in wide]),
            np.concatenate([one.parameters.failure for one in wide]),
            leak,
        ),
        polarity,
        *(
            np.concatenate([one[field] for one in wide])
            for field in range(2, len(Learned._fields))
        ),
    )
    of_group = np.repeat(np.arange(len(wide)), [len(one.depth) for one in wide])
    together = _explain_rates(_drop_copies(together, of_group), groups, singles)
    effect = together.parameters.prior * (1.0 - together.parameters.failure).sum(1)
    return together.keep(np.lexsort((-effect, together.depth)))


def _nothing(leak) -> Learned:
    """No latent at all."""
    none, shape = np.zeros(0), (0, len(leak))
    return Learned(
        NoisyOrNetwork._independent(leak),
        np.ones(len(leak), dtype=np.int8),
        none,
        np.zeros((0, 4), dtype=np.int64),
        none,
        np.zeros(shape),
    )


def _at_home(number, owner, structure) -> np.ndarray:
    """Latents that have as many children in the core of this group as in any other."""
    home = []
    for latent, edges in enumerate(structure):
        counts = np.bincount(owner[edges])
        if counts.max(initial=0) == counts[number : number + 1].sum():
            home.append(latent)
    return np.array(home, dtype=np.int64)


def _drop_copies(learned: Learned, of_group) -> Learned:
    """Leave out latents that are part of what another group found."""
    structure = learned.parameters.structure
    size = structure.sum(axis=1)
    edges = structure.astype(np.float32)
    common = edges @ edges.T
    kept: list[int] = []
    for latent in np.argsort(-size, kind="stable"):
        is_part = common[latent, kept] > PART * size[latent]
        if not (is_part & (of_group[kept] != of_group[latent])).any():
            kept.append(latent)
    return learned.keep(np.sort(np.array(kept, dtype=np.int64)))


def _explain_rates(learned: Learned, groups, singles: Singles) -> Learned:
    """Leaks of columns in several groups: what all their latents leave of the rate."""
    in_groups = np.concatenate([group.features for group in groups])
    shared = np.flatnonzero(np.bincount(in_groups, minlength=len(singles.on)) > 1)
    model = learned.parameters
    prior, failure = model.prior, model.failure[:, shared]
    off = 1.0 - singles.rate[shared]
    off = np.where(learned.polarity[shared] < 0, 1.0 - off, off)
    off /= (1.0 - prior[:, np.newaxis] * (1.0 - failure)).prod(axis=0)
    leak = np.array(model.leak)
    leak[shared] = clip_probability(1.0 - off)
    return learned._replace(parameters=model._with(leak=leak))


def score_groups(
    blocks: Blocks, network: NoisyOrNetwork, n_jobs=None
) -> tuple[float, float, bool]:
    """Log-likelihood of the rows of a wide table, their weight, whether it is exact.

    Components of the network are independent, so that their likelihoods add up.
    """
    singles = blocks.sum(Singles.of)
    parts = components(network.structure)
    alone = np.concatenate(
        [np.zeros(0, dtype=np.int64)]
        + [part.features for part in parts if not len(part.latents)]
    )
    parts = [part for part in parts if len(part.latents)]
    if network.n_classes > 1:
        # The classes couple them all.
        features = np.concatenate([part.features for part in parts])
        latents = np.arange(network.n_latents)
        parts = [parts[0]._replace(latents=latents, features=np.sort(features))]
    total, is_exact = _alone(network, singles, alone), True
    for latents, features in parts:
        part = _part(network, latents, features)
        _, patterns = open_group(blocks, features, n_jobs)
        rows = scored_rows(patterns, part.structure)
        found = infer_network(part, rows.on, rows.observed)
        share = rows.weights.sum() / singles.total
        total += float(rows.weights @ found.log_likelihood) / share
        is_exact &= not found.is_bound.any() and np.isclose(share, 1.0, rtol=1e-9)
        is_exact &= len(rows.weights) == len(patterns.weights)
    return total, singles.total, bool(is_exact)


def _alone(network, singles: Singles, features) -> float:
    """Log-likelihood of columns without a latent."""
    on, known = singles.on[features], singles.known[features]
    on = np.where(network.polarity[features] < 0, known - on, on)
    leak = network.leak[features]
    return float(on @ np.log(leak) + (known - on) @ np.log1p(-leak))


def _part(network, latents, features) -> NoisyOrNetwork:
    """Some latents, with all their features."""
    classes = network.n_classes > 1
    return NoisyOrNetwork(
        network.class_prior[:, latents] if classes else network.prior[latents],
        network.failure[np.ix_(latents, features)],
        network.leak[features],
        class_weight=network.class_weight if classes else None,
        polarity=network.polarity[features],
    )
