"""Generators of noisy-or networks and of data from them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, logit
from sklearn.utils import Bunch

from .._core.validation import (
    MOST_COLUMNS,
    check_count,
    check_numbers,
    check_probabilities,
    check_random_state,
)
from ..noisy_or._noisy_or_network import NoisyOrNetwork
from ..noisy_or._schedule import check_structure

_SOURCES = """
...##... ...#.... ######## #....... .......# ........ ........ ........
..#..#.. ...#.... #......# .#...... ......#. .######. ........ ........
.#....#. ...#.... #......# ..#..... .....#.. .#....#. ..####.. ........
#......# ...##### #......# ...#.... ....#... .#....#. ..#..#.. ........
#......# #####... #......# ....#... ...#.... .#....#. ..#..#.. .###....
.#....#. ....#... #......# .....#.. ..#..... .#....#. ..####.. .###....
..#..#.. ....#... #......# ......#. .#...... .######. ........ .###....
...##... ....#... ######## .......# #....... ........ ........ ........
"""

# How often a disease shows a finding, in five steps from "rarely" to "nearly always",
# and how common each step is.
_ACTIVATION_LEVELS = (0.025, 0.2, 0.5, 0.8, 0.985)
_LEVEL_SHARES = (0.1, 0.3, 0.3, 0.2, 0.1)

# Chosen such that, at full size, findings have from 1 to several hundred parents with
# a median of 3, and the schedule learns about 91% of the edges at depth 0 and nearly
# all others at depths 1 to 3.
_FINDING_SPREAD = 2.0  # standard deviation of the log popularity of findings
_DISEASE_SPREAD = 0.6  # the same of diseases
_N_SYSTEMS = 10  # organ systems; a disease prefers the findings of its own
_SYSTEM_BONUS = 4.0
_VARIANT_SHARE = 0.05  # diseases that are variants of another one
_VARIANT_LIKENESS = 0.9  # share of findings whose scores a variant copies


def image_sources() -> NDArray[np.bool_]:
    """Eight overlapping binary images, a classical benchmark of noisy-or learners.

    Returns
    -------
    sources : ndarray of bool of shape (8, 64)
        One image of 8 x 8 pixels per row.

    Examples
    --------
    >>> from sklearn_latent.datasets import image_sources
    >>> image_sources().sum(axis=1)
    array([16, 16, 28,  8,  8, 20, 12,  9])
    """
    # Axes: line of the picture, source, pixel of the line.
    lines = [list(map(list, line.split())) for line in _SOURCES.split("\n") if line]
    return (np.array(lines) == "#").transpose(1, 0, 2).reshape(8, 64)


def figure_1_structure() -> NDArray[np.bool_]:
    """Two latents that share two of five features.

    The smallest network that can only be learned by first learning one latent and
    subtracting its influence: Figure 1 of Halpern and Sontag (2013).

    Returns
    -------
    structure : ndarray of bool of shape (2, 5)
        A is the parent of a, b and c; B of b, c, d and e.

    Examples
    --------
    >>> from sklearn_latent.datasets import figure_1_structure
    >>> figure_1_structure().astype(int)
    array([[1, 1, 1, 0, 0],
           [0, 1, 1, 1, 1]])
    """
    return np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], dtype=bool)


def make_noisy_or_images(n_samples: int = 1000, random_state: Any = None) -> Bunch:
    """Mix eight overlapping images of 8 x 8 pixels.

    Each image is present with probability 0.25. Each of its pixels fails to show with
    probability 0.1, and any pixel is on by itself with probability 0.001.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    data : Bunch
        ``X (n_samples, 64)``, ``Z (n_samples, 8)``, ``network``, ``feature_names``
        and ``DESCR``.

    References
    ----------
    .. [1] T. Singliar and M. Hauskrecht. Noisy-OR Component Analysis and its
       Application to Link Analysis. Journal of Machine Learning Research 7, 2006.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_noisy_or_images
    >>> data = make_noisy_or_images(100, random_state=0)
    >>> data.X.shape, data.Z.shape
    ((100, 64), (100, 8))
    """
    names = [f"pixel_{row}_{column}" for row in range(8) for column in range(8)]
    data = make_noisy_or(
        image_sources(),
        n_samples,
        prior=0.25,
        failure=0.1,
        leak=0.001,
        random_state=random_state,
    )
    description = "Eight overlapping 8 x 8 images, combined by a noisy or."
    return Bunch(**{**data, "feature_names": names, "DESCR": description})


def make_noisy_or(
    structure: Any = None,
    n_samples: int = 1000,
    *,
    prior: ArrayLike = (0.2, 0.8),
    failure: ArrayLike = (0.2, 0.8),
    leak: ArrayLike = 0.01,
    random_state: Any = None,
) -> Bunch:
    """Sample from a noisy-or network with given structure and random parameters.

    Each parameter is a number for all, a tuple ``(low, high)`` to draw from uniformly,
    or an array with every value.

    Parameters
    ----------
    structure : {array-like, sparse matrix} of shape (n_latents, n_features) or None
        True where a latent is a parent of a feature; every latent needs a child.
        If None, `figure_1_structure`.
    n_samples : int, default=1000
        Number of rows.
    prior : float, tuple or array-like of shape (n_latents,), default=(0.2, 0.8)
        P(latent on).
    failure : float, tuple or array-like of shape (n_latents, n_features), \
default=(0.2, 0.8)
        P(latent fails to turn on its child); values without an edge are ignored.
    leak : float, tuple or array-like of shape (n_features,), default=0.01
        P(feature on | all latents off).
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    data : Bunch
        ``X (n_samples, n_features)`` and ``Z (n_samples, n_latents)``, both int8,
        ``network``, ``feature_names`` and ``DESCR``.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_noisy_or
    >>> data = make_noisy_or([[1, 1, 1]], 100, failure=(0.1, 0.3), random_state=0)
    >>> data.X.shape
    (100, 3)
    >>> bool(data.network.failure.max() <= 0.3)
    True
    """
    structure = figure_1_structure() if structure is None else structure
    edges = check_structure(structure)
    rng = check_random_state(random_state)
    failures = _draw(failure, "failure", edges.shape, rng)
    return _sample_bunch(
        prior=_draw(prior, "prior", edges.shape[:1], rng),
        failure=np.where(edges, failures, 1.0),
        leak=_draw(leak, "leak", edges.shape[1:], rng),
        n_samples=n_samples,
        rng=rng,
        feature_names=[f"x{j}" for j in range(edges.shape[1])],
        description=(
            f"Noisy-or network of {edges.shape[0]} latents, {edges.shape[1]} features "
            f"and {edges.sum()} edges."
        ),
    )


def make_qmr_like(
    n_latents: int = 570,
    n_features: int = 4075,
    n_edges: int = 45470,
    n_samples: int = 1000,
    random_state: Any = None,
) -> Bunch:
    """Diseases and findings: a random network of the size and shape of QMR-DT.

    QMR-DT [1]_ is a network for medical diagnosis that is not freely available. This
    generator imitates its main properties: a few findings (such as fever) belong to
    hundreds of diseases while most belong to a few; diseases of the same organ system
    share findings, and some are variants of another; the priors of diseases follow a
    Zipf law from 0.1 down to 0.004; a finding shows in about 2.5, 20, 50, 80 or 98.5
    per cent of cases; leaks are between 0.0001 and 0.005.

    Parameters
    ----------
    n_latents : int, default=570
        Number of diseases.
    n_features : int, default=4075
        Number of findings.
    n_edges : int, default=45470
        Number of edges, from `n_latents` (each disease has a finding) to
        ``n_latents * n_features``.
    n_samples : int, default=1000
        Number of patients. For millions of them, draw batches by ``network.sample``.
    random_state : int, RandomState instance or None, default=None
        Source of randomness.

    Returns
    -------
    data : Bunch
        ``X (n_samples, n_features)`` and ``Z (n_samples, n_latents)``, both int8,
        ``network``, ``feature_names``, ``latent_names`` and ``DESCR``.

    References
    ----------
    .. [1] M. Shwe et al. Probabilistic diagnosis using a reformulation of the
       INTERNIST-1/QMR knowledge base. Methods of Information in Medicine 30, 1991.

    Examples
    --------
    >>> from sklearn_latent.datasets import make_qmr_like
    >>> data = make_qmr_like(20, 100, 300, n_samples=10, random_state=0)
    >>> data.X.shape, int(data.network.structure.sum())
    ((10, 100), 300)
    """
    n_latents = check_count("n_latents", n_latents, 1, MOST_COLUMNS)
    n_features = check_count("n_features", n_features, 1, MOST_COLUMNS)
    n_edges = check_count("n_edges", n_edges, n_latents, n_latents * n_features)
    rng = check_random_state(random_state)
    edges = _qmr_structure(n_latents, n_features, n_edges, rng)
    data = _sample_bunch(
        prior=rng.permutation(_zipf(n_latents, low=0.004, high=0.1)),
        failure=np.where(edges, 1.0 - _qmr_activations(edges.shape, rng), 1.0),
        leak=np.exp(rng.uniform(np.log(1e-4), np.log(5e-3), size=n_features)),
        n_samples=n_samples,
        rng=rng,
        feature_names=_numbered("finding", n_features),
        description=(
            f"Random network in the manner of QMR-DT: {n_latents} diseases, "
            f"{n_features} findings, {n_edges} edges."
        ),
    )
    data["latent_names"] = _numbered("disease", n_latents)
    return data


def _qmr_structure(n_latents, n_features, n_edges, rng) -> np.ndarray:
    """Exactly `n_edges` edges drawn without replacement, by log weight plus Gumbel."""
    score = rng.gumbel(size=(n_latents, n_features))
    size = _DISEASE_SPREAD * rng.normal(size=(n_latents, 1))
    system = rng.randint(_N_SYSTEMS, size=(n_latents, 1))
    n_variants = int(_VARIANT_SHARE * n_latents)
    if n_variants:
        variants = slice(n_latents - n_variants, None)
        kin = rng.randint(n_latents - n_variants, size=n_variants)
        alike = rng.uniform(size=(n_variants, n_features)) < _VARIANT_LIKENESS
        score[variants] = np.where(alike, score[kin], score[variants])
        size[variants], system[variants] = size[kin], system[kin]
    score += size + _FINDING_SPREAD * rng.normal(size=n_features)
    score += _SYSTEM_BONUS * (system == rng.randint(_N_SYSTEMS, size=n_features))

    # Every disease first gets its favourite finding, then every finding its favourite
    # disease as far as the edges go, then come the other pairs in order of score.
    favourite_child, favourite_parent = score.argmax(axis=1), score.argmax(axis=0)
    above_all = np.ptp(score) + 1.0
    score[favourite_parent, np.arange(n_features)] += above_all
    score[np.arange(n_latents), favourite_child] += 2.0 * above_all
    edges = np.zeros(score.size, dtype=bool)
    edges[np.argpartition(score, -n_edges, axis=None)[-n_edges:]] = True
    return edges.reshape(score.shape)


def _qmr_activations(shape, rng) -> np.ndarray:
    """Strengths of edges: five levels, blurred."""
    levels = rng.choice(_ACTIVATION_LEVELS, p=_LEVEL_SHARES, size=shape)
    return expit(logit(levels) + 0.25 * rng.normal(size=shape))


def _zipf(n: int, low: float, high: float) -> np.ndarray:
    """Power law of the rank that falls from `high` to `low`."""
    exponent = np.log(high / low) / np.log(max(n, 2))
    return high * np.arange(1.0, n + 1.0) ** -exponent


def _numbered(prefix: str, n: int) -> list[str]:
    """Names that sort in order."""
    width = len(str(n - 1))
    return [f"{prefix}{i:0{width}d}" for i in range(n)]


def _sample_bunch(*, prior, failure, leak, n_samples, rng, feature_names, description):
    """Draw rows and pack what belongs to them."""
    network = NoisyOrNetwork(prior, failure, leak)
    X, Z = network.sample(n_samples, random_state=rng)
    names = {"feature_names": feature_names, "DESCR": description}
    return Bunch(X=X, Z=Z, network=network, **names)


def _draw(value, name: str, shape, rng) -> np.ndarray:
    """Probabilities: a number for all, a range to draw from, or every value."""
    if isinstance(value, Real):
        drawn = np.full(shape, check_numbers(name, value))
    elif isinstance(value, tuple):
        limits = check_numbers(name, value)
        if limits.shape != (2,) or not 0 <= limits[0] <= limits[1] <= 1:
            raise ValueError(
                f"{name} as a tuple must be (low, high) within [0, 1], got {value!r}."
            )
        drawn = rng.uniform(*limits, size=shape)
    else:
        drawn = check_numbers(name, value)
    if drawn.shape != tuple(shape):
        raise ValueError(f"{name} must have shape {shape}, got shape {drawn.shape}.")
    check_probabilities(name, drawn)
    return drawn
