"""Other ways to the same numbers: slow, plain, and none of them through `otprop`.

A plan here has the shape of the cost, one row a target: plan[j, i] = t_ij of the paper.
"""

import numpy as np
import ot
from scipy.optimize import linear_sum_assignment

WIDE = np.longdouble


def uniform(size):
    return np.full(size, 1.0 / size)


def log_sum_exp(x, axis):
    top = x.max(axis=axis, keepdims=True)
    return np.squeeze(top, axis) + np.log(np.exp(x - top).sum(axis=axis))


def softmin(cost, f, epsilon):
    """g_j = −ε log Σ_i exp((f_i − M_ij)/ε) in extended precision."""
    return -WIDE(epsilon) * log_sum_exp((WIDE(f) - WIDE(cost)) / WIDE(epsilon), axis=1)


def shares(cost, f, epsilon):
    """Eq. 12 in extended precision."""
    g = softmin(cost, f, epsilon)
    return np.exp((WIDE(f) + g[:, None] - WIDE(cost)) / WIDE(epsilon))


def mass(cost, f, epsilon, target_weights):
    """What each source gives, r_i = Σ_j b_j P_ji."""
    return WIDE(target_weights) @ shares(cost, f, epsilon)


def marginal_error(cost, f, epsilon, source_weights, target_weights):
    """Σ_i |a_i − r_i|."""
    return float(np.abs(source_weights - mass(cost, f, epsilon, target_weights)).sum())


def semi_dual(cost, f, epsilon, source_weights, target_weights):
    """Σ a_i f_i + Σ b_j g_j(f)."""
    return float(source_weights @ WIDE(f) + target_weights @ softmin(cost, f, epsilon))


def primal(plan, cost, epsilon):
    """⟨T, M⟩ − ε H(T) with the paper's H(T) = −Σ t (log t − 1); Eq. 11."""
    t, m = plan[plan > 0], cost[plan > 0]
    return float(t @ m + epsilon * (t @ (np.log(t) - 1.0)))


def naive_sinkhorn(cost, epsilon, source_weights, target_weights, steps):
    """Algorithm 1, line by line, on logarithms of u and v; returns the plan."""
    log_kernel = -WIDE(cost) / WIDE(epsilon)
    log_v = np.zeros(len(target_weights), WIDE)
    for _ in range(steps):
        log_u = np.log(WIDE(source_weights)) - log_sum_exp(log_kernel + log_v[:, None], axis=0)
        log_v = np.log(WIDE(target_weights)) - log_sum_exp(log_kernel + log_u, axis=1)
    return np.exp(log_kernel + log_u + log_v[:, None]).astype(float)


def pot_plan(cost, epsilon, source_weights, target_weights):
    """POT's plan in the log domain; both of its marginals are checked before it is believed."""
    plan = ot.bregman.sinkhorn_log(
        source_weights, target_weights, cost.T, epsilon, numItermax=20_000, stopThr=1e-12
    ).T
    assert np.abs(plan.sum(axis=0) - source_weights).sum() < 1e-10
    assert np.abs(plan.sum(axis=1) - target_weights).sum() < 1e-10
    return plan


def assignment_shares(cost):
    """Each target wholly from the source of the cheapest assignment."""
    targets, sources = linear_sum_assignment(cost)
    answer = np.zeros(cost.shape)
    answer[targets, sources] = 1.0
    return answer


def two_by_two_shares(cost, epsilon, source_weights, target_weights):
    """The closed form: a plan's marginals leave one number open, its cross ratio fixes it.

    t00 t11 / (t01 t10) = K = exp(−(m00 + m11 − m01 − m10)/ε), and with x = t00
    x (1 − a0 − b0 + x) = K (a0 − x) (b0 − x): a quadratic with one root that is a plan.
    """
    twist = (cost[0, 0] + cost[1, 1] - cost[0, 1] - cost[1, 0]) / epsilon
    order = slice(None, None, -1 if twist < 0 else 1)  # of the sources, so that K is at most 1
    a, b, ratio = source_weights[order][0], target_weights[0], np.exp(-abs(twist))
    square, linear, constant = 1 - ratio, 1 - (1 - ratio) * (a + b), ratio * a * b
    root = np.sqrt(linear**2 + 4 * square * constant)
    x = 2 * constant / (root + linear) if linear > 0 else (root - linear) / (2 * square)
    plan = np.array([[x, b - x], [a - x, 1 - a - b + x]])
    return (plan / target_weights[:, None])[:, order]
