"""Where the next round starts: the prices of the targets that join."""

import numpy as np
import pytest

from otprop.propagation import Marginals, Prior, Solving, rounds
from otprop.transport import ArrayCosts, Workers, block_rows, blocks
from tests import oracles


def settings(workers):
    return rounds.Settings(
        epsilon=0.1,
        alpha=0.5,
        stall="lowest-alpha",
        marginals=Marginals("rows", 1.0, Prior(np.full(2, 0.5), 0.0)),
        solving=Solving(1e-6, "newton", None, workers),
        memory=0,
    )


@pytest.mark.parametrize("part", [0.0, 0.02, 0.5, 1.0])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_those_that_join_take_the_mean_price_of_their_sources(part, dtype, monkeypatch):
    monkeypatch.setattr(blocks, "_BLOCK_ENTRIES", 1)
    assert block_rows(20) == 64
    rng = np.random.default_rng(0)
    cost, f, accepted = rng.random((333, 20)).astype(dtype), rng.random(20), rng.random(333) < part
    f[3] = -np.inf  # takes no part: it starts anew
    seen = set()
    for count in (1, 2, 3):
        with Workers(count) as workers:
            got = rounds._with_joining(ArrayCosts(cost), f, accepted, settings(workers))
        prices = np.where(np.isfinite(f), f, 0.0)
        expected = oracles.shares(cost[accepted], f, 0.1).astype(float) @ prices
        np.testing.assert_array_equal(got[:20], prices)
        np.testing.assert_allclose(
            got[20:], expected, rtol=0, atol=1e-13 if dtype is np.float64 else 1e-5
        )
        seen.add(got.tobytes())
    assert len(seen) == 1
