// Plain C loops: what a C programmer writes for the kernels of benches/cpu.rs, with OpenMP.
//
// Built by `cargo xtask bench-peers`. `loops KERNEL SIZE` fills its inputs, runs the kernel once
// and prints `ready CHECKSUM`; then each line `N` of its input makes it run the kernel N times and
// print the process CPU time and the wall time of one run, in seconds. `none` is printed for a
// kernel that has no loop here, in functions.c or in nests.c. See benches/cpu/peers.rs.
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "functions.h"
#include "nests.h"

#define BINS 256

static size_t n;
static float *a, *b, *c, *d, *r;
static uint32_t *keys, *counts;
// What is summed up for the checksum: floats in `r` or numbers in `counts`.
static size_t results;

static float *floats(size_t count, uint32_t salt) {
  float *out = malloc(count * sizeof *out);
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < count; i++) out[i] = (float)((i % 1009 * 331 + salt) % 1009) / 1009.0f;
  return out;
}

static float *zeros(size_t count) {
  float *out = malloc(count * sizeof *out);
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < count; i++) out[i] = 0.0f;
  results = count;
  return out;
}

static void three_inputs(size_t count) {
  a = floats(count, 1), b = floats(count, 358), c = floats(count, 701), r = zeros(count);
}

static void fused_setup(void) { three_inputs(n); }
static void fused(void) {
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < n; i++) r[i] = a[i] * b[i] + 2.0f * c[i] - 1.0f;
}

// y = a * x + y, with a so small that many runs change y little.
static void saxpy_setup(void) { a = floats(n, 1), r = floats(n, 358), results = n; }
static void saxpy(void) {
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < n; i++) r[i] = 1e-6f * a[i] + r[i];
}

static void sum_setup(void) { a = floats(n, 1), r = zeros(1); }
static void sum(void) {
  float total = 0.0f;
#pragma omp parallel for simd schedule(static) reduction(+ : total)
  for (size_t i = 0; i < n; i++) total += a[i];
  r[0] = total;
}

static void matmul_setup(void) { a = floats(n * n, 1), b = floats(n * n, 358), r = zeros(n * n); }
static void matmul(void) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i++) {
    float *restrict row = r + i * n;
    memset(row, 0, n * sizeof *row);
    for (size_t k = 0; k < n; k++) {
      const float *restrict from = b + k * n;
      float x = a[i * n + k];
      for (size_t j = 0; j < n; j++) row[j] += x * from[j];
    }
  }
}

static void stencil_setup(void) { a = floats(n * n, 1), r = zeros(n * n); }
static void stencil(void) {
#pragma omp parallel for schedule(static)
  for (size_t y = 0; y < n; y++) {
    const float *restrict in = a + y * n;
    float *restrict out = r + y * n;
    if (y == 0 || y == n - 1) {
      memcpy(out, in, n * sizeof *out);
      continue;
    }
    const float *restrict up = in - n, *restrict down = in + n;
    out[0] = in[0], out[n - 1] = in[n - 1];
    for (size_t x = 1; x < n - 1; x++)
      out[x] = 0.5f * in[x] + 0.125f * (in[x - 1] + in[x + 1] + up[x] + down[x]);
  }
}

static void nbody_setup(void) {
  a = floats(n, 1), b = floats(n, 358), c = floats(n, 701), d = floats(n, 17), r = zeros(3 * n);
}
static void nbody(void) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i++) {
    float x = a[i], y = b[i], z = c[i], ax = 0.0f, ay = 0.0f, az = 0.0f;
#pragma omp simd reduction(+ : ax, ay, az)
    for (size_t j = 0; j < n; j++) {
      float dx = a[j] - x, dy = b[j] - y, dz = c[j] - z;
      float inverse = 1.0f / sqrtf(dx * dx + dy * dy + dz * dz + 0.01f);
      float s = d[j] * (inverse * inverse * inverse);
      ax += s * dx, ay += s * dy, az += s * dz;
    }
    r[i] = ax, r[n + i] = ay, r[2 * n + i] = az;
  }
}

static void math_setup(void) { three_inputs(n); }
static void math(void) {
#pragma omp parallel for simd schedule(static)
  for (size_t i = 0; i < n; i++) r[i] = sinf(a[i]) * expf(b[i]) + logf(c[i] + 1.0f);
}

static void mandelbrot_setup(void) { counts = malloc(n * n * sizeof *counts), results = n * n; }
static void mandelbrot(void) {
  float step = 2.5f / (float)n;
#pragma omp parallel for schedule(dynamic, 16)
  for (size_t y = 0; y < n; y++)
    for (size_t x = 0; x < n; x++) {
      float cx = -2.0f + (float)x * step, cy = -1.25f + (float)y * step;
      float zx = 0.0f, zy = 0.0f;
      uint32_t steps = 0;
      while (steps < 256 && zx * zx + zy * zy <= 4.0f) {
        float next = zx * zx - zy * zy + cx;
        zy = 2.0f * zx * zy + cy, zx = next, steps++;
      }
      counts[y * n + x] = steps;
    }
}

static void histogram_setup(void) {
  keys = malloc(n * sizeof *keys), counts = calloc(BINS, sizeof *counts), results = BINS;
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i++) {
    uint32_t x = (uint32_t)i * 0x9E3779B1u;
    x ^= x >> 15;
    keys[i] = (x * 0x85EBCA77u) >> 24;
  }
}
static void histogram(void) {
  uint32_t bins[BINS] = {0};
#pragma omp parallel for schedule(static) reduction(+ : bins)
  for (size_t i = 0; i < n; i++) bins[keys[i]]++;
  for (size_t i = 0; i < BINS; i++) counts[i] += bins[i];
}

static const struct {
  const char *name;
  void (*setup)(void), (*run)(void);
} KERNELS[] = {
    {"fused", fused_setup, fused},
    {"saxpy", saxpy_setup, saxpy},
    {"sum", sum_setup, sum},
    {"matmul", matmul_setup, matmul},
    {"matmul-naive", matmul_setup, matmul},
    {"stencil", stencil_setup, stencil},
    {"stencil-direct", stencil_setup, stencil},
    {"nbody", nbody_setup, nbody},
    {"sin-exp-log", math_setup, math},
    {"mandelbrot", mandelbrot_setup, mandelbrot},
    {"histogram", histogram_setup, histogram},
};

static double seconds(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static double checksum(void) {
  double total = 0.0;
  for (size_t i = 0; i < results; i++) {
    double value = r ? (double)r[i] : counts ? (double)counts[i] : function_result(i);
    total += value * (double)(1 + i % 1009);
  }
  return total;
}

static void serve(void (*run)(void), double (*sum_up)(void)) {
  run();
  printf("ready %.9g\n", sum_up());
  fflush(stdout);
  char line[64];
  while (fgets(line, sizeof line, stdin)) {
    long times = atol(line);
    if (times < 1) times = 1;
    double cpu = seconds(CLOCK_PROCESS_CPUTIME_ID), wall = seconds(CLOCK_MONOTONIC);
    for (long i = 0; i < times; i++) run();
    wall = seconds(CLOCK_MONOTONIC) - wall, cpu = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%.9g %.9g\n", cpu / (double)times, wall / (double)times);
    fflush(stdout);
  }
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: loops KERNEL SIZE\n");
    return 2;
  }
  n = strtoull(argv[2], NULL, 10);
  for (size_t i = 0; i < sizeof KERNELS / sizeof *KERNELS; i++)
    if (strcmp(argv[1], KERNELS[i].name) == 0) {
      KERNELS[i].setup();
      serve(KERNELS[i].run, checksum);
      return 0;
    }
  function_run run = function_named(argv[1], n);
  if (run) {
    results = n;
    serve(run, checksum);
    return 0;
  }
  nest_run nest = nest_named(argv[1], n);
  if (nest) {
    serve(nest, nest_checksum);
    return 0;
  }
  printf("none\n");
  return 0;
}
