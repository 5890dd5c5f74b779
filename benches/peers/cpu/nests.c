// The programs of benches/suite that have directives, as plain C loops with OpenMP: the same loops, for the bench
// `sequential` on a CPU. Built into `loops`.
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "nests.h"

static size_t n;
static float *a, *b, *c, *d;
static uint32_t counts[21];
static float *results;
static size_t count_of_results;

static float *floats(size_t count, uint32_t salt) {
  float *out = malloc(count * sizeof *out);
  for (size_t i = 0; i < count; i++) out[i] = (float)((i % 1009 * 331 + salt) % 1009) / 1009.0f;
  return out;
}

static void give(float *values, size_t count) { results = values, count_of_results = count; }

static void product_setup(void) { a = floats(n * n, 1), b = floats(n * n, 358), give(c = floats(n * n, 0), n * n); }
static void product(void) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i++) {
    float *restrict row = c + i * n;
    memset(row, 0, n * sizeof *row);
    for (size_t k = 0; k < n; k++) {
      const float *restrict from = b + k * n;
      float x = a[i * n + k];
      for (size_t j = 0; j < n; j++) row[j] += x * from[j];
    }
  }
}

// Three steps, as the program takes.
static void jacobi_setup(void) { give(a = floats(n * n, 1), n * n), b = floats(n * n, 1); }
static void jacobi(void) {
  for (int step = 0; step < 3; step++) {
#pragma omp parallel for schedule(static)
    for (size_t i = 1; i < n - 1; i++) {
      const float *restrict in = a + i * n;
      float *restrict out = b + i * n;
      for (size_t j = 1; j < n - 1; j++)
        out[j] = 0.25f * ((in[j - 1] + in[j + 1]) + (in[j - n] + in[j + n]));
    }
    float *swap = a;
    a = b, b = swap;
  }
  give(a, n * n);
}

// Four steps, as in two launches of two.
static void hotspot_setup(void) { give(a = floats(n * n, 1), n * n), b = floats(n * n, 1), c = floats(n * n, 358); }
static void hotspot(void) {
  for (int step = 0; step < 4; step++) {
#pragma omp parallel for schedule(static)
    for (size_t i = 0; i < n; i++) {
      const float *restrict in = a + i * n, *restrict power = c + i * n;
      const float *restrict up = i > 0 ? in - n : in, *restrict down = i < n - 1 ? in + n : in;
      float *restrict out = b + i * n;
      for (size_t j = 0; j < n; j++) {
        float own = in[j], west = j > 0 ? in[j - 1] : own, east = j < n - 1 ? in[j + 1] : own;
        float column = (down[j] + up[j] - 2.0f * own) * 0.1f, row = (east + west - 2.0f * own) * 0.1f;
        out[j] = own + 0.01f * (power[j] + column + row + (80.0f - own) * 0.001f);
      }
    }
    float *swap = a;
    a = b, b = swap;
  }
  give(a, n * n);
}

// 1,000 charges on a slice of n by n places.
static void coulomb_setup(void) {
  a = floats(1000, 1), b = floats(1000, 358), c = floats(1000, 701), give(d = floats(n * n, 0), n * n);
}
static void coulomb(void) {
#pragma omp parallel for schedule(static)
  for (size_t row = 0; row < n; row++)
    for (size_t column = 0; column < n; column++) {
      float x = 0.1f * (float)column, y = 0.1f * (float)row, sum = 0.0f;
#pragma omp simd reduction(+ : sum)
      for (size_t i = 0; i < 1000; i++) {
        float dx = x - a[i], dy = y - b[i];
        sum += c[i] * (1.0f / sqrtf(dx * dx + dy * dy + 1.0f));
      }
      d[row * n + column] += sum;
    }
}

static void transpose_setup(void) { a = floats(n * n, 1), give(b = floats(n * n, 0), n * n); }
static void transpose(void) {
#pragma omp parallel for schedule(static)
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < n; j++) b[i * n + j] = a[j * n + i];
}

static void tpacf_setup(void) {
  a = floats(n, 1), b = floats(n, 358), c = floats(n, 701), d = malloc(20 * sizeof *d);
  for (size_t i = 0; i < 20; i++) d[i] = cosf(fminf(0.01f * powf(1.3f, (float)i), 3.0f));
}
static void tpacf(void) {
#pragma omp parallel for schedule(dynamic, 16) reduction(+ : counts)
  for (size_t i = 0; i < n; i++)
    for (size_t j = 0; j < i; j++) {
      float cosine = a[i] * a[j] + b[i] * b[j] + c[i] * c[j];
      size_t low = 0, high = 20;
      while (low < high) {
        size_t middle = (low + high) / 2;
        if (cosine >= d[middle])
          high = middle;
        else
          low = middle + 1;
      }
      counts[low]++;
    }
}

static const struct {
  const char *name;
  void (*setup)(void), (*run)(void);
} NESTS[] = {
    {"nest-product", product_setup, product},   {"nest-jacobi", jacobi_setup, jacobi},
    {"nest-hotspot", hotspot_setup, hotspot},   {"nest-coulomb", coulomb_setup, coulomb},
    {"nest-transpose", transpose_setup, transpose}, {"nest-tpacf", tpacf_setup, tpacf},
};

nest_run nest_named(const char *name, size_t size) {
  n = size;
  for (size_t i = 0; i < sizeof NESTS / sizeof *NESTS; i++)
    if (strcmp(name, NESTS[i].name) == 0) {
      NESTS[i].setup();
      return NESTS[i].run;
    }
  return NULL;
}

double nest_checksum(void) {
  double total = 0.0;
  for (size_t i = 0; i < count_of_results; i++) total += (double)results[i] * (double)(1 + i % 1009);
  for (size_t i = 0; i < 21; i++) total += (double)counts[i];
  return total;
}
