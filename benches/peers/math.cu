// Mathematical functions by nvcc, of libdevice and by its intrinsics: the twins of the kernels in benches/math/kernels.rs.
// benches/math.rs compiles it with `nvcc -O3`. Parameters: numbers, four a thread, and others for functions of two, what is
// added to both in each round, and the sums of the values.

template <class T> struct Step {
  T x, y;
};

#define TWIN(name, T, value)                                                                                           \
  static __device__ T name##_of(T x, T y) { return value; }                                                            \
  extern "C" __global__ void name(const T *__restrict__ xs, const T *__restrict__ ys, Step<T> step,                    \
                                  T *__restrict__ out) {                                                               \
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;                         \
    T x[4], y[4], sums[4] = {0, 0, 0, 0};                                                                              \
    _Pragma("unroll") for (int chain = 0; chain < 4; chain++) {                                                        \
      x[chain] = xs[thread + chain * threads];                                                                         \
      y[chain] = ys[thread + chain * threads];                                                                         \
    }                                                                                                                  \
    _Pragma("unroll 1") for (int round = 0; round < 1024; round++) {                                                   \
      _Pragma("unroll") for (int chain = 0; chain < 4; chain++) {                                                      \
        sums[chain] += name##_of(x[chain], y[chain]);                                                                  \
        x[chain] += step.x;                                                                                            \
        y[chain] += step.y;                                                                                            \
      }                                                                                                                \
    }                                                                                                                  \
    out[thread] = (sums[0] + sums[1]) + (sums[2] + sums[3]);                                                           \
  }

static __device__ float both(float x) {
  float sine, cosine;
  sincosf(x, &sine, &cosine);
  return sine + cosine;
}

static __device__ double both(double x) {
  double sine, cosine;
  sincos(x, &sine, &cosine);
  return sine + cosine;
}

static __device__ float both_fast(float x) {
  float sine, cosine;
  __sincosf(x, &sine, &cosine);
  return sine + cosine;
}

// What -use_fast_math makes of tanhf; not all versions of nvcc have a name for it.
static __device__ float tanh_fast_of(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

TWIN(sin_f32, float, sinf(x))
TWIN(cos_f32, float, cosf(x))
TWIN(sin_cos_f32, float, both(x))
TWIN(exp_f32, float, expf(x))
TWIN(log_f32, float, logf(x))
TWIN(pow_f32, float, powf(x, y))
TWIN(tanh_f32, float, tanhf(x))
TWIN(atan2_f32, float, atan2f(x, y))
TWIN(erf_f32, float, erff(x))
TWIN(rsqrt_f32, float, rsqrtf(x))
TWIN(div_f32, float, x / y)
TWIN(sin_f64, double, sin(x))
TWIN(cos_f64, double, cos(x))
TWIN(sin_cos_f64, double, both(x))
TWIN(exp_f64, double, exp(x))
TWIN(log_f64, double, log(x))
TWIN(pow_f64, double, pow(x, y))
TWIN(tanh_f64, double, tanh(x))
TWIN(atan2_f64, double, atan2(x, y))
TWIN(erf_f64, double, erf(x))
TWIN(rsqrt_f64, double, rsqrt(x))
TWIN(div_f64, double, x / y)
TWIN(sin_fast, float, __sinf(x))
TWIN(cos_fast, float, __cosf(x))
TWIN(sin_cos_fast, float, both_fast(x))
TWIN(exp_fast, float, __expf(x))
TWIN(log_fast, float, __logf(x))
TWIN(pow_fast, float, __powf(x, y))
TWIN(tanh_fast, float, tanh_fast_of(x))
TWIN(rsqrt_fast, float, rsqrtf(x))
TWIN(div_fast, float, __fdividef(x, y))
