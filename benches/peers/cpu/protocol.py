"""What the Python peers of benches/cpu.rs share: inputs, checksums, and the answers.

A peer fills its inputs, runs its kernel once and prints `ready CHECKSUM`; then each line `N` of
its input makes it run the kernel N times and print the process CPU time and the wall time of one
run, in seconds. `none` is printed for a kernel that a peer has not. See benches/cpu/peers.rs.
"""

import sys
import time

import numpy as np

SALTS = (1, 358, 701, 17)


def floats(count, salt):
    """Numbers from 0 to 1, the same as in benches/cpu/reference.rs."""
    ramp = (np.arange(count, dtype=np.uint64) % 1009 * 331 + salt) % 1009
    return ramp.astype(np.float32) / np.float32(1009)


def keys(count):
    """Numbers below 256, the same as in benches/cpu/reference.rs."""
    x = np.arange(count, dtype=np.uint32) * np.uint32(0x9E3779B1)
    x ^= x >> np.uint32(15)
    return x * np.uint32(0x85EBCA77) >> np.uint32(24)


def checksum(values):
    """The sum of all results, each times a number that tells its place."""
    flat = np.asarray(values).reshape(-1)
    return float(np.dot(flat.astype(np.float64), 1.0 + np.arange(flat.size) % 1009))


def timed(run, times):
    """CPU time and wall time of one run, in seconds."""
    cpu, wall = time.process_time(), time.perf_counter()
    for _ in range(times):
        run()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return cpu / times, wall / times


def serve(kernel):
    """Answers until the input ends. `kernel` is None, or `(run, results, sample)`: a run, what it
    computed, and how N runs are timed (`timed` unless given)."""
    if kernel is None:
        print("none", flush=True)
        return
    run, results, sample = kernel
    run()
    print(f"ready {checksum(results()):.9g}", flush=True)
    for line in sys.stdin:
        cpu, wall = sample(run, max(1, int(line)))
        print(f"{cpu:.9g} {wall:.9g}", flush=True)
