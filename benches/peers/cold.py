"""What compilers for Python take for a saxpy that they have not seen, from the call to its result, in a process in which
they have compiled before: a line for each that is here, with its name and the milliseconds of each kernel, the first
left out. What they keep on disk is kept in a folder of this run, which is empty."""

import os
import sys
import tempfile
import time

FOLDER = tempfile.mkdtemp()
os.environ["CUDA_CACHE_DISABLE"] = "1"
os.environ["TRITON_CACHE_DIR"] = FOLDER
os.environ["CUPY_CACHE_DIR"] = FOLDER
os.environ["CUPY_CACHE_IN_MEMORY"] = "1"
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
KERNELS = 9
COUNT = 256


def cupy():
    import cupy as cp

    x, y = cp.ones(COUNT, cp.float32), cp.full(COUNT, 2, cp.float32)

    def run(n):
        source = """extern "C" __global__ void saxpy(float a, const float *x, float *y, int count) {
          int i = blockIdx.x * blockDim.x + threadIdx.x;
          if (i < count) y[i] = a * x[i] + y[i] + %d.0f;
        }""" % n
        cp.RawKernel(source, "saxpy")((1,), (COUNT,), (cp.float32(3), x, y, cp.int32(COUNT)))
        cp.cuda.Device().synchronize()

    return run


def numba():
    import numpy as np

    # NumPy 2.4 has dropped a name that numba's simulator of CUDA asks for as it is imported.
    np.row_stack = getattr(np, "row_stack", np.vstack)
    from numba import cuda

    x = cuda.to_device(np.ones(COUNT, np.float32))
    y = cuda.to_device(np.full(COUNT, 2, np.float32))

    def run(n):
        more = np.float32(n)

        def saxpy(a, x, y):
            i = cuda.grid(1)
            if i < y.size:
                y[i] = a * x[i] + y[i] + more

        cuda.jit(saxpy)[1, COUNT](np.float32(3), x, y)
        cuda.synchronize()

    return run


def triton():
    import torch

    with open(os.path.join(FOLDER, "saxpy_of_triton.py"), "w") as file:
        file.write(
            "import triton, triton.language as tl\n"
            "@triton.jit\n"
            "def saxpy(a, x, y, n, more: tl.constexpr, block: tl.constexpr):\n"
            "    i = tl.program_id(0) * block + tl.arange(0, block)\n"
            "    inside = i < n\n"
            "    value = a * tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside) + more\n"
            "    tl.store(y + i, value, mask=inside)\n"
        )
    sys.path.insert(0, FOLDER)
    from saxpy_of_triton import saxpy

    x, y = torch.ones(COUNT, device="cuda"), torch.full((COUNT,), 2.0, device="cuda")

    def run(n):
        saxpy[(1,)](3.0, x, y, COUNT, more=n + 2, block=COUNT)
        torch.cuda.synchronize()

    return run


def jax():
    import jax
    import jax.numpy as jnp

    x, y = jnp.ones(COUNT), jnp.full(COUNT, 2.0)

    def run(n):
        jax.jit(lambda a, x, y: a * x + y + n)(3.0, x, y).block_until_ready()

    return run


def times(run):
    found = []
    for n in range(KERNELS + 1):
        start = time.perf_counter()
        run(n)
        found.append((time.perf_counter() - start) * 1e3)
    return found[1:]


for name, of in [("CuPy, which is NVRTC", cupy), ("Triton", triton), ("JAX", jax), ("numba", numba)]:
    try:
        print(name, *times(of()), sep="\t", flush=True)
    except Exception as error:  # What is not here, or does not work here, is told and has no figure.
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
