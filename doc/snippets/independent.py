"""A small estimator from nothing: binary columns that are independent."""

from dataclasses import dataclass

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from sklearn_latent._base import BaseLatentModel
from sklearn_latent._progress import Progress, with_callbacks
from sklearn_latent._validation import check_sample_weight


# statistics
@dataclass(frozen=True)
class Rates:
    """How often each column is on."""

    n_on: np.ndarray
    weight: float

    @classmethod
    def of(cls, on, weights):
        """Count rows."""
        return cls(weights @ on, float(weights.sum()))

    def __add__(self, other):
        return Rates(self.n_on + other.n_on, self.weight + other.weight)


# model
@dataclass(frozen=True)
class IndependentNetwork:
    """P(column on), column by column."""

    rate: np.ndarray

    def log_likelihood(self, on):
        """Log-likelihood of each row."""
        return np.where(on, np.log(self.rate), np.log1p(-self.rate)).sum(axis=1)

    def sample(self, n_samples, rng):
        """Draw rows."""
        return (rng.uniform(size=(n_samples, len(self.rate))) < self.rate).astype(int)


# estimator
class IndependentFeatures(BaseLatentModel):
    """Binary features without any latents: the model to beat.

    Parameters
    ----------
    threshold : float, default=0.0
        Values above it are on.

    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    network_ : IndependentNetwork
        The fitted model.
    """

    def __init__(self, threshold=0.0, verbose=0):
        self.threshold = threshold
        self.verbose = verbose

    @with_callbacks
    def fit(self, X, y=None, *, sample_weight=None):
        """Count how often features are on."""
        with Progress(self, X=X) as progress:
            on = validate_data(self, X, dtype=float) > self.threshold
            weights = check_sample_weight(sample_weight, len(on))
            weights = np.ones(len(on)) if weights is None else weights
            rates = Rates.of(on, weights)
            # One imagined row on and one off: log(0) would poison the score.
            network = IndependentNetwork((rates.n_on + 1) / (rates.weight + 2))
            progress(f"{on.shape[1]} features")
        self.network_ = network
        return self

    def _on(self, X):
        check_is_fitted(self)
        return validate_data(self, X, dtype=float, reset=False) > self.threshold

    def transform(self, X):
        """Return no columns: there are no latents."""
        return np.zeros((len(self._on(X)), 0))

    def score_samples(self, X):
        """Log-likelihood of each row."""
        return self.network_.log_likelihood(self._on(X))

    def sample(self, n_samples=1, random_state=None):
        """Draw rows, and their hidden values, of which there are none."""
        check_is_fitted(self)
        rng = check_random_state(random_state)
        return self.network_.sample(n_samples, rng), np.zeros((n_samples, 0))

    def to_networkx(self):
        """Nodes without edges."""
        import networkx as nx

        graph = nx.DiGraph(family="noisy-or")
        graph.add_nodes_from(self._feature_names(), kind="feature")
        return graph

    @property
    def _n_features_out(self):
        return 0

    def _n_parameters(self):
        return len(self.network_.rate)
