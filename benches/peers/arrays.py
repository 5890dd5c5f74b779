"""What benches/arrays.rs compares arrays with in Python: torch and CuPy on a GPU, NumPy on a CPU, as far as they are here.

A request is a line with a library, the name of a work and its numbers; the answer is the milliseconds of a run, of a sample
of at least one millisecond, or `none`. What works need stays until the line `rest`. `--compiled` has torch.compile tried,
which takes seconds each."""

import sys
import time


class Torch:
    """Sums along dimensions, softmax, products, and what torch.compile makes of some."""

    def __init__(self):
        import torch

        if not torch.cuda.is_available():
            raise ImportError("torch has no GPU")
        torch.backends.cuda.matmul.allow_tf32 = False
        torch.set_float32_matmul_precision("highest")
        self.torch = torch
        self.device = torch.device("cuda")

    def events(self):
        return [self.torch.cuda.Event(enable_timing=True) for _ in range(2)]

    def synchronize(self):
        self.torch.cuda.synchronize()

    def release(self):
        self.torch.cuda.empty_cache()

    def filled(self, *shape):
        return self.torch.rand(shape, device=self.device)

    def sum_axis(self, axis, *shape):
        x = self.filled(*shape)
        return lambda: x.sum(axis)

    def softmax(self, *shape):
        x = self.filled(*shape)
        return lambda: self.torch.softmax(x, -1)

    def matmul(self, n):
        a, b = self.filled(n, n), self.filled(n, n)
        return lambda: a @ b

    def compiled_sum_axis(self, axis, *shape):
        x = self.filled(*shape)
        run = self.torch.compile(lambda x: x.sum(axis), dynamic=False)
        return lambda: run(x)

    def compiled_softmax(self, *shape):
        x = self.filled(*shape)
        run = self.torch.compile(lambda x: self.torch.softmax(x, -1), dynamic=False)
        return lambda: run(x)

    def compiled_fused(self, n):
        x = self.filled(n)

        def polynomial(x):
            t = 2 * x * x + 6 * x**3 - x.sqrt()
            return 3 * t * t + 5 * t + 2

        run = self.torch.compile(polynomial, dynamic=False)
        return lambda: run(x)


class Cupy:
    """What its users write for a fused expression, and for whole sums."""

    def __init__(self):
        import cupy

        cupy.cuda.runtime.getDeviceCount()
        self.cupy = cupy

    def events(self):
        return [self.cupy.cuda.Event() for _ in range(2)]

    def synchronize(self):
        self.cupy.cuda.Device().synchronize()

    def release(self):
        self.cupy.get_default_memory_pool().free_all_blocks()

    def fused(self, n):
        cp = self.cupy
        x, y = cp.full(n, 0.5, cp.float32), cp.empty(n, cp.float32)
        kernel = cp.ElementwiseKernel(
            "float32 x",
            "float32 y",
            "float t = 2 * x * x + 6 * x * x * x - sqrtf(x); y = 3 * t * t + 5 * t + 2",
            "polynomial",
        )
        return lambda: kernel(x, y)

    def sum(self, n):
        x = self.cupy.full(n, 0.5, self.cupy.float32)
        return lambda: x.sum()

    def sort(self, n):
        x = self.cupy.random.randint(0, 1 << 32, n, dtype=self.cupy.uint32)
        return lambda: self.cupy.sort(x)


class Numpy:
    """What its users write; the fused expression as it makes the fewest arrays."""

    def __init__(self):
        import numpy

        self.numpy = numpy

    def events(self):
        return None

    def synchronize(self):
        pass

    def release(self):
        pass

    def filled(self, *shape):
        return self.numpy.random.default_rng(7).random(shape, self.numpy.float32)

    def fused(self, n):
        np = self.numpy
        x = self.filled(n)
        y, t, part = (np.empty_like(x) for _ in range(3))

        def run():
            np.multiply(x, x, out=part)
            np.multiply(part, 2, out=t)
            np.multiply(part, x, out=part)
            np.multiply(part, 6, out=part)
            np.add(t, part, out=t)
            np.sqrt(x, out=part)
            np.subtract(t, part, out=t)
            np.multiply(t, 3, out=y)
            np.add(y, 5, out=y)
            np.multiply(y, t, out=y)
            np.add(y, 2, out=y)

        return run

    def sum(self, n):
        x = self.filled(n)
        return lambda: x.sum()

    def sum_axis(self, axis, *shape):
        x = self.filled(*shape)
        return lambda: x.sum(axis)

    def scan(self, n):
        x = self.numpy.arange(n, dtype=self.numpy.uint32)
        return lambda: self.numpy.cumsum(x, dtype=self.numpy.uint32)

    def sort(self, n):
        x = self.numpy.random.default_rng(7).integers(0, 1 << 32, n, self.numpy.uint32)
        return lambda: self.numpy.sort(x)


def timed(library, run, times):
    """Milliseconds of a run, of so many in a row: by the device's clock where it has one."""
    library.synchronize()
    events = library.events()
    if events is None:
        start = time.perf_counter()
        for _ in range(times):
            run()
        return (time.perf_counter() - start) * 1e3 / times
    start, end = events
    start.record()
    for _ in range(times):
        run()
    end.record()
    library.synchronize()
    elapsed = getattr(start, "elapsed_time", None)
    if elapsed is None:
        from cupy.cuda import get_elapsed_time

        return get_elapsed_time(start, end) / times
    return elapsed(end) / times


def ready(libraries, words):
    """The library and the run that a request names, and how often that is run for a sample; None where nothing has it."""
    library = libraries.get(words[0])
    work = getattr(library, words[1], None)
    if work is None:
        return None
    run = work(*map(int, words[2:]))
    run()
    ms = timed(library, run, 2)
    return library, run, min(1000, max(1, int(1 / max(ms, 0.001)) + (ms < 1)))


def main():
    libraries = {}
    of = {"torch": Torch, "cupy": Cupy} if "gpu" in sys.argv else {"numpy": Numpy}
    for name, library in of.items():
        try:
            libraries[name] = library()
        except Exception as error:  # What is not here, or has no device, has no figures.
            print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
    works = {}
    for line in sys.stdin:
        words = tuple(line.split())
        if words == ("rest",):
            works.clear()
            for library in libraries.values():
                library.release()
        elif words not in works:
            works[words] = None
            try:
                compiles = len(words) > 1 and words[1].startswith("compiled_")
                if len(words) > 1 and (not compiles or "--compiled" in sys.argv):
                    works[words] = ready(libraries, words)
            except Exception as error:
                print(f"{line.strip()}: {type(error).__name__}: {error}", file=sys.stderr)
        work = works.get(words)
        print(f"{timed(*work):.6f}" if work else "none", flush=True)


main()
