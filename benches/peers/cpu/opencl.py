"""The kernels of kernels.cl on an OpenCL CPU device: `opencl.py PLATFORM INDEX KERNEL SIZE`.

PLATFORM is a part of the platform's name: `Intel` or `Portable`; INDEX is what kernels index with:
`signed` or `unsigned`. Answers as protocol.py says.
"""

import pathlib
import sys
import time
import warnings

import numpy as np
import pyopencl as cl

from protocol import SALTS, floats, keys, serve, timed

GROUPS = 256  # of a kernel that strides over its input
flags = cl.mem_flags


class Machine:
    """A device, its queue and the compiled kernels."""

    def __init__(self, platform_name, index):
        platforms = [p for p in cl.get_platforms() if platform_name in p.name]
        if not platforms:
            found = ", ".join(p.name for p in cl.get_platforms())
            sys.exit(f"there is no OpenCL platform with {platform_name} in its name; found: {found}")
        self.context = cl.Context(platforms[0].get_devices())
        self.queue = cl.CommandQueue(self.context)
        source = pathlib.Path(__file__).with_name("kernels.cl").read_text()
        self.options = {"signed": [], "unsigned": ["-DUNSIGNED"]}[index]
        self.program = cl.Program(self.context, source).build(self.options)
        self.out = None
        self.held = []  # OpenCL does not keep a kernel's arguments alive

    def upload(self, host):
        return cl.Buffer(self.context, flags.READ_WRITE | flags.COPY_HOST_PTR, hostbuf=host)

    def zeros(self, count, dtype=np.float32):
        self.out_host = np.zeros(count, dtype)
        self.out = self.upload(self.out_host)
        return self.out

    def results(self):
        if self.out is None:
            return np.zeros(1)
        cl.enqueue_copy(self.queue, self.out_host, self.out)
        return self.out_host

    def launcher(self, name, grid, block, *args):
        """A function that launches `name` over `grid` threads, without waiting."""
        kernel = cl.Kernel(self.program, name)
        kernel.set_args(*args)
        self.held.append(args)
        queue = self.queue
        return lambda: cl.enqueue_nd_range_kernel(queue, kernel, grid, block)

    def synced(self, *launches):
        """A run: these launches, then waiting for them."""

        def run():
            for launch in launches:
                launch()
            self.queue.finish()

        return run


def over(count, block=256):
    """Threads of whole groups that cover `count`."""
    return ((count + block - 1) // block * block,)


def three_inputs(m, name, n):
    a, b, c = (m.upload(floats(n, salt)) for salt in SALTS[:3])
    return m.synced(m.launcher(name, over(n), (256,), a, b, c, m.zeros(n), np.int32(n)))


def saxpy(m, n):
    x, start = m.upload(floats(n, SALTS[0])), floats(n, SALTS[1])
    m.out_host, m.out = start, m.upload(start)
    args = (np.float32(1e-6), x, m.out, np.int32(n))
    return m.synced(m.launcher("saxpy", over(n), (256,), *args))


def grid_sum(m, n):
    x = m.upload(floats(n, SALTS[0]))
    partial = m.upload(np.zeros(GROUPS, np.float32))
    first = m.launcher("grid_sum", (GROUPS * 256,), (256,), x, partial, np.int32(n))
    second = m.launcher("grid_sum", (256,), (256,), partial, m.zeros(1), np.int32(GROUPS))
    return m.synced(first, second)


def blocks_of(m, name, n, results):
    x = m.upload(floats(n, SALTS[0]))
    return m.synced(m.launcher(name, over(n), (256,), x, m.zeros(results), np.int32(n)))


def square(m, name, n, inputs, block):
    grid = (over(n, block[0])[0], over(n, block[1])[0])
    buffers = [m.upload(floats(n * n, salt)) for salt in SALTS[:inputs]]
    dtype = np.float32 if inputs else np.uint32
    out = m.zeros(n * n, dtype)
    return m.synced(m.launcher(name, grid, block, *buffers, out, np.int32(n)))


def nbody(m, n):
    bodies = [m.upload(floats(n, salt)) for salt in SALTS]
    return m.synced(m.launcher("nbody", over(n), (256,), *bodies, m.zeros(3 * n), np.int32(n)))


def histogram(m, n):
    counts = m.zeros(256, np.uint32)
    args = (m.upload(keys(n)), counts, np.int32(n))
    return m.synced(m.launcher("histogram", (GROUPS * 256,), (256,), *args))


def compile_once(m, n):
    """Building the saxpy kernel from its source and its first launch, less a second launch."""
    source = pathlib.Path(__file__).with_name("kernels.cl").read_text()
    source = source[source.index("kernel void saxpy") : source.index("// A sum of")]
    source = "typedef int index;\n" + source
    x, y = m.upload(floats(n, SALTS[0])), m.upload(floats(n, SALTS[1]))
    m.number = time.time_ns() % 2**31

    def launched(program):
        program.saxpy(m.queue, over(n), (256,), np.float32(1e-6), x, y, np.int32(n))
        m.queue.finish()

    def sample(_, times):
        cpu, wall = 0.0, 0.0
        for _ in range(times):
            # Another number in the source: no cache can help.
            m.number += 1
            text = f"constant uint number = {m.number};\n{source}"
            programs = []

            def first():
                programs.append(cl.Program(m.context, text).build())
                launched(programs[0])

            once, again = timed(first, 1), timed(lambda: launched(programs[0]), 1)
            cpu, wall = cpu + once[0] - again[0], wall + once[1] - again[1]
        return cpu / times, wall / times

    return sample


def kernel(m, name, n):
    """A run of the kernel, or None."""
    runs = {
        "fused": lambda: three_inputs(m, "fused", n),
        "saxpy": lambda: saxpy(m, n),
        "sum": lambda: grid_sum(m, n),
        "tree": lambda: blocks_of(m, "tree_sum", n, (n + 255) // 256),
        "scan": lambda: blocks_of(m, "scan", n, n),
        "matmul": lambda: square(m, "matmul", n, 2, (16, 16)),
        "matmul-naive": lambda: square(m, "naive_matmul", n, 2, (16, 16)),
        "stencil": lambda: square(m, "stencil", n, 1, (64, 4)),
        "stencil-direct": lambda: square(m, "stencil_direct", n, 1, (64, 4)),
        "nbody": lambda: nbody(m, n),
        "sin-exp-log": lambda: three_inputs(m, "sin_exp_log", n),
        "mandelbrot": lambda: square(m, "mandelbrot", n, 0, (32, 8)),
        "histogram": lambda: histogram(m, n),
        "launch": lambda: m.synced(m.launcher("empty", (256 * n,), (256,))),
    }
    return runs[name]() if name in runs else None


def main():
    platform_name, index, name, size = *sys.argv[1:4], int(sys.argv[4])
    warnings.simplefilter("ignore")
    m = Machine(platform_name, index)
    if name == "compile":
        serve((lambda: None, m.results, compile_once(m, size)))
        return
    run = kernel(m, name, size)
    serve(run and (run, m.results, timed))


main()
