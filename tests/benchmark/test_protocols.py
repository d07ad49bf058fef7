"""The rules of the three protocols, and what each may look at."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import make_blobs
from sklearn.semi_supervised import LabelSpreading

from otprop import OTPropagation
from otprop.benchmark.limits import OutOfTimeError
from otprop.benchmark.measures import scores
from otprop.benchmark.methods import METHODS, Method, add_method
from otprop.benchmark.problems import Problem, unit_of
from otprop.benchmark.protocols import PROTOCOLS, Given, base, corrected, honest, published
from otprop.benchmark.protocols.published import SETTINGS, propagate
from otprop.benchmark.splits import PERCENTS, hidden, labelled_rows
from tests import oracles


@pytest.fixture
def given(monkeypatch):
    """A split of three blobs that overlap a little."""
    X, truth = make_blobs(90, centers=3, cluster_std=2.0, random_state=1)

    def made(name, scaling, _data):
        scaled = X if scaling != "standard" else (X - X.mean(axis=0)) / X.std(axis=0)
        return Problem(name, scaling, scaled, truth, unit_of(scaled))

    monkeypatch.setattr(base, "problem", made)
    return Given("blobs", 15, seed=0)


@pytest.fixture
def _few_candidates(monkeypatch):
    monkeypatch.setitem(
        METHODS, "OTP", replace(METHODS["OTP"], grid={"epsilon": (0.5, 4.0), "alpha": (0.9,)})
    )


def with_truth(monkeypatch, change):
    """Let the protocols see other true labels."""
    made = base.problem

    def changed(*where):
        before = made(*where)
        return replace(before, truth=change(before.truth))

    monkeypatch.setattr(base, "problem", changed)


def test_splits_are_stratified_and_recorded_by_their_seed():
    truth = np.repeat([0, 1, 2], [100, 60, 40])
    for percent in PERCENTS:
        known = labelled_rows(truth, percent, seed=3)
        assert np.bincount(truth[known]).tolist() == [percent, 0.6 * percent, 0.4 * percent]
        np.testing.assert_array_equal(known, labelled_rows(truth, percent, seed=3))
        assert (known != labelled_rows(truth, percent, seed=4)).any()
    y = hidden(truth, known)
    assert (y[~known] == -1).all()
    assert (y[known] == truth[known]).all()


@pytest.mark.usefixtures("_few_candidates")
def test_described_takes_the_best_by_the_labels_of_the_test(given):
    outcome = PROTOCOLS["described"].run("OTP", given)
    chosen = base.problem("blobs", "minmax", None)
    known = labelled_rows(chosen.truth, 15, 0)
    found = {}
    for epsilon in (0.5 * chosen.unit, 4.0 * chosen.unit):
        model = OTPropagation.paper(epsilon=epsilon, alpha=0.9)
        model.fit(chosen.X, hidden(chosen.truth, known))
        found[epsilon] = scores(chosen.truth[~known], model.transduction_[~known])
    best = max(found, key=lambda epsilon: found[epsilon])
    assert outcome.parameters == {"epsilon": best, "alpha": 0.9, "scaling": "minmax"}
    assert outcome.scores == found[best]
    assert [c["accuracy"] for c in outcome.candidates] == [s.accuracy for s in found.values()]


@pytest.mark.parametrize("method", ["OTP", "LS", "1-NN", "RF", "Vote"])
def test_honest_looks_at_no_label_of_the_test(given, method, monkeypatch):
    monkeypatch.setitem(
        METHODS,
        method,
        replace(METHODS[method], grid={k: v[:2] for k, v in METHODS[method].grid.items()}),
    )
    outcome = PROTOCOLS["honest"].run(method, given)
    assert outcome.parameters["scaling"] in ("none", "minmax", "standard")
    known = given.known(base.problem("blobs", "none", None).truth)
    # The very rows stay labelled, and the others' labels are turned about.
    monkeypatch.setattr(Given, "known", lambda _self, _truth: known)
    with_truth(monkeypatch, lambda truth: np.where(known, truth, (truth + 1) % 3))
    other = PROTOCOLS["honest"].run(method, given)
    assert other.parameters == outcome.parameters
    assert other.details["validated"] == outcome.details["validated"]
    assert other.scores.accuracy < 0.5 < outcome.scores.accuracy


def test_honest_judges_a_candidate_by_the_labels_held_out(given):
    chosen = base.problem("blobs", "none", None)
    known = given.known(chosen.truth)
    X, truth = chosen.X[known], chosen.truth[known]
    found = honest.cross_validated(METHODS["1-NN"], {}, chosen, given)
    right = 0
    for held in honest.folds(truth, seed=0):
        rest = np.setdiff1d(np.arange(len(truth)), held)
        nearest = cdist(X[held], X[rest]).argmin(axis=1)
        right += (truth[rest][nearest] == truth[held]).sum()
    assert found == ("none", {}, pytest.approx(right / len(truth)), 0)


def test_honest_counts_the_fits_that_failed(given, monkeypatch):
    """A candidate that fails, or is slow, finds nothing; the others go on, and it is told."""

    class Sometimes:
        def __init__(self, way):
            self.way = way

        def fit(self, X, y):
            if self.way == "fails":
                raise ValueError("on purpose")
            while self.way == "hangs":
                pass
            nearest = cdist(X, X[y >= 0]).argmin(axis=1)
            self.transduction_ = y[y >= 0][nearest]

    ways = {"way": ("fails", "hangs", "works")}
    monkeypatch.setitem(METHODS, "OTP", Method("OTP", Sometimes, ways, scalable=False))
    outcome = PROTOCOLS["honest"].run("OTP", replace(given, fit_limit=0.2))
    assert outcome.parameters == {"way": "works", "scaling": "none"}
    folds = 4  # the smallest class has as many labels
    assert outcome.details["failed_fits"] == 2 * folds


def test_folds_are_as_many_as_the_smallest_class_allows():
    assert len(honest.folds(np.repeat([0, 1], [20, 3]), seed=0)) == 3
    assert len(honest.folds(np.repeat([0, 1], [20, 30]), seed=0)) == honest.FOLDS
    assert honest.folds(np.repeat([0, 1], [20, 1]), seed=0) == []


def test_published_lets_true_labels_join():
    """A row that joins with its true label convinces its neighbour, whatever was predicted."""
    X = np.array([[0.0], [10.0], [1.0], [2.6], [9.0]])
    known = np.array([True, True, False, False, False])
    found = {}
    for label in (0, 1):
        truth = np.array([0, 1, label, 0, 1])
        found[label] = propagate(X, truth, known, epsilon=2.0, alpha=0.95).predicted
    assert found[0][2] == found[1][2] == 0  # what was predicted for the row itself
    assert (found[0][3], found[1][3]) == (0, 1)  # and what it taught


def test_published_lowers_alpha_after_every_tenth_round():
    X = np.array([[0.0], [4.0], [2.0]])  # in the middle: never certain, until alpha is tiny
    done = propagate(X, np.array([0, 1, 0]), np.array([True, True, False]), epsilon=1.0, alpha=0.9)
    decays = np.log(0.9 / 1e-12) / np.log(1.5)
    assert done.rounds == 10 * int(np.ceil(decays)) + 1
    assert done.solves == 1


def test_published_first_round_is_the_transport_plan():
    rng = np.random.default_rng(0)
    X, truth = rng.random((40, 2)), rng.integers(0, 2, 40)
    known = np.arange(40) < 10
    done = propagate(X, truth, known, epsilon=0.5, alpha=0.0)
    cost = cdist(X[~known], X[known], "sqeuclidean")
    plan = oracles.pot_plan(cost, 0.5, oracles.uniform(10), oracles.uniform(30))
    votes = np.stack([plan[:, truth[known] == k].sum(axis=1) for k in (0, 1)], axis=1)
    np.testing.assert_array_equal(done.predicted[~known], votes.argmax(axis=1))
    assert (done.rounds, done.unconverged) == (1, 0)


def test_published_says_that_a_solve_did_not_converge():
    rng = np.random.default_rng(0)
    X, truth = rng.random((40, 2)), rng.integers(0, 2, 40)
    done = propagate(X, truth, np.arange(40) < 10, epsilon=1e-3, alpha=0.5)
    assert done.unconverged > 0


def test_published_rivals_see_labelled_rows_only(given):
    outcome = PROTOCOLS["published"].run("LS", given)
    chosen = base.problem("blobs", "minmax", None)
    known = given.known(chosen.truth)
    model = LabelSpreading().fit(chosen.X[known], chosen.truth[known])
    expected = scores(chosen.truth[~known], model.predict(chosen.X[~known]))
    assert outcome.scores == expected


def test_published_has_settings_for_the_paper_s_sets_alone(given):
    assert len(SETTINGS) == 12
    with pytest.raises(ValueError, match="no settings for 'blobs'"):
        PROTOCOLS["published"].run("OTP", given)


@pytest.mark.parametrize(
    ("split", "parameters", "scaling"),
    [
        (("iris", 15), {"epsilon": 0.016, "alpha": 0.9}, "none"),
        (("wdbc", 15), {"epsilon": 0.016, "alpha": 0.999}, "minmax"),
        (("wdbc", 25), {"epsilon": 0.016, "alpha": 0.99}, "minmax"),
        (("mnist", 35), {"epsilon": 0.9, "alpha": 0.9}, "minmax"),
    ],
)
def test_published_takes_its_settings_by_data_set_and_percentage(
    given, monkeypatch, split, parameters, scaling
):
    asked, made = [], base.problem
    monkeypatch.setattr(
        base, "problem", lambda name, how, data: asked.append(how) or made(name, how, data)
    )
    dataset, percent = split
    outcome = PROTOCOLS["published"].run("OTP", replace(given, dataset=dataset, percent=percent))
    assert outcome.parameters == parameters
    assert set(asked) == {scaling}


@pytest.mark.parametrize("protocol", ["described", "honest"])
def test_a_fit_that_takes_too_long_is_out_of_time(given, protocol, monkeypatch):
    class Sleepy:
        def fit(self, _X, _y):
            while True:
                pass

    monkeypatch.setitem(METHODS, "OTP", Method("OTP", Sleepy))
    with pytest.raises(OutOfTimeError):
        PROTOCOLS[protocol].run("OTP", replace(given, fit_limit=0.05))


def test_clusters_count_as_the_classes_that_they_match_best(given, monkeypatch):
    class Turned:
        def fit(self, X, _y):
            nearest = cdist(X, centres(X)).argmin(axis=1)
            self.clusters_ = (nearest + 1) % 3
            return self

    def centres(X):
        truth = base.problem("blobs", "none", None).truth
        return np.array([X[truth == k].mean(axis=0) for k in range(3)])

    monkeypatch.setitem(METHODS, "SC", Method("SC", Turned, clusters=True))
    assert PROTOCOLS["described"].run("SC", given).scores.accuracy > 0.8


def test_units_and_candidates_scale_with_the_data():
    X = np.random.default_rng(0).random((200, 3))
    near = np.sort(cdist(X, X, "sqeuclidean"), axis=1)[:, 1]
    assert unit_of(X) == pytest.approx(np.median(near))
    assert unit_of(10 * X) == pytest.approx(100 * unit_of(X))
    twice = np.concatenate([X, X])
    assert unit_of(twice) == pytest.approx(unit_of(X))  # an equal row is no other row
    candidates = list(Method("x", dict, {"epsilon": (1.0, 2.0), "alpha": (0.5,)}).candidates(3.0))
    assert candidates == [{"epsilon": 3.0, "alpha": 0.5}, {"epsilon": 6.0, "alpha": 0.5}]


def test_a_new_method_is_one_entry(given):
    add_method(Method("mine", METHODS["Vote"].make, {"epsilon": (1.0,)}))
    try:
        assert "mine" in PROTOCOLS["honest"].methods
        assert "mine" in PROTOCOLS["described"].methods
        assert "mine" not in PROTOCOLS["published"].methods
        assert PROTOCOLS["honest"].run("mine", given).scores.accuracy > 0.5
    finally:
        del METHODS["mine"]


@pytest.fixture
def _settings(monkeypatch):
    monkeypatch.setitem(SETTINGS, "blobs", (0.5, (0.9, 0.9, 0.9)))


@pytest.mark.usefixtures("_settings")
def test_corrected_lets_own_labels_join(given):
    """With its own labels, nothing that OTP does depends on labels that it is not given."""
    known = given.known(base.problem("blobs", "none", None).truth)
    chosen = base.problem("blobs", "minmax", None)
    rules = {"epsilon": 0.5, "alpha": 0.9, "true_labels_join": False}
    own = propagate(chosen.X, chosen.truth, known, **rules)
    turned = np.where(known, chosen.truth, (chosen.truth + 1) % 3)
    np.testing.assert_array_equal(
        propagate(chosen.X, turned, known, **rules).predicted, own.predicted
    )
    outcome = PROTOCOLS["corrected"].run("OTP, own labels join", given)
    assert outcome.scores == scores(chosen.truth[~known], own.predicted[~known])
    assert own.rounds > 1


@pytest.mark.usefixtures("_settings")
def test_corrected_solves_to_the_end(given, monkeypatch):
    monkeypatch.setattr(published, "ITERATIONS", 3)
    assert PROTOCOLS["published"].run("OTP", given).converged is False
    assert PROTOCOLS["corrected"].run("OTP, solved", given).converged is True


def test_corrected_finds_the_plan_that_sinkhorn_knopp_goes_to():
    cost = np.random.default_rng(0).random((6, 15))
    shares, converged = corrected.solved(cost, 0.5)
    plan, reached = published.sinkhorn_knopp(cost, 0.5)
    assert converged
    assert reached
    np.testing.assert_allclose(shares, plan / plan.sum(axis=0), atol=1e-6)


@pytest.mark.usefixtures("_settings")
def test_corrected_as_described_is_the_estimator_with_the_published_settings(given):
    chosen = base.problem("blobs", "minmax", None)
    known = given.known(chosen.truth)
    model = OTPropagation.paper(epsilon=0.5, alpha=0.9).fit(chosen.X, hidden(chosen.truth, known))
    outcome = PROTOCOLS["corrected"].run("OTP, as described", given)
    assert outcome.scores == scores(chosen.truth[~known], model.transduction_[~known])


def test_corrected_rivals_see_all_rows(given):
    chosen = base.problem("blobs", "minmax", None)
    known = given.known(chosen.truth)
    model = LabelSpreading().fit(chosen.X, hidden(chosen.truth, known))
    outcome = PROTOCOLS["corrected"].run("LS, all rows", given)
    assert outcome.scores == scores(chosen.truth[~known], model.transduction_[~known])
