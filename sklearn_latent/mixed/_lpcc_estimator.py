"""A static pure measurement model: latents behind the features of a table."""

from __future__ import annotations

from typing import Any

from ._structure_learner import StructureLearner


class LPCC(StructureLearner):
    """Latent variables behind discrete features, each of which measures one latent.

    Learns how many latents there are, which features measure each, how many states
    they have and which of them depend on each other. Named after learning by pairwise
    cluster comparison [1]_, which ``local="lpcc"`` runs as published; the default
    compares models by BIC instead and needs less data.

    Parameters
    ----------
    local : {"bic", "lpcc"}, default="bic"
        "bic": features share a latent where one hidden class explains them better than
        two dependent ones, and edges are those of highest BIC given expected counts.
        "lpcc": both stages of pairwise cluster comparison.
    cardinality : "auto" or int, default="auto"
        Number of states of every latent. "auto": chosen by BIC for each.
    max_cardinality : int, default=6
        Largest number of states that "auto" tries.
    emissions : str, list or dict, default="auto"
        How each feature shows the state of its latent: a kind for all features, a list
        of one per feature of a slice, or a dictionary by name or number, in which
        features that are not named are "auto". "categorical": a probability of each
        category by state; numbers are cut into bins. "gaussian": a mean and a standard
        deviation by state; "lognormal": the same of logarithms. "ordinal": categories
        in order, with one location by state. "auto": numbers with many values are
        gaussian or lognormal, ordered pandas categories ordinal if BIC prefers that,
        all others categorical. Kinds with a memory are for rows with time.
    n_bins : int, default=4
        Numbers that are not whole, or that take more than `max_categories` values, are
        cut into as many bins of about equal size while the latents are sought, and for
        emissions of categories.
    max_categories : int, default=10
        Whole numbers up to this many values are categories.
    max_joint_states : int, default=500
        Joint states of connected latents up to which inference is exact, at most 4,096.
        Above, it is factored, with a warning.
    max_iter : int, default=200
        Maximum number of EM iterations.
    tol : float, default=1e-4
        EM has converged when its log-posterior gains no more than this per row and
        iteration, and the gains are not about to grow again.
    random_state : int, RandomState instance or None, default=None
        Source of the random starts of latent class models, and of the sample of
        batches or of a Dask collection.
    verbose : int, default=0
        Whether to report progress.

    Attributes
    ----------
    structure_ : ndarray of bool of shape (n_latents, n_features)
        Features of each latent. A feature that depends on nothing measures none.
    intra_ : ndarray of bool of shape (n_latents, n_latents)
        Edges: ``[i, j]`` and not ``[j, i]`` is i -> j; both are an undirected edge,
        whose direction the data cannot tell.
    cardinality_ : ndarray of int of shape (n_latents,)
        Number of states of each latent.
    graph_ : TemporalGraph
        The matrices as one object, with no edges into a next slice.
    start_ : list of ndarray
        Tables of the fitted network.
    emission_ : list of ndarray or Emission
        Emission of each feature; of a categorical one P(category | state).
    network_ : LatentDBN
        The fitted network, with one slice.
    categories_ : list of ndarray
        Labels of each feature, by number; none for numbers.
    n_latents_ : int
        Number of latents.
    duplicates_ : list of list of int
        Groups of features that are nearly the same, which share a latent.
    hierarchy_ : ndarray of shape (n_latents - 1, 4)
        Hierarchy of the latents as a linkage matrix of `scipy.cluster.hierarchy`:
        complete linkage by one less the normalised mutual information of their most
        probable states.
    log_likelihood_ : float
        Log-likelihood of the training data; a lower bound if `is_exact_` is False.
    bic_ : float
        Bayesian information criterion of the training data; lower is better.
    is_exact_ : bool
        Whether inference is exact, with at most `max_joint_states` joint states.
    n_iter_ : int
        Number of EM iterations.
    converged_ : bool
        Whether it converged.
    n_features_in_ : int
        Number of features seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, if `X` has string names.

    See Also
    --------
    LGLPCCTemporal : For sequences.

    References
    ----------
    .. [1] Asbeh, N., Lerner, B. (2016). Learning latent variable models by pairwise
       cluster comparison. Journal of Machine Learning Research, 17.

    Examples
    --------
    >>> from sklearn_latent import LPCC
    >>> from sklearn_latent.datasets import make_latent_dbn
    >>> data = make_latent_dbn("G2", n_sequences=2000, n_slices=1, random_state=0)
    >>> model = LPCC(random_state=0).fit(data.X)
    >>> model.structure_.astype(int)
    array([[1, 1, 1, 0, 0, 0],
           [0, 0, 0, 1, 1, 1]])
    >>> model.cardinality_
    array([4, 4])
    >>> model.transform(data.X).shape
    (2000, 8)
    """

    n_jobs = None
    _unit = "rows"

    def __init__(
        self,
        *,
        local: str = "bic",
        cardinality: int | str = "auto",
        max_cardinality: int = 6,
        emissions: Any = "auto",
        n_bins: int = 4,
        max_categories: int = 10,
        max_joint_states: int = 500,
        max_iter: int = 200,
        tol: float = 1e-4,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.local = local
        self.cardinality = cardinality
        self.max_cardinality = max_cardinality
        self.emissions = emissions
        self.n_bins = n_bins
        self.max_categories = max_categories
        self.max_joint_states = max_joint_states
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.verbose = verbose
