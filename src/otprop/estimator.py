"""OTPropagation: the paper's OTP and OTI as a scikit-learn classifier."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from otprop import model_file, notices, suggestion, validation
from otprop.fitting import Task, fit
from otprop.labels import encode, given_labels, marked
from otprop.results import Explanation, Prediction
from otprop.state import pack, reading, saved_parameters, unpack
from otprop.transport import Workers
from otprop.validation import RELATIONS

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Mapping

    from numpy.typing import ArrayLike, NDArray
    from sklearn.utils import Tags

    from otprop.fitting import Outcome
    from otprop.propagation import Decision, Round


class OTPropagation(ClassifierMixin, BaseEstimator):
    """Spread a few labels over many rows by regularised optimal transport.

    Labelled rows (sources) share out their mass among the unlabelled ones (targets) by an
    entropic transport plan between them. A target takes the class that gives it most, and is as
    certain of it as the entropy of its shares by class allows. What is "auto" is chosen on the
    labelled rows alone, and told in `selection_`. `OTPropagation.paper` is the paper's method.

    Parameters
    ----------
    geometry : {"auto", "graph", "euclidean", "precomputed", "precomputed-graph"}, default="auto"
        What it costs to carry a label from row to row. "auto" is "graph", but "euclidean" where
        hidden labels are surely found more often with it, or `epsilon` is given. "graph": labels
        diffuse along a graph of nearest neighbours over all rows. "euclidean": squared distances.
        "precomputed": the X given to `fit` is itself the matrix of costs of all rows to all rows
        (+inf forbids a pair); for `predict`, of new rows to all rows fitted, in their order.
        "precomputed-graph": the same with affinities, 0 for rows that are not neighbours, dense or
        sparse.
    scaling : {"auto", "none", "minmax", "standard", "discriminant"}, default="auto"
        How columns are scaled. "discriminant" adds to the standardised columns the directions in
        which the labelled classes lie apart (Fisher's).
    marginals : {"auto", "rows", "relaxed", "classes"}, default="auto"
        What sources must give: "rows" is the paper's rule, the same mass each; "relaxed", about the
        same; "classes", each class its part. "auto" is "classes".
    epsilon : float or "auto", default="auto"
        Regularisation of costs, on their scale. Small values let only the nearest sources speak.
        "auto" chooses it by leaving out labelled rows one at a time.
    alpha : float, default=0.9
        With costs: certainty that a target must exceed to join the sources, from 0 to 1.
    relaxation : float or "auto", default="auto"
        With "relaxed": what it costs a source to give more or less than its part, on the scale of
        the costs. "auto" is `epsilon`.
    class_prior : None, "labels", "uniform" or mapping, default=None
        With "classes": the classes' parts of all rows. "labels": as among the labelled rows; a
        mapping gives each class a number. None: as among the labelled rows, unless what they are
        to label contradicts it.
    class_tolerance : float or "auto", default="auto"
        With "classes": a class may take between p·(1 − t) and p·(1 + t) of the rows, with p its
        part and t this number; infinity asks nothing of the classes. "auto" is 0, or infinity
        where the labels seem not to tell the parts.
    n_neighbors : int or "auto", default="auto"
        Neighbours of a row in the graph.
    diffusion : float or "auto", default="auto"
        How far labels are heard on the graph, κ, above 0 and below 1.
    rounds : {"auto", "none", "frozen", "revisable", "annealed"}, default="auto"
        Rounds on the graph, in which labelled targets speak for others. "frozen": the most certain
        join for good, as in the paper; "revisable": they are chosen anew in each round;
        "annealed": all speak, heard far at first and then nearby. "auto": "annealed" where labels
        are few and what it finds can be reproduced, else "none".
    solver : {"newton", "sinkhorn"}, default="newton"
        How the plan is found: Newton's method, or the paper's, which is slower.
    stall : "lowest-alpha" or float, default="lowest-alpha"
        With costs, when no target exceeds `alpha`: lower it for this round to the greatest
        certainty (the paper's rule), or let this fraction of the targets join, the most certain
        first.
    tol : float, default=1e-6
        L1 error of the masses given at which a solve has converged.
    max_iter : int, optional
        Most steps of the solver in a round; by default 1,000 of Newton's, 100,000 of Sinkhorn's.
    abstain_below : float, optional
        Confidence below which a row gets no label but the marker of rows without: -1 among
        numbers, else None.
    memory_limit : float or str, default="2GiB"
        Bytes for costs and shares, as a number or a text such as "500MB". What does not fit is
        recomputed in blocks; the result is the same. A graph keeps to its links, but with "rows"
        and "relaxed" it holds a number for each row and source, and refuses what does not fit.
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
    confidence_ : ndarray of shape (n,)
        Chance that the label is right, calibrated on labels that were hidden; 1 for given labels.
    round_ : ndarray of shape (n,)
        The round in which a row joined the sources, or on a graph the one since which it has its
        label: 0 for given labels, -1 for rows that no source reaches, whose distribution is
        uniform and whose certainty is 0.
    trace_ : list of Round
        What each round did: sources (m), targets (n), accepted (ζ of Eq. 19-20; on a graph, the
        rows whose label changed), the α used, and the solver's report.
    selection_ : Selection
        What is in use for each parameter that was "auto" (`chosen`), why, and the `candidates`
        it was chosen from with their scores.
    calibration_ : Calibration
        How confidence follows from a distribution, and from how many labels that was learned.
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
    >>> model.predict([[0.4]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        *,
        geometry: str = "auto",
        scaling: str = "auto",
        marginals: str = "auto",
        epsilon: float | str = "auto",
        alpha: float = 0.9,
        relaxation: float | str = "auto",
        class_prior: str | Mapping[Any, float] | None = None,
        class_tolerance: float | str = "auto",
        n_neighbors: int | str = "auto",
        diffusion: float | str = "auto",
        rounds: str = "auto",
        solver: str = "newton",
        stall: float | str = "lowest-alpha",
        tol: float = 1e-6,
        max_iter: int | None = None,
        abstain_below: float | None = None,
        memory_limit: float | str = "2GiB",
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.geometry = geometry
        self.scaling = scaling
        self.marginals = marginals
        self.epsilon = epsilon
        self.alpha = alpha
        self.relaxation = relaxation
        self.class_prior = class_prior
        self.class_tolerance = class_tolerance
        self.n_neighbors = n_neighbors
        self.diffusion = diffusion
        self.rounds = rounds
        self.solver = solver
        self.stall = stall
        self.tol = tol
        self.max_iter = max_iter
        self.abstain_below = abstain_below
        self.memory_limit = memory_limit
        self.n_jobs = n_jobs
        self.verbose = verbose

    @classmethod
    def paper(cls, epsilon: float | str = "auto", alpha: float = 0.9, **others: Any) -> Self:
        """Return the paper's method, OTP and OTI, at an ε and α: squared distances, `rows`.

        Parameters
        ----------
        epsilon : float or "auto", default="auto"
            Regularisation, on the scale of the costs.
        alpha : float, default=0.9
            Certainty that a target must exceed to join the sources.
        **others
            Parameters of OTPropagation that are to differ from the paper's.

        Returns
        -------
        OTPropagation
            Not yet fitted.
        """
        fixed = {"geometry": "euclidean", "scaling": "none", "marginals": "rows"}
        return cls(**(fixed | {"epsilon": epsilon, "alpha": alpha} | others))

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
        parameters = self.get_params()
        validation.check_parameters(parameters)
        with self._as_it_was_on_failure():
            table = self._validated(X, self.geometry, fitting=True)
            classes, labels = encode(y)
            validation.check_labels(table, classes, labels)
            validation.check_prior(self.class_prior, classes)
            with Workers(effective_n_jobs(self.n_jobs)) as workers:
                outcome = fit(Task(table, labels, classes, parameters, workers, self._report))
            self._keep(classes, labels, outcome)
            notices.warn_ignored(outcome.selection.chosen, self._changed_parameters())
            notices.warn_of(outcome.trace, outcome.round, self.tol)
        return self

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Label rows: a row of `fit` that had no label gets its `transduction_`.

        But for "precomputed-graph", as affinities do not tell which row of `fit` a row is.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows; with precomputed costs or affinities, those to all rows fitted, shape (m, n).

        Returns
        -------
        ndarray of shape (m,)
            Labels, or the marker of rows without where the model abstains.
        """
        return self._labels(self._decide(X).distributions)

    def predict_proba(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return each row's shares by class, in the order of `classes_`.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows, as for `predict`.

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
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (m,)
            Certainties.
        """
        return self._decide(X).certainty

    def predict_confidence(self, X: ArrayLike) -> NDArray[np.float64]:
        """Return the chance that each row's label is right, calibrated on hidden labels.

        Parameters
        ----------
        X : array, data frame or sparse matrix of shape (m, d)
            Rows, as for `predict`.

        Returns
        -------
        ndarray of shape (m,)
            Chances, from 1/K to 1. Where `calibration_` had no labels to learn from, the largest
            shares.
        """
        return self.calibration_.confidence(self._decide(X).distributions)

    def predict_batches(self, batches: Iterable[ArrayLike]) -> Iterator[Prediction]:
        """Label data larger than memory, a batch of rows at a time.

        Parameters
        ----------
        batches : iterable of arrays, data frames or sparse matrices
            Each as for `predict`, or without rows. They are read one by one.

        Returns
        -------
        iterator of Prediction
            Labels, distributions, certainty and confidence of each batch.
        """
        check_is_fitted(self)
        return (self._predict_batch(batch) for batch in batches)

    def score(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return the share of the rows with a label in y that are labelled rightly.

        Rows without a label in y do not count, so that cross_val_score and GridSearchCV can be
        given the y of `fit`. Classes that the model does not know count as wrong, and so do rows
        for which it abstains.

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
            Sources as row numbers in the X of `fit`, their labels and shares, largest first. On a
            graph these are rows whose label was given, with their shares in the first plan.
        """
        validation.check_count(n, "n", what="an integer of at least 1")
        table = self._checked(X)
        with Workers(effective_n_jobs(self.n_jobs)) as workers:
            decision = self._fitted.decide(table, workers)
            rows, labels, shares = self._fitted.explain(table, decision, n, workers)
        notices.warn_unreached(int((decision.round < 0).sum()))
        return Explanation(rows, self.classes_[labels], shares, decision.round)

    def suggest(self, n: int = 1) -> NDArray[np.intp]:
        """Return the rows whose labels would help most: in doubt, amid others in doubt, apart.

        Parameters
        ----------
        n : int, default=1
            How many rows to name.

        Returns
        -------
        ndarray of shape (n,) or shorter
            Row numbers in the X of `fit`, the most helpful first; rows with a given label never.
        """
        check_is_fitted(self)
        validation.check_count(n, "n", what="an integer of at least 1")
        with Workers(effective_n_jobs(self.n_jobs)) as workers:
            graph = self._fitted.graph_of_rows(workers)
            return suggestion.suggest(graph, 1.0 - self.confidence_, n, workers)

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
        tags.input_tags.pairwise = self.geometry in RELATIONS
        tags.input_tags.sparse = self.geometry != "precomputed" and self.scaling in {"auto", "none"}
        # scikit-learn's checks hand in similarities where costs are due.
        tags.classifier_tags.poor_score = self.geometry in RELATIONS
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

    def _validated(self, X: Any, geometry: str, *, fitting: bool) -> Any:
        """Return X as an array or CSR matrix of the model's precision."""
        validation.check_numeric(X)
        # scikit-learn knows the precision of arrays and of pandas' frames, not of others.
        preferred = [np.float32] if validation.single_precision(X) else [np.float64, np.float32]
        X = validate_data(
            self,
            X,
            reset=fitting,
            accept_sparse=False if geometry == "precomputed" else "csr",
            dtype=preferred,
            order="C",
            ensure_all_finite=False,
        )
        names = getattr(self, "feature_names_in_", None)
        validation.check_finite(X, names, forbidden_pairs=geometry == "precomputed")
        if not fitting:
            X = validation.in_precision(X, self._fitted.dtype)
        if geometry in RELATIONS:
            validation.check_relations(X, geometry, square=fitting)
        else:
            validation.check_range(X)
        return X

    def _checked(self, X: ArrayLike) -> Any:
        """Return rows to decide, checked; the parameter `geometry` may have been set since fit."""
        check_is_fitted(self)
        return self._validated(X, self.selection_.chosen["geometry"], fitting=False)

    def _keep(self, classes: NDArray[Any], labels: NDArray[np.intp], outcome: Outcome) -> None:
        """Set the fitted attributes, and what induction needs."""
        self.classes_ = classes
        self.epsilon_ = outcome.epsilon
        self.calibration_ = outcome.calibration
        self.label_distributions_ = outcome.distributions
        self.certainty_ = outcome.certainty
        self.confidence_ = self._confidence(outcome.distributions, labels >= 0)
        self.transduction_ = self._labels(outcome.distributions, labels >= 0)
        self.round_ = outcome.round
        self.trace_ = outcome.trace
        self.selection_ = outcome.selection
        self._fitted = outcome.model

    def _decide(self, X: ArrayLike) -> Decision:
        table = self._checked(X)
        with Workers(effective_n_jobs(self.n_jobs)) as workers:
            decision = self._fitted.decide(table, workers)
        notices.warn_unreached(int((decision.round < 0).sum()))
        return decision

    def _predict_batch(self, batch: ArrayLike) -> Prediction:
        if validation.without_rows(batch):
            found, certainty = np.empty((0, len(self.classes_))), np.empty(0)
        else:
            decision = self._decide(batch)
            found, certainty = decision.distributions, decision.certainty
        confidence = self.calibration_.confidence(found)
        return Prediction(self._labels(found), found, certainty, confidence)

    def _confidence(
        self, distributions: NDArray[np.float64], given: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        return np.where(given, 1.0, self.calibration_.confidence(distributions))

    def _labels(
        self, distributions: NDArray[np.float64], given: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]:
        """Return the classes of the largest shares, and the marker where confidence is too low."""
        labels = np.asarray(self.classes_[distributions.argmax(axis=1)])
        if self.abstain_below is None:
            return labels
        known = np.zeros(len(labels), np.bool_) if given is None else given
        unsure = self._confidence(distributions, known) < self.abstain_below
        knows_nothing = distributions.max(axis=1) == distributions.min(axis=1)
        return marked(labels, unsure | knows_nothing)

    def _changed_parameters(self) -> dict[str, Any]:
        """Return the parameters that differ from their defaults."""
        defaults = OTPropagation().get_params()
        return {
            name: value
            for name, value in self.get_params().items()
            if value is not defaults[name] and value != defaults[name]
        }

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
        model = OTPropagation(**saved_parameters(header))
        validation.check_parameters(model.get_params())
        model._fitted = unpack(model, header, arrays)  # noqa: SLF001 - its own class
    return model
