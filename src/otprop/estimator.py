"""OTPropagation: the paper's OTP and OTI as a scikit-learn classifier."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from joblib import effective_n_jobs
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from otprop import model_file, notices, validation
from otprop.geometry import Euclidean, Precomputed, SparseEuclidean
from otprop.labels import encode, given_labels
from otprop.propagation import Replay, Settings, explain, propagate, replay
from otprop.selection import Labelled, choose_epsilon
from otprop.state import Fitted, pack, reading, unpack
from otprop.transport import Workers

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from otprop.geometry import Geometry
    from otprop.propagation import Decision, Propagation, Round


class Prediction(NamedTuple):
    """What `predict_batches` yields for a batch, one entry a row."""

    labels: NDArray[Any]
    distributions: NDArray[np.float64]
    certainty: NDArray[np.float64]


class Explanation(NamedTuple):
    """The sources with the largest shares in each row's label, largest first.

    All arrays have one row a row explained and one column a source, except `round`, which tells
    the round that decided the row (0: the vote of all rows; -1: out of every row's reach). Where
    the round had fewer sources than asked for, and for rows out of reach, the remaining sources
    are -1, with shares of 0 and labels that mean nothing.
    """

    sources: NDArray[np.intp]  # row numbers in the X of fit
    labels: NDArray[Any]
    shares: NDArray[np.floating]
    round: NDArray[np.intp]


class OTPropagation(ClassifierMixin, BaseEstimator):
    """Spread a few labels over many rows by regularised optimal transport.

    Labelled rows (sources) share out their mass among the unlabelled ones (targets) by the
    entropic transport plan between them. A target takes the class that gives it most, and is as
    certain of it as the entropy of its shares by class allows. Targets more certain than `alpha`
    join the sources, and the plan is made anew, until no target is left. New rows are led through
    the same rounds.

    Parameters
    ----------
    geometry : {"euclidean", "precomputed"}, default="euclidean"
        What it costs to carry a label from row to row: squared distances, or the X given to
        `fit` is itself the matrix of costs of all rows to all rows (+inf forbids a pair); for
        `predict`, of new rows to all rows fitted, in their order.
    epsilon : float or "auto", default="auto"
        Regularisation, on the scale of the costs. Small values let only the nearest sources
        speak. "auto" chooses it by leaving out labelled rows one at a time, so that as many as
        possible would be accepted rightly.
    alpha : float, default=0.9
        Certainty that a target must exceed to join the sources, from 0 to 1.
    marginals : {"rows"}, default="rows"
        What sources must give: "rows" is the paper's rule, the same mass each.
    solver : {"newton", "sinkhorn"}, default="newton"
        How the plan is found: Newton's method, or the paper's, which is slower.
    stall : "lowest-alpha" or float, default="lowest-alpha"
        When no target exceeds `alpha`: lower it for this round to the greatest certainty (the
        paper's rule), or let this fraction of the targets join, the most certain first.
    tol : float, default=1e-6
        L1 error of the sources' masses at which a solve has converged.
    max_iter : int, optional
        Most steps of the solver in a round; by default 1,000 of Newton's, 100,000 of Sinkhorn's.
    memory_limit : float or str, default="2GiB"
        Bytes for costs and shares, as a number or a text such as "500MB". What does not fit is
        recomputed in blocks; the result is the same.
    n_jobs : int, optional
        Threads. None means 1 unless in a joblib context, -1 all cores. The result is the same.
    verbose : int, default=0
        If above 0, print a line for each round.

    Attributes
    ----------
    classes_ : ndarray of shape (K,)
        The labels, sorted.
    transduction_ : ndarray of shape (n,)
        A label for each row of `fit`; given labels as they were.
    label_distributions_ : ndarray of shape (n, K)
        Shares by class (Eq. 13).
    certainty_ : ndarray of shape (n,)
        1 − entropy / log K of the shares by class (Eq. 16); 1 for given labels.
    round_ : ndarray of shape (n,)
        The round in which a row joined the sources: 0 for given labels, -1 for rows that no source
        reaches, whose distribution is uniform and whose certainty is 0.
    trace_ : list of Round
        What each round did: sources (m), targets (n), accepted (ζ of Eq. 19-20), the α used, and
        the solver's report.
    epsilon_ : float
        The regularisation used.
    n_iter_ : int
        Rounds; 1 also where there was nothing to do.
    n_features_in_ : int
        Number of columns.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of columns, if X had names that are all strings.

    Examples
    --------
    >>> import numpy as np
    >>> from otprop import OTPropagation
    >>> X = np.array([[0.0], [0.3], [0.5], [4.0], [4.2], [4.6]])
    >>> model = OTPropagation().fit(X, ["a", None, "a", "b", None, "b"])
    >>> model.transduction_
    array(['a', 'a', 'a', 'b', 'b', 'b'], dtype='<U1')
    >>> model.predict([[0.9]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        *,
        geometry: str = "euclidean",
        epsilon: float | str = "auto",
        alpha: float = 0.9,
        marginals: str = "rows",
        solver: str = "newton",
        stall: float | str = "lowest-alpha",
        tol: float = 1e-6,
        max_iter: int | None = None,
        memory_limit: float | str = "2GiB",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.geometry = geometry
        self.epsilon = epsilon
        self.alpha = alpha
        self.marginals = marginals
        self.solver = solver
        self.stall = stall
        self.tol = tol
        self.max_iter = max_iter
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    @property
    def n_iter_(self) -> int:
        """Rounds; 1 also where there was nothing to do, as scikit-learn wants it."""
        return max(1, len(self.trace_))

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Label the rows of X that have no label.

        A fit that raises or is interrupted leaves the model as it was.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (n, d)
            All rows. float32 stays float32, all else becomes float64.
        y : array of shape (n,)
            Labels: integers, strings or booleans. Rows without label have None, NaN or NA, or -1
            where the labels are numbers.

        Returns
        -------
        OTPropagation
            Itself, fitted.
        """
        validation.check_parameters(self.get_params())
        precomputed = self.geometry == "precomputed"
        with self._as_it_was_on_failure():
            table = self._validated(X, precomputed=precomputed, fitting=True)
            classes, labels = encode(y)
            _check_labels(table, classes, labels)
            with Workers(effective_n_jobs(self.n_jobs)) as workers:
                epsilon = self._epsilon(table, labels, len(classes), workers)
                found = propagate(
                    _geometry(table, None if precomputed else table),
                    labels,
                    len(classes),
                    self._settings(epsilon, workers),
                    self._report,
                )
            self._keep(table, classes, epsilon, found)
            notices.warn_of(found, self.tol)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows: a row of `fit` that had no label gets its `transduction_`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows; with geometry="precomputed", costs to all rows fitted, shape (m, n).

        Returns
        -------
        ndarray of shape (m,)
            Labels.
        """
        return self._labels(self._decide(X).distributions)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return each row's shares by class, in the order of `classes_`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows; with geometry="precomputed", costs to all rows fitted, shape (m, n).

        Returns
        -------
        ndarray of shape (m, K)
            Distributions; rows sum to one.
        """
        return self._decide(X).distributions

    def predict_certainty(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return how certain each row's label is, from 0 (no idea) to 1 (Eq. 16).

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows; with geometry="precomputed", costs to all rows fitted, shape (m, n).

        Returns
        -------
        ndarray of shape (m,)
            Certainties.
        """
        return self._decide(X).certainty

    def predict_batches(self, batches: Iterable[ArrayLike]) -> Iterator[Prediction]:
        """Label data larger than memory, a batch of rows at a time.

        Parameters
        ----------
        batches : iterable of arrays, data frames or sparse matrices
            Each as for `predict`. They are read one by one.

        Returns
        -------
        iterator of Prediction
            Labels, distributions and certainty of each batch.
        """
        check_is_fitted(self)
        return (self._predict_batch(batch) for batch in batches)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the rows with a label in y that are labelled rightly.

        Rows without a label in y do not count, so that cross_val_score and GridSearchCV can be
        given the y of `fit`. Classes that the model does not know count as wrong.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows, as for `predict`.
        y : array of shape (m,)
            True labels; None, NaN, NA, or -1 where the labels are numbers, as in `fit`, for rows
            that are not to count.
        sample_weight : array of shape (m,), optional
            Weights of the rows.

        Returns
        -------
        float
            Accuracy.
        """
        known, labels = given_labels(y)
        check_consistent_length(X, known, sample_weight)
        if not known.any():
            raise ValueError(
                "y has no labelled row to score: all entries are -1, None or NaN. In "
                "cross-validation, take folds that each hold labelled rows, such as those of "
                "StratifiedKFold."
            )
        right = np.asarray(self.predict(X)[known] == labels)
        weights = None if sample_weight is None else np.asarray(sample_weight)[known]
        return float(accuracy_score(np.ones_like(right), right, sample_weight=weights))

    def explain(self, X: ArrayLike, n: int = 5) -> Explanation:
        """Return the rows that gave each row its label, and their shares.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows, as for `predict`.
        n : int, default=5
            How many sources to tell of each row.

        Returns
        -------
        Explanation
            Sources as row numbers in the X of `fit`, their labels and shares, largest first.
        """
        validation.check_count(n, "n", what="an integer of at least 1")
        decision, geometry = self._decide_with(X)
        sources, shares = explain(geometry, decision, self._fitted.replay, n)
        return Explanation(
            sources=np.where(sources < 0, -1, self._fitted.source_rows[sources]),
            labels=self.classes_[self._fitted.replay.labels[sources]],
            shares=shares,
            round=decision.round,
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the fitted model to a file that `otprop.load` reads; it holds data, never code.

        Parameters
        ----------
        path : str or path
            Where to. The file appears whole or not at all.
        """
        check_is_fitted(self)
        # They may have been set since fit, and `load` takes none that cannot be.
        validation.check_parameters(self.get_params())
        model_file.write(path, *pack(self, self._fitted))

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.geometry == "precomputed"
        tags.input_tags.sparse = self.geometry != "precomputed"
        # scikit-learn's checks hand in similarities where costs are due.
        tags.classifier_tags.poor_score = self.geometry == "precomputed"
        return tags

    @contextmanager
    def _as_it_was_on_failure(self) -> Iterator[None]:
        """Undo all that was set if the block raises or is interrupted."""
        before = vars(self).copy()
        try:
            yield
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    def _validated(self, X: Any, *, precomputed: bool, fitting: bool) -> Any:
        """Return X as an array or CSR matrix of the model's precision."""
        validation.check_no_text(X)
        # scikit-learn knows the precision of arrays and of pandas' frames, not of others.
        preferred = [np.float32] if validation.single_precision(X) else [np.float64, np.float32]
        X = validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse=False if precomputed else "csr",
            dtype=preferred,
            order="C",
            ensure_all_finite=False,
        )
        names = getattr(self, "feature_names_in_", None)
        validation.check_finite(X, names, forbidden_pairs=precomputed)
        if precomputed and fitting:
            validation.check_square(X)
        if not fitting:
            X = validation.in_precision(X, self._fitted.dtype)
        if not precomputed:
            validation.check_range(X)
        return X

    def _epsilon(self, X: Any, labels: NDArray[np.intp], classes: int, workers: Workers) -> float:
        if self.epsilon != "auto":
            validation.check_epsilon(float(self.epsilon), X.dtype, chosen=False)
            return float(self.epsilon)
        given = np.flatnonzero(labels >= 0)
        geometry = _geometry(X, None if self.geometry == "precomputed" else X)
        geometry.add_sources(given)
        labelled = Labelled(given, labels[given], classes)
        choice = choose_epsilon(geometry, labelled, float(self.alpha), workers)
        validation.check_epsilon(choice.epsilon, X.dtype, chosen=True)
        if not choice.validated:
            notices.warn(
                "epsilon='auto' had nothing to choose by, as every class has a single label: it "
                "is a sixteenth of the median cost between nearest labelled rows, "
                f"{choice.epsilon:.4g}. Label more rows or give epsilon.",
                UserWarning,
            )
        return choice.epsilon

    def _settings(self, epsilon: float, workers: Workers) -> Settings:
        return Settings(
            epsilon=epsilon,
            alpha=float(self.alpha),
            stall=self.stall,  # type: ignore[arg-type]  # checked
            tol=float(self.tol),
            solver=self.solver,  # type: ignore[arg-type]  # checked
            max_iter=self.max_iter,
            memory=validation.memory_bytes(self.memory_limit),
            workers=workers,
        )

    def _keep(self, X: Any, classes: NDArray[Any], epsilon: float, found: Propagation) -> None:
        """Set the fitted attributes, and what induction needs: sources, f and α of each round."""
        self.classes_ = classes
        self.epsilon_ = epsilon
        self.transduction_ = self._labels(found.distributions)
        self.label_distributions_ = found.distributions
        self.certainty_ = found.certainty
        self.round_ = found.round
        self.trace_ = found.trace
        self._fitted = Fitted(
            replay=Replay(
                epsilon=epsilon,
                labels=found.labels,
                classes=len(classes),
                potentials=found.potentials,
                thresholds=found.thresholds,
            ),
            source_rows=found.sources,
            points=None if self.geometry == "precomputed" else X[found.sources],
            dtype=X.dtype,
        )

    def _decide(self, X: ArrayLike) -> Decision:
        return self._decide_with(X)[0]

    def _decide_with(self, X: ArrayLike) -> tuple[Decision, Geometry]:
        """Lead rows through the rounds; return also the geometry that tells their costs."""
        check_is_fitted(self)
        # The parameter `geometry` may have been set since fit.
        rows, points = self._fitted.source_rows, self._fitted.points
        table = self._validated(X, precomputed=points is None, fitting=False)
        geometry = _geometry(table, points)
        geometry.add_sources(rows if points is None else np.arange(len(rows)))
        with Workers(effective_n_jobs(self.n_jobs)) as workers:
            decision = replay(geometry, table.shape[0], self._fitted.replay, workers)
        notices.warn_unreached(int((decision.round < 0).sum()))
        return decision, geometry

    def _predict_batch(self, batch: ArrayLike) -> Prediction:
        decision = self._decide(batch)
        return Prediction(
            self._labels(decision.distributions), decision.distributions, decision.certainty
        )

    def _labels(self, distributions: NDArray[np.float64]) -> NDArray[Any]:
        return np.asarray(self.classes_[distributions.argmax(axis=1)])

    def _report(self, done: Round) -> None:
        if self.verbose > 0:
            notices.report_round(done)


def load(path: str | os.PathLike[str]) -> OTPropagation:
    """Read a model that `OTPropagation.save` wrote.

    Parameters
    ----------
    path : str or path
        Where from. Nothing in the file is run; a file that is truncated, altered or not a model
        raises ModelFileError.

    Returns
    -------
    OTPropagation
        As it was when saved.
    """
    header, arrays = model_file.read(path)
    with reading(path):
        model = OTPropagation(**header["parameters"])
        validation.check_parameters(model.get_params())
        model._fitted = unpack(model, header, arrays)  # noqa: SLF001 - its own class
    return model


def _geometry(X: Any, points: Any) -> Geometry:
    """Return the costs of the rows of X to `points`; those in X itself where there are none."""
    if points is None:
        return Precomputed(X)
    if sparse.issparse(points):
        return SparseEuclidean(sparse.csr_matrix(X), points)
    return Euclidean(X.toarray() if sparse.issparse(X) else X, points)


def _check_labels(X: Any, classes: NDArray[Any], labels: NDArray[np.intp]) -> None:
    check_consistent_length(X, labels)
    if len(classes) == 0:
        raise ValueError(
            "y has no labelled row: all entries are -1, None or NaN. Label at least one row of "
            "each of two classes."
        )
    if len(classes) == 1:
        raise ValueError(
            f"y has only one class, {classes[0]!r}, among its labelled rows; there is nothing to "
            "decide. Label at least one row of another class."
        )
