// What benches/arrays.rs compares arrays with on a CPU: loops of OpenMP, and the parallel sort of GCC's library. It
// compiles this with `g++ -O3 -march=native -fopenmp -fno-math-errno`.
//
// A request is a line with the name of a work and its numbers; the answer is the milliseconds of a run, of a sample of
// at least one millisecond, or `none`. What works need stays until the line `rest`.

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <omp.h>
#include <parallel/algorithm>
#include <sstream>
#include <string>
#include <vector>

using Run = std::function<void()>;

// Where results go that are one number.
static volatile float kept;

template <class T> static std::shared_ptr<T[]> memory(size_t n) { return std::shared_ptr<T[]>(new T[n]()); }

static std::shared_ptr<float[]> floats(size_t n) {
  auto x = memory<float>(n);
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) x[i] = float(i % 1009) / 1009;
  return x;
}

static std::shared_ptr<uint32_t[]> numbers(size_t n) {
  auto x = memory<uint32_t>(n);
#pragma omp parallel for
  for (size_t i = 0; i < n; i++) {
    uint32_t v = uint32_t(i) * 2654435761u;
    x[i] = v ^ (v >> 15);
  }
  return x;
}

static void fused(const float *__restrict__ x, float *__restrict__ y, size_t n) {
#pragma omp parallel for simd
  for (size_t i = 0; i < n; i++) {
    float t = 2 * x[i] * x[i] + 6 * x[i] * x[i] * x[i] - std::sqrt(x[i]);
    y[i] = 3 * t * t + 5 * t + 2;
  }
}

// A sum whose additions may be in any order: by lanes, as of a vectorized loop.
static float sum(const float *x, size_t n) {
  float total = 0;
#pragma omp parallel for simd reduction(+ : total)
  for (size_t i = 0; i < n; i++) total += x[i];
  return total;
}

static void sum_rows(const float *__restrict__ x, float *__restrict__ out, size_t rows, size_t columns) {
#pragma omp parallel for
  for (size_t row = 0; row < rows; row++) {
    float total = 0;
#pragma omp simd reduction(+ : total)
    for (size_t i = 0; i < columns; i++) total += x[row * columns + i];
    out[row] = total;
  }
}

// Each thread adds the rows of its share, and then what all have.
static void sum_columns(const float *__restrict__ x, float *__restrict__ out, size_t rows, size_t columns) {
  for (size_t i = 0; i < columns; i++) out[i] = 0;
#pragma omp parallel
  {
    std::vector<float> own(columns);
#pragma omp for nowait
    for (size_t row = 0; row < rows; row++) {
#pragma omp simd
      for (size_t i = 0; i < columns; i++) own[i] += x[row * columns + i];
    }
#pragma omp critical
    for (size_t i = 0; i < columns; i++) out[i] += own[i];
  }
}

// Sums of the shares of all threads first, then each share from the sum of those before.
static void scan(const uint32_t *__restrict__ x, uint32_t *__restrict__ y, size_t n) {
  std::vector<uint32_t> before(omp_get_max_threads() + 1);
#pragma omp parallel
  {
    size_t threads = omp_get_num_threads(), own = omp_get_thread_num();
    size_t first = n * own / threads, end = n * (own + 1) / threads;
    uint32_t total = 0;
    if (own + 1 < threads) {
      for (size_t i = first; i < end; i++) total += x[i];
    }
    before[own + 1] = total;
#pragma omp barrier
    uint32_t sum = 0;
    for (size_t i = 0; i <= own; i++) sum += before[i];
    for (size_t i = first; i < end; i++) y[i] = sum += x[i];
  }
}

static Run ready(const std::string &name, const std::vector<size_t> &of) {
  size_t n = of.empty() ? 0 : of[0];
  if (name == "fused") {
    auto x = floats(n), y = memory<float>(n);
    return [=] { fused(x.get(), y.get(), n); };
  }
  if (name == "sum") {
    auto x = floats(n);
    return [=] { kept = sum(x.get(), n); };
  }
  if (name == "sum_axis" && of.size() == 3) {
    size_t rows = of[1], columns = of[2];
    auto x = floats(rows * columns), out = memory<float>(n == 0 ? columns : rows);
    if (n == 0) return [=] { sum_columns(x.get(), out.get(), rows, columns); };
    return [=] { sum_rows(x.get(), out.get(), rows, columns); };
  }
  if (name == "scan") {
    auto x = numbers(n), y = memory<uint32_t>(n);
    return [=] { scan(x.get(), y.get(), n); };
  }
  if (name == "sort") {
    auto x = numbers(n), y = memory<uint32_t>(n);
    return [=] {
#pragma omp parallel for
      for (size_t i = 0; i < n; i++) y[i] = x[i];
      __gnu_parallel::sort(y.get(), y.get() + n);
    };
  }
  return nullptr;
}

static double timed(const Run &run, int times) {
  auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < times; i++) run();
  std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - start;
  return took.count() / times;
}

struct Work {
  Run run;
  int times;
};

static Work work(const std::string &line) {
  std::istringstream words(line);
  std::string name;
  std::vector<size_t> of;
  words >> name;
  for (size_t number; words >> number;) of.push_back(number);
  Run run = ready(name, of);
  if (!run) return {nullptr, 0};
  timed(run, 1);
  double ms = timed(run, 1);
  return {run, ms < 0.001 ? 1000 : ms < 1 ? int(1 / ms) + 1 : 1};
}

int main() {
  std::string line;
  std::map<std::string, Work> works;
  while (std::getline(std::cin, line)) {
    if (line == "rest") works.clear();
    else if (works.find(line) == works.end()) works[line] = work(line);
    Work &asked = works[line];
    if (asked.run) std::printf("%.6f\n", timed(asked.run, asked.times));
    else std::printf("none\n");
    std::fflush(stdout);
  }
}
