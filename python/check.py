"""Tries Kiln's kernels on each library that is here, and prints a line for each.

    python3 check.py libkiln_python.so [numpy torch cupy jax]

With names, these have to be here.
"""

import importlib
import sys

import kiln_tensors
from kiln_tensors import Kiln


class Before:
    """An array of a library from before DLPack 1.0."""

    def __init__(self, x):
        self.x, self.__dlpack_device__ = x, x.__dlpack_device__

    def __dlpack__(self, stream=None):
        return self.x.__dlpack__()


def of_numpy(kiln, numpy):
    x, y = numpy.arange(6, dtype=numpy.float32).reshape(2, 3), numpy.ones((2, 3), numpy.float32)
    z = numpy.from_dlpack(kiln.axpy(2.0, x, y))
    assert z.shape == (2, 3) and (z == 2 * x + y).all(), z
    z += 1  # it is writable, and ours
    address = x.ctypes.data
    kiln.scale(3.0, x)
    assert address == x.ctypes.data and (x == 3 * numpy.arange(6).reshape(2, 3)).all(), x
    refused(lambda: kiln.scale(2.0, x.T), "contiguous")
    refused(lambda: kiln.scale(2.0, x.astype(numpy.float64)), "float64")
    frozen = x.copy()
    frozen.flags.writeable = False
    refused(lambda: kiln.scale(2.0, frozen), "read-only")
    assert numpy.from_dlpack(kiln.axpy(1.0, frozen, y)).shape == (2, 3)
    before = Before(x)
    assert (numpy.from_dlpack(kiln.axpy(1.0, before, y)) == x + y).all()
    refused(lambda: kiln.axpy(1.0, before, Before(y[:1])), "shape")
    del x, before
    assert (z == 2 * numpy.arange(6).reshape(2, 3) + 2).all(), z


def of_torch(kiln, torch):
    for device in ["cpu"] + ["cuda"] * torch.cuda.is_available():
        beside = torch.cuda.stream(torch.cuda.Stream()) if device == "cuda" else torch.no_grad()
        with beside:
            x = torch.arange(1 << 20, dtype=torch.float32, device=device)
            y = torch.ones_like(x)
            z = torch.from_dlpack(kiln.axpy(2.0, x, y))
            assert z.device == x.device and torch.equal(z, 2 * x + y)
            kiln.scale(3.0, x)
            assert x[7].item() == 21.0


def of_cupy(kiln, cupy):
    with cupy.cuda.Stream(non_blocking=True):
        x = cupy.arange(1 << 20, dtype=cupy.float32)
        y = cupy.ones_like(x)
        z = cupy.from_dlpack(kiln.axpy(2.0, x, y))
        assert (z == 2 * x + y).all()
        kiln.scale(3.0, x)
        assert x[7] == 21.0


def of_jax(kiln, jax):
    numbers = jax.numpy
    x = numbers.arange(1 << 12, dtype=numbers.float32)
    y = numbers.ones_like(x)
    z = jax.dlpack.from_dlpack(kiln.axpy(2.0, x, y))
    assert (z == 2 * x + y).all()


def refused(call, word):
    try:
        call()
    except RuntimeError as error:
        assert word in str(error), error
        return
    raise AssertionError(f"it was taken: {word}")


def of_another_version(path):
    kiln_tensors.FACE += 1
    try:
        Kiln(path)
    except ImportError:
        return
    finally:
        kiln_tensors.FACE -= 1
    raise AssertionError("a library of another version was taken")


def main(path, *wanted):
    of_another_version(path)
    kiln = Kiln(path)
    for name, check in [("numpy", of_numpy), ("torch", of_torch), ("cupy", of_cupy), ("jax", of_jax)]:
        try:
            library = importlib.import_module(name)
        except ImportError as error:
            if name in wanted:
                raise
            print(f"{name}: not here ({error})")
            continue
        check(kiln, library)
        print(f"{name} {library.__version__}: ok")


main(*sys.argv[1:])
