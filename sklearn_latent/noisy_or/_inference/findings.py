"""The evidence in a row: odds from negative findings, coupled parts of positive ones.

Negative findings multiply into the odds of the latents. Bounds of the odds then settle
most latents, whatever the others do. Of the rest, a latent with one positive child
couples nothing, and merges into that child's leak. What is left are latents that share
several positive findings; they and their findings fall into parts that are
independent within each row.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components

from .._numerics import log_not, safe_log
from .kernels import Answer, Parts

# A latent is settled if its log-odds are beyond this in every state of the others: the
# answers are off by less than 1e-12 for each.
SETTLED = 27.7

# Settling some latents tightens the bounds of others; a few rounds settle most.
MAX_ROUNDS = 20


def expand(starts, counts):
    """Concatenate the ranges start, ..., start + count - 1."""
    ends = np.cumsum(counts)
    return np.arange(ends[-1] if len(ends) else 0) + np.repeat(
        starts - ends + counts, counts
    )


class Edges(NamedTuple):
    """Edges of positive findings: the finding, the latent of the row, the failure."""

    finding: np.ndarray
    latent: np.ndarray
    failure: np.ndarray

    @classmethod
    def of(cls, row, feature, failure, parents):
        """List the parents of each positive finding."""
        counts = np.diff(parents.indptr)[feature]
        finding = np.repeat(np.arange(len(feature)), counts)
        latent = parents.indices[expand(parents.indptr[feature], counts)]
        return cls(
            finding,
            row[finding] * len(failure) + latent,
            failure[latent, feature[finding]],
        )

    def select(self, mask):
        """Keep some of the edges."""
        return Edges(self.finding[mask], self.latent[mask], self.failure[mask])


def settle(edges: Edges, log_leak_off, log_on, log_off):
    """Find the latents whose state the row decides, whatever the others do.

    A positive finding multiplies the odds of a parent by (1 - c f) / (1 - c), where c
    is the probability that all else fails. That is largest if every other parent is
    off and smallest if every other one is on.

    log_leak_off (n_findings,), log_on, log_off (n_rows * n_latents,) -> log_leak_off
    (n_findings,), settled (n_rows * n_latents,).
    """
    with np.errstate(invalid="ignore"):
        log_odds = np.nan_to_num(log_on - log_off, nan=0.0, posinf=1e6, neginf=-1e6)
    settled = np.zeros(len(log_odds), dtype=np.int8)
    for _ in range(MAX_ROUNDS):
        lowest, highest = _odds_range(edges, log_leak_off, log_odds)
        touched = np.bincount(edges.latent, minlength=len(settled)) > 0
        settled[touched & (highest < -SETTLED)] = -1
        settled[touched & (lowest > SETTLED)] = 1
        state = settled[edges.latent]
        if not state.any():
            break
        sure = edges.select(state == 1)
        log_leak_off = log_leak_off + np.bincount(
            sure.finding, safe_log(sure.failure), minlength=len(log_leak_off)
        )
        edges = edges.select(state == 0)
    return edges, log_leak_off, settled


def _odds_range(edges: Edges, log_leak_off, log_odds):
    """Smallest and largest log-odds of each latent over the states of the others."""
    # Far below any failure that matters, and it can be subtracted again.
    log_failure = np.maximum(safe_log(edges.failure), -600.0)
    all_on = log_leak_off + np.bincount(
        edges.finding, log_failure, minlength=len(log_leak_off)
    )
    alone, crowded = log_leak_off[edges.finding], all_on[edges.finding]
    others_on = np.minimum(crowded - log_failure, 0.0)
    gains = (
        log_not(crowded) - log_not(others_on),
        log_not(alone + log_failure) - log_not(alone),
    )
    return [
        log_odds + np.bincount(edges.latent, gain, minlength=len(log_odds))
        for gain in gains
    ]


class NegativeEvidence:
    """Update of the latents' odds by negative findings.

    prior, failure, leak: parameters of a network
    """

    def __init__(self, prior, failure, leak):
        never = failure.T == 0.0
        log_failure = safe_log(np.where(never, 1.0, failure.T))
        self._log_failure = sparse.csr_array(log_failure)
        # Kept apart, because log(0) could not be subtracted again.
        self._never = sparse.csr_array(never, dtype=np.float64)
        self._log_leak_off = safe_log(1.0 - leak)
        self._log_on, self._log_off = safe_log(prior), safe_log(1.0 - prior)

    def __call__(self, on, observed):
        """Condition on the negative findings of each row.

        on (n_rows, n_features), observed (n_rows, n_features) -> log_on, log_off
        (n_rows, n_latents), log_likelihood (n_rows,).
        """
        # Rows are mostly off: take the few that are not off from the sum of all.
        other = sparse.csr_array(
            on if observed is None else on | ~observed, dtype=float
        )
        evidence = self._log_failure.sum(axis=0) - (other @ self._log_failure).toarray()
        if self._never.nnz:
            hit = self._never.sum(axis=0) > (other @ self._never).toarray()
            evidence[hit] = -np.inf
        log_on = self._log_on + evidence
        total = np.logaddexp(log_on, self._log_off)
        off = ~on if observed is None else observed & ~on
        leaked = np.where(off, self._log_leak_off, 0.0).sum(axis=1)
        # A latent that is neither on nor off makes the row impossible; any odds do.
        shift = np.where(total > -np.inf, total, 0.0)
        return log_on - shift, self._log_off - shift, leaked + total.sum(axis=1)


def places(labels, n_labels):
    """Rank of each item among those of its label, in order."""
    order = np.argsort(labels, kind="stable")
    counts = np.bincount(labels, minlength=n_labels)
    ranks = np.empty_like(order)
    ranks[order] = expand(np.zeros(n_labels, dtype=np.intp), counts)
    return ranks


class PositiveEvidence:
    """Positive findings of a batch of rows, split into coupled parts.

    log_on, log_off: from `NegativeEvidence`, (n_rows, n_latents)
    failure, leak: parameters of the network
    parents: edges, by feature, (n_features, n_latents)
    on: which features are on, (n_rows, n_features)
    shape: numbers of rows and of latents
    settled: 1 for a latent that is on for sure, -1 for off, 0 for the others, (n_rows *
        n_latents,)
    n_parts: number of parts
    row: row of each part, (n_parts,)
    n_part_latents, n_part_findings: sizes, (n_parts,)
    """

    def __init__(self, log_on, log_off, failure, leak, parents, on):
        self.shape = log_on.shape
        self.log_on, self.log_off = log_on.ravel(), log_off.ravel()
        finding_row, feature = np.nonzero(on)
        edges = Edges.of(finding_row, feature, failure, parents)
        with np.errstate(divide="ignore"):
            log_leak_off = np.log1p(-leak)[feature]
        edges, log_leak_off, self.settled = settle(
            edges, log_leak_off, self.log_on, self.log_off
        )
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
        self._split(len(feature), finding_row)

    def _split(self, n_findings, finding_row):
        """Assign numbers to the parts, and places to their members."""
        n_nodes = n_findings + len(self.latent)
        ends = self.edges.finding, self.edges.latent + n_findings
        graph = sparse.coo_array((np.ones(len(ends[0])), ends), shape=(n_nodes,) * 2)
        self.n_parts, label = connected_components(graph, directed=False)
        self.finding_part, self.latent_part = np.split(label, [n_findings])
        self.n_part_findings = np.bincount(self.finding_part, minlength=self.n_parts)
        self.n_part_latents = np.bincount(self.latent_part, minlength=self.n_parts)
        self.finding_place = places(self.finding_part, self.n_parts)
        self.latent_place = places(self.latent_part, self.n_parts)
        self.row = np.empty(self.n_parts, dtype=np.intp)
        self.row[self.finding_part] = finding_row
        edge_part = self.finding_part[self.edges.finding]
        self._members = []
        for part in (self.finding_part, self.latent_part, edge_part):
            bounds = np.append(0, np.cumsum(np.bincount(part, minlength=self.n_parts)))
            self._members.append((np.argsort(part, kind="stable"), bounds))

    def members(self, chosen):
        """List findings, latents and edges of some parts."""
        found = []
        for order, bounds in self._members:
            counts = bounds[chosen + 1] - bounds[chosen]
            rank = np.repeat(np.arange(len(chosen)), counts)
            found.append((order[expand(bounds[chosen], counts)], rank))
        return found

    def gather(self, chosen, n_latents, n_findings) -> Parts:
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

    def scatter(self, chosen, answer: Answer, posterior, surprise):
        """Write the answer for some parts to flat arrays of latents and findings."""
        (findings, of_finding), (latents, of_latent), _ = self.members(chosen)
        places = of_latent, self.latent_place[latents]
        posterior[self.latent[latents]] = answer.posterior[places]
        places = of_finding, self.finding_place[findings]
        surprise[findings] = answer.surprise[places]

    def settled_log_likelihood(self) -> np.ndarray:
        """Log-probability of the latents that are settled, for each row."""
        states = self.settled.reshape(self.shape)
        value = np.where(states == 1, self.log_on.reshape(self.shape), 0.0)
        value += np.where(states == -1, self.log_off.reshape(self.shape), 0.0)
        return value.sum(axis=1)

    def settled_posterior(self) -> np.ndarray:
        """P(latent on | row) of latents that are settled or touch nothing positive."""
        known = [self.settled == 1, self.settled == -1]
        return np.select(known, [1.0, 0.0], np.exp(self.log_on))

    def lone_posterior(self, surprise) -> np.ndarray:
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
