"""The kernels of benches/cpu.rs as numba loops: `numba_peers.py KERNEL SIZE`.

Loops as a user of numba writes them, `prange` outside. Answers as protocol.py says.
"""

import math
import sys

import numba
import numpy as np
from numba import njit, prange

from protocol import SALTS, floats, keys, serve, timed

jit = njit(parallel=True, fastmath={"contract"})
HALF, EIGHTH, TWO, FOUR = np.float32(0.5), np.float32(0.125), np.float32(2), np.float32(4)
ONE, ZERO, SOFT = np.float32(1), np.float32(0), np.float32(0.01)
LEFT, LOW, WIDTH = np.float32(-2), np.float32(-1.25), np.float32(2.5)


@jit
def fused(a, b, c, r):
    for i in prange(r.size):
        r[i] = a[i] * b[i] + TWO * c[i] - ONE


@jit
def saxpy(a, x, y):
    for i in prange(y.size):
        y[i] = a * x[i] + y[i]


@njit(parallel=True, fastmath=True)
def total(x):
    sum = ZERO
    for i in prange(x.size):
        sum += x[i]
    return sum


@jit
def matmul(a, b, c, n):
    for i in prange(n):
        for j in range(n):
            c[i, j] = ZERO
        for k in range(n):
            x = a[i, k]
            for j in range(n):
                c[i, j] += x * b[k, j]


@jit
def stencil(a, r, n):
    for y in prange(n):
        for x in range(n):
            r[y, x] = a[y, x]
        if 0 < y < n - 1:
            for x in range(1, n - 1):
                around = a[y, x - 1] + a[y, x + 1] + a[y - 1, x] + a[y + 1, x]
                r[y, x] = HALF * a[y, x] + EIGHTH * around


@njit(parallel=True, fastmath=True)
def nbody(x, y, z, mass, out, n):
    for i in prange(n):
        xi, yi, zi = x[i], y[i], z[i]
        ax, ay, az = ZERO, ZERO, ZERO
        for j in range(n):
            dx, dy, dz = x[j] - xi, y[j] - yi, z[j] - zi
            inverse = ONE / np.sqrt(dx * dx + dy * dy + dz * dz + SOFT)
            s = mass[j] * (inverse * inverse * inverse)
            ax += s * dx
            ay += s * dy
            az += s * dz
        out[0, i], out[1, i], out[2, i] = ax, ay, az


@jit
def sin_exp_log(a, b, c, r):
    for i in prange(r.size):
        r[i] = math.sin(a[i]) * math.exp(b[i]) + math.log(c[i] + ONE)


@jit
def mandelbrot(out, n):
    scale = WIDTH / np.float32(n)
    for y in prange(n):
        for x in range(n):
            cx, cy = LEFT + np.float32(x) * scale, LOW + np.float32(y) * scale
            zx, zy = ZERO, ZERO
            steps = 0
            while steps < 256 and zx * zx + zy * zy <= FOUR:
                zx, zy = zx * zx - zy * zy + cx, TWO * zx * zy + cy
                steps += 1
            out[y, x] = steps


@jit
def histogram(keys, counts, parts):
    n = keys.size
    bins = np.zeros((parts, 256), np.uint32)
    for p in prange(parts):
        for i in range(n * p // parts, n * (p + 1) // parts):
            bins[p, keys[i]] += np.uint32(1)
    for p in range(parts):
        for i in range(256):
            counts[i] += bins[p, i]


def compile_once(n):
    """The first call of a fresh saxpy, less a second one."""
    x, y, a = floats(n, SALTS[0]), floats(n, SALTS[1]), np.float32(1e-6)

    def sample(_, times):
        cpu, wall = 0.0, 0.0
        for _ in range(times):
            fresh = jit(saxpy.py_func)
            once, again = (timed(lambda: fresh(a, x, y), 1) for _ in range(2))
            cpu, wall = cpu + once[0] - again[0], wall + once[1] - again[1]
        return cpu / times, wall / times

    return sample


def kernel(name, n):
    """The kernel's function, its arguments and its result, or None."""
    inputs = lambda count, many: [floats(count, salt) for salt in SALTS[:many]]
    images = lambda many: [image.reshape(n, n) for image in inputs(n * n, many)]
    image = lambda dtype=np.float32: np.zeros((n, n), dtype)
    if name in ("fused", "sin-exp-log"):
        out = np.zeros(n, np.float32)
        return (fused if name == "fused" else sin_exp_log), (*inputs(n, 3), out), out
    if name == "saxpy":
        x, y = inputs(n, 2)
        return saxpy, (np.float32(1e-6), x, y), y
    if name in ("matmul", "matmul-naive"):
        out = image()
        return matmul, (*images(2), out, n), out
    if name in ("stencil", "stencil-direct"):
        out = image()
        return stencil, (*images(1), out, n), out
    if name == "nbody":
        out = np.zeros((3, n), np.float32)
        return nbody, (*inputs(n, 4), out, n), out
    if name == "mandelbrot":
        out = image(np.uint32)
        return mandelbrot, (out, n), out
    if name == "histogram":
        out = np.zeros(256, np.uint32)
        return histogram, (keys(n), out, numba.get_num_threads()), out
    return None


def main():
    name, size = sys.argv[1], int(sys.argv[2])
    if name == "compile":
        # numba itself and LLVM are warm after one compilation.
        sample = compile_once(size)
        serve((lambda: sample(None, 1), lambda: np.zeros(1), sample))
        return
    if name == "sum":
        x = floats(size, SALTS[0])
        out = np.zeros(1, np.float32)

        def run():
            out[0] = total(x)

        serve((run, lambda: out, timed))
        return
    found = kernel(name, size)
    if found is None:
        serve(None)
        return
    function, args, out = found
    serve((lambda: function(*args), lambda: out, timed))


main()
