// Mathematical functions of arrays in plain C loops, for benches/cpu/functions.rs. Compiled and linked with loops.c by
// `cargo xtask bench-peers`.
//
// glibc declares the variants of its vector library, libmvec, for -ffast-math alone. The loops are to have them without
// that, so that it is said for its header only.
#define __FAST_MATH__ 1
#include <math.h>
#undef __FAST_MATH__
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

static size_t n;
static float *x32, *y32, *r32;
static double *x64, *y64, *r64;

#define LOOP _Pragma("omp parallel for simd schedule(static)") for (size_t i = 0; i < n; i++)

// The values of an element that are added up, so that it is the functions that take the time and not the accesses.
#define VALUES _Pragma("GCC unroll 8") for (int k = 0; k < 8; k++)

// Both widths of a function `name`, with the functions of C for them.
#define FUNCTION(name, single, double_)                                                                                \
  static void name##_f32(void) {                                                                                       \
    LOOP {                                                                                                             \
      float sum = 0;                                                                                                   \
      VALUES {                                                                                                         \
        float x = x32[i] + (float)k * 0.03125f, y = y32[i] + (float)k * 0.03125f;                                      \
        (void)y;                                                                                                       \
        sum += single;                                                                                                 \
      }                                                                                                                \
      r32[i] = sum;                                                                                                    \
    }                                                                                                                  \
  }                                                                                                                    \
  static void name##_f64(void) {                                                                                       \
    LOOP {                                                                                                             \
      double sum = 0;                                                                                                  \
      VALUES {                                                                                                         \
        double x = x64[i] + k * 0.03125, y = y64[i] + k * 0.03125;                                                     \
        (void)y;                                                                                                       \
        sum += double_;                                                                                                \
      }                                                                                                                \
      r64[i] = sum;                                                                                                    \
    }                                                                                                                  \
  }

FUNCTION(sin, sinf(x), sin(x))
FUNCTION(cos, cosf(x), cos(x))
FUNCTION(exp, expf(x), exp(x))
FUNCTION(log, logf(x), log(x))
FUNCTION(pow, powf(x, y), pow(x, y))
FUNCTION(tanh, tanhf(x), tanh(x))
FUNCTION(atan2, atan2f(x, y), atan2(x, y))
FUNCTION(erf, erff(x), erf(x))
FUNCTION(rsqrt, 1.0f / sqrtf(x), 1.0 / sqrt(x))
FUNCTION(div, x / y, x / y)

// Two loops: gcc makes one function of the sine and the cosine of one number, which has no variant for vectors.
static void sin_cos_f32(void) {
  sin_f32();
  LOOP {
    float sum = 0;
    VALUES sum += cosf(x32[i] + (float)k * 0.03125f);
    r32[i] += sum;
  }
}
static void sin_cos_f64(void) {
  sin_f64();
  LOOP {
    double sum = 0;
    VALUES sum += cos(x64[i] + k * 0.03125);
    r64[i] += sum;
  }
}

#define ANGLE -8.0, 8.0
#define POSITIVE 0.0625, 100.0
#define NONE 0.0, 1.0
#define BOTH(text, name, ...) {text "-f32", name##_f32, 0, {__VA_ARGS__}}, {text "-f64", name##_f64, 1, {__VA_ARGS__}}

static const struct {
  const char *name;
  void (*run)(void);
  int is_double;
  // Where first arguments are from and to, and second ones.
  double ranges[4];
} FUNCTIONS[] = {
    BOTH("sin", sin, ANGLE, NONE),
    BOTH("cos", cos, ANGLE, NONE),
    BOTH("sin-cos", sin_cos, ANGLE, NONE),
    BOTH("exp", exp, -10.0, 10.0, NONE),
    BOTH("log", log, POSITIVE, NONE),
    BOTH("pow", pow, 0.1, 10.0, -5.0, 5.0),
    BOTH("tanh", tanh, -4.0, 4.0, NONE),
    BOTH("atan2", atan2, -1.0, 1.0, -1.0, 1.0),
    BOTH("erf", erf, -3.0, 3.0, NONE),
    BOTH("rsqrt", rsqrt, POSITIVE, NONE),
    BOTH("div", div, -10.0, 10.0, 0.5, 10.0),
};

static double input(size_t i, uint32_t salt, const double *range) {
  float part = (float)((i % 1009 * 331 + salt) % 1009) / 1009.0f;
  return range[0] + (range[1] - range[0]) * (double)part;
}

function_run function_named(const char *name, size_t count) {
  for (size_t k = 0; k < sizeof FUNCTIONS / sizeof *FUNCTIONS; k++) {
    if (strcmp(name, FUNCTIONS[k].name) != 0) continue;
    const double *ranges = FUNCTIONS[k].ranges;
    n = count;
    if (FUNCTIONS[k].is_double)
      x64 = malloc(n * 8), y64 = malloc(n * 8), r64 = malloc(n * 8);
    else
      x32 = malloc(n * 4), y32 = malloc(n * 4), r32 = malloc(n * 4);
    for (size_t i = 0; i < n; i++) {
      double x = input(i, 1, ranges), y = input(i, 358, ranges + 2);
      if (FUNCTIONS[k].is_double)
        x64[i] = x, y64[i] = y;
      else
        x32[i] = (float)x, y32[i] = (float)y;
    }
    return FUNCTIONS[k].run;
  }
  return NULL;
}

double function_result(size_t i) { return r64 ? r64[i] : (double)r32[i]; }
