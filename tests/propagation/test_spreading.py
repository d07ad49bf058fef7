"""Rounds on a graph against dense algebra and naive rounds, and the laws that they keep."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import make_moons

from otprop.baselines import KernelVote
from otprop.geometry import Graph
from otprop.propagation import ROUNDS, GraphSettings, Marginals, Prior, Solving, spread, spreading
from otprop.transport import Workers
from tests import oracles, tables

# What a class's evidence counts at least, as a part of the strongest.
FLOOR = np.exp(-28.0)


@pytest.fixture
def precise(monkeypatch):
    """Let diffusions go as far as double precision does, for the sake of oracles."""
    monkeypatch.setattr(spreading, "_DIFFUSED", 1e-14)


def affinity(X, k=8):
    """Weights exp(−4 d²/d_k²) to the k nearest others, the larger one of both directions."""
    squared = tables.squared(X)
    np.fill_diagonal(squared, np.inf)
    limit = np.sort(squared, axis=1)[:, [k - 1]]
    directed = np.where(squared <= limit, np.exp(-4 * squared / limit), 0.0)
    return np.maximum(directed, directed.T)


def asked(rounds="none", **changes):
    values = {
        "rule": "classes",
        "relaxation": 1.0,
        "parts": None,
        "tolerance": 0.0,
        "diffusion": 0.9,
        "widened": False,
        "tol": 1e-9,
        "max_iter": None,
        "threads": 1,
    }
    assert not changes.keys() - values.keys()
    return values | changes | {"rounds": rounds}


def spread_on(W, y, rounds="none", *, classes=None, report=lambda _: None, **changes):
    told = asked(rounds, **changes)
    classes = y.max() + 1 if classes is None else classes
    parts = np.full(classes, 1 / classes) if told["parts"] is None else np.array(told["parts"])
    with Workers(told["threads"]) as workers:
        how = GraphSettings(
            diffusion=told["diffusion"],
            rounds=rounds,
            marginals=Marginals(told["rule"], told["relaxation"], Prior(parts, told["tolerance"])),
            widened=told["widened"],
            solving=Solving(told["tol"], "newton", told["max_iter"], workers),
        )
        return spread(Graph.of_affinity(W), y, classes, how, report)


def kernel(W, kappa):
    """H = (1 − κ) (I − κ S)⁻¹, dense."""
    roots = np.sqrt(W.sum(axis=1))
    return (1 - kappa) * np.linalg.inv(np.eye(len(W)) - kappa * W / np.outer(roots, roots))


def normalised(Q):
    return Q / Q.sum(axis=1, keepdims=True)


def floored(Q):
    return np.maximum(Q / Q.max(axis=1, keepdims=True), FLOOR)


def balanced(Q, least, most, steps=200_000):
    """Scale the columns until the classes' totals are within bounds; unbounded ones stay as is."""
    w = np.ones(Q.shape[1])
    for _ in range(steps):
        totals = normalised(Q * w).mean(axis=0)
        new = np.clip(1.0, w * least / totals, w * most / totals)
        if np.abs(new / w - 1).max() < 1e-11:
            return normalised(Q * new)
        w = new
    raise AssertionError


def voices(labels, classes):
    """Each class speaks with one voice, through its rows."""
    said = (labels[:, None] == np.arange(classes)).astype(float)
    return said / np.maximum(said.sum(axis=0), 1)


def left(parts, y, tolerance=0.0):
    """What the prior leaves to the open rows, where no class is exhausted."""
    counts = np.bincount(y[y >= 0], minlength=len(parts))
    low, high = (
        (parts * (1 + t) * len(y) - counts) / (y < 0).sum() for t in (-tolerance, tolerance)
    )
    assert (low >= 0).all()
    assert (high <= 1).all()
    return low, high


class Naive:
    """Rounds by the definitions of stages.py, on dense matrices."""

    def __init__(self, W, y, parts, diffusion=0.9, *, widened=False):
        self.W, self.y, self.opened, self.classes = W, y, y < 0, len(parts)
        self.bounds = left(np.array(parts), y)
        self.kernels = {kappa: kernel(W, kappa) for kappa in (diffusion, 0.9, 0.97)}
        self.P = np.eye(self.classes)[y]
        self.P[self.opened] = self.diffused(y, diffusion)
        self.since, opened = np.where(self.opened, 1, 0), self.opened.sum()
        self.trace = [(len(y) - opened, opened, opened)]
        if widened:
            found = np.bincount(self.labels[self.opened], minlength=self.classes) / opened
            least, most = self.bounds
            self.bounds = np.minimum(least, found), np.maximum(most, found)

    @property
    def labels(self):
        return self.P.argmax(axis=1)

    def diffused(self, said, kappa):
        evidence = self.kernels[kappa] @ voices(said, self.classes)
        return balanced(floored(evidence[self.opened]), *self.bounds)

    def walked(self, said, steps):
        walk, given_rows = self.W / self.W.sum(axis=1, keepdims=True), ~self.opened
        F = np.eye(self.classes)[said]
        for _ in range(steps):
            F = walk @ F
            F[given_rows] = np.eye(self.classes)[self.y[given_rows]]
        return balanced(floored(F[self.opened]), *self.bounds)

    def certain(self, kept, part):
        """Of each class its most certain rows, as many as are its due, beside those kept."""
        said, s = kept.copy(), tables.certainty(self.P)
        for k in range(self.classes):
            mine = np.flatnonzero((self.labels == k) & (kept < 0))
            # A quota that is a whole number counts as one, whatever a solve is off by.
            room = int(part * self.P[self.opened, k].sum() + 1e-6) + 1
            room -= ((kept == k) & self.opened).sum()
            if room > 0 and len(mine):  # ties go together
                said[mine[s[mine] >= np.sort(s[mine])[-min(room, len(mine))]]] = k
        return said

    def decide(self, said, found, kept):
        """Let all rows but those kept take what was found; return whether a label changed."""
        before, deciding = self.labels, kept < 0
        self.P[deciding] = found[deciding[self.opened]]
        changed = self.labels != before
        self.since[changed] = len(self.trace) + 1
        self.trace.append(((said >= 0).sum(), deciding.sum(), changed.sum()))
        return changed.any()

    def none(self):
        pass

    def frozen(self):
        kept = self.y
        for r in range(20):
            kept = self.certain(kept, (r + 1) / 20) if r < 19 else self.labels
            self.decide(kept, self.diffused(kept, 0.9), kept)

    def revisable(self):
        for r in range(12):
            said = self.certain(self.y, 0.2 + 0.8 * (r + 1) / 12) if r < 11 else self.labels
            self.decide(said, self.diffused(said, 0.97), self.y)
        self.sharpened(4, 40)

    def annealed(self):
        self.sharpened(40, 15)
        self.sharpened(10, 20)
        self.sharpened(4, 20)

    def sharpened(self, steps, times):
        for _ in range(times):
            said = self.labels
            if not self.decide(said, self.walked(said, steps), self.y):
                break


def moons(rows=200, *, seed=0, noise=0.08):
    """Return two moons with one label each."""
    X, true = make_moons(rows, noise=noise, random_state=seed)
    y = np.full(rows, -1)
    for k in range(2):
        y[np.random.default_rng(seed).choice(np.flatnonzero(true == k))] = k
    return X, true, y


def groups(seed=0, classes=3, rows=90):
    return tables.blobs(rows, 2, classes, seed=seed, spread=0.4, known=0.1)


# Rows of a table, given labels, and parts of the classes that no class has had already.
PROBLEMS = {
    "moons": (*moons()[::2], [0.5, 0.5]),
    "uneven moons": (*moons(seed=3, noise=0.15)[::2], [0.43, 0.57]),
    "two blobs": (*groups(1, 2)[::2], [0.42, 0.58]),
    "three blobs": (*groups(2)[::2], [0.27, 0.41, 0.32]),
}
EVERY_PROBLEM = pytest.mark.parametrize("name", PROBLEMS)
EVERY_ROUNDS = pytest.mark.parametrize("rounds", sorted(ROUNDS))


@st.composite
def graphs(draw):
    """Draw the graph of a table, given labels of two to four classes, and parts."""
    classes, seed = draw(st.integers(2, 4)), draw(st.integers(0, 10**6))
    X, _, y = groups(seed, classes, draw(st.integers(20, 40)))
    return affinity(X, draw(st.integers(4, 8))), y, draw(some_parts(classes))


def some_parts(classes):
    """Draw parts of which none is small."""
    shares = st.lists(st.integers(3, 6), min_size=classes, max_size=classes)
    return shares.map(lambda s: np.array(s) / sum(s))


# The first plan


@settings(max_examples=25)
@given(graphs(), st.sampled_from([0.3, 0.9, 0.99]))
def test_without_prior_the_first_plan_is_label_spreading(case, kappa):
    W, y, _ = case
    classes = y.max() + 1
    found = spread_on(W, y, tolerance=np.inf, diffusion=kappa)
    opened = (y < 0) & (found.round > 0)
    expected = normalised(floored((kernel(W, kappa) @ voices(y, classes))[opened]))
    np.testing.assert_allclose(found.distributions[opened], expected, atol=1e-5)


@pytest.mark.usefixtures("precise")
@EVERY_PROBLEM
def test_exact_totals_scale_the_columns_of_label_spreading(name):
    X, y, parts = PROBLEMS[name]
    W = affinity(X)
    found = spread_on(W, y, parts=parts)
    Q = floored((kernel(W, 0.9) @ voices(y, len(parts)))[y < 0])
    expected = balanced(Q, *left(np.array(parts), y))
    np.testing.assert_allclose(found.distributions[y < 0], expected, atol=1e-5)
    np.testing.assert_allclose(found.distributions.sum(axis=0), np.array(parts) * len(y), atol=1e-6)


@settings(max_examples=25)
@given(graphs(), st.sampled_from([0.0, 0.1]))
def test_the_solved_totals_are_what_the_prior_leaves_to_the_rows_in_reach(case, tolerance):
    W, y, parts = case
    found = spread_on(W, y, parts=parts, tolerance=tolerance)
    reached = found.round >= 0
    counts, rows = np.bincount(y[y >= 0], minlength=len(parts)), reached.sum()
    low, high = (
        np.maximum(0, parts * (1 + t) * rows - counts) / (rows - counts.sum())
        for t in (-tolerance, tolerance)
    )
    if low.sum() >= 1 or tolerance == 0:
        low = high = low / low.sum()
    totals = found.distributions[reached & (y < 0)].mean(axis=0)
    assert (totals >= low - 1e-7).all()
    assert (totals <= high + 1e-7).all()


@pytest.mark.usefixtures("precise")
@EVERY_PROBLEM
@pytest.mark.parametrize("relaxation", [None, 0.1, 1.0, 30.0])
def test_rows_and_relaxed_are_the_plans_of_the_dense_kernel(name, relaxation):
    X, y, parts = PROBLEMS[name]
    W, opened = affinity(X), y < 0
    if relaxation is None:
        found = spread_on(W, y, rule="rows")
    else:
        found = spread_on(W, y, rule="relaxed", relaxation=relaxation)
    cost = -np.log(floored(kernel(W, 0.9)[np.ix_(opened, ~opened)]))
    a = oracles.uniform(cost.shape[1])
    f = np.zeros(len(a))
    for _ in range(20_000):  # Sinkhorn's fixed point, ρ/(ρ + ε) of its way where it is relaxed
        mass = oracles.shares(cost, f, 1.0).astype(float).mean(axis=0)
        step = (f + np.log(a / mass)) * (
            1.0 if relaxation is None else relaxation / (1 + relaxation)
        )
        done, f = np.abs(step - f).max() < 1e-11, step
        if done:
            break
    expected = tables.by_class(oracles.shares(cost, f, 1.0), y[~opened], range(len(parts)))
    np.testing.assert_allclose(found.distributions[opened], expected.astype(float), atol=1e-5)
    np.testing.assert_allclose(found.prices - found.prices[0], f - f[0], atol=1e-4)


@pytest.mark.usefixtures("precise")
@EVERY_PROBLEM
def test_given_rows_have_the_price_of_their_class(name):
    X, y, parts = PROBLEMS[name]
    W = affinity(X)
    found, given_labels = spread_on(W, y, parts=parts), y[y >= 0]
    prices = np.array([found.prices[given_labels == k][0] for k in range(len(parts))])
    np.testing.assert_array_equal(found.prices, prices[given_labels])
    Q = floored((kernel(W, 0.9) @ voices(y, len(parts)))[y < 0])
    expected = normalised(Q * np.exp(prices))
    np.testing.assert_allclose(found.distributions[y < 0], expected, atol=1e-5)


@EVERY_ROUNDS
@pytest.mark.parametrize("rule", ["classes", "rows", "relaxed"])
def test_prices_are_those_of_the_first_plan_whatever_rounds_follow(rounds, rule):
    X, y, parts = PROBLEMS["three blobs"]
    W = affinity(X)
    first, found = (spread_on(W, y, r, rule=rule, parts=parts) for r in ("none", rounds))
    assert len(found.trace) > len(first.trace) or rounds == "none"
    np.testing.assert_array_equal(found.prices, first.prices)


# Rounds


@pytest.mark.usefixtures("precise")
@EVERY_PROBLEM
@EVERY_ROUNDS
@pytest.mark.parametrize("widened", [False, True])
def test_naive_rounds_agree_label_for_label_and_round_for_round(name, rounds, widened):
    X, y, parts = PROBLEMS[name]
    W = affinity(X)
    found = spread_on(W, y, rounds, parts=parts, widened=widened)
    naive = Naive(W, y, parts, widened=widened)
    getattr(naive, rounds)()
    assert [(d.sources, d.targets, d.accepted) for d in found.trace] == naive.trace
    np.testing.assert_array_equal(found.distributions.argmax(axis=1), naive.labels)
    np.testing.assert_array_equal(found.round, naive.since)
    np.testing.assert_allclose(found.distributions, naive.P, atol=1e-4)
    np.testing.assert_allclose(found.certainty, tables.certainty(naive.P), atol=1e-4)


@EVERY_ROUNDS
@settings(max_examples=15)
@given(graphs())
def test_given_labels_never_change_and_rows_sum_to_one(rounds, case):
    W, y, parts = case
    found, known = spread_on(W, y, rounds, parts=parts), y >= 0
    np.testing.assert_array_equal(found.distributions[known], np.eye(len(parts))[y[known]])
    np.testing.assert_array_equal(found.certainty[known], 1.0)
    np.testing.assert_array_equal(found.round[known], 0)
    np.testing.assert_allclose(found.distributions.sum(axis=1), 1.0, atol=1e-12)
    assert ((found.certainty >= 0) & (found.certainty <= 1)).all()
    scores = tables.certainty(found.distributions)
    np.testing.assert_allclose(found.certainty, scores, atol=1e-12)


@EVERY_ROUNDS
@EVERY_PROBLEM
def test_the_order_of_rows_and_the_names_of_classes_do_not_matter(name, rounds):
    X, y, parts = PROBLEMS[name]
    W = affinity(X)
    found = spread_on(W, y, rounds, parts=parts)
    rng = np.random.default_rng(5)
    rows, names = rng.permutation(len(y)), rng.permutation(len(parts))
    renamed = np.where(y < 0, -1, np.argsort(names)[y])
    mixed = spread_on(W[np.ix_(rows, rows)], renamed[rows], rounds, parts=np.array(parts)[names])
    np.testing.assert_allclose(mixed.distributions, found.distributions[rows][:, names], atol=1e-5)
    np.testing.assert_array_equal(mixed.round, found.round[rows])
    assert [d[:4] for d in mixed.trace] == [d[:4] for d in found.trace]


@pytest.mark.parametrize("rounds", ["frozen", "revisable"])
@pytest.mark.parametrize("seed", range(6))
def test_quotas_that_are_whole_numbers_do_not_hang_on_rounding(rounds, seed):
    """With 40 rows due to each class, a twentieth is 2: not 1 where the solver is off by 1e-9."""
    X, _, y = moons(82, seed=seed, noise=0.2)
    W = affinity(X)
    counts = []
    for order in (np.arange(82), np.random.default_rng(seed).permutation(82)):
        for tol in (1e-6, 1e-9):
            found = spread_on(W[np.ix_(order, order)], y[order], rounds, tol=tol)
            counts.append([done.sources for done in found.trace][:12])
    assert counts[0] == counts[1] == counts[2] == counts[3]


@EVERY_ROUNDS
@pytest.mark.parametrize("rule", ["classes", "rows", "relaxed"])
def test_the_number_of_threads_does_not_change_a_bit(rounds, rule):
    X, y, parts = PROBLEMS["three blobs"]
    found = [
        spread_on(affinity(X), y, rounds, rule=rule, parts=parts, threads=threads)
        for threads in (1, 3)
    ]
    for one, other in zip(*(each[:4] for each in found), strict=True):
        np.testing.assert_array_equal(one, other)
    assert found[0].trace == found[1].trace


@pytest.mark.parametrize("seed", range(3))
def test_frozen_rounds_keep_the_label_of_rows_that_joined_and_all_join(seed, monkeypatch):
    spoken = []
    speaking = spreading._Field.speaking

    def spy(*arguments):
        spoken.append(speaking(*arguments))
        return spoken[-1]

    monkeypatch.setattr(spreading._Field, "speaking", spy)
    X, _, y = groups(seed, 3)
    found = spread_on(affinity(X), y, "frozen")
    labels, before = found.distributions.argmax(axis=1), y
    for said in spoken:
        np.testing.assert_array_equal(said[before >= 0], before[before >= 0])
        np.testing.assert_array_equal(said[said >= 0], labels[said >= 0])
        before = said
    assert (before >= 0).all()
    assert len(spoken) <= 20
    assert found.trace[1].targets < found.trace[0].targets  # the kept decide no more


@pytest.mark.parametrize("name", ["moons", "uneven moons", "two blobs"])
def test_a_stage_of_annealing_ends_when_no_label_changes(name):
    X, y, parts = PROBLEMS[name]
    trace = spread_on(affinity(X), y, "annealed", parts=parts).trace
    changes = [done.accepted for done in trace[1:]]
    ends = [number for number, changed in enumerate(changes) if changed == 0]
    # Labels come to rest in each of the three stages, and its next round is never run.
    assert len(ends) == 3
    assert ends[-1] == len(changes) - 1
    assert len(trace) < 1 + 15 + 20 + 20


def test_a_stage_of_annealing_ends_after_its_times_at_the_latest(monkeypatch):
    stages = tuple(stage._replace(times=1) for stage in ROUNDS["annealed"])
    monkeypatch.setitem(ROUNDS, "annealed", stages)
    X, y, parts = PROBLEMS["uneven moons"]
    assert len(spread_on(affinity(X), y, "annealed", parts=parts).trace) == 4


# Reach


@EVERY_ROUNDS
def test_rows_in_parts_without_a_given_label_know_nothing_and_disturb_nobody(rounds):
    X, y, parts = PROBLEMS["three blobs"]
    W = affinity(X)
    whole = np.zeros((len(y) + 7, len(y) + 7))
    whole[: len(y), : len(y)] = W
    whole[-7:-1, -7:-1] = 1 - np.eye(6)  # the last row is alone
    found = spread_on(whole, np.append(y, np.full(7, -1)), rounds, parts=parts)
    alone = spread_on(W, y, rounds, parts=parts)
    np.testing.assert_array_equal(found.distributions[-7:], 1 / 3)
    np.testing.assert_array_equal(found.certainty[-7:], 0.0)
    np.testing.assert_array_equal(found.round[-7:], -1)
    np.testing.assert_allclose(found.distributions[:-7], alone.distributions, atol=1e-6)
    np.testing.assert_array_equal(found.round[:-7], alone.round)
    assert {done.unreachable for done in found.trace} == {7}
    assert {done.unreachable for done in alone.trace} == {0}
    assert [done.sources for done in found.trace] == [done.sources for done in alone.trace]
    assert [done.targets for done in found.trace] == [done.targets for done in alone.trace]


@EVERY_ROUNDS
def test_with_nothing_open_nothing_is_done(rounds):
    X, true, _ = groups()
    found = spread_on(affinity(X), true, rounds)
    assert found.trace == []
    np.testing.assert_array_equal(found.distributions, np.eye(3)[true])
    np.testing.assert_array_equal(found.prices, np.zeros(len(true)))


@EVERY_ROUNDS
def test_with_no_open_row_in_reach_nothing_is_done(rounds):
    W = np.zeros((6, 6))
    W[0, 1] = W[1, 0] = W[2, 3] = W[3, 2] = W[4, 5] = W[5, 4] = 1.0
    found = spread_on(W, np.array([0, 1, 0, 1, -1, -1]), rounds)
    assert found.trace == []
    np.testing.assert_array_equal(found.round, [0, 0, 0, 0, -1, -1])
    np.testing.assert_array_equal(found.distributions[4:], 0.5)


def path(rows):
    """A chain of rows, each linked to the next."""
    return np.eye(rows, k=1) + np.eye(rows, k=-1)


@EVERY_ROUNDS
@pytest.mark.parametrize("kappa", [0.5, 0.9])
@pytest.mark.parametrize("tolerance", [0.0, np.inf])
def test_rows_far_beyond_what_precision_hears_still_take_the_nearer_label(rounds, kappa, tolerance):
    """At κ = 0.5 evidence falls by 0.27 a link, and is below rounding after thirty of them."""
    y = np.full(200, -1)
    y[0], y[-1] = 0, 1
    found = spread_on(path(200), y, rounds, diffusion=kappa, tolerance=tolerance)
    np.testing.assert_array_equal(found.distributions.argmax(axis=1), np.arange(200) >= 100)
    assert (found.round >= 0).all()


@pytest.mark.parametrize("rule", ["rows", "relaxed", "classes"])
def test_the_far_end_of_a_part_of_the_graph_takes_the_only_label_in_it(rule):
    W = np.kron(np.eye(2), path(200))
    y = np.full(400, -1)
    y[[0, 200]] = [0, 1]
    found = spread_on(W, y, rule=rule, diffusion=0.5)
    np.testing.assert_array_equal(found.distributions.argmax(axis=1), np.arange(400) >= 200)


# What rounds are for


def right(labels, true, y):
    return (labels == true)[y < 0].mean()


@pytest.mark.parametrize("rounds", ["annealed", "revisable"])
@pytest.mark.parametrize("seed", range(3))
def test_two_moons_of_one_label_each_are_told_apart_as_distances_cannot(rounds, seed):
    X, true, y = moons(400, seed=seed, noise=0.06)
    found = spread_on(affinity(X, 10), y, rounds, diffusion=0.99)
    assert right(found.distributions.argmax(axis=1), true, y) > 0.95
    votes = [KernelVote(epsilon=e).fit(X, y).transduction_ for e in (0.01, 0.1, 1.0)]
    assert max(right(labels, true, y) for labels in votes) < 0.95


# The trace


@EVERY_ROUNDS
@pytest.mark.parametrize("name", ["uneven moons", "three blobs"])
def test_the_trace_says_who_spoke_who_decided_and_what_changed(name, rounds):
    X, y, parts = PROBLEMS[name]
    told = []
    found = spread_on(affinity(X), y, rounds, parts=parts, report=told.append)
    assert told == found.trace
    assert [done.round for done in told] == list(range(1, len(told) + 1))
    first, opened = told[0], y < 0
    assert (first.sources, first.targets, first.accepted) == ((~opened).sum(),) + (
        opened.sum(),
    ) * 2
    for done in told:
        assert done.converged
        assert done.marginal_error <= 1e-9
        assert done.n_sweeps > 0
        assert not done.lowered
        # Some of the rows that were given their label in this round have kept it since.
        assert (found.round == done.round).sum() <= done.accepted
    assert told[-1].alpha == found.certainty[opened].min()
    assert found.round.max() == max(done.round for done in told if done.accepted)


@pytest.mark.parametrize("rounds", ["none", "annealed"])
def test_a_diffusion_that_stops_short_is_told(rounds, monkeypatch):
    X, y, parts = PROBLEMS["three blobs"]
    monkeypatch.setattr(spreading, "_MAX_STEPS", 2)
    trace = spread_on(affinity(X), y, rounds, parts=parts).trace
    # Walks have no equation to solve: only the first plan is concerned.
    assert [done.converged for done in trace] == [False] + [True] * (len(trace) - 1)


def test_a_plan_that_stops_short_is_told():
    X, y, parts = PROBLEMS["three blobs"]
    (done,) = spread_on(affinity(X), y, parts=parts, max_iter=1, tol=1e-12).trace
    assert not done.converged
    assert done.marginal_error > 1e-12
