"""Lower bound of the likelihood by a sum over the likeliest states of the latents.

A row with many positive findings is out of reach of exact sums, but says so much that
few states matter. Greedy search finds the likeliest one; the latents that it is least
sure of are summed over, the others stay as they are. Leaving states out
makes the sum a lower bound, and the posterior over the rest is the truncated
posterior of Luecke and Eggert (JMLR 2010, expectation truncation).
"""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from .._numerics import log_not, safe_log
from .findings import FlatParts, places
from .kernels import BATCH_ELEMENTS, Parts, sum_over_latents

# Fewest and most latents that are summed over in each part. In between, the states
# times the findings are at most 2 to this power, which takes some milliseconds.
N_OPEN = 8, 12
LOG_ELEMENTS = 17

# Flips of one latent at a time; the greedy search ends long before.
MAX_FLIPS = 200


def truncated_sum(flat: FlatParts, n_parts: int):
    """Sum over the likeliest states of some parts.

    Returns log_likelihood (n_parts,), posterior (n_latents,), surprise (n_findings,).
    """
    # Subtracted again when a latent is switched off, hence finite.
    log_failure = np.maximum(safe_log(flat.failure), -600.0)
    state, log_odds = _climb(flat, log_failure, n_parts)
    sureness = np.lexsort([np.abs(log_odds), flat.latent_part])
    rank = np.empty_like(sureness)
    rank[sureness] = places(flat.latent_part[sureness], n_parts)
    log_width = np.ceil(np.log2(np.bincount(flat.finding_part))).astype(np.intp)
    n_open = np.clip(LOG_ELEMENTS - log_width, *N_OPEN)
    is_open = rank < n_open[flat.latent_part]
    value = np.bincount(
        flat.latent_part,
        np.where(is_open, 0.0, np.where(state, flat.log_on, flat.log_off)),
        minlength=n_parts,
    )
    posterior = expit(log_odds)
    surprise = np.empty(len(flat.findings))
    fixed_on = state & ~is_open
    off = _log_off(flat, log_failure, fixed_on)
    for chosen, parts, finding_at, latent_at in _open_parts(
        flat, off, rank, n_open, log_width
    ):
        answer = sum_over_latents(parts)
        value[chosen] += answer.log_likelihood
        findings, where = finding_at
        surprise[findings] = answer.surprise[where]
        latents, where = latent_at
        posterior[latents] = answer.posterior[where]
    return value, posterior, surprise


def _log_off(flat, log_failure, state):
    """Log P(finding off) in a state of the latents."""
    return flat.log_leak_off + np.bincount(
        flat.edge_finding,
        np.where(state[flat.edge_latent], log_failure, 0.0),
        minlength=len(flat.findings),
    )


def _climb(flat: FlatParts, log_failure, n_parts):
    """Switch the latent with the largest gain of each part, until none gains.

    Returns state (n_latents,), log_odds (n_latents,).
    """
    prior_odds = np.clip(flat.log_on - flat.log_off, -1e6, 1e6)
    state = np.zeros(len(prior_odds), dtype=bool)
    starts = np.searchsorted(flat.latent_part, np.arange(n_parts))
    for _ in range(MAX_FLIPS):
        off = _log_off(flat, log_failure, state)[flat.edge_finding]
        others = np.where(state[flat.edge_latent], off - log_failure, off)
        others = np.minimum(others, 0.0)
        gain = log_not(others + log_failure) - log_not(others)
        log_odds = prior_odds + np.bincount(
            flat.edge_latent, gain, minlength=len(state)
        )
        switch = np.where(state, -log_odds, log_odds)
        best = np.maximum.reduceat(switch, starts)
        chosen = np.flatnonzero((switch == best[flat.latent_part]) & (switch > 1e-9))
        if not len(chosen):
            break
        _, first = np.unique(flat.latent_part[chosen], return_index=True)
        state[chosen[first]] ^= True
    return state, log_odds


def _open_parts(flat: FlatParts, log_off, rank, n_open, log_width):
    """Yield padded batches of parts with their open latents only."""
    finding_place = places(flat.finding_part, len(n_open))
    edge_part = flat.finding_part[flat.edge_finding]
    is_open = rank < n_open[flat.latent_part]
    open_edge = is_open[flat.edge_latent]
    for exponent in np.unique(log_width):
        members = np.flatnonzero(log_width == exponent)
        n_latents = int(n_open[members[0]])
        step = max(1, BATCH_ELEMENTS >> int(exponent + n_latents))
        for start in range(0, len(members), step):
            chosen = members[start : start + step]
            number = np.full(len(n_open), -1)
            number[chosen] = np.arange(len(chosen))
            findings = np.flatnonzero(number[flat.finding_part] >= 0)
            latents = np.flatnonzero((number[flat.latent_part] >= 0) & is_open)
            edges = np.flatnonzero((number[edge_part] >= 0) & open_edge)
            at_finding = number[flat.finding_part[findings]], finding_place[findings]
            at_latent = number[flat.latent_part[latents]], rank[latents]
            parts = Parts.padding(len(chosen), n_latents, 1 << int(exponent))
            parts.log_on[at_latent] = flat.log_on[latents]
            parts.log_off[at_latent] = flat.log_off[latents]
            parts.off[at_finding] = np.exp(log_off[findings])
            parts.on[at_finding] = -np.expm1(log_off[findings])
            parts.failure[
                number[edge_part[edges]],
                rank[flat.edge_latent[edges]],
                finding_place[flat.edge_finding[edges]],
            ] = flat.failure[edges]
            yield chosen, parts, (findings, at_finding), (latents, at_latent)
