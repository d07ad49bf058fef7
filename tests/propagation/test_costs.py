"""Costs of the open targets: only what is new is computed, and memory changes nothing."""

import tracemalloc
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.geometry import Euclidean, Precomputed
from otprop.propagation.costs import OpenCosts, _move
from otprop.transport import Workers, blocks

ROWS, GIVEN = 40, 5
PLENTY = 1e9


class Spy:
    """A geometry that counts the entries it is asked for."""

    may_forbid = False

    def __init__(self, points):
        self._geometry = Euclidean(points, points)
        self.dtype = self._geometry.dtype
        self.entries = 0

    def add_sources(self, points):
        self._geometry.add_sources(points)

    def fill(self, targets, first, out):
        self.entries += out.size
        self._geometry.fill(targets, first, out)

    def since_last(self):
        entries, self.entries = self.entries, 0
        return entries


def opened(memory, dtype=np.float64, workers=1):
    points = np.random.default_rng(0).normal(size=(ROWS, 3)).astype(dtype)
    spy = Spy(points)
    given = np.arange(GIVEN)
    targets = np.arange(GIVEN, ROWS)
    return spy, OpenCosts(spy, targets, given, Workers(workers), memory)


def accept(costs, joining):
    """Let the open targets with these row numbers join."""
    costs.accept(np.isin(costs.targets, joining))


def whole(costs):
    """Return all open costs as one array."""
    targets, sources = costs.shape
    cost, rows = costs.read(0, targets)
    return cost[rows, :sources].copy()


def bytes_of(targets, sources):
    return targets * sources * 8


def test_each_round_computes_the_new_columns_alone():
    spy, costs = opened(PLENTY)
    assert spy.since_last() == 35 * 5
    for joining in ([7, 9], [20], [5, 6, 30, 39]):
        accept(costs, joining)
        assert spy.since_last() == costs.shape[0] * len(joining)
        whole(costs)
        assert spy.since_last() == 0


def test_what_is_read_are_the_distances_in_the_order_of_joining():
    spy, costs = opened(PLENTY)
    accept(costs, [12, 7, 30])
    accept(costs, [11])
    expected = np.empty((31, 9))
    spy.fill(np.setdiff1d(np.arange(5, 40), [30, 7, 12, 11]), 0, expected)
    assert costs.shape == (31, 9)
    np.testing.assert_array_equal(whole(costs), expected)
    np.testing.assert_array_equal(costs.targets, np.setdiff1d(np.arange(5, 40), [30, 7, 12, 11]))
    cost, rows = costs.read(4, 9)
    np.testing.assert_array_equal(cost[rows, :9], expected[4:9])
    cost, rows = costs.read_rows(np.array([8, 0]))
    np.testing.assert_array_equal(cost[rows, :9], expected[[8, 0]])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(
    memory=st.integers(0, bytes_of(35, 40)),
    leaving=st.lists(st.integers(1, 8), max_size=8),
    seed=st.integers(0, 99),
)
def test_every_memory_limit_gives_the_same_bits_and_is_kept(memory, leaving, seed, dtype):
    rng = np.random.default_rng(seed)
    _, plenty = opened(PLENTY, dtype)
    _, limited = opened(memory, dtype)
    for count in leaving:
        if len(plenty.targets) == 0:
            break
        joining = rng.permutation(plenty.targets)[:count]
        accept(plenty, joining)
        accept(limited, joining)
        assert limited.memory_left >= 0
        assert limited.dtype == dtype
        assert limited.shape == plenty.shape
        np.testing.assert_array_equal(whole(limited), whole(plenty))


def test_room_for_a_quarter_more_is_made_so_that_columns_rarely_move():
    _, costs = opened(PLENTY)
    capacities = []
    while len(costs.targets) > 1:
        accept(costs, costs.targets[:1])
        capacities.append(costs._kept.shape[1])
    # from 5 sources on: 7, 10, 13, 17, ... up to 40 at least
    assert len(set(capacities)) < 12
    assert all(c >= s for c, s in zip(capacities, range(6, 40), strict=True))


def test_rows_that_left_are_given_up_when_columns_are_added():
    _, costs = opened(PLENTY)
    accept(costs, np.arange(5, 25))
    assert costs._kept.shape[0] == 15


def test_costs_that_outgrow_the_memory_are_recomputed_and_kept_again_when_they_fit():
    spy, costs = opened(bytes_of(35, 5))
    assert costs.memory_left == 0
    spy.since_last()
    accept(costs, np.arange(5, 10))  # 30 targets x 10 sources do not fit any longer
    assert costs.memory_left == bytes_of(35, 5)
    assert spy.since_last() == 0  # nothing is computed before it is read
    recomputed = whole(costs)
    assert spy.since_last() == 30 * 10
    whole(costs)
    assert spy.since_last() == 30 * 10

    accept(costs, np.arange(10, 37))  # 3 targets x 37 sources fit again
    assert spy.since_last() == 3 * 37
    np.testing.assert_array_equal(whole(costs)[:, :10], recomputed[27:])
    assert spy.since_last() == 0


def test_room_for_no_more_than_needed_is_made_when_memory_is_short():
    _, costs = opened(bytes_of(34, 6))
    accept(costs, [5])
    assert costs._kept.shape == (34, 6)
    assert costs.memory_left == 0


def large(memory, leaving):
    """Costs of some MiB, and the peak of memory while targets leave."""
    points = np.random.default_rng(0).normal(size=(1600, 2))
    with mock.patch.object(blocks, "_BLOCK_ENTRIES", 1):  # blocks of 64 targets
        tracemalloc.start()
        try:
            costs = OpenCosts(
                Euclidean(points, points), np.arange(600, 1600), np.arange(600), Workers(1), memory
            )
            for _ in range(leaving):
                costs.accept(np.arange(len(costs.targets)) < 40)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    return costs, peak


# 1,000 x 600 entries at first; 880 x 720 in the third round and 800 x 800 in the fifth.
@pytest.mark.parametrize("entries", [600_000, 634_000, 641_000, 900_000, 1_300_000, 2_000_000])
@pytest.mark.parametrize("leaving", [1, 3, 8, 14])
def test_growing_keeps_to_the_memory_with_what_it_moves(entries, leaving):
    costs, peak = large(8 * entries, leaving)
    assert costs.memory_left >= 0
    assert peak <= 8 * entries + 2**20  # points, and two blocks of 64 targets
    everything, _ = large(PLENTY, leaving)
    np.testing.assert_array_equal(whole(costs), whole(everything))


def test_costs_move_in_place_where_two_arrays_would_not_fit():
    spy, costs = opened(bytes_of(35, 5))
    accept(costs, np.arange(5, 38, 2))
    # 18 x 22 entries do not fit into 35 x 5, but 3 x 37 do
    assert costs.memory_left == bytes_of(35, 5)
    accept(costs, np.setdiff1d(costs.targets, [6, 20, 39]))
    spy.since_last()
    buffer = costs._buffer
    accept(costs, [20])  # 2 x 38 entries, of 3 x 37
    assert costs._buffer is buffer
    assert spy.since_last() == 2
    expected = np.empty((2, 38))
    spy.fill(np.array([6, 39]), 0, expected)
    np.testing.assert_array_equal(whole(costs), expected)


@pytest.mark.parametrize("seed", range(20))
def test_rows_moved_in_place_are_not_overwritten_before_they_have_moved(seed):
    rng = np.random.default_rng(seed)
    rows, width, known = 30, 12, 10
    buffer = rng.normal(size=rows * width)
    old = buffer.reshape(rows, width)
    left = np.sort(rng.permutation(rows)[: rng.integers(1, 20)])
    wider = rng.integers(width, len(buffer) // len(left) + 1)
    expected = old[left, :known].copy()
    new = buffer[: len(left) * wider].reshape(len(left), wider)
    _move(old, left, new, known)
    np.testing.assert_array_equal(new[:, :known], expected)


def test_threads_change_no_bit():
    _, alone = opened(PLENTY)
    for workers in (2, 3):
        _, shared = opened(PLENTY, workers=workers)
        np.testing.assert_array_equal(whole(shared), whole(alone))


def test_all_targets_may_leave():
    spy, costs = opened(PLENTY)
    spy.since_last()
    accept(costs, costs.targets)
    assert costs.shape == (0, 40)
    assert costs.memory_left == PLENTY  # nothing is kept or computed for nobody
    assert spy.since_last() == 0


def test_points_are_all_in_reach():
    _, costs = opened(PLENTY)
    reached, giving = costs.reach()
    assert reached.all()
    assert giving.all()
    assert costs.chosen(reached) is costs


@pytest.mark.parametrize("memory", [0, PLENTY])
def test_reach_is_a_finite_cost_and_the_unreached_can_be_left_out(memory):
    cost = np.zeros((7, 7))
    cost[3:, 0] = np.inf  # source 0 gives to nobody
    cost[5, :3] = np.inf  # target 5 takes from nobody given, but from targets 3, 4 and 6
    cost[6, 1] = 4.0
    costs = OpenCosts(Precomputed(cost), np.arange(3, 7), np.arange(3), Workers(1), memory)
    reached, giving = costs.reach()
    np.testing.assert_array_equal(reached, [True, True, False, True])
    np.testing.assert_array_equal(giving, [False, True, True])

    chosen = costs.chosen(reached)
    assert chosen.shape == (3, 3)
    assert chosen.dtype == np.float64
    np.testing.assert_array_equal(whole(chosen), cost[[3, 4, 6], :3])
    block, rows = chosen.read(2, 3)
    np.testing.assert_array_equal(block[rows, :3], cost[[6], :3])

    accept(costs, [4])
    assert costs.reach()[0].all()


def test_a_source_gives_if_it_reaches_a_target_of_any_block():
    cost = np.full((203, 203), np.inf)
    cost[3, 0] = cost[100, 1] = cost[202, 1] = 0.0
    with mock.patch.object(blocks, "_BLOCK_ENTRIES", 1):  # blocks of 64 targets
        costs = OpenCosts(Precomputed(cost), np.arange(3, 203), np.arange(3), Workers(1), PLENTY)
        reached, giving = costs.reach()
    np.testing.assert_array_equal(giving, [True, True, False])
    np.testing.assert_array_equal(np.flatnonzero(reached) + 3, [3, 100, 202])
