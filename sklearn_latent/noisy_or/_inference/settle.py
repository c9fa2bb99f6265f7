"""Latents that a row decides by itself, from bounds of their odds."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._numerics import log_not, safe_log

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
