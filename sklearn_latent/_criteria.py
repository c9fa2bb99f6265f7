"""Information criteria: the one place that knows what a parameter costs.

Searches maximise ``log-likelihood - price * parameters``; users see the same criteria
with scikit-learn's sign and factor, lower is better.
"""

from __future__ import annotations

import numpy as np

__all__ = ["aic", "bic", "bic_price", "bic_score"]


def bic_price(n_rows) -> float:
    """Price of a parameter under the BIC, in nats: half of the log of the rows."""
    # Rows whose weights sum to less than one row must not make parameters a gain.
    return 0.5 * float(np.log(max(n_rows, 1.0)))


def bic_score(log_likelihood, n_parameters, n_rows) -> float:
    """Log-likelihood less the price of the parameters; higher is better."""
    return float(log_likelihood) - bic_price(n_rows) * n_parameters


def bic(log_likelihood, n_parameters, n_rows) -> float:
    """Bayesian information criterion; lower is better."""
    return -2.0 * bic_score(log_likelihood, n_parameters, n_rows)


def aic(log_likelihood, n_parameters) -> float:
    """Akaike information criterion; lower is better."""
    return 2.0 * (n_parameters - float(log_likelihood))
