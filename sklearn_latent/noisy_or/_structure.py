"""Noisy-or networks of unknown structure: how many latents, and what each drives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from .._core.progress import Progress, with_callbacks
from .._core.transaction import all_or_nothing
from .._core.validation import check_choice, check_count, check_flag, check_random_state
from .._core.warn import warn
from .._tables.blocks import Blocks, LocalBlocks
from ..exceptions import ModelMisfitWarning, PoorDataWarning
from ..plotting import LatentImagesDisplay
from ._misfit import contradictions, counted_rows, misfit_message
from ._noisy_or_graph import latents_to_frame
from ._noisy_or_model import NoisyOrModel, check_flags
from ._quartets import Causes, Thresholds
from ._refine_causes import Settings, learn_table, scored_rows
from ._statistics.gaps import Gaps
from ._statistics.packed import PackedRows
from ._statistics.rows import BlockMoments, append_blocks, open_blocks, sample_rows
from ._statistics.watched_columns import as_packed
from ._wide_tables import WIDE, learn_groups, score_groups

if TYPE_CHECKING:
    import pandas as pd


class QuartetStructureLearner(NoisyOrModel):
    """Hidden causes of binary features: their number, their features, their strengths.

    Hidden causes switch binary features on: a cause that is present activates each of
    its features unless it fails to, independently of the others, and a feature is also
    on by itself with its leak probability. Nothing of this is known beforehand. Four
    features that one cause alone couples reveal it, because their joint distribution
    has rank two; its other features follow from conditional mutual information; and
    what is known is subtracted, so that further causes come to light [1]_.

    By default this is the first step of a search by likelihood, for any number of
    latents [2]_: EM on the likeliest states of each row, edges by likelihood ratios,
    latents born where residuals still depend on each other, merged where their
    posteriors do, and dropped where they do not improve the BIC. Hidden classes above
    the latents let them depend on each other where that improves the BIC.

    Parameters
    ----------
    test : {"rank", "coherence"}, default="rank"
        How quartets are tested: by the third singular value of their unfolded joint
        distribution, or by the agreement of the parameters that their triplets give
        and the error of the distribution that these imply.
    quartet_threshold : float or "auto", default="auto"
        Largest third singular value, or reconstruction error with
        ``test="coherence"``, of a quartet that passes; 0.01 in [1]_. "auto" compares
        with the sampling noise of each quartet: singly coupled ones are rejected with
        probability 0.01.
    coherence_threshold : float or "auto", default="auto"
        Largest variance of a parameter over the triplets of a quartet; only with
        ``test="coherence"``. "auto" falls with the number of rows.
    extend_threshold : float or "auto", default="auto"
        How much the pointwise mutual information of two features must exceed the
        conditional one, given a third, for the three to share a cause; 0.1 in [1]_.
        "auto" compares with the sampling noise: of the triplets that pass, a share of
        5 / rows, and at most 0.05, is expected to be wrong; if all features are
        independent, that is the probability that any passes.
    max_depth : int or None, default=None
        Number of rounds of subtraction, 0 for none. None: until nothing new is found.
    refine : bool, default=True
        Whether to go on by likelihood. False is the algorithm of [1]_.
    dependence : {"auto", None}, default="auto"
        Whether latents may depend on each other. "auto" puts a few hidden classes above
        them, each with its own priors, if the BIC improves. None: latents are
        independent. Only with ``refine=True``.
    polarity : {"auto", None}, default="auto"
        Whether columns that depend negatively on the others, such as votes or
        reverse-scored items, are read as their opposite. None: all are read as they
        are. Only with ``refine=True``.
    binarize : float or None, default=0.0
        Values above it are on. None: X holds 0 and 1 already.
    n_jobs : int or None, default=None
        Number of threads that count; None is 1 unless in a
        :obj:`joblib.parallel_config` context.
    random_state : int, RandomState instance or None, default=None
        Chooses the rows that the search looks at if there are too many. Pass an int
        for the same choice every time.
    verbose : int, default=0
        Whether to print progress.

    Attributes
    ----------
    n_latents_ : int
        Number of latents found, maybe 0.
    structure_ : ndarray of bool of shape (n_latents, n_features)
        Which latent drives which feature.
    prior_ : ndarray of shape (n_latents,)
        P(latent on).
    failure_ : ndarray of shape (n_latents, n_features)
        P(a latent that is on fails to switch on the feature); 1 without an edge.
    leak_ : ndarray of shape (n_features,)
        P(feature on | all latents off).
    network_ : NoisyOrNetwork
        The fitted model.
    n_classes_ : int
        Number of hidden classes above the latents; 1: the latents are independent.
    class_weight_ : ndarray of shape (n_classes,)
        P(class).
    class_prior_ : ndarray of shape (n_classes, n_latents)
        P(latent on | class).
    polarity_ : ndarray of shape (n_features,)
        -1 for the columns that are read as their opposite, of which `failure_` and
        `leak_` then speak; else 1.
    depth_ : ndarray of shape (n_latents,)
        Round in which a quartet revealed the latent; inf: only the refinement did.
    quartets_ : ndarray of int of shape (n_latents, 4)
        That quartet of features; -1: none.
    prior_stderr_ : ndarray of shape (n_latents,)
        Standard errors of the priors.
    failure_stderr_ : ndarray of shape (n_latents, n_features)
        Standard errors of the failures; NaN without an edge, and for edges that
        ``refine=False`` did not learn from the quartet itself.
    log_likelihood_ : float
        Log-likelihood of the training rows, in nats.
    bic_ : float
        Bayesian information criterion of the training rows; lower is better.
    is_exact_ : bool
        Whether these two are exact. If not, they are estimated from a sample of the
        rows, because there are many, or from lower bounds, because many latents are
        coupled.
    n_features_in_ : int
        Number of features seen in `fit`.
    on_values_ : dict of str
        Values that count as on in columns of words such as "yes" and "no", by name of
        the column. Columns of numbers and of True and False are not listed.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of features seen in `fit`, if all are strings.

    See Also
    --------
    quartet_depth : What could be discovered with infinite data.
    NoisyOrMoMLearner : The parameters, if the structure is known.
    NoisyOrEM : Random starts, if only the number of latents is known.

    Notes
    -----
    Missing values (NaN) are summed out of the likelihood, which is right if values are
    missing at random, and left out moment by moment: with ``refine=False`` the model is
    biased unless they are missing completely at random, and `fit` warns if it depends
    on other features that they are missing.

    Up to 2,000 features, every pair is looked at. Of more, pairs are counted where they
    occur, those that go together more often than by chance tie features into groups,
    and each group is learned as a table of its own; features in no group have a leak
    alone. Where groups are larger than 200 features, they are split between features
    that have few neighbours in common; features at the border are learned in several
    groups. Then classes are learned only if there is one group, and `polarity` compares
    features within their group, which only positive dependence makes. With
    ``refine=False``, quartets are sought within groups too. Time and memory grow
    linearly with the rows.

    References
    ----------
    .. [1] Jernite, Y., Halpern, Y. and Sontag, D. (2013). Discovering hidden variables
       in noisy-or networks using quartet tests. NIPS.
    .. [2] Drefs, J., Guiraud, E. and Luecke, J. (2022). Evolutionary variational
       optimization of generative models. Journal of Machine Learning Research 23.

    Examples
    --------
    >>> from sklearn_latent import QuartetStructureLearner
    >>> from sklearn_latent.datasets import make_noisy_or_images
    >>> data = make_noisy_or_images(1000, random_state=0)
    >>> learner = QuartetStructureLearner().fit(data.X)
    >>> learner.n_latents_
    8
    >>> sorted(int(n) for n in learner.structure_.sum(axis=1))
    [8, 8, 9, 12, 16, 16, 20, 28]
    >>> learner.transform(data.X).shape
    (1000, 8)
    """

    depth_: NDArray[np.float64]
    quartets_: NDArray[np.int64]
    prior_stderr_: NDArray[np.float64]
    failure_stderr_: NDArray[np.float64]
    n_classes_: int
    class_weight_: NDArray[np.float64]
    class_prior_: NDArray[np.float64]
    polarity_: NDArray[np.int8]
    _blocks: list[PackedRows] | None

    def __init__(
        self,
        *,
        test: str = "rank",
        quartet_threshold: float | str = "auto",
        coherence_threshold: float | str = "auto",
        extend_threshold: float | str = "auto",
        max_depth: int | None = None,
        refine: bool = True,
        dependence: str | None = "auto",
        polarity: str | None = "auto",
        binarize: float | None = 0.0,
        n_jobs: int | None = None,
        random_state: Any = None,
        verbose: int = 0,
    ):
        self.test = test
        self.quartet_threshold = quartet_threshold
        self.coherence_threshold = coherence_threshold
        self.extend_threshold = extend_threshold
        self.max_depth = max_depth
        self.refine = refine
        self.dependence = dependence
        self.polarity = polarity
        self.binarize = binarize
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @with_callbacks
    def fit(
        self, X: Any, y: Any = None, *, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Find the latents.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing. Also an iterator of such batches, or a Dask array or
            data frame, which is read block by block on its own workers.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Row weights. Whole numbers are counts: a weight of 2 is a row twice. If any
            is not whole, all are sampling weights, whose scale does not matter.

        Returns
        -------
        self : QuartetStructureLearner
            The fitted estimator.
        """
        with Progress(self, X=X) as progress, all_or_nothing(self):
            self._check_parameters()
            blocks = self._read_blocks(X, sample_weight, reset=True)
            self._learn(self._pack_rows(blocks, reset=True), progress)
            # A saved model must not carry the rows of people along.
            self._blocks = None
        self._warn()
        return self

    @with_callbacks
    def partial_fit(
        self,
        X: Any,
        y: Any = None,
        *,
        sample_weight: ArrayLike | None = None,
        update: bool = True,
    ) -> Self:
        """Take further rows into account; the same as one `fit` on all together.

        For this, the estimator keeps all rows, one bit per value: 10 million rows of
        256 features take 320 MB, and a saved estimator contains them. `fit` keeps none,
        so that batches after it begin anew, with a warning.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Data; NaN is missing.
        y : Ignored
            Present for API consistency.
        sample_weight : array-like of shape (n_samples,) or None, default=None
            Row weights. Whole numbers are counts: a weight of 2 is a row twice. If any
            is not whole, all are sampling weights, whose scale does not matter. Each
            batch then counts by its own effective number of rows.
        update : bool, default=True
            Whether to find the latents now. Pass False for all but the last of many
            batches: each search costs as much as a `fit`.

        Returns
        -------
        self : QuartetStructureLearner
            The estimator, fitted to all rows so far if `update`.
        """
        check_flag("update", update)
        if hasattr(X, "__dask_graph__"):
            raise TypeError(
                "X must be in memory for partial_fit, got a Dask collection; use fit."
            )
        with Progress(self, X=X) as progress, all_or_nothing(self):
            before = self.__dict__.get("_blocks")
            if before is None and hasattr(self, "network_"):
                warn(
                    "partial_fit begins anew: fit, which came before, keeps no rows.",
                    PoorDataWarning,
                )
            self._check_parameters()
            read = self._read_blocks(X, sample_weight, reset=before is None)
            packed = self._pack_rows(read, reset=before is None)
            blocks = append_blocks(before or [], packed.gather(as_packed))
            progress(f"packed {sum(block.n_rows for block in blocks):,} rows")
            if update:
                self._learn(LocalBlocks(blocks, self.n_jobs), progress)
            self._blocks = blocks
        if update:
            self._warn()
        return self

    def _learn(self, blocks: Blocks, progress):
        """From packed rows to fitted attributes."""
        self._refuse_columns()
        settings = Settings(
            self._check_parameters(),
            self.max_depth,
            bool(self.refine),
            self.dependence == "auto",
            self.polarity == "auto",
            self.n_jobs,
        )
        rng = check_random_state(self.random_state)
        if self.n_features_in_ > WIDE:
            rows = self._learn_wide(blocks, settings, rng, progress)
        else:
            source, patterns = open_blocks(blocks, self.n_jobs)
            progress(f"packed {len(patterns.weights):,} distinct rows")

            def report(network) -> bool:
                return progress(f"{len(network.failure)} latents so far")

            self._store_causes(*learn_table(source, patterns, settings, rng, report))
            if not self.refine:
                Gaps.of(patterns).warn(self._feature_names())
            rows = scored_rows(patterns, self.structure_)
            self._store_score(rows, source.n_rows)
        self._misfit = contradictions(self.network_, rows, self._feature_names())
        progress(f"{self.n_latents_} latents")

    def _learn_wide(self, blocks: Blocks, settings: Settings, rng, progress):
        """Learn group by group; return some of the rows, on which to check the fit."""
        source = BlockMoments(blocks)
        progress(f"packed {source.n_features:,} columns")

        def report(n_groups, n_latents) -> bool:
            return progress(f"{n_latents} latents in {n_groups} groups so far")

        self._store_causes(*learn_groups(blocks, settings, rng, report))
        score, n_rows, is_exact = score_groups(blocks, self.network_, self.n_jobs)
        self._store_fit(score, n_rows, is_exact=is_exact)
        return sample_rows(source, counted_rows(source.n_features))

    def _store_causes(self, found: Causes, polarity):
        """Set the fitted attributes but for those of the likelihood."""
        network = found.network._with(polarity=polarity)._checked()
        self._store(network)
        self.depth_, self.quartets_ = found.depth, found.quartets
        self.prior_stderr_ = found.prior_errors
        self.failure_stderr_ = found.failure_errors
        self.n_classes_, self.polarity_ = network.n_classes, network.polarity
        self.class_weight_ = network.class_weight
        self.class_prior_ = network.class_prior

    def _warn(self):
        self._warn_if_no_latents(
            "the features show no dependence that a common cause of at least three of "
            "them would explain, or the rows are too few to tell"
        )
        misfit = self.__dict__.pop("_misfit", [])
        if not self.refine:
            # Who asks for the published estimate knows that it is a rough one.
            misfit = [check for check in misfit if check.check == "likelihood"]
        if misfit:
            warn(misfit_message(misfit), ModelMisfitWarning)

    def _check_parameters(self) -> Thresholds:
        """Validate the parameters that do not concern the data."""
        check_flags(self, "refine")
        for name in ("dependence", "polarity"):
            check_choice(name, getattr(self, name), ("auto", None))
        check_count("max_depth", self.max_depth, 0, optional=True)
        return Thresholds.of(self)

    def latents_frame(self) -> pd.DataFrame:
        """Table of the latents.

        Returns
        -------
        frame : pandas.DataFrame
            One row per latent: ``prior`` and ``prior_stderr``, ``n_children``,
            ``children`` (names), ``mean_failure``, ``depth`` and ``quartet`` (names;
            empty if only the refinement found it).
        """
        check_is_fitted(self, "network_")
        return latents_to_frame(self, self._feature_names())

    def plot_images(self, shape: tuple[int, int], **kwargs: Any) -> LatentImagesDisplay:
        """Draw the features of each latent as an image.

        Parameters
        ----------
        shape : tuple of two int
            Height and width of the images that the rows of X are.
        **kwargs : dict
            Passed on to `LatentImagesDisplay.plot`.

        Returns
        -------
        display : LatentImagesDisplay
            With the drawing in ``axes_`` and ``figure_``.
        """
        return LatentImagesDisplay.from_estimator(self, shape, **kwargs)
