// What benches/arrays.rs compares arrays with on a GPU: copies by the driver, and CUB. benches/arrays.rs compiles each
// of the parts with `nvcc -O3 -DPART=n`, all at once, and starts them.
//
// A request is a line with the name of a work and a number of elements, or of bytes; the answer is the milliseconds of
// a run, of a sample of at least one millisecond, or `none`. What works need stays until the line `rest`.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <map>
#include <string>
#include <vector>

#include <cub/cub.cuh>

using Run = std::function<void()>;

static void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

// The memory of the works that are ready.
static std::vector<void *> held;

template <class T> static T *memory(size_t count) {
  T *start;
  check(cudaMalloc(&start, count * sizeof(T)));
  held.push_back(start);
  return start;
}

static void release() {
  check(cudaDeviceSynchronize());
  for (void *start : held) check(cudaFree(start));
  held.clear();
}

// CUB asks for the size of its memory first.
template <class F> static Run with_memory(F call) {
  size_t bytes = 0;
  check(call(nullptr, bytes));
  char *own = memory<char>(bytes);
  return [=] {
    size_t size = bytes;
    check(call(own, size));
  };
}

// The numbers that benches/arrays.rs has.
__device__ unsigned mixed(size_t i) {
  unsigned v = unsigned(i) * 2654435761u;
  return v ^ (v >> 15);
}

template <class T> __global__ void fill(T *x, size_t n, int what) {
  size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
  if (i >= n) return;
  unsigned v = mixed(i);
  switch (what) {
  case 0: x[i] = T(v); break;
  case 1: x[i] = T(v & 1); break;
  case 2: x[i] = v % 128 == 0 ? T(nanf("")) : T(v); break;
  default: x[i] = T(v % 1024);
  }
}

template <class T> static T *filled(size_t n, int what) {
  T *x = memory<T>(n);
  fill<<<unsigned((n + 255) / 256), 256>>>(x, n, what);
  check(cudaGetLastError());
  return x;
}

#if PART == 0
struct Point {
  long long x, y;
};

struct Add {
  __host__ __device__ Point operator()(Point a, Point b) const { return {a.x + b.x, a.y + b.y}; }
};

template <class T> static Run sum(size_t n) {
  T *x = filled<T>(n, 3), *out = memory<T>(1);
  return with_memory([=](void *own, size_t &bytes) { return cub::DeviceReduce::Sum(own, bytes, x, out, n); });
}

static Run ready(const std::string &name, size_t n) {
  if (name == "copy") {
    char *x = memory<char>(n), *y = memory<char>(n);
    check(cudaMemset(x, 1, n));
    return [=] { check(cudaMemcpyAsync(y, x, n, cudaMemcpyDeviceToDevice)); };
  }
  if (name == "sum_f32") return sum<float>(n);
  if (name == "sum_f64") return sum<double>(n);
  if (name == "sum_i32") return sum<int>(n);
  if (name == "sum_points") {
    Point *x = memory<Point>(n), *out = memory<Point>(1);
    check(cudaMemset(x, 1, n * sizeof(Point)));
    return with_memory([=](void *own, size_t &bytes) {
      return cub::DeviceReduce::Reduce(own, bytes, x, out, n, Add(), Point{0, 0});
    });
  }
  if (name == "argmax_f32") {
    float *x = filled<float>(n, 0), *most = memory<float>(1);
    long long *at = memory<long long>(1);
    return with_memory([=](void *own, size_t &bytes) {
      return cub::DeviceReduce::ArgMax(own, bytes, x, most, at, static_cast<long long>(n));
    });
  }
  return nullptr;
}
#elif PART == 1
struct Larger {
  __host__ __device__ unsigned operator()(unsigned a, unsigned b) const { return a > b ? a : b; }
};

static Run ready(const std::string &name, size_t n) {
  if (name != "scan_u32" && name != "scan_max_u32" && name != "select_u32") return nullptr;
  unsigned *x = filled<unsigned>(n, 0), *y = memory<unsigned>(n);
  if (name == "scan_u32") {
    return with_memory([=](void *own, size_t &bytes) { return cub::DeviceScan::InclusiveSum(own, bytes, x, y, n); });
  }
  if (name == "scan_max_u32") {
    return with_memory([=](void *own, size_t &bytes) {
      return cub::DeviceScan::InclusiveScan(own, bytes, x, y, Larger(), n);
    });
  }
  unsigned char *flags = filled<unsigned char>(n, 1);
  unsigned *count = memory<unsigned>(1);
  return with_memory([=](void *own, size_t &bytes) {
    return cub::DeviceSelect::Flagged(own, bytes, x, flags, y, count, n);
  });
}
#else
struct Less {
  __host__ __device__ bool operator()(unsigned a, unsigned b) const { return a < b; }
};

static Run ready(const std::string &name, size_t n) {
  if (name == "sort_f32") {
    float *x = filled<float>(n, 2), *y = memory<float>(n);
    return with_memory([=](void *own, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(own, bytes, x, y, n); });
  }
  if (name != "sort_u32" && name != "sort_pairs_u32" && name != "merge_sort_u32") return nullptr;
  unsigned *x = filled<unsigned>(n, 0), *y = memory<unsigned>(n);
  if (name == "sort_u32") {
    return with_memory([=](void *own, size_t &bytes) { return cub::DeviceRadixSort::SortKeys(own, bytes, x, y, n); });
  }
  if (name == "sort_pairs_u32") {
    unsigned *a = filled<unsigned>(n, 0), *b = memory<unsigned>(n);
    return with_memory([=](void *own, size_t &bytes) {
      return cub::DeviceRadixSort::SortPairs(own, bytes, x, y, a, b, n);
    });
  }
  return with_memory([=](void *own, size_t &bytes) {
    return cub::DeviceMergeSort::StableSortKeysCopy(own, bytes, x, y, n, Less());
  });
}
#endif

// The milliseconds of a run, of so many in a row.
static float timed(const Run &run, int times) {
  static cudaEvent_t start, end;
  if (!start) {
    check(cudaEventCreate(&start));
    check(cudaEventCreate(&end));
  }
  check(cudaDeviceSynchronize());
  check(cudaEventRecord(start));
  for (int i = 0; i < times; i++) run();
  check(cudaEventRecord(end));
  check(cudaEventSynchronize(end));
  float ms;
  check(cudaEventElapsedTime(&ms, start, end));
  return ms / times;
}

struct Work {
  Run run;
  int times;
};

static Work work(const std::string &line) {
  size_t space = line.find(' ');
  size_t n = space == std::string::npos ? 0 : std::strtoull(line.c_str() + space, nullptr, 10);
  Run run = n == 0 ? nullptr : ready(line.substr(0, space), n);
  if (!run) return {nullptr, 0};
  timed(run, 2);
  float ms = timed(run, 2);
  return {run, ms < 0.001f ? 1000 : ms < 1 ? int(1 / ms) + 1 : 1};
}

int main() {
  std::string line;
  std::map<std::string, Work> works;
  while (std::getline(std::cin, line)) {
    if (line == "rest") {
      works.clear();
      release();
    } else if (works.find(line) == works.end()) {
      works[line] = work(line);
    }
    Work &asked = works[line];
    if (asked.run) std::printf("%.6f\n", timed(asked.run, asked.times));
    else std::printf("none\n");
    std::fflush(stdout);
  }
}
