"""A small estimator from scratch: independent binary features."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_latent._answers.base import BaseLatentModel
from sklearn_latent._answers.protocol import GraphParts, Network
from sklearn_latent._core.persistence import Array
from sklearn_latent._core.progress import Progress, with_callbacks
from sklearn_latent._core.transaction import all_or_nothing
from sklearn_latent._tables.blocks import read_blocks


# statistics
@dataclass(frozen=True)
class Rates:
    """How often each feature is on."""

    n_on: np.ndarray
    weight: float

    @classmethod
    def of(cls, on, weights=None):
        """Count rows."""
        weights = np.ones(len(on)) if weights is None else weights
        return cls(weights @ on, float(weights.sum()))

    def __add__(self, other):
        return Rates(self.n_on + other.n_on, self.weight + other.weight)


def count_block(block, threshold):
    """Count the rows of one block, wherever it is."""
    rows, weights = block
    return Rates.of(rows > threshold, weights)


# model
class IndependentNetwork(Network):
    """P(feature on) of each feature."""

    _fields: ClassVar = {"rate": Array(ndim=1)}

    def __init__(self, rate):
        self.rate = np.asarray(rate, dtype=float)

    @property
    def n_parameters(self):
        """One per feature."""
        return len(self.rate)

    def log_likelihood(self, on):
        """Log-likelihood of each row."""
        return np.where(on, np.log(self.rate), np.log1p(-self.rate)).sum(axis=1)

    def posterior(self, on):
        """No columns: there are no latents."""
        return np.zeros((len(on), 0))

    def sample(self, n_samples=1, random_state=None):
        """Draw rows, and their latents, of which there are none."""
        rng = check_random_state(random_state)
        on = rng.uniform(size=(n_samples, len(self.rate))) < self.rate
        return on.astype(int), np.zeros((n_samples, 0), dtype=int)

    @property
    def _sizes(self):
        return 0, len(self.rate)

    def _graph(self, latents, features):
        """Nodes without edges."""
        nodes = [(name, {"kind": "feature"}) for name in features]
        return GraphParts("noisy-or", "strength", nodes, [])


def learn(rates):
    """Model with the observed rates, and the log-likelihood of these rows."""
    # One additional row on and one off: log(0) would make the score minus infinity.
    rate = (rates.n_on + 1) / (rates.weight + 2)
    n_off = rates.weight - rates.n_on
    log_likelihood = rates.n_on @ np.log(rate) + n_off @ np.log1p(-rate)
    return IndependentNetwork(rate), log_likelihood


# estimator
class IndependentFeatures(BaseLatentModel):
    """Independent binary features, without latents: the model to beat.

    Parameters
    ----------
    threshold : float, default=0.0
        Values above the threshold are on.

    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    network_ : IndependentNetwork
        The fitted model.

    log_likelihood_, bic_ : float
        How well it explains the training rows.
    """

    def __init__(self, threshold=0.0, verbose=0):
        self.threshold = threshold
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None, *, sample_weight=None):
        """Count how often features are on."""
        with Progress(self, X=X) as progress, all_or_nothing(self):
            blocks = read_blocks(X, sample_weight, self._start, check_array)
            rates = blocks.sum(count_block, self.threshold)
            self.network_, log_likelihood = learn(rates)
            self.n_latents_ = 0
            self.structure_ = np.zeros((0, len(rates.n_on)), dtype=bool)
            self._store_fit(log_likelihood, rates.weight)
            progress(f"{len(rates.n_on)} features")
        return self

    def _start(self, X):
        return validate_data(self, X, dtype=float)

    def _on(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=float, reset=False) > self.threshold

    def transform(self, X):
        """Latents of each row."""
        return self.network_.posterior(self._on(X))

    def score_samples(self, X):
        """Log-likelihood of each row."""
        return self.network_.log_likelihood(self._on(X))

    def sample(self, n_samples=1, random_state=None):
        """Draw rows and their latents."""
        check_is_fitted(self)
        return self.network_.sample(n_samples, random_state)

    @property
    def _n_features_out(self):
        return self.n_latents_
