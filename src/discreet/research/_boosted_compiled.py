"""The boosted baseline's training and chains, compiled by numba: one client for each thread, with all its data in cache.

A network of 1,400 weights and a block of 128 points fit in 40 kB. Forward pass, backward pass and sums of gradients are computed block by
block, and only the weights outlive a block. Each client has its own generator: its output does not depend on the clients trained beside it.

This is the only backward pass written by hand. On one core a step of 2 x 5,000 points takes 1.6 ms here and 6.6 to 7.4 ms in torch (5.0 ms
with a backward pass by hand there too). A step of 10,000 chains under two networks takes 0.4 ms here, where the boost is read off a table,
and 6.0 ms in torch. The 1,000 trainings of Figure 4 take 2.4 hours of one core instead of 11, and need no torch. `python -m benchmarks
boosted` measures both again.
"""

import math
from typing import Any

import numba
import numpy as np

from discreet._base.kernels import kernel

_BLOCK = 128
_TABLE = 1 << 14  # nodes: interpolation between them is more precise than the network's float32
_REACH = 9.0  # standard deviations: nothing beyond is ever drawn
_FAST = {"reassoc", "contract", "nsz", "arcp", "nnan", "ninf"}

# An odd rational function within 6e-8 of tanh, relatively, on [-9, 9]: a least-squares fit, reweighted until level.
_N0, _N1, _N2 = np.float32(0.9999999411374815), np.float32(0.1291922663736793), np.float32(0.002920760083906636)
_N3, _N4, _N5 = np.float32(9.26740855144815e-06), np.float32(-1.2780416555333683e-08), np.float32(1.82552147453771e-11)
_D1, _D2, _D3 = np.float32(0.4625251048180919), np.float32(0.023763160975139645), np.float32(0.00022809998250356662)
_EDGE, _ONE = np.float32(9.0), np.float32(1.0)


@numba.njit(fastmath=_FAST, error_model="numpy", inline="always")  # a division that may raise is not vectorised
def _tanh(x: Any) -> Any:
    x = min(max(x, -_EDGE), _EDGE)
    u = x * x
    top = ((((_N5 * u + _N4) * u + _N3) * u + _N2) * u + _N1) * u + _N0
    bottom = ((_D3 * u + _D2) * u + _D1) * u + _ONE
    return x * top / bottom


@kernel(fastmath=_FAST, error_model="numpy", nogil=True)
def write_tanh_of_row(x: Any, out: Any) -> None:
    """out = tanh(x) on a row of float32: the activation."""
    for s in range(x.size):
        out[s] = _tanh(x[s])


@kernel(fastmath=_FAST, error_model="numpy", nogil=True, boundscheck=False)
def _apply_layer(weights: Any, bias: Any, below: Any, out: Any) -> None:
    """out = weights below + bias for a block of points, five inputs at a time."""
    rows, columns = weights.shape
    for i in range(rows):
        row = out[i]
        for s in range(_BLOCK):
            row[s] = bias[i]
        unrolled_columns = columns - columns % 5
        for j in range(0, unrolled_columns, 5):
            w0, w1, w2, w3, w4 = (
                weights[i, j],
                weights[i, j + 1],
                weights[i, j + 2],
                weights[i, j + 3],
                weights[i, j + 4],
            )
            x0, x1, x2, x3, x4 = below[j], below[j + 1], below[j + 2], below[j + 3], below[j + 4]
            for s in range(_BLOCK):
                row[s] += w0 * x0[s] + w1 * x1[s] + w2 * x2[s] + w3 * x3[s] + w4 * x4[s]
        for j in range(unrolled_columns, columns):
            w0, x0 = weights[i, j], below[j]
            for s in range(_BLOCK):
                row[s] += w0 * x0[s]


@kernel(fastmath=_FAST, error_model="numpy", nogil=True, boundscheck=False)
def _apply_tanh(values: Any) -> None:
    for i in range(values.shape[0]):
        row = values[i]
        for s in range(_BLOCK):
            row[s] = _tanh(row[s])


@kernel(fastmath=_FAST, error_model="numpy", nogil=True, boundscheck=False)
def _add_gradients(delta: Any, below: Any, weights: Any, bias: Any) -> None:
    """weights += delta below^T and bias += the sums of delta, over a block of points."""
    columns = below.shape[0]
    unrolled_columns = columns - columns % 5
    zero = np.float32(0.0)
    for i in range(delta.shape[0]):
        row = delta[i]
        total = zero
        for s in range(_BLOCK):
            total += row[s]
        bias[i] += total
        for j in range(0, unrolled_columns, 5):
            x0, x1, x2, x3, x4 = below[j], below[j + 1], below[j + 2], below[j + 3], below[j + 4]
            t0, t1, t2, t3, t4 = zero, zero, zero, zero, zero
            for s in range(_BLOCK):
                t0 += row[s] * x0[s]
                t1 += row[s] * x1[s]
                t2 += row[s] * x2[s]
                t3 += row[s] * x3[s]
                t4 += row[s] * x4[s]
            weights[i, j] += t0
            weights[i, j + 1] += t1
            weights[i, j + 2] += t2
            weights[i, j + 3] += t3
            weights[i, j + 4] += t4
        for j in range(unrolled_columns, columns):
            x0, t0 = below[j], zero
            for s in range(_BLOCK):
                t0 += row[s] * x0[s]
            weights[i, j] += t0


@kernel(fastmath=_FAST, error_model="numpy", nogil=True, boundscheck=False)
def _backpropagate_error(weights: Any, delta: Any, values: Any, zero_bias: Any, out: Any) -> None:
    """out = (weights^T delta)(1 - values^2): the error signal one layer down. `weights` comes transposed."""
    _apply_layer(weights, zero_bias, delta, out)
    for i in range(values.shape[0]):
        row, value = out[i], values[i]
        for s in range(_BLOCK):
            row[s] *= _ONE - value[s] * value[s]


@kernel(fastmath=_FAST, error_model="numpy", nogil=True)
def _layer_views(flat: Any, dim: int, width: int) -> Any:
    """(weights, bias) of the four layers inside one row of parameters, in the order of `layer_shapes`."""
    offset = 0
    w1 = flat[offset : offset + width * dim].reshape(width, dim)
    offset += width * dim
    b1 = flat[offset : offset + width]
    offset += width
    w2 = flat[offset : offset + width * width].reshape(width, width)
    offset += width * width
    b2 = flat[offset : offset + width]
    offset += width
    w3 = flat[offset : offset + width * width].reshape(width, width)
    offset += width * width
    b3 = flat[offset : offset + width]
    offset += width
    w4 = flat[offset : offset + width].reshape(1, width)
    offset += width
    return w1, b1, w2, b2, w3, b3, w4, flat[offset : offset + 1]


@kernel(fastmath=_FAST, error_model="numpy", nogil=True, boundscheck=False)
def train_client_network_in_place(
    parameters: Any, p: Any, q: Any, width: int, epochs: int, batch: int, rate: float, momentum: float
) -> None:
    """Fit one client's network in place: points p (dim, n) labelled 1 against q labelled 0, batches in fixed order.

    Binary cross-entropy averaged over the 2 batch points; Nesterov: v = m v + g, then weights -= rate (g + m v).
    """
    dim, count = p.shape
    velocity, gradient = np.zeros_like(parameters), np.zeros_like(parameters)
    w1, b1, w2, b2, w3, b3, w4, b4 = _layer_views(parameters, dim, width)
    g1, c1, g2, c2, g3, c3, g4, c4 = _layer_views(gradient, dim, width)
    shape = (width, _BLOCK)
    h1, h2, h3 = np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty(shape, np.float32)
    e1, e2, e3 = np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty(shape, np.float32)
    x = np.zeros((dim, _BLOCK), np.float32)
    logit, e4 = np.empty((1, _BLOCK), np.float32), np.empty((1, _BLOCK), np.float32)
    zero_bias = np.zeros(width, np.float32)
    half = np.float32(0.5)
    share = np.float32(1.0 / (2 * batch))
    speed, keep = np.float32(rate), np.float32(momentum)
    for _ in range(epochs):
        for first in range(0, count - batch + 1, batch):
            gradient[:] = np.float32(0.0)
            back2, back3, back4 = w2.T.copy(), w3.T.copy(), w4.T.copy()
            for label in range(2):
                points = p if label else q
                for start in range(first, first + batch, _BLOCK):
                    filled_count = min(_BLOCK, first + batch - start)
                    for axis in range(dim):
                        x[axis, :filled_count] = points[axis, start : start + filled_count]
                    _apply_layer(w1, b1, x, h1)
                    _apply_tanh(h1)
                    _apply_layer(w2, b2, h1, h2)
                    _apply_tanh(h2)
                    _apply_layer(w3, b3, h2, h3)
                    _apply_tanh(h3)
                    _apply_layer(w4, b4, h3, logit)
                    target = np.float32(label)
                    for s in range(_BLOCK):  # sigmoid(z) = (1 + tanh(z/2))/2
                        e4[0, s] = (half + half * _tanh(half * logit[0, s]) - target) * share
                    e4[0, filled_count:] = np.float32(0.0)
                    _add_gradients(e4, h3, g4, c4)
                    _backpropagate_error(back4, e4, h3, zero_bias, e3)
                    _add_gradients(e3, h2, g3, c3)
                    _backpropagate_error(back3, e3, h2, zero_bias, e2)
                    _add_gradients(e2, h1, g2, c2)
                    _backpropagate_error(back2, e2, h1, zero_bias, e1)
                    _add_gradients(e1, x, g1, c1)
            for k in range(parameters.size):
                velocity[k] = keep * velocity[k] + gradient[k]
                parameters[k] -= speed * (gradient[k] + keep * velocity[k])


@kernel(fastmath=_FAST, error_model="numpy", nogil=True, boundscheck=False)
def logits(parameters: Any, x: Any, width: int) -> Any:
    """The network's logits at points (dim, n)."""
    dim, count = x.shape
    w1, b1, w2, b2, w3, b3, w4, b4 = _layer_views(parameters, dim, width)
    shape = (width, _BLOCK)
    h1, h2, h3 = np.empty(shape, np.float32), np.empty(shape, np.float32), np.empty(shape, np.float32)
    block, block_logits = np.zeros((dim, _BLOCK), np.float32), np.empty((1, _BLOCK), np.float32)
    out = np.empty(count, np.float32)
    for start in range(0, count, _BLOCK):
        filled_count = min(_BLOCK, count - start)
        for axis in range(dim):
            block[axis, :filled_count] = x[axis, start : start + filled_count]
        _apply_layer(w1, b1, block, h1)
        _apply_tanh(h1)
        _apply_layer(w2, b2, h1, h2)
        _apply_tanh(h2)
        _apply_layer(w3, b3, h2, h3)
        _apply_tanh(h3)
        _apply_layer(w4, b4, h3, block_logits)
        out[start : start + filled_count] = block_logits[0, :filled_count]
    return out


@kernel(nogil=True)
def _boost_exponents_at_points(networks: Any, weights: Any, x: Any, width: int, clipped: bool, bound: float) -> Any:
    """sum_t weights_t c_t at points (dim, n): c the sigmoid of the logit, or the logit clipped to +-bound."""
    total = np.zeros(x.shape[1])
    for t in range(len(weights)):
        z = logits(networks[t], x, width)
        for s in range(z.size):
            value = float(z[s])
            c = min(max(value, -bound), bound) if clipped else 0.5 + 0.5 * math.tanh(0.5 * value)
            total[s] += weights[t] * c
    return total


@kernel(nogil=True)
def draw_points_by_metropolis(
    networks: Any,
    weights: Any,
    width: int,
    clipped: bool,
    bound: float,
    low: Any,
    high: Any,
    count: int,
    steps: int,
    rng: Any,
) -> Any:
    """Points (dim, count): the ends of `count` random-walk Metropolis chains from the origin, with unit normal proposals.

    The target is exp(-|x|^2/2 + boost(x)) on the box. In one dimension the boost is read off a table.
    """
    dim = low.size
    has_table = dim == 1
    low, high = np.maximum(low, -_REACH), np.minimum(high, _REACH)
    table = np.empty(0)
    if has_table:
        nodes = np.empty((1, _TABLE + 1), np.float32)
        for k in range(_TABLE + 1):
            nodes[0, k] = low[0] + (high[0] - low[0]) * k / _TABLE
        table = _boost_exponents_at_points(networks, weights, nodes, width, clipped, bound)
        density = _TABLE / (high[0] - low[0])
    x, y = np.zeros((dim, count)), np.empty((dim, count))
    height, new_height = np.empty(count), np.empty(count)
    if not has_table:
        height[:] = _boost_exponents_at_points(networks, weights, x.astype(np.float32), width, clipped, bound)
    for chain in range(count if has_table else 0):
        position, boost = 0.0, _interpolate_table(table, (0.0 - low[0]) * density)
        for _ in range(steps):
            proposal = position + rng.standard_normal()
            if low[0] <= proposal <= high[0]:
                level = _interpolate_table(table, (proposal - low[0]) * density) - 0.5 * proposal * proposal
                gain = level - (boost - 0.5 * position * position)
                if gain >= 0.0 or rng.random() < math.exp(gain):
                    position, boost = proposal, level + 0.5 * proposal * proposal
        x[0, chain] = position
    for _ in range(0 if has_table else steps):
        for axis in range(dim):
            for chain in range(count):
                y[axis, chain] = x[axis, chain] + rng.standard_normal()
        new_height[:] = _boost_exponents_at_points(networks, weights, y.astype(np.float32), width, clipped, bound)
        for chain in range(count):
            gain, inside = new_height[chain] - height[chain], True
            for axis in range(dim):
                inside &= low[axis] <= y[axis, chain] <= high[axis]
                gain += 0.5 * (x[axis, chain] * x[axis, chain] - y[axis, chain] * y[axis, chain])
            if inside and (gain >= 0.0 or rng.random() < math.exp(gain)):
                height[chain] = new_height[chain]
                for axis in range(dim):
                    x[axis, chain] = y[axis, chain]
    return x.astype(np.float32)


@numba.njit(inline="always")
def _interpolate_table(table: Any, position: float) -> float:
    k = min(int(position), _TABLE - 1)
    return float(table[k] + (position - k) * (table[k + 1] - table[k]))
