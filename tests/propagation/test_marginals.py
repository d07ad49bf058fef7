"""Algorithm 2 with the other rules for the sources: `relaxed` and `classes`."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from otprop import OTPropagation
from otprop.baselines import KernelVote
from otprop.propagation import marginals, rounds
from tests import oracles, tables

EPSILON = 4.0


def fitted(X, y, rule, **parameters):
    fixed = {"geometry": "euclidean", "scaling": "none", "epsilon": EPSILON, "tol": 1e-9}
    return OTPropagation(marginals=rule, **(fixed | {"alpha": 0.5} | parameters)).fit(X, y)


def parts_of(prior, y, classes):
    """The parts of all rows that a `class_prior` asks for."""
    if prior == "uniform":
        return np.full(len(classes), 1 / len(classes))
    if prior == "labels":
        return np.array([(y[y >= 0] == k).mean() for k in classes])
    return np.array([prior[k] for k in classes]) / sum(prior.values())


def due(parts, counts, rows, tolerance):
    """How much of the open rows each class may take at the least and at the most."""
    low, high = (
        np.clip((parts * (1 + t) * rows - counts) / (rows - counts.sum()), 0, None)
        for t in (-tolerance, tolerance)
    )
    if low.sum() >= 1 or tolerance == 0:
        low = high = low / low.sum()
    return low, high


def each_round(model, X):
    """Yield of each round its sources' labels, f, and the mass that each class gives."""
    for _, sources, targets, f, cost in tables.rounds(model, tables.squared(X)):
        labels = model.transduction_[sources]
        mass = oracles.mass(cost, f, model.epsilon_, oracles.uniform(len(targets)))
        yield labels, f, np.array([mass[labels == k].sum() for k in model.classes_], float)


PRIORS = st.sampled_from(["labels", "uniform", {0: 5, 1: 2, 2: 3, 3: 1}])


def for_classes(prior, y):
    """Leave out of a mapping what is no class."""
    return {k: prior[k] for k in np.unique(y[y >= 0])} if isinstance(prior, dict) else prior


@given(table=tables.generic(), prior=PRIORS, alpha=st.sampled_from([0.0, 0.5, 0.9, 1.0]))
def test_in_every_round_classes_take_what_the_prior_leaves_to_the_open_rows(table, prior, alpha):
    X, y = table
    prior = for_classes(prior, y)
    model = fitted(X, y, "classes", class_prior=prior, class_tolerance=0.0, alpha=alpha)
    parts = parts_of(prior, y, model.classes_)
    for labels, f, totals in each_round(model, X):
        counts = np.array([(labels == k).sum() for k in model.classes_])
        expected, _ = due(parts, counts, len(y), 0.0)
        np.testing.assert_allclose(totals, expected, atol=1e-8)
        for k in model.classes_:
            assert len(set(f[labels == k])) == 1  # a source has its class's price
    assert all(done.converged for done in model.trace_)


def test_with_the_labels_for_prior_the_first_round_shares_the_open_rows_as_the_labels_are():
    X, _, y = tables.blobs(60, 2, 3, seed=3)
    model = fitted(X, y, "classes", class_prior="labels", class_tolerance=0.0, alpha=0.0)
    assert len(model.trace_) == 1
    np.testing.assert_allclose(
        model.label_distributions_[y < 0].mean(axis=0),
        np.bincount(y[y >= 0]) / (y >= 0).sum(),
        atol=1e-8,
    )


@pytest.mark.parametrize(("labels", "tolerance"), [((3, 3, 3), 0.0), ((5, 3, 1), np.inf)])
def test_few_labels_are_believed_in_their_numbers_only_where_these_are_the_same(labels, tolerance):
    X, true, _ = tables.blobs(60, 2, 3, seed=3)
    y = np.full(60, -1)
    for k, count in enumerate(labels):
        y[np.flatnonzero(true == k)[:count]] = k
    said = fitted(X, y, "classes", class_prior="labels", class_tolerance=tolerance)
    left = fitted(X, y, "classes")
    np.testing.assert_array_equal(left.label_distributions_, said.label_distributions_)


@given(
    table=tables.generic(),
    prior=PRIORS,
    tolerance=st.sampled_from([0.02, 0.2, 0.6, 2.0]),
    alpha=st.sampled_from([0.0, 0.9]),
)
def test_totals_keep_to_their_bounds_and_only_bounds_that_hold_have_a_price(
    table, prior, tolerance, alpha
):
    X, y = table
    prior = for_classes(prior, y)
    model = fitted(X, y, "classes", class_prior=prior, class_tolerance=tolerance, alpha=alpha)
    parts = parts_of(prior, y, model.classes_)
    for labels, f, totals in each_round(model, X):
        counts = np.array([(labels == k).sum() for k in model.classes_])
        least, most = due(parts, counts, len(y), tolerance)
        assert (totals >= least - 1e-8).all()
        assert (totals <= most + 1e-8).all()
        if least.sum() < 1:
            prices = np.array([f[labels == k][0] for k in model.classes_])
            assert (prices[totals > least + 1e-7] <= 0).all()
            assert (prices[totals < most - 1e-7] >= 0).all()


@given(table=tables.tables(), alpha=st.sampled_from([0.0, 0.5, 0.9]))
def test_infinite_tolerance_is_the_kernel_vote(table, alpha):
    X, y = table
    model = fitted(X, y, "classes", class_tolerance=np.inf, alpha=alpha)
    vote = KernelVote(epsilon=EPSILON).fit(X, y)
    first = model.round_ <= 1
    np.testing.assert_allclose(
        model.label_distributions_[first], vote.label_distributions_[first], atol=1e-12
    )
    # and so in each round, of the sources that it has
    for number, sources, targets, _, cost in tables.rounds(model, tables.squared(X)):
        U = tables.by_class(
            oracles.shares(cost, np.zeros(len(sources)), EPSILON),
            model.transduction_[sources],
            model.classes_,
        )
        joins = model.round_[targets] == number
        np.testing.assert_allclose(
            model.label_distributions_[targets[joins]], U[joins].astype(float), atol=1e-12
        )


@given(
    table=tables.tables(),
    relaxation=st.sampled_from([0.1, 1.0, 4.0, 100.0]),
    alpha=st.sampled_from([0.0, 0.5, 1.0]),
)
def test_relaxed_sources_give_what_is_due_at_their_price_in_every_round(table, relaxation, alpha):
    X, y = table
    model = fitted(X, y, "relaxed", relaxation=relaxation, alpha=alpha)
    for _, sources, targets, f, cost in tables.rounds(model, tables.squared(X)):
        asked = np.exp(-f / relaxation) / len(sources)
        given_mass = oracles.mass(cost, f, EPSILON, oracles.uniform(len(targets)))
        np.testing.assert_allclose(given_mass.astype(float), asked, atol=1e-8)


@given(table=tables.tables())
def test_relaxation_to_infinity_is_rows_and_to_zero_the_kernel_vote(table):
    X, y = table
    firm = fitted(X, y, "relaxed", relaxation=1e9, alpha=0.0)
    rows = OTPropagation.paper(epsilon=EPSILON, alpha=0.0, tol=1e-9).fit(X, y)
    first = (firm.round_ <= 1) & (rows.round_ <= 1)
    np.testing.assert_allclose(
        firm.label_distributions_[first], rows.label_distributions_[first], atol=1e-6
    )
    loose = fitted(X, y, "relaxed", relaxation=1e-7, alpha=0.0)
    vote = KernelVote(epsilon=EPSILON).fit(X, y)
    first = loose.round_ <= 1
    np.testing.assert_allclose(
        loose.label_distributions_[first], vote.label_distributions_[first], atol=1e-5
    )


def test_auto_relaxation_is_epsilon():
    X, _, y = tables.blobs(60, 2, 3, seed=3)
    said, left = fitted(X, y, "relaxed", relaxation=EPSILON), fitted(X, y, "relaxed")
    np.testing.assert_array_equal(left.label_distributions_, said.label_distributions_)
    other = fitted(X, y, "relaxed", relaxation=10 * EPSILON)
    assert np.abs(other.label_distributions_ - said.label_distributions_).max() > 1e-3


RULES = pytest.mark.parametrize(
    ("rule", "parameters"),
    [
        ("rows", {}),
        ("relaxed", {"relaxation": 2.0}),
        ("classes", {"class_tolerance": 0.0}),
        ("classes", {"class_prior": "uniform", "class_tolerance": 0.1}),
        ("classes", {"class_tolerance": np.inf}),
    ],
    ids=["rows", "relaxed", "classes", "within bounds", "free"],
)


@RULES
@settings(max_examples=15)
@given(
    table=tables.tables(),
    alpha=st.sampled_from([0.0, 0.5, 0.9, 1.0]),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_induction_of_the_open_rows_is_their_transduction_to_the_bit(
    rule, parameters, table, alpha, dtype
):
    X, y = table[0].astype(dtype), table[1]
    model = fitted(X, y, rule, alpha=alpha, tol=1e-5, **parameters)
    opened = y < 0
    np.testing.assert_array_equal(
        model.predict_proba(X[opened]), model.label_distributions_[opened]
    )
    np.testing.assert_array_equal(model.predict_certainty(X[opened]), model.certainty_[opened])
    np.testing.assert_array_equal(model.explain(X[opened]).round, model.round_[opened])
    np.testing.assert_array_equal(model.predict(X[opened]), model.transduction_[opened])


@pytest.mark.parametrize("rule", ["rows", "relaxed", "classes"])
@settings(max_examples=15)
@given(table=tables.generic())
def test_prices_to_start_from_change_nothing(rule, table):
    X, y = table
    warm = fitted(X, y, rule, alpha=0.9, tol=1e-10)
    assume(len(warm.trace_) > 1)
    assume(tables.closest_call(warm, tables.squared(X)) > 1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rounds, "_with_joining", lambda *_: None)
        cold = fitted(X, y, rule, alpha=0.9, tol=1e-10)
    np.testing.assert_array_equal(warm.round_, cold.round_)
    np.testing.assert_array_equal(warm.transduction_, cold.transduction_)
    np.testing.assert_allclose(warm.label_distributions_, cold.label_distributions_, atol=1e-7)


@pytest.mark.parametrize("rule", ["rows", "relaxed"])
def test_a_round_starts_from_the_prices_of_the_one_before(rule, monkeypatch):
    asked = []
    solve_sweep = marginals.solve_sweep

    def spy(*arguments, warm_start, **options):
        asked.append(warm_start)
        return solve_sweep(*arguments, warm_start=warm_start, **options)

    monkeypatch.setattr(marginals, "solve_sweep", spy)
    X, _, y = tables.blobs(80, 2, 3, seed=4)
    model = fitted(X, y, rule, alpha=0.9)
    assert len(asked) == len(model.trace_) > 2
    assert asked[0] is None
    found = model._fitted.replay.potentials
    for start, before, done in zip(asked[1:], found, model.trace_[1:], strict=False):
        np.testing.assert_array_equal(start[: len(before)], before)
        assert len(start) == done.sources


def test_targets_out_of_reach_are_not_among_those_that_classes_share():
    X, _, y = tables.blobs(40, 2, 2, seed=1)
    cost = np.full((42, 42), np.inf)
    cost[:40, :40] = tables.squared(X)
    with pytest.warns(UserWarning, match="out of every source's reach"):
        model = OTPropagation(
            geometry="precomputed", class_tolerance=0.0, epsilon=2.0, alpha=0.5, tol=1e-9
        ).fit(cost, np.append(y, [-1, -1]))
    alone = fitted(X, y, "classes", class_tolerance=0.0, epsilon=2.0)
    np.testing.assert_allclose(
        model.label_distributions_[:40], alone.label_distributions_, atol=1e-8
    )
    np.testing.assert_array_equal(model.label_distributions_[40:], 0.5)
    np.testing.assert_array_equal(model.certainty_[40:], 0.0)
    np.testing.assert_array_equal(model.round_[40:], -1)
    assert {done.unreachable for done in model.trace_} == {2}


def test_what_rows_gets_wrong_at_the_end_of_the_rounds_classes_gets_right():
    """DESIGN.md, 3: with one target left `rows` decides by itself; the prior knows what is due."""
    X = np.array([[0.0], [10.0], [10.1], [0.0]])
    y = np.array([0, 1, 1, -1])
    assert fitted(X, y, "rows", epsilon=1.0).transduction_[3] == 1
    model = fitted(X, y, "classes", epsilon=1.0, class_prior="uniform", class_tolerance=0.0)
    assert model.transduction_[3] == 0
    np.testing.assert_allclose(model.label_distributions_[3], [1.0, 0.0], atol=1e-8)


def test_a_class_of_part_zero_gets_no_row_and_none_is_undecided():
    X, _, y = tables.blobs(60, 2, 3, seed=3)
    model = fitted(X, y, "classes", class_prior={0: 1, 1: 0, 2: 1}, class_tolerance=0.0, alpha=0.0)
    opened = y < 0
    np.testing.assert_array_equal(model.label_distributions_[opened, 1], 0.0)
    np.testing.assert_allclose(model.label_distributions_.sum(axis=1), 1.0, atol=1e-12)
    np.testing.assert_array_equal(
        model.predict_proba(X[opened]), model.label_distributions_[opened]
    )
    free = fitted(X, y, "classes", class_prior={0: 1, 1: 0, 2: 1}, class_tolerance=np.inf)
    assert (free.label_distributions_[opened, 1] > 0).any()
