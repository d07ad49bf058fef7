import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otprop.transport import shares, solve
from tests import oracles, strategies


@given(case=strategies.problems(moderation=(1e-4, 100.0)), data=st.data())
def test_shares_are_a_softmax(case, data):
    f = data.draw(strategies.vectors(len(case.source_weights)))
    expected = oracles.shares(case.cost, f, case.epsilon)
    # A number that is rounded and then divided by ε is off by its rounding over ε.
    atol = 1e-14 + 20 * np.finfo(float).eps / case.epsilon
    np.testing.assert_allclose(
        shares(case.cost, f, case.epsilon), expected.astype(float), rtol=0, atol=atol
    )


def test_shares_keep_single_precision_and_the_order_does_not_matter():
    rng = np.random.default_rng(0)
    cost, f = rng.random((30, 200)).astype(np.float32), rng.standard_normal(200)
    single = shares(cost, f, 0.1)
    assert single.dtype == np.float32
    np.testing.assert_array_equal(shares(np.asfortranarray(cost), f, 0.1), single)
    expected = oracles.shares(cost, f, 0.1).astype(float)
    np.testing.assert_allclose(single, expected, rtol=1e-5, atol=1e-10)


def test_shares_take_lists():
    np.testing.assert_allclose(
        shares([[0, 0], [0, 1]], [0, 0], 1 / np.log(3)), [[0.5, 0.5], [0.75, 0.25]], atol=1e-15
    )


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_potentials_far_apart(dtype):
    cost = np.zeros((3, 2), dtype)
    np.testing.assert_array_equal(shares(cost, [0.0, 1e6], 1.0)[:, 1], 1.0)
    assert (shares(cost, [0.0, 1e6], 1.0)[:, 0] < 1e-30).all()


def test_the_result_s_shares_are_those_of_its_potentials():
    cost = np.random.default_rng(1).random((20, 6))
    result = solve(cost, 0.1)
    new = np.random.default_rng(2).random((4, 6))
    np.testing.assert_array_equal(result.shares(new), shares(new, result.f, 0.1))


@pytest.mark.parametrize(("cost", "f"), [((4, 3), 2), ((4, 3), 4), ((3,), 3)])
def test_potentials_are_those_of_the_columns(cost, f):
    with pytest.raises(ValueError, match="one column for each potential; their shapes are"):
        shares(np.zeros(cost), np.zeros(f), 1.0)
