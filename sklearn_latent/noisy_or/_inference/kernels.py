"""Exact sums over one coupled part of a row, for many parts of equal shape at once.

A part is a set of positive findings and the latents that couple them. Its negative
findings are already in the latents' odds, and the latents that touch only one of its
findings are already in that finding's leak.

Two routes give the same answer: over the states of the latents, or over the sets of
findings explained so far. Quickscore (Heckerman, UAI 1989) is the second one in a
basis where every latent acts by multiplication; its sum alternates in sign and cancels
when positive findings are improbable. The sum over explained sets has the same
2^findings cost and positive terms only, so that it is accurate to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from .._likelihood.exact import normalize
from .._numerics import safe_log

# Below this, products of ordinary numbers may have lost terms to underflow.
UNDERFLOW = 1e-250

# Numbers in the arrays of parts that are summed together: 8 MB.
BATCH_ELEMENTS = 1 << 20


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


class _Algebra(NamedTuple):
    """Sums and products, of numbers or of their logarithms."""

    add: Callable
    multiply: Callable
    total: Callable
    encode: Callable
    log: Callable


_PLAIN = _Algebra(np.add, np.multiply, np.sum, np.asarray, safe_log)
_LOGARITHMIC = _Algebra(np.logaddexp, np.add, np.logaddexp.reduce, safe_log, np.asarray)


def sum_over_findings(parts: Parts) -> Answer:
    """Go through the sets of explained findings; cost latents * 2 ** findings."""
    answer = _explain(parts, _PLAIN)
    small = answer.log_likelihood < np.log(UNDERFLOW)
    if small.any():
        again = _explain(Parts(*(array[small] for array in parts)), _LOGARITHMIC)
        for values, better in zip(answer, again, strict=True):
            values[small] = better
    return answer


def _explain(parts: Parts, algebra: _Algebra) -> Answer:
    """Forward and backward pass over the latents of each part."""
    n_findings = parts.on.shape[1]
    plain = algebra is _PLAIN
    steps = _Steps(
        algebra,
        np.exp(parts.log_off) if plain else parts.log_off,
        np.exp(parts.log_on) if plain else parts.log_on,
        algebra.encode(parts.failure)[..., None, None],
        algebra.encode(1.0 - parts.failure)[..., None, None],
        [
            np.flatnonzero((parts.failure[:, latent] < 1.0).any(axis=0))
            for latent in range(parts.failure.shape[1])
        ],
    )
    forward = steps.forward(algebra.encode(parts.off), algebra.encode(parts.on))
    total = forward[-1][:, -1]
    posterior = steps.posterior(forward)
    lacking = forward[-1][:, (1 << n_findings) - 1 ^ (1 << np.arange(n_findings))]
    surprise = 1.0 + _share(algebra, lacking, total[:, np.newaxis])
    return Answer(np.array(algebra.log(total)), posterior, surprise)


class _Steps(NamedTuple):
    """Messages over the sets of explained findings; set S is number S in binary."""

    algebra: _Algebra
    down: np.ndarray
    up: np.ndarray
    fail: np.ndarray
    fire: np.ndarray
    findings: list[np.ndarray]

    def forward(self, off, on):
        """P(leak and latents before l explain just S), for l = 0, 1, ..."""
        add, multiply = self.algebra.add, self.algebra.multiply
        mass = self.algebra.encode(np.ones((len(on), 1)))
        for j in range(on.shape[1]):
            sides = (multiply(mass, side[:, j, None]) for side in (off, on))
            mass = np.concatenate(list(sides), axis=1)
        messages = [mass]
        for latent, findings in enumerate(self.findings):
            fired = mass.copy()
            for j in findings:
                without, with_j = _sides(fired, j)
                with_j[...] = add(with_j, multiply(without, self.fire[:, latent, j]))
                without[...] = multiply(without, self.fail[:, latent, j])
            mass = self._average(latent, mass, fired)
            messages.append(mass)
        return messages

    def posterior(self, forward):
        """P(latent on | everything explained), from the last latent to the first."""
        add, multiply, total = self.algebra[:3]
        # P(latents from l on explain what S leaves), for each S.
        message = np.zeros_like(forward[-1])
        message[:, -1] = 1.0
        message = self.algebra.encode(message)
        posterior = np.empty_like(self.up)
        for latent in reversed(range(len(self.findings))):
            fired = message.copy()
            for j in self.findings[latent]:
                without, with_j = _sides(fired, j)
                without[...] = add(
                    multiply(without, self.fail[:, latent, j]),
                    multiply(with_j, self.fire[:, latent, j]),
                )
            both = total(multiply(forward[latent], fired), axis=1)
            posterior[:, latent] = _share(
                self.algebra, multiply(both, self.up[:, latent]), forward[-1][:, -1]
            )
            message = self._average(latent, message, fired)
        return posterior

    def _average(self, latent, if_off, if_on):
        add, multiply = self.algebra.add, self.algebra.multiply
        return add(
            multiply(if_off, self.down[:, latent, None]),
            multiply(if_on, self.up[:, latent, None]),
        )


def _sides(array, finding):
    """Split the sets into views of those without and with a finding."""
    halves = array.reshape(len(array), -1, 2, 1 << int(finding))
    return halves[:, :, 0], halves[:, :, 1]


def _share(algebra, part, total):
    """Plain quotient of two encoded numbers, 0 if there is nothing to divide by."""
    if algebra is _PLAIN:
        # Smaller totals are summed again in logarithms.
        return part / np.where(total >= UNDERFLOW, total, 1.0)
    # The cap keeps a ratio that has no float finite.
    return np.exp(np.minimum(part - np.where(total > -np.inf, total, 0.0), 690.0))
