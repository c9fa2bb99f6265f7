"""Parameters of a network whose latents may depend on a hidden class."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .._numerics import clip_probability

# Stands for 0 where a logarithm is taken.
TINY = 1e-15


class Layered(NamedTuple):
    """Classes above latents above features; one class: independent latents.

    weight: of the classes, (n_classes,)
    prior: P(latent on | class), (n_classes, n_latents)
    failure: 1.0 where there is no edge, (n_latents, n_features)
    leak: (n_features,)
    """

    weight: np.ndarray
    prior: np.ndarray
    failure: np.ndarray
    leak: np.ndarray

    @classmethod
    def single(cls, prior, failure, leak) -> Layered:
        """A network of independent latents."""
        return cls(np.ones(1), np.asarray(prior)[np.newaxis], failure, leak)

    @classmethod
    def independent(cls, leak) -> Layered:
        """A network without latents."""
        return cls.single(np.zeros(0), np.ones((0, len(leak))), leak)

    @property
    def structure(self) -> np.ndarray:
        """Where there is an edge."""
        return self.failure < 1.0

    @property
    def n_latents(self) -> int:
        """Number of latents."""
        return len(self.failure)

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.weight)

    @property
    def marginal(self) -> np.ndarray:
        """P(latent on)."""
        return self.weight @ self.prior

    @property
    def n_parameters(self) -> int:
        """Weights, priors and edges; the leaks are the same number in every model."""
        return self.n_classes - 1 + self.prior.size + int(self.structure.sum())

    def clipped(self) -> Layered:
        """Keep probabilities away from 0 and 1, and non-edges at 1."""
        return Layered(
            self.weight,
            clip_probability(self.prior),
            np.where(self.structure, clip_probability(self.failure), 1.0),
            clip_probability(self.leak),
        )

    def possible(self) -> Layered:
        """Keep probabilities away from 0 and 1, as little as logarithms allow."""
        low, high = TINY, 1.0 - TINY
        failure = np.clip(self.failure, low, high)
        return Layered(
            np.maximum(self.weight, TINY),
            np.clip(self.prior, low, high),
            np.where(self.structure, failure, 1.0),
            np.clip(self.leak, low, high),
        )

    def keep(self, latents) -> Layered:
        """Drop all other latents."""
        return self._replace(
            prior=self.prior[:, latents], failure=self.failure[latents]
        )

    def add(self, prior, failure) -> Layered:
        """Further latents, with the same prior in all classes."""
        new = np.broadcast_to(prior, (self.n_classes, len(failure)))
        return self._replace(
            prior=np.hstack([self.prior, new]),
            failure=np.vstack([self.failure, failure]),
        )
