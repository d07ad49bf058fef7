"""Compiled row loops of the semi-dual: one target's softmax over the sources at a time.

Costs are single or double; potentials and sums are always double. A row's result depends on that
row alone, never on where it stands in a block, so that transduction and prediction agree to the
bit. Signed infinities are allowed (a forbidden pair, a source that takes no part) as long as
each row has one finite entry; NaN is not.
"""

import math

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic, overload

# Sums may be reordered so that they vectorise: the order is fixed when the loop is compiled.
# Infinities keep their meaning ("ninf" is left out).
FAST = {"reassoc", "contract", "arcp", "nsz", "nnan"}
# Not so differences: (f - cost) - top cancels exactly, in another order it would lose its digits
# or become inf - inf.
_IN_ORDER = FAST - {"reassoc", "arcp"}

# A group of neighbouring sources is skipped as a whole when its best entry is this far (in units
# of ε) below the row's best. The group then has less than 128 e^-27 = 3e-10 (single) or 2e-16
# (double) of the row's mass.
GROUP = 128
_NEGLIGIBLE_SINGLE = 27.0
_NEGLIGIBLE_DOUBLE = 41.0

# Neighbouring shares that are passed over at once where none of them is to be kept.
_COMPRESSED = 32

# Unsigned indices spare the check for negative ones, which would keep the loops from vectorising.
_unsigned = np.uint64


def _power_of_two_series(degree, dtype):
    """Coefficients of 2^y on [-1/2, 1/2], lowest first, by Chebyshev interpolation."""
    fit = np.polynomial.chebyshev.Chebyshev.interpolate(np.exp2, degree, [-0.5, 0.5])
    return tuple(dtype(c) for c in fit.convert(kind=np.polynomial.Polynomial).coef)


_S0, _S1, _S2, _S3, _S4, _S5, _S6 = _power_of_two_series(6, np.float32)
_D0, _D1, _D2, _D3, _D4, _D5, _D6, _D7, _D8, _D9, _D10 = _power_of_two_series(10, np.float64)


@intrinsic
def _bits_as_float(typing_context, bits):
    """Read the bits of an int32 as float32, of an int64 as float64."""
    single = bits == types.int32

    def codegen(context, builder, signature, args):
        return builder.bitcast(args[0], ir.FloatType() if single else ir.DoubleType())

    return (types.float32 if single else types.float64)(bits), codegen


@intrinsic
def _larger(typing_context, a, b):
    """Return the larger of two numbers of one type, in a form that vectorises as a reduction."""

    def codegen(context, builder, signature, args):
        kind = args[0].type
        function = ir.FunctionType(kind, [kind, kind])
        maxnum = builder.module.declare_intrinsic("llvm.maxnum", [kind], function)
        return builder.call(maxnum, args, fastmath=("nnan", "nsz"))

    return a(a, a), codegen


def exp2(x):  # pragma: no cover - stands in for its overload below
    """2^x for x <= 0, 0 if tiny: a polynomial on the fraction, the exponent by its bits."""
    raise NotImplementedError


@overload(exp2)
def _exp2(x):
    if x == types.float32:

        def single(x):
            x = _larger(x, np.float32(-127))
            k = np.int32(x - np.float32(0.5))
            y = x - np.float32(k)
            p = _S0 + y * (_S1 + y * (_S2 + y * (_S3 + y * (_S4 + y * (_S5 + y * _S6)))))
            return p * _bits_as_float(np.int32((k + np.int32(127)) << np.int32(23)))

        return single

    def double(x):
        x = _larger(x, -1023.0)
        k = np.int64(x - 0.5)
        y = x - np.float64(k)
        p = _D6 + y * (_D7 + y * (_D8 + y * (_D9 + y * _D10)))
        p = _D0 + y * (_D1 + y * (_D2 + y * (_D3 + y * (_D4 + y * (_D5 + y * p)))))
        return p * _bits_as_float((k + np.int64(1023)) << np.int64(52))

    return double


@njit(fastmath=FAST)
def _group_top(cost, f, lo, hi):
    top = f[lo] - cost[lo]
    for i in range(lo, hi):
        top = _larger(top, f[i] - cost[i])
    return top


@njit(fastmath=_IN_ORDER)
def _group_exp(cost, f, top, scale, out, lo, hi):
    kind = cost.dtype.type
    for i in range(lo, hi):
        out[i] = exp2(kind(f[i] - cost[i] - top) * scale)


# A loop that writes is compiled twice, and the second version, for arrays that might overlap,
# would add up in another order. A loop that sums must therefore write nothing.
@njit(fastmath=FAST)
def _group_sum(out, lo, hi):
    total = out.dtype.type(0)
    for i in range(lo, hi):
        total += out[i]
    return total


@njit(fastmath=FAST)
def _group_scale(out, factor, lo, hi):
    for i in range(lo, hi):
        out[i] *= factor


@njit(fastmath=FAST)
def _group_zero(out, lo, hi):
    for i in range(lo, hi):
        out[i] = 0


@njit(fastmath=FAST)
def _group_give(out, weight, mass, lo, hi):
    for i in range(lo, hi):
        mass[i] += weight * out[i]


@njit(fastmath=FAST)
def _group_count(out, threshold, lo, hi):
    count = 0
    for i in range(lo, hi):
        count += out[i] > threshold
    return count


@njit(error_model="numpy")
def _softmax(cost, f, epsilon, out, tops):
    """Write one row's shares (Eq. 12) into `out`; return (best, Σ exp, the cut of `tops`)."""
    kind = cost.dtype.type
    sources, group = _unsigned(f.shape[0]), _unsigned(GROUP)
    groups = (sources + group - _unsigned(1)) // group
    best = -np.inf
    for g in range(groups):
        tops[g] = _group_top(cost, f, g * group, min((g + _unsigned(1)) * group, sources))
        best = max(best, tops[g])
    cut = best - epsilon * (_NEGLIGIBLE_SINGLE if kind(1e-30) ** 2 == 0 else _NEGLIGIBLE_DOUBLE)
    scale = kind(1.0 / (math.log(2.0) * epsilon))
    total = 0.0
    for g in range(groups):
        lo, hi = g * group, min((g + _unsigned(1)) * group, sources)
        if tops[g] >= cut:
            _group_exp(cost, f, best, scale, out, lo, hi)
            total += _group_sum(out, lo, hi)
        else:
            _group_zero(out, lo, hi)
    for g in range(groups):
        if tops[g] >= cut:
            lo, hi = g * group, min((g + _unsigned(1)) * group, sources)
            _group_scale(out, kind(1.0 / total), lo, hi)
    return best, total, cut


@njit(fastmath=FAST)
def dot(a, b):
    """Σ a_i b_i, in the precision of `a`."""
    total = a.dtype.type(0)
    for i in range(a.shape[0]):
        total += a[i] * b[i]
    return total


@njit(fastmath=FAST)
def add_scaled(out, factor, a):
    """Add factor · a to `out`."""
    for i in range(a.shape[0]):
        out[i] += factor * a[i]


@njit(nogil=True, error_model="numpy", cache=True)
def sweep_block(cost, rows, f, epsilon, weights, shares, mass, threshold):
    """Shares of a block's targets; adds to `mass`; returns −Σ b_j g_j and the shares kept.

    `shares` takes one row a target; `mass` the mass that each source gives, Σ b_j P_ji; the last
    number returned counts the shares above `threshold`.
    """
    sources, group = _unsigned(f.shape[0]), _unsigned(GROUP)
    tops = np.empty((sources + group - _unsigned(1)) // group)
    value, kept = 0.0, 0
    for j in range(rows.shape[0]):
        out = shares[j]
        best, total, cut = _softmax(cost[rows[j]], f, epsilon, out, tops)
        value += weights[j] * (best + epsilon * math.log(total))
        for g in range(_unsigned(tops.shape[0])):
            if tops[g] >= cut:
                lo, hi = g * group, min((g + _unsigned(1)) * group, sources)
                _group_give(out, weights[j], mass, lo, hi)
                kept += _group_count(out, threshold, lo, hi)
    return value, kept


@njit(nogil=True, error_model="numpy", cache=True)
def share_block(cost, rows, f, epsilon, shares):
    """Shares of a block's targets, one row a target (Eq. 12)."""
    tops = np.empty((f.shape[0] + GROUP - 1) // GROUP)
    for j in range(rows.shape[0]):
        _softmax(cost[rows[j]], f, epsilon, shares[j], tops)


@njit(nogil=True, error_model="numpy", cache=True)
def class_block(cost, rows, f, epsilon, labels, distributions):
    """Shares added up by class, one row a target (Eq. 13)."""
    tops = np.empty((f.shape[0] + GROUP - 1) // GROUP)
    out = np.empty(f.shape[0], cost.dtype)
    for j in range(rows.shape[0]):
        _softmax(cost[rows[j]], f, epsilon, out, tops)
        distributions[j] = 0.0
        for i in range(f.shape[0]):
            distributions[j, labels[i]] += out[i]
        total = 0.0
        for k in range(distributions.shape[1]):
            total += distributions[j, k]
        for k in range(distributions.shape[1]):
            distributions[j, k] /= total


@njit(nogil=True, error_model="numpy", cache=True)
def merge_block(cost, rows, labels, epsilon, merged):
    """−ε log Σ_i exp(−M_ij/ε) over the sources i of each class, one row a target.

    +inf where a class has no finite cost.
    """
    scale = cost.dtype.type(1.0 / (math.log(2.0) * epsilon))
    least = np.empty(merged.shape[1], cost.dtype)
    totals = np.empty(merged.shape[1])
    for j in range(rows.shape[0]):
        row = cost[rows[j]]
        least[:] = np.inf
        totals[:] = 0.0
        for i in range(labels.shape[0]):
            least[labels[i]] = min(least[labels[i]], row[i])
        for i in range(labels.shape[0]):
            if row[i] < np.inf:
                totals[labels[i]] += exp2((least[labels[i]] - row[i]) * scale)
        for k in range(merged.shape[1]):
            merged[j, k] = least[k] - epsilon * math.log(totals[k])


@njit(nogil=True, error_model="numpy", cache=True)
def price_block(cost, rows, f, epsilon, prices, out):
    """Mean of the sources' `prices` under each target's shares."""
    tops = np.empty((f.shape[0] + GROUP - 1) // GROUP)
    shares = np.empty(f.shape[0], cost.dtype)
    for j in range(rows.shape[0]):
        _softmax(cost[rows[j]], f, epsilon, shares, tops)
        out[j] = dot(prices, shares)


@njit(nogil=True, error_model="numpy", cache=True)
def log_mass_block(cost, rows, f, epsilon, weights, wanted, top, scaled):
    """Log of the mass of the `wanted` sources, free of underflow, as top + log(scaled).

    Used where a source gives so little that its shares round to nothing.
    """
    tops = np.empty((f.shape[0] + GROUP - 1) // GROUP)
    out = np.empty(f.shape[0], cost.dtype)
    for j in range(rows.shape[0]):
        row = cost[rows[j]]
        best, total, _ = _softmax(row, f, epsilon, out, tops)
        base = math.log(weights[j]) - math.log(total)
        for k in range(wanted.shape[0]):
            z = base + (f[wanted[k]] - row[wanted[k]] - best) / epsilon
            if z > top[k]:
                scaled[k] = scaled[k] * math.exp(top[k] - z) + 1.0
                top[k] = z
            elif z > -np.inf:
                scaled[k] += math.exp(z - top[k])


@njit(nogil=True, cache=True)
def range_block(cost, rows, sources):
    """Largest difference between two finite costs of one target."""
    widest = 0.0
    for j in rows:
        low, high = np.inf, -np.inf
        for i in range(sources):
            if cost[j, i] < np.inf:
                low = min(low, cost[j, i])
                high = max(high, cost[j, i])
        widest = max(widest, high - low)
    return widest


@njit(nogil=True, cache=True)
def compress_block(shares, threshold, starts, indices, values):
    """Keep the shares above `threshold`: row starts, source indices, values.

    `indices` and `values` have room for one more than is kept: each share is written behind the
    last one kept, and kept by counting it, because a branch would be guessed wrong too often.
    """
    sources, group = _unsigned(shares.shape[1]), _unsigned(_COMPRESSED)
    n = 0
    for j in range(shares.shape[0]):
        starts[j] = n
        row = shares[j]
        for lo in range(_unsigned(0), sources, group):
            hi = min(lo + group, sources)
            if _group_count(row, threshold, lo, hi) > 0:
                for i in range(lo, hi):
                    indices[n] = i
                    values[n] = row[i]
                    n += row[i] > threshold
    starts[shares.shape[0]] = n


@njit(nogil=True, cache=True)
def spread_dense(shares, weights, v, out):
    """Add Σ_j b_j P_j (P_j · v) to `out`."""
    for j in range(shares.shape[0]):
        add_scaled(out, weights[j] * dot(shares[j], v), shares[j])


@njit(nogil=True, fastmath=FAST, cache=True)
def spread_sparse(starts, indices, values, weights, v, out):
    """Add Σ_j b_j P_j (P_j · v) to `out`, over the shares kept."""
    for j in range(starts.shape[0] - 1):
        total = 0.0
        for n in range(starts[j], starts[j + 1]):
            total += values[n] * v[indices[n]]
        total *= weights[j]
        for n in range(starts[j], starts[j + 1]):
            out[indices[n]] += total * values[n]
