// What benches/arrays.rs compares arrays with: copies by the driver, and CUB for whole arrays. Prints a line for each, its
// name and the median of 11 in milliseconds. benches/arrays.rs compiles it with `nvcc -O3` and runs it once.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cub/cub.cuh>

static void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

struct Larger {
  __host__ __device__ unsigned operator()(unsigned a, unsigned b) const { return a > b ? a : b; }
};

struct Less {
  __host__ __device__ bool operator()(unsigned a, unsigned b) const { return a < b; }
};

template <class T> static T *memory(size_t count) {
  T *start;
  check(cudaMalloc(&start, count * sizeof(T)));
  return start;
}

__global__ void fill(unsigned *x, size_t n) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) {
    unsigned v = unsigned(i) * 2654435761u;
    x[i] = v ^ (v >> 15);
  }
}

__global__ void to_float(const unsigned *x, float *y, size_t n) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i < n) y[i] = float(x[i]);
}

template <class F> static void timed(const char *name, F work) {
  cudaEvent_t start, end;
  check(cudaEventCreate(&start));
  check(cudaEventCreate(&end));
  std::vector<float> times;
  for (int run = 0; run < 14; run++) {
    check(cudaEventRecord(start));
    work();
    check(cudaEventRecord(end));
    check(cudaEventSynchronize(end));
    float ms;
    check(cudaEventElapsedTime(&ms, start, end));
    if (run >= 3) {
      times.push_back(ms);
    }
  }
  std::sort(times.begin(), times.end());
  std::printf("%s %f\n", name, times[times.size() / 2]);
}

// CUB asks for the size of its memory first.
template <class F> static void with_memory(const char *name, F call) {
  size_t bytes = 0;
  check(call(nullptr, bytes));
  char *own = memory<char>(bytes);
  timed(name, [&] { check(call(own, bytes)); });
  check(cudaFree(own));
}

template <class T> static void sum(const char *name, size_t n) {
  T *x = memory<T>(n), *out = memory<T>(1);
  check(cudaMemset(x, 1, n * sizeof(T)));
  with_memory(name, [&](void *own, size_t &bytes) { return cub::DeviceReduce::Sum(own, bytes, x, out, n); });
  check(cudaFree(x));
  check(cudaFree(out));
}

int main() {
  const size_t n = size_t(1) << 28, sorted = size_t(1) << 26;
  unsigned *x = memory<unsigned>(n), *y = memory<unsigned>(n);
  fill<<<unsigned(n / 256), 256>>>(x, n);
  timed("copy", [&] { check(cudaMemcpyAsync(y, x, n * 4, cudaMemcpyDeviceToDevice)); });
  sum<float>("sum_f32", n);
  sum<double>("sum_f64", n / 2);
  sum<int>("sum_i32", n);
  sum<float>("sum_f32_small", size_t(1) << 20);
  with_memory("scan_u32", [&](void *own, size_t &bytes) { return cub::DeviceScan::InclusiveSum(own, bytes, x, y, n); });
  with_memory("scan_max_u32", [&](void *own, size_t &bytes) {
    return cub::DeviceScan::InclusiveScan(own, bytes, x, y, Larger(), n);
  });
  with_memory("sort_u32",
              [&](void *own, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(own, bytes, x, y, sorted); });
  unsigned *a = memory<unsigned>(sorted), *b = memory<unsigned>(sorted);
  with_memory("sort_pairs_u32", [&](void *own, size_t &bytes) {
    return cub::DeviceRadixSort::SortPairs(own, bytes, x, y, a, b, sorted);
  });
  with_memory("merge_sort_u32", [&](void *own, size_t &bytes) {
    return cub::DeviceMergeSort::StableSortKeysCopy(own, bytes, x, y, sorted, Less());
  });
  float *keys = memory<float>(sorted), *in_order = memory<float>(sorted);
  to_float<<<unsigned(sorted / 256), 256>>>(x, keys, sorted);
  with_memory("sort_f32",
              [&](void *own, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(own, bytes, keys, in_order, sorted); });
  unsigned *count = memory<unsigned>(1);
  auto is_even = [] __device__(unsigned v) { return (v & 1) == 0; };
  with_memory("select_u32",
              [&](void *own, size_t &bytes) { return cub::DeviceSelect::If(own, bytes, x, y, count, n, is_even); });
  check(cudaDeviceSynchronize());
}
