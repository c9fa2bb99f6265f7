"""Exact sums row by row: over the parts of a row that its positive findings couple.

Negative findings multiply into the odds of the latents. A latent that is then off for
sure is out, and one with a single positive child merges into that child's leak. What is
left are latents that share several positive findings; they and their findings fall into
parts that are independent within each row.

Two routes sum over a part: the states of its latents, or the sets of its findings that
are explained so far. Quickscore (Heckerman, UAI 1989) is the second one in a basis
where every latent acts by multiplication; its sum alternates in sign and cancels when
positive findings are improbable. The sum over explained sets has the same 2^findings
cost and positive terms only, so that it is accurate to the last digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from ._probabilities import LOG_ZERO, finite_log, log_not, safe_log
from ._state_table import normalize

# A latent is off for sure if its log-odds are below this in every state of the others:
# the answers are off by less than 1e-12 for each.
SURELY_OFF = -27.7

# Numbers in the arrays of parts that are summed together: 8 MB.
BATCH_ELEMENTS = 1 << 20

# Parents of positive findings, over all rows that are handled together.
BATCH_EDGES = 1 << 17


def sum_over_parts(network, on, observed, most: float):
    """Likelihood and posterior of rows, if no part needs more than `most` numbers.

    Returns log-likelihoods (n_rows,), posteriors (n_rows, n_latents), and which rows
    are out of reach, whose values mean nothing.
    """
    parents = sparse.csr_array(network.failure.T < 1.0)
    log_likelihood = np.empty(len(on))
    posterior = np.empty((len(on), network.n_latents))
    beyond = np.zeros(len(on), dtype=bool)
    for rows in _row_batches(on, parents):
        known = None if observed is None else observed[rows]
        *evidence, value = condition_on_negatives(network, on[rows], known)
        parts = CoupledParts(network, parents, on[rows], *evidence)
        part_value, posterior[rows], approximate = parts.solve(most)
        value += np.bincount(parts.row, part_value, minlength=len(value))
        log_likelihood[rows] = value
        beyond[rows][parts.row[approximate]] = True
    return log_likelihood, posterior, beyond


def _row_batches(on, parents):
    """Slices of rows with a bounded number of latents and of parents of findings."""
    load = np.cumsum(on @ np.diff(parents.indptr) + parents.shape[1])
    start = 0
    while start < len(load):
        limit = BATCH_EDGES + (load[start - 1] if start else 0)
        stop = max(start + 1, int(np.searchsorted(load, limit, side="right")))
        yield slice(start, stop)
        start = stop


def condition_on_negatives(network, on, observed):
    """Condition on the negative findings of each row.

    Returns log P(latent on), log P(latent off), (n_rows, n_latents), and the
    log-probability of the negative findings (n_rows,).
    """
    off = (~on if observed is None else observed & ~on).astype(np.float64)
    log_failure = sparse.csr_array(finite_log(network.failure.T))
    log_on = safe_log(network.prior) + off @ log_failure
    log_on[log_on <= LOG_ZERO / 2] = -np.inf
    log_off = np.broadcast_to(safe_log(1.0 - network.prior), log_on.shape)
    total = np.logaddexp(log_on, log_off)
    leaked = off @ finite_log(1.0 - network.leak)
    leaked[leaked <= LOG_ZERO / 2] = -np.inf
    # A latent that is neither on nor off makes the row impossible; any odds do.
    shift = np.where(total > -np.inf, total, 0.0)
    return log_on - shift, log_off - shift, leaked + total.sum(axis=1)


class Edges(NamedTuple):
    """Edges of positive findings: the finding, the latent of the row, the failure."""

    finding: np.ndarray
    latent: np.ndarray
    failure: np.ndarray

    @classmethod
    def of(cls, row, feature, failure, parents) -> Edges:
        """List the parents of each positive finding."""
        counts = np.diff(parents.indptr)[feature]
        finding = np.repeat(np.arange(len(feature)), counts)
        latent = parents.indices[_expand(parents.indptr[feature], counts)]
        values = failure[latent, feature[finding]]
        return cls(finding, row[finding] * len(failure) + latent, values)

    def select(self, mask) -> Edges:
        """Keep some of the edges."""
        return Edges(*(values[mask] for values in self))


def _expand(starts, counts):
    """Concatenate the ranges start, ..., start + count - 1."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        starts - ends + counts, counts
    )


def _surely_off(edges: Edges, log_leak_off, log_odds):
    """Latents that are off whatever the others do.

    A positive finding multiplies the odds of a parent by (1 - c f) / (1 - c), where c
    is the probability that all else fails: most if no other parent is on.
    """
    alone = log_leak_off[edges.finding]
    gain = log_not(alone + finite_log(edges.failure)) - log_not(alone)
    highest = log_odds + np.bincount(edges.latent, gain, minlength=len(log_odds))
    return highest < SURELY_OFF


class Answer(NamedTuple):
    """What is known of parts once their findings are on.

    log_likelihood: log P(all findings on), (n_parts,)
    posterior: P(latent on | all findings on), (n_parts, n_latents)
    surprise: P(the other findings on) / P(all on): how much a finding adds, (n_parts,
        n_findings)
    """

    log_likelihood: np.ndarray
    posterior: np.ndarray
    surprise: np.ndarray


class Parts(NamedTuple):
    """Parts of equal (padded) shape.

    log_on, log_off: Log-probabilities of the latents given the negative findings. A
        latent that only pads is off for sure: -inf and 0, (n_parts, n_latents)
    off, on: P(finding off) and P(finding on) if the coupling latents are off. A finding
        that only pads is on for sure: 0 and 1, (n_parts, n_findings)
    failure: failure probabilities, 1.0 where there is no edge, (n_parts, n_latents,
        n_findings)
    """

    log_on: np.ndarray
    log_off: np.ndarray
    off: np.ndarray
    on: np.ndarray
    failure: np.ndarray

    @classmethod
    def padding(cls, n_parts, n_latents, n_findings) -> Parts:
        """Parts in which everything only pads, to be filled."""
        return cls(
            np.full((n_parts, n_latents), -np.inf),
            np.zeros((n_parts, n_latents)),
            np.zeros((n_parts, n_findings)),
            np.ones((n_parts, n_findings)),
            np.ones((n_parts, n_latents, n_findings)),
        )


class CoupledParts:
    """Positive findings of a batch of rows, split into coupled parts.

    row: row of each part, (n_parts,)
    n_latents, n_findings: sizes of the parts, (n_parts,)
    """

    def __init__(self, network, parents, on, log_on, log_off):
        self.shape = log_on.shape
        self.log_on, self.log_off = log_on.ravel(), log_off.ravel()
        finding_row, feature = np.nonzero(on)
        edges = Edges.of(finding_row, feature, network.failure, parents)
        with np.errstate(divide="ignore", invalid="ignore"):
            log_leak_off = np.log1p(-network.leak)[feature]
            log_odds = np.nan_to_num(self.log_on - self.log_off, nan=0.0)
        off = _surely_off(edges, log_leak_off, log_odds)
        edges = edges.select(~off[edges.latent])
        degree = np.bincount(edges.latent, minlength=len(self.log_on))
        self.lone = edges.select(degree[edges.latent] == 1)
        reach = np.exp(self.log_on[self.lone.latent]) * (1.0 - self.lone.failure)
        with np.errstate(divide="ignore"):
            self.log_off_alone = log_leak_off + np.bincount(
                self.lone.finding, np.log1p(-reach), minlength=len(feature)
            )
        self.latent = np.flatnonzero(degree > 1)
        number = np.zeros(len(degree), dtype=np.intp)
        number[self.latent] = np.arange(len(self.latent))
        edges = edges.select(degree[edges.latent] > 1)
        self.edges = edges._replace(latent=number[edges.latent])
        self._split(finding_row)

    def _split(self, finding_row):
        """Assign numbers to the parts, and places to their members."""
        n_findings = len(finding_row)
        n_nodes = n_findings + len(self.latent)
        ends = self.edges.finding, self.edges.latent + n_findings
        graph = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n_nodes,) * 2)
        n_parts, label = connected_components(graph, directed=False)
        finding_part, latent_part = np.split(label, [n_findings])
        self.row = np.empty(n_parts, dtype=np.intp)
        self.row[finding_part] = finding_row
        of_edge = finding_part[self.edges.finding]
        self._members = []
        for part in (finding_part, latent_part, of_edge):
            counts = np.bincount(part, minlength=n_parts)
            self._members.append((np.argsort(part, kind="stable"), counts))
        self.n_findings, self.n_latents = (counts for _, counts in self._members[:2])
        self.finding_place, self.latent_place = map(_places, self._members[:2])

    def members(self, chosen):
        """List findings, latents and edges of some parts, and whose they are."""
        for order, counts in self._members:
            starts = np.cumsum(counts) - counts
            rank = np.repeat(np.arange(len(chosen)), counts[chosen])
            yield order[_expand(starts[chosen], counts[chosen])], rank

    def solve(self, most):
        """Sum over every part by the cheaper route; says which are out of reach."""
        by_latents = self.n_findings * np.exp2(self.n_latents)
        by_findings = self.n_latents * np.exp2(self.n_findings)
        beyond = np.minimum(by_latents, by_findings) > most
        log_likelihood = np.zeros(len(self.row))
        # Of latents that touch nothing positive this is all.
        posterior, surprise = np.exp(self.log_on), np.ones(len(self.finding_place))
        for route, mask in (
            (sum_over_latents, by_latents <= by_findings),
            (sum_over_findings, by_latents > by_findings),
        ):
            for chosen, *shape in self._batches(~beyond & mask, route):
                answer = route(self._gather(chosen, *shape))
                log_likelihood[chosen] = answer.log_likelihood
                (findings, of_finding), (latents, of_latent), _ = self.members(chosen)
                places = of_latent, self.latent_place[latents]
                posterior[self.latent[latents]] = answer.posterior[places]
                places = of_finding, self.finding_place[findings]
                surprise[findings] = answer.surprise[places]
        posterior[self.lone.latent] = self._lone_posterior(surprise)
        return log_likelihood, posterior.reshape(self.shape), beyond

    def _batches(self, mask, route):
        """Parts of the same exponent and about the same other size, with their shape.

        Sizes are padded to powers of two, which depend on the part alone, so that no
        rounding depends on the rest of the batch.
        """
        chosen = np.flatnonzero(mask)
        sizes = np.stack([self.n_latents[chosen], self.n_findings[chosen]])
        other = int(route is sum_over_latents)
        width = np.ceil(np.log2(np.maximum(sizes[other], 1))).astype(np.intp)
        sizes[other] = 1 << width
        groups, member = np.unique(sizes, axis=1, return_inverse=True)
        for number, (n_latents, n_findings) in enumerate(groups.T.tolist()):
            # NumPy 2.0 gives the inverse one dimension more than later versions.
            parts = chosen[member.ravel() == number]
            size = (n_latents << n_findings, n_findings << n_latents)[other]
            step = max(1, BATCH_ELEMENTS // max(1, size))
            for start in range(0, len(parts), step):
                yield parts[start : start + step], n_latents, n_findings

    def _gather(self, chosen, n_latents, n_findings) -> Parts:
        """Pack some parts into padded arrays."""
        (findings, of_finding), (latents, of_latent), (edges, of_edge) = self.members(
            chosen
        )
        parts = Parts.padding(len(chosen), n_latents, n_findings)
        at = of_latent, self.latent_place[latents]
        parts.log_on[at] = self.log_on[self.latent[latents]]
        parts.log_off[at] = self.log_off[self.latent[latents]]
        at = of_finding, self.finding_place[findings]
        parts.off[at] = np.exp(self.log_off_alone[findings])
        parts.on[at] = -np.expm1(self.log_off_alone[findings])
        parts.failure[
            of_edge,
            self.latent_place[self.edges.latent[edges]],
            self.finding_place[self.edges.finding[edges]],
        ] = self.edges.failure[edges]
        return parts

    def _lone_posterior(self, surprise) -> np.ndarray:
        """P(latent on | row) of the latents with one positive child.

        Given the rest, a child is on with probability 1 - c, or 1 - c h if the latent
        is known to be on; the mean of (1 - c h) / (1 - c) is h + (1 - h) * surprise.
        """
        on = np.exp(self.log_on[self.lone.latent])
        off = np.exp(self.log_off[self.lone.latent])
        still_off = off + on * self.lone.failure
        safe = np.where(still_off > 0, still_off, 1.0)
        kept = np.where(still_off > 0, self.lone.failure / safe, 1.0)
        lost = off * (1.0 - self.lone.failure) / safe
        return on * (kept + lost * surprise[self.lone.finding])


def _places(members):
    """Rank of each member among those of its part, in order."""
    order, counts = members
    ranks = np.empty_like(order)
    ranks[order] = _expand(np.zeros(len(counts), dtype=np.intp), counts)
    return ranks


def sum_over_latents(parts: Parts) -> Answer:
    """Enumerate the states of the latents; cost findings * 2 ** latents."""
    off, on = parts.off[..., np.newaxis], parts.on[..., np.newaxis].copy()
    weight = np.zeros((len(parts.on), 1))
    for latent in range(parts.failure.shape[1]):
        failure = parts.failure[:, latent, :, np.newaxis]
        # 1 - off * failure without the subtraction that would lose a small leak.
        on = np.concatenate([on, on + off * (1.0 - failure)], axis=-1)
        off = np.concatenate([off, off * failure], axis=-1)
        states = parts.log_off[:, latent, None], parts.log_on[:, latent, None]
        weight = np.concatenate([weight + state for state in states], axis=-1)
    del off
    share = weight + safe_log(on).sum(axis=1)
    log_likelihood = normalize(share)
    # Where a finding is impossible the share is 0, whatever it is divided by; the bound
    # keeps a ratio that has no float finite.
    np.maximum(on, 1e-300, out=on)
    surprise = np.divide(share[:, np.newaxis], on, out=on).sum(axis=-1)
    posterior = np.empty_like(parts.log_on)
    for latent in reversed(range(posterior.shape[1])):
        lower, upper = np.split(share, 2, axis=1)
        posterior[:, latent] = upper.sum(axis=1)
        share = lower + upper
    return Answer(log_likelihood, posterior, surprise)


def sum_over_findings(parts: Parts) -> Answer:
    """Go through the sets of explained findings; cost latents * 2 ** findings.

    Set S is number S in binary. Forward, a mass is P(leak and latents so far explain
    just S); backward, P(the latents to come explain what S leaves).
    """
    up, down = np.exp(parts.log_on), np.exp(parts.log_off)
    # A finding counts by the root of its own probability: of all, which are on together
    # more often than by chance and less often than one, neither over- nor underflows.
    with np.errstate(divide="ignore"):
        log_others_off = np.log1p(-up[..., np.newaxis] * (1.0 - parts.failure)).sum(
            axis=1
        )
    alone = parts.on - parts.off * np.expm1(log_others_off)
    scale = np.sqrt(np.maximum(alone, 1e-300))
    fire, fail = (1.0 - parts.failure) / scale[:, np.newaxis], parts.failure
    mass = np.ones((len(scale), 1))
    for j in range(scale.shape[1]):
        sides = parts.off[:, j, None], parts.on[:, j, None] / scale[:, j, None]
        mass = np.concatenate([mass * side for side in sides], axis=1)
    forward = [mass]
    touched = [np.flatnonzero((row < 1.0).any(axis=0)) for row in fail.swapaxes(0, 1)]
    for latent, findings in enumerate(touched):
        fired = mass.copy()
        for j in findings.tolist():
            without, with_j = _sides(fired, j)
            with_j += without * fire[:, latent, j, None, None]
            without *= fail[:, latent, j, None, None]
        mass = mass * down[:, latent, None] + fired * up[:, latent, None]
        forward.append(mass)
    total = mass[:, -1]
    safe = np.where(total > 0, total, 1.0)
    n_findings = scale.shape[1]
    lacking = mass[:, (1 << n_findings) - 1 ^ (1 << np.arange(n_findings))]
    surprise = 1.0 + np.minimum(lacking / safe[:, None] / scale, 1e300)
    posterior = np.empty_like(up)
    message = np.zeros_like(mass)
    message[:, -1] = 1.0
    for latent in reversed(range(len(touched))):
        fired = message.copy()
        for j in touched[latent].tolist():
            without, with_j = _sides(fired, j)
            without *= fail[:, latent, j, None, None]
            without += with_j * fire[:, latent, j, None, None]
        both = (forward[latent] * fired).sum(axis=1)
        posterior[:, latent] = both * up[:, latent] / safe
        message = message * down[:, latent, None] + fired * up[:, latent, None]
    return Answer(safe_log(total) + np.log(scale).sum(axis=1), posterior, surprise)


def _sides(array, finding):
    """Split the sets into views of those without and with a finding."""
    halves = array.reshape(len(array), -1, 2, 1 << finding)
    return halves[:, :, 0], halves[:, :, 1]
