"""OTPropagation at work: what goes in, what comes out, what it says on the way."""

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from otprop import OTPropagation, notices
from tests import oracles, tables

X, TRUE, Y = tables.blobs(60, 3, 3, seed=0, spread=0.3)
NEW = X[:7] + 0.05
PARAMETERS = {"epsilon": 0.3, "alpha": 0.6}


def fitted(table=X, y=Y, **parameters):
    return OTPropagation.paper(**(PARAMETERS | parameters)).fit(table, y)


REFERENCE = fitted()

# ---- inputs

SCATTERED = np.where(np.random.default_rng(0).random((60, 3)) < 0.5, 0.0, X)
NAMES = list("abc")
TABLES = {
    "list": X.tolist(),
    "Fortran order": np.asfortranarray(X),
    "every other row of more": np.repeat(X, 2, axis=0)[::2],
    "objects": X.astype(object),
    "pandas": pd.DataFrame(X, columns=NAMES),
    "pandas Float64": pd.DataFrame(X, columns=NAMES).astype("Float64"),
    "polars": pl.DataFrame(X, schema=NAMES),
}
SPARSE = {
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_matrix,
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "coo_array": sparse.coo_array,
}


@pytest.mark.parametrize("name", TABLES)
def test_every_kind_of_table_gives_the_same_bits(name):
    model = fitted(TABLES[name])
    np.testing.assert_array_equal(model.label_distributions_, REFERENCE.label_distributions_)
    np.testing.assert_array_equal(model.predict_proba(TABLES[name]), REFERENCE.predict_proba(X))


@pytest.mark.parametrize("name", SPARSE)
def test_every_kind_of_sparse_matrix_gives_the_same_bits(name):
    first = fitted(sparse.csr_matrix(SCATTERED))
    model = fitted(SPARSE[name](SCATTERED))
    np.testing.assert_array_equal(model.label_distributions_, first.label_distributions_)
    np.testing.assert_array_equal(model.predict_proba(SPARSE[name](NEW)), first.predict_proba(NEW))


def test_a_memory_map_is_read(tmp_path):
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    model = fitted(mapped)
    np.testing.assert_array_equal(model.label_distributions_, REFERENCE.label_distributions_)
    np.testing.assert_array_equal(model.predict_proba(mapped), REFERENCE.predict_proba(X))


WHOLE = np.round(4 * X)


@pytest.mark.parametrize(
    "wrap",
    [
        lambda x: x.astype(np.int64),
        lambda x: x.astype(np.int8),
        lambda x: pd.DataFrame(x).astype("Int64"),
        lambda x: pl.DataFrame(x.astype(int), schema=NAMES),
        lambda x: x.astype(np.longdouble),
    ],
)
def test_whole_numbers_become_double(wrap):
    model = fitted(wrap(WHOLE), epsilon=5.0)
    assert model._fitted.points.dtype == np.float64
    np.testing.assert_array_equal(
        model.label_distributions_, fitted(WHOLE, epsilon=5.0).label_distributions_
    )


SINGLE = {
    "array": np.asarray,
    "sparse": sparse.csr_matrix,
    "pandas": pd.DataFrame,
    "polars": lambda x: pl.DataFrame(x, schema=NAMES),
}


@pytest.mark.parametrize("kind", SINGLE)
def test_single_precision_stays_single(kind):
    wrap = SINGLE[kind]
    single = wrap(X.astype(np.float32))
    model = fitted(single)
    assert model._fitted.points.dtype == np.float32
    assert model.explain(single).shares.dtype == np.float32
    assert model.label_distributions_.dtype == np.float64
    np.testing.assert_allclose(
        model.label_distributions_, REFERENCE.label_distributions_, atol=1e-4
    )
    double = model.predict_proba(wrap(X.astype(np.float32).astype(np.float64)))
    np.testing.assert_array_equal(double, model.predict_proba(single))


def test_single_precision_costs_stay_single():
    model = fitted(tables.squared(X).astype(np.float32), geometry="precomputed")
    assert model._fitted.dtype == np.float32
    np.testing.assert_array_equal(model.round_, REFERENCE.round_)


def test_half_precision_becomes_double_or_single_and_is_labelled():
    assert fitted(X.astype(np.float16))._fitted.points.dtype in (np.float32, np.float64)


ANIMALS = np.array(["cow", "ant", "bee"])
MISSING = {
    "None": np.where(Y < 0, None, ANIMALS[Y]),
    "pandas": pd.Series(np.where(Y < 0, None, ANIMALS[Y]), dtype="string"),
    "polars": pl.Series(np.where(Y < 0, None, ANIMALS[Y]).tolist()),
    "list": np.where(Y < 0, None, ANIMALS[Y]).tolist(),
}


@pytest.mark.parametrize("name", MISSING)
def test_labels_come_out_as_they_went_in(name):
    model = fitted(y=MISSING[name])
    np.testing.assert_array_equal(model.classes_, ["ant", "bee", "cow"])
    np.testing.assert_array_equal(model.transduction_, ANIMALS[REFERENCE.transduction_])
    assert model.predict(NEW).dtype == model.classes_.dtype


def test_truths_come_out_as_truths():
    model = fitted(y=[None if k < 0 else bool(k) for k in Y])
    assert model.transduction_.dtype == np.bool_
    assert model.predict(NEW).dtype == np.bool_


def test_nothing_handed_in_is_changed():
    table, y = X.copy(), Y.copy()
    model = fitted(table, y)
    model.predict(table)
    np.testing.assert_array_equal(table, X)
    np.testing.assert_array_equal(y, Y)
    cost = tables.squared(X)
    before = cost.copy()
    fitted(cost, geometry="precomputed").predict_proba(cost)
    np.testing.assert_array_equal(cost, before)


def test_the_model_does_not_depend_on_what_the_caller_does_with_the_data_later():
    table = X.copy()
    model = fitted(table)
    before = model.predict_proba(NEW)
    table[:] = 0.0
    np.testing.assert_array_equal(model.predict_proba(NEW), before)


# ---- attributes


def test_fit_sets_what_it_says():
    model = OTPropagation.paper(**PARAMETERS)
    assert model.fit(X, Y) is model
    assert model.epsilon_ == 0.3
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")
    assert model.n_iter_ == len(model.trace_)
    assert model.transduction_.shape == model.certainty_.shape == model.round_.shape == (60,)
    assert model.label_distributions_.shape == (60, 3)
    assert model.score(X, TRUE) == (model.predict(X) == TRUE).mean()


def test_names_of_columns_are_kept_if_all_are_texts():
    model = fitted(TABLES["pandas"])
    np.testing.assert_array_equal(model.feature_names_in_, NAMES)
    assert not hasattr(fitted(pd.DataFrame(X)), "feature_names_in_")


def test_a_second_fit_leaves_nothing_of_the_first():
    model = fitted(TABLES["pandas"], y=MISSING["None"])
    other, _, y = tables.blobs(20, 2, 2, seed=3)
    model.fit(other, y)
    fresh = fitted(other, y)
    assert not hasattr(model, "feature_names_in_")
    assert vars(model).keys() == vars(fresh).keys()
    np.testing.assert_array_equal(model.label_distributions_, fresh.label_distributions_)
    np.testing.assert_array_equal(
        model.predict_proba(other + 0.1), fresh.predict_proba(other + 0.1)
    )
    np.testing.assert_array_equal(model.classes_, [0, 1])


def test_nothing_unlabelled_is_no_error():
    model = fitted(y=TRUE)
    assert model.trace_ == []
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(model.transduction_, TRUE)
    np.testing.assert_array_equal(model.round_, 0)
    kernel = np.exp(-tables.squared(NEW, X) / 0.3)
    votes = tables.by_class(kernel / kernel.sum(axis=1, keepdims=True), TRUE, range(3))
    np.testing.assert_allclose(model.predict_proba(NEW), votes, atol=1e-12)


def test_a_class_with_a_single_label_works():
    model = fitted(np.vstack([X, [[9.0, 9.0, 9.0]]]), np.append(Y, 7))
    assert 7 in model.classes_
    assert model.predict([[9.0, 9.0, 9.0]]) == [7]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "predict_certainty", "explain"])
def test_an_unfitted_model_says_so(method):
    with pytest.raises(NotFittedError):
        getattr(OTPropagation.paper(), method)(X)


def test_an_unfitted_model_says_so_before_the_first_batch_is_asked_for():
    with pytest.raises(NotFittedError):
        OTPropagation.paper().predict_batches([X])


def fail(*_, **__):
    raise KeyboardInterrupt


# What can end a fit early, and where: each is a change of the model or of what it is given.
BROKEN = {
    "text in X": lambda _: (pd.DataFrame([["x"]] * 60, columns=["z"]), Y),
    "NaN in X": lambda _: (pd.DataFrame({"z": [np.nan] * 60}), Y),
    "too few labels": lambda _: (X[:, :2], Y[:7]),
    "one class": lambda _: (X[:, :2], np.where(Y < 0, -1, 5)),
    "a column of no label": lambda _: (pd.DataFrame(X[:, :2], columns=list("yz")), [None] * 60),
    "interrupted in a round": lambda patch: (
        patch.setattr(OTPropagation, "_report", fail),
        (X[:, :2], tables.rename(Y, ANIMALS)),
    )[1],
    "interrupted at the end": lambda patch: (
        patch.setattr(notices, "warn_of", fail),
        (X[:, :2], tables.rename(Y, ANIMALS)),
    )[1],
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_fit_that_fails_leaves_a_fresh_model_unfitted(how, monkeypatch):
    model = OTPropagation.paper(**PARAMETERS)
    with pytest.raises((ValueError, KeyboardInterrupt)):
        model.fit(*BROKEN[how](monkeypatch))
    assert vars(model).keys() == model.get_params().keys()
    with pytest.raises(NotFittedError):
        model.predict(X)


@pytest.mark.parametrize("table", ["list", "pandas"])
@pytest.mark.parametrize("how", BROKEN)
def test_a_fit_that_fails_leaves_a_fitted_model_as_it_was(how, table, monkeypatch):
    model = fitted(TABLES[table])
    before = vars(model).copy()
    with pytest.raises((ValueError, KeyboardInterrupt)):
        model.set_params(epsilon=0.7).fit(*BROKEN[how](monkeypatch))
    assert vars(model) == before | {"epsilon": 0.7}
    np.testing.assert_array_equal(model.predict_proba(TABLES[table]), REFERENCE.predict_proba(X))


def test_a_parameter_set_after_fit_is_for_the_next_fit():
    cost = tables.squared(X)
    points, costs = fitted(), fitted(cost, geometry="precomputed")
    points.set_params(geometry="precomputed", epsilon=9.0, alpha=0.0)
    costs.set_params(geometry="euclidean", epsilon=9.0, alpha=0.0)
    np.testing.assert_array_equal(points.predict_proba(NEW), REFERENCE.predict_proba(NEW))
    np.testing.assert_array_equal(points.explain(NEW).sources, REFERENCE.explain(NEW).sources)
    np.testing.assert_array_equal(costs.predict(cost), REFERENCE.predict(X))
    cost[0, 1:] = INF  # allowed among costs alone
    np.testing.assert_array_equal(costs.predict(cost)[1:], REFERENCE.predict(X)[1:])
    many = fitted(sparse.csr_matrix(X)).set_params(geometry="precomputed")
    np.testing.assert_array_equal(many.predict(sparse.csr_matrix(X)), REFERENCE.predict(X))


# ---- scores


def test_only_rows_with_a_label_are_scored():
    found = REFERENCE.predict(X)
    y = np.where(np.arange(60) < 20, found, -1)
    assert REFERENCE.score(X, y) == 1.0
    y[:5] = (found[:5] + 1) % 3
    assert REFERENCE.score(X, y) == 0.75
    assert REFERENCE.score(X, [None if k < 0 else k for k in y]) == 0.75
    assert REFERENCE.score(X, pd.Series(y).where(y >= 0).astype("Int64")) == 0.75
    weights = np.where(np.arange(60) < 5, 3.0, 1.0)
    assert REFERENCE.score(X, y, weights) == 0.5
    assert REFERENCE.score(X, y, sample_weight=weights.tolist()) == 0.5


def test_texts_are_scored_as_texts():
    model = fitted(y=MISSING["None"])
    y = np.full(60, None, dtype=object)
    y[:3] = model.predict(X[:3])
    y[3] = "a class never seen, longer than the others"
    assert model.score(X, y) == 0.75


@pytest.mark.parametrize("y", [[7] * 60, ["a"] * 60, [0.0] * 60])
def test_classes_that_the_model_does_not_know_count_as_wrong(y):
    assert REFERENCE.score(X, y) == np.mean(REFERENCE.predict(X) == 0) * (y[0] == 0.0)


def test_a_score_needs_a_label_and_as_many_as_rows():
    for y in ([-1] * 60, [None] * 60, np.full(60, np.nan)):
        with pytest.raises(ValueError, match="y has no labelled row to score"):
            REFERENCE.score(X, y)
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        REFERENCE.score(X, Y[:-1])
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        REFERENCE.score(X, Y, np.ones(59))


# ---- predictions


def test_predictions_agree_with_one_another():
    U = REFERENCE.predict_proba(NEW)
    np.testing.assert_allclose(U.sum(axis=1), 1.0)
    np.testing.assert_array_equal(REFERENCE.predict(NEW), U.argmax(axis=1))
    np.testing.assert_allclose(
        REFERENCE.predict_certainty(NEW), tables.certainty(U), rtol=0, atol=1e-12
    )


def test_batches_are_read_one_by_one_and_predicted_as_a_whole():
    read = []

    def batches():
        for start in range(0, 60, 25):
            read.append(start)
            yield X[start : start + 25]

    results = REFERENCE.predict_batches(batches())
    assert read == []
    first = next(results)
    assert read == [0]
    rest = list(results)
    assert read == [0, 25, 50]
    labels, distributions, certainty, confidence = (
        np.concatenate(part) for part in zip(first, *rest, strict=True)
    )
    np.testing.assert_array_equal(labels, REFERENCE.predict(X))
    np.testing.assert_array_equal(distributions, REFERENCE.predict_proba(X))
    np.testing.assert_array_equal(certainty, REFERENCE.predict_certainty(X))
    np.testing.assert_array_equal(confidence, REFERENCE.predict_confidence(X))


def test_no_batches_give_no_predictions():
    assert list(REFERENCE.predict_batches([])) == []


@pytest.mark.parametrize(
    "nothing",
    [
        X[:0],
        X[:0].astype(np.float32),
        sparse.csr_matrix(X)[:0],
        sparse.csr_array(X)[:0],
        pd.DataFrame(X[:0]),
        pl.DataFrame(X[:0]),
        [],
        np.array([]),
    ],
    ids=lambda nothing: type(nothing).__name__,
)
@pytest.mark.parametrize("names", [None, ["cow", "ant", "bee"]])
@pytest.mark.parametrize("abstain_below", [None, 0.5])
def test_a_batch_without_rows_gives_a_prediction_without_rows(nothing, names, abstain_below):
    y = Y if names is None else tables.rename(Y, names)
    model = fitted(y=y, abstain_below=abstain_below)
    before, empty, after = model.predict_batches([X[:5], nothing, X[5:9]])
    assert [part.shape for part in empty] == [(0,), (0, 3), (0,), (0,)]
    assert [part.dtype for part in empty] == [part.dtype for part in before]
    assert len(after.labels) == 4


@pytest.mark.parametrize("wrap", [np.asarray, sparse.csr_matrix])
def test_an_explanation_adds_up_to_the_distribution(wrap):
    model = fitted(wrap(X))
    told = model.explain(wrap(X), n=60)
    np.testing.assert_allclose(told.shares.sum(axis=1), 1.0, atol=1e-12)
    assert (np.diff(told.shares, axis=1) <= 0).all()
    U = np.stack([np.where(told.labels == k, told.shares, 0).sum(axis=1) for k in range(3)], axis=1)
    np.testing.assert_allclose(U, model.predict_proba(wrap(X)), atol=1e-12)
    named = told.sources >= 0
    assert not told.shares[~named].any()
    np.testing.assert_array_equal(told.labels[named], model.transduction_[told.sources[named]])


def test_an_explanation_names_rows_of_fit_and_their_shares():
    model = fitted(alpha=0.9)
    opened = np.flatnonzero(model.round_ == 1)
    told = model.explain(X[opened], n=4)
    given = np.flatnonzero(Y >= 0)
    shares = oracles.shares(
        tables.squared(X[opened], X[given]), model._fitted.replay.potentials[0], 0.3
    )
    best = np.argsort(-shares, axis=1, kind="stable")[:, :4]
    np.testing.assert_array_equal(told.sources, given[best])
    np.testing.assert_allclose(told.shares, np.take_along_axis(shares, best, axis=1), atol=1e-12)
    np.testing.assert_array_equal(told.labels, TRUE[told.sources])
    np.testing.assert_array_equal(told.round, 1)


def test_a_row_is_explained_by_sources_of_its_round_alone():
    model = fitted(epsilon=2.0, alpha=0.9)
    late = np.flatnonzero(model.round_ == 3)
    told = model.explain(X[late], n=60)
    number = model.trace_[2].sources
    assert (told.shares[:, :number] > 0).all()
    assert not told.shares[:, number:].any()
    assert (told.sources[:, number:] == -1).all()
    assert (told.sources[:, :number] >= 0).all()
    assert (model.round_[told.sources[:, :number]] < 3).all()


def test_as_many_sources_are_told_as_there_are():
    assert REFERENCE.explain(NEW, n=1000).sources.shape == (7, 60)
    assert REFERENCE.explain(NEW).sources.shape == (7, 5)
    assert REFERENCE.explain(NEW, n=1).shares.shape == (7, 1)


def test_an_explanation_does_not_depend_on_the_other_rows():
    whole = REFERENCE.explain(X)
    for row in range(0, 60, 7):
        alone = REFERENCE.explain(X[row : row + 1])
        np.testing.assert_array_equal(alone.sources[0], whole.sources[row])
        np.testing.assert_array_equal(alone.shares[0], whole.shares[row])


# ---- costs of the caller's own

INF = np.inf


def island_costs():
    """Two known rows, a chain of three from the first, and a row that nobody reaches."""
    cost = np.full((6, 6), INF)
    np.fill_diagonal(cost, 0.0)
    for one, other in [(0, 2), (2, 3), (3, 4), (1, 2)]:
        cost[one, other] = cost[other, one] = 1.0
    cost[1, 2] = cost[2, 1] = 3.0
    return cost


ISLAND_Y = np.array(["a", "b", None, None, None, None], dtype=object)


@pytest.fixture(params=[1, "1GB"])
def island(request):
    model = OTPropagation.paper(
        geometry="precomputed", epsilon=0.5, alpha=0.0, memory_limit=request.param
    )
    with pytest.warns(UserWarning, match=r"1 row\(s\) are out of every source.s reach"):
        return model.fit(island_costs(), ISLAND_Y)


def test_a_row_that_no_source_reaches_gets_the_uniform_distribution(island):
    np.testing.assert_array_equal(island.label_distributions_[5], [0.5, 0.5])
    assert island.certainty_[5] == 0.0
    assert island.round_[5] == -1
    assert 5 not in island._fitted.source_rows


def test_labels_reach_along_a_chain_through_rows_newly_accepted(island):
    np.testing.assert_array_equal(island.round_, [0, 0, 1, 2, 3, -1])
    assert [done.unreachable for done in island.trace_] == [3, 2, 1]
    assert [done.targets for done in island.trace_] == [4, 3, 2]
    assert island.n_iter_ == 3
    # In round 1 the one target in reach takes the weights; later the chain has one source.
    np.testing.assert_allclose(island.label_distributions_[2], [0.5, 0.5])
    np.testing.assert_array_equal(island.label_distributions_[3].max(), 1.0)
    assert island.transduction_[4] == island.transduction_[3] == island.transduction_[2]


def test_sources_that_reach_nobody_take_no_part(island):
    second = island._fitted.replay.potentials[1]
    np.testing.assert_array_equal(np.isfinite(second), [False, False, True])


def test_rows_out_of_reach_are_predicted_likewise(island):
    new = np.full((2, 6), INF)
    new[1, 3] = 0.2
    for method, expected in [("predict_proba", [0.5, 0.5]), ("predict_certainty", 0.0)]:
        with pytest.warns(UserWarning, match=r"1 row\(s\) are out of every source"):
            found = getattr(island, method)(new)
        np.testing.assert_array_equal(found[0], expected)
        assert found[1].max() == 1.0
    with pytest.warns(UserWarning, match="out of every source"):
        told = island.explain(new)
    np.testing.assert_array_equal(told.round, [-1, 3])
    assert not told.shares[0].any()
    assert told.sources[1, 0] == 3


def test_a_row_that_only_an_unreached_row_reaches_is_out_of_reach(island):
    new = np.full((1, 6), INF)
    new[0, 5] = 0.0
    with pytest.warns(UserWarning, match="out of every source"):
        assert island.predict_certainty(new) == [0.0]


def test_a_source_that_never_took_part_still_votes():
    """No round can have accepted a row that is near it alone; Eq. 27 decides."""
    cost = np.full((7, 7), INF)
    cost[:6, :6] = island_costs()
    y = np.append(ISLAND_Y, "b")  # row 6 reaches nobody
    with pytest.warns(UserWarning, match="out of every source"):
        model = OTPropagation.paper(geometry="precomputed", epsilon=0.5, alpha=0.0).fit(cost, y)
    assert model.trace_[0].alpha == 0.0
    new = np.full((1, 7), INF)
    new[0, 6] = 2.0
    assert model.explain(new, 1).round == 0
    np.testing.assert_array_equal(model.predict_proba(new), [[0.0, 1.0]])
    np.testing.assert_array_equal(model.explain(new, 1).sources, [[6]])


def test_rows_that_are_reached_are_predicted_as_they_were_accepted(island):
    opened = [2, 3, 4]
    found = island.predict_proba(island_costs()[opened])
    np.testing.assert_array_equal(found, island.label_distributions_[opened])


def test_if_nobody_reaches_anybody_nothing_is_done():
    cost = np.where(np.eye(5, dtype=bool), 0.0, INF)
    with pytest.warns(UserWarning, match=r"3 row\(s\)"):
        model = OTPropagation.paper(geometry="precomputed", epsilon=1.0).fit(
            cost, [0, 1, -1, -1, -1]
        )
    assert model.trace_ == []
    assert model.n_iter_ == 1
    np.testing.assert_array_equal(model.label_distributions_[2:], 0.5)


def test_groups_that_cannot_give_what_they_must_are_reported_and_stay_numbers():
    """One source for one target, one for five: no plan gives equal masses."""
    cost = np.full((8, 8), INF)
    cost[np.ix_([0, 2], [0, 2])] = 1.0
    cost[np.ix_([1, 3, 4, 5, 6, 7], [1, 3, 4, 5, 6, 7])] = 1.0
    y = [0, 1] + [-1] * 6
    with pytest.warns(ConvergenceWarning):
        model = OTPropagation.paper(geometry="precomputed", epsilon=1.0, max_iter=20).fit(cost, y)
    np.testing.assert_array_equal(model.transduction_, [0, 1, 0, 1, 1, 1, 1, 1])
    assert np.isfinite(model.label_distributions_).all()
    assert all(np.isfinite(done.value) for done in model.trace_)


def test_negative_costs_are_costs():
    lower = fitted(tables.squared(X) - 5.0, geometry="precomputed")
    np.testing.assert_array_equal(lower.round_, REFERENCE.round_)


# ---- what it says on the way


def test_a_solve_that_stops_short_warns_and_stands_in_the_trace():
    message = r"of \d+ solves did not converge to tol=1e-06.*Raise max_iter"
    with pytest.warns(ConvergenceWarning, match=message):
        model = fitted(epsilon=0.01, max_iter=1)
    short = [done for done in model.trace_ if not done.converged]
    assert short
    assert all(done.marginal_error > 1e-6 for done in short)
    assert all(done.n_iter <= 1 for done in model.trace_)


def test_a_solve_that_converges_says_nothing(capsys):
    fitted()
    assert capsys.readouterr() == ("", "")


def test_verbose_prints_a_line_a_round(capsys):
    model = fitted(verbose=1)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(model.trace_)
    for line, done in zip(lines, model.trace_, strict=True):
        assert re.fullmatch(
            rf"\[otprop\] round {done.round}: {done.sources} sources, {done.targets} targets, "
            rf"{done.accepted} accepted, alpha [\d.e-]+, {done.n_sweeps} sweeps",
            line,
        )


def test_verbose_tells_of_a_solve_that_stops_short(capsys):
    with pytest.warns(ConvergenceWarning):
        fitted(epsilon=0.01, max_iter=1, verbose=1)
    assert "not converged (" in capsys.readouterr().out


def test_warnings_point_at_the_callers_line():
    with pytest.warns(ConvergenceWarning) as caught:
        OTPropagation.paper(epsilon=0.01, max_iter=1).fit(X, Y)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="nothing to choose by") as caught:
        OTPropagation.paper().fit(X[:9], [0, 1, 2, -1, -1, -1, -1, -1, -1])
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    "call",
    {
        "fit": lambda model, cost: model.fit(cost, Y),
        "predict": lambda model, cost: model.predict(cost),
        "predict_proba": lambda model, cost: model.predict_proba(cost),
        "predict_certainty": lambda model, cost: model.predict_certainty(cost),
        "predict_batches": lambda model, cost: next(model.predict_batches([cost])),
        "score": lambda model, cost: model.score(cost, TRUE),
        "explain": lambda model, cost: model.explain(cost),
    }.items(),
    ids=lambda item: item[0],
)
def test_rows_out_of_reach_are_told_at_the_callers_line(call):
    name, function = call
    cost = np.where(np.eye(60, dtype=bool), 0.0, INF)
    model = OTPropagation.paper(epsilon=1.0, geometry="precomputed")
    if name != "fit":
        with pytest.warns(UserWarning, match="out of every source"):
            model.fit(cost, Y)
    with pytest.warns(UserWarning, match="out of every source") as caught:
        function(model, cost)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert caught[0].lineno == function.__code__.co_firstlineno


def test_numbers_too_large_for_the_fitted_precision_are_refused():
    X, _, y = tables.real("iris")
    model = OTPropagation.paper(epsilon=0.1).fit(X.astype(np.float32), y)
    with pytest.raises(ValueError, match=r"X holds values up to 1e\+300, too large for .*float32"):
        model.predict(np.full((1, X.shape[1]), 1e300))
    costs = tables.squared(X, X)
    model = OTPropagation.paper(geometry="precomputed", epsilon=0.1).fit(
        costs.astype(np.float32), y
    )
    with pytest.raises(ValueError, match=r"too large for .*float32"):
        model.predict(np.full((1, len(X)), 1e300))


def test_an_epsilon_lost_in_the_precision_of_x_is_said_to_be_the_scale_of_x():
    X, _, y = tables.real("iris")
    with pytest.raises(ValueError, match="Scale the columns first"):
        OTPropagation.paper().fit((X * 1e-21).astype(np.float32), y)
