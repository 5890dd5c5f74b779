// Reductions and scans of blocks by CUB, 64 in a row: the twins of the kernels in benches/collectives.rs, for each type
// and size of blocks; and histograms by its atomics. benches/collectives.rs compiles it with `nvcc -O3`. Parameters: a
// number for each thread, in and out; of histograms four keys, what is added to keys in each round, and the count of a bin.

#include <cub/block/block_histogram.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>

struct alignas(8) Pair {
  long long a, b;
};

struct Sum {
  __device__ int operator()(int a, int b) const { return a + b; }
  __device__ float operator()(float a, float b) const { return a + b; }
  __device__ Pair operator()(Pair a, Pair b) const { return {a.a + b.a, a.b + b.b}; }
};

// What a round makes of what the one before has given, so that none can be left out.
__device__ int next(int v) { return v >> 8; }
__device__ float next(float v) { return v * 0.001f; }
__device__ Pair next(Pair v) { return {v.a >> 8, v.b >> 8}; }

template <class T, int THREADS>
__device__ void reduce(const T *__restrict__ x, T *__restrict__ out) {
  using Block = cub::BlockReduce<T, THREADS>;
  __shared__ typename Block::TempStorage memory;
  unsigned i = blockIdx.x * THREADS + threadIdx.x;
  T v = x[i];
  for (int round = 0; round < 64; round++) {
    T sum = Block(memory).Reduce(v, Sum());
    if (threadIdx.x == 0) {
      v = next(sum);
    }
    __syncthreads();
  }
  out[i] = v;
}

template <class T, int THREADS>
__device__ void scan(const T *__restrict__ x, T *__restrict__ out) {
  using Block = cub::BlockScan<T, THREADS>;
  __shared__ typename Block::TempStorage memory;
  unsigned i = blockIdx.x * THREADS + threadIdx.x;
  T v = x[i];
  for (int round = 0; round < 64; round++) {
    T sum;
    Block(memory).InclusiveScan(v, sum, Sum());
    v = next(sum);
    __syncthreads();
  }
  out[i] = v;
}

#define TWINS(name, T, threads)                                                                                        \
  extern "C" __global__ void __launch_bounds__(threads)                                                                \
      reduce_##name##_##threads(const T *__restrict__ x, T *__restrict__ out) {                                        \
    reduce<T, threads>(x, out);                                                                                        \
  }                                                                                                                    \
  extern "C" __global__ void __launch_bounds__(threads)                                                                \
      scan_##name##_##threads(const T *__restrict__ x, T *__restrict__ out) {                                          \
    scan<T, threads>(x, out);                                                                                          \
  }
#define SIZES(name, T) TWINS(name, T, 128) TWINS(name, T, 256) TWINS(name, T, 512) TWINS(name, T, 1024)
SIZES(i32, int)
SIZES(f32, float)
SIZES(pair, Pair)

template <int THREADS>
__device__ void histogram(const unsigned *__restrict__ x, unsigned step, unsigned *__restrict__ out) {
  using Block = cub::BlockHistogram<unsigned, THREADS, 4, 256, cub::BLOCK_HISTO_ATOMIC>;
  __shared__ typename Block::TempStorage memory;
  __shared__ unsigned counts[256];
  unsigned i = blockIdx.x * THREADS + threadIdx.x;
  unsigned keys[4] = {x[4 * i], x[4 * i + 1], x[4 * i + 2], x[4 * i + 3]};
  unsigned total = 0;
  for (int round = 0; round < 64; round++) {
    unsigned bins[4] = {keys[0] % 256, keys[1] % 256, keys[2] % 256, keys[3] % 256};
    Block(memory).Histogram(bins, counts);
    __syncthreads();
    total += counts[threadIdx.x % 256];
    __syncthreads();
    for (int key = 0; key < 4; key++) keys[key] += step;
  }
  out[i] = total;
}

#define HISTOGRAM(threads)                                                                                             \
  extern "C" __global__ void __launch_bounds__(threads)                                                                \
      histogram_##threads(const unsigned *__restrict__ x, unsigned step, unsigned *__restrict__ out) {                 \
    histogram<threads>(x, step, out);                                                                                  \
  }
HISTOGRAM(128) HISTOGRAM(256) HISTOGRAM(512) HISTOGRAM(1024)
