"""Information criteria: the price of a parameter, in one place.

Searches maximise ``log-likelihood - price * parameters``; users see the same criteria
with scikit-learn's sign and factor, lower is better.

The extended BIC [1]_ also charges for a structure the log of the number of structures
of its size, and where rows are few for what chance gains there [2]_.

References
----------
.. [1] Chen, J. and Chen, Z. (2008). Extended Bayesian information criteria for model
   selection with large model spaces. Biometrika 95.
.. [2] Bartlett, M. S. (1938). Further aspects of the theory of multiple regression.
   Proceedings of the Cambridge Philosophical Society 34.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln


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


def log_choices(n_things: float, n_chosen) -> np.ndarray:
    """Log of the number of ways to choose some of several things."""
    n_chosen = np.asarray(n_chosen)
    return (
        gammaln(n_things + 1) - gammaln(n_chosen + 1) - gammaln(n_things - n_chosen + 1)
    )


def small_sample_factor(n_rows: float, n_parents) -> np.ndarray:
    """How many times more one further parent gains by chance than with many rows.

    Twice the gain of the log-likelihood by a parent that says nothing has a chi-squared
    distribution if rows are many, and this many times that if they are few [2]_.
    """
    return n_rows / np.maximum(n_rows - np.asarray(n_parents) - 2.5, 0.5)
