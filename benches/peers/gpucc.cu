// The micro-kernels of "gpucc: An Open-Source GPGPU Compiler" (Wu et al. 2016), sections 3.1 to 3.6, with indices of two
// types. `tests/nvcc/gpucc.rs` has the same as `#[kernel]` functions.

__device__ void fill(float (&v)[8], const float *__restrict__ x, int first) {
  for (int i = 0; i < 8; i++) v[i] = x[first + i];
}

__device__ float sum_of(const float *p, int n) {
  float sum = 0.0f;
  for (const float *end = p + n; p != end; p++) sum += *p;
  return sum;
}

template <class I> __device__ I id() { return blockIdx.x * blockDim.x + threadIdx.x; }

#define KERNELS(I, WIDE, name) \
  extern "C" __global__ void local_looped_##name(const float *__restrict__ x, float *__restrict__ out) { \
    I t = id<I>(); \
    float v[8], sum = 0.0f; \
    for (I i = 0; i < 8; i++) v[i] = x[t * 8 + i]; \
    for (I i = 0; i < 8; i++) sum += v[i] * v[7 - i]; \
    out[t] = sum; \
  } \
  extern "C" __global__ void local_unrolled_##name(const float *__restrict__ x, float *__restrict__ out) { \
    I t = id<I>(); \
    float v[4] = {x[t * 4], x[t * 4 + 1], x[t * 4 + 2], x[t * 4 + 3]}; \
    out[t] = v[0] * v[3] + v[1] * v[2] + v[2] * v[1] + v[3] * v[0]; \
  } \
  extern "C" __global__ void local_called_##name(const float *__restrict__ x, float *__restrict__ out) { \
    I t = id<I>(); \
    float v[8], sum = 0.0f; \
    fill(v, x, t * 8); \
    for (I i = 0; i < 8; i++) sum += v[i] * v[7 - i]; \
    out[t] = sum; \
  } \
  extern "C" __global__ void spaces_##name(const float *__restrict__ x, float *__restrict__ out, I n) { \
    __shared__ float tile[256]; \
    I t = threadIdx.x; \
    tile[t] = x[t]; \
    __syncthreads(); \
    out[t] = sum_of(tile, n); \
  } \
  extern "C" __global__ void dead_store_##name(float *__restrict__ out) { \
    __shared__ float tile[256]; \
    I t = threadIdx.x; \
    tile[t] = 1.0f; \
    out[t] = 2.0f; \
    tile[t] = 3.0f; \
    __syncthreads(); \
    out[t] = tile[255 - t]; \
  } \
  extern "C" __global__ void accumulated_##name(const float *__restrict__ x, float *__restrict__ out, I n) { \
    __shared__ float tile[256]; \
    I t = threadIdx.x; \
    tile[t] = x[t]; \
    __syncthreads(); \
    for (I j = 0; j < n; j++) out[t] += tile[j] * tile[t]; \
  } \
  extern "C" __global__ void neighbours_looped_##name(const float *__restrict__ a, float *__restrict__ out, I n) { \
    I b = blockIdx.y * blockDim.y + threadIdx.y, c = id<I>(); \
    float sum = 0.0f; \
    for (I x = 0; x < 3; x++) \
      for (I y = 0; y < 3; y++) sum += a[(b + x) * n + c + y]; \
    out[b * n + c] = sum; \
  } \
  extern "C" __global__ void neighbours_unrolled_##name(const float *__restrict__ a, float *__restrict__ out, I n) { \
    I b = blockIdx.y * blockDim.y + threadIdx.y, c = id<I>(); \
    float sum = a[b * n + c] + a[b * n + c + 1] + a[b * n + c + 2]; \
    sum += a[(b + 1) * n + c] + a[(b + 1) * n + c + 1] + a[(b + 1) * n + c + 2]; \
    sum += a[(b + 2) * n + c] + a[(b + 2) * n + c + 1] + a[(b + 2) * n + c + 2]; \
    out[b * n + c] = sum; \
  } \
  extern "C" __global__ void strides_looped_##name(const float *__restrict__ a, float *__restrict__ out, I n) { \
    I t = id<I>(); \
    float sum = 0.0f; \
    for (I i = 1; i < 5; i++) sum += a[t * i + n * i]; \
    out[t] = sum; \
  } \
  extern "C" __global__ void strides_unrolled_##name(const float *__restrict__ a, float *__restrict__ out, I n) { \
    I t = id<I>(); \
    out[t] = a[t + n] + a[t * 2 + n * 2] + a[t * 3 + n * 3] + a[t * 4 + n * 4]; \
  } \
  extern "C" __global__ void speculated_##name(const float *__restrict__ a, float *__restrict__ out, I j, I flags) { \
    I i = id<I>(); \
    float sum = 0.0f; \
    if (flags & 1) sum += a[i]; \
    if (flags & 2) sum += a[i + j]; \
    out[i] = sum; \
  } \
  extern "C" __global__ void divided_##name(const WIDE *__restrict__ a, const WIDE *__restrict__ b, \
                                            WIDE *__restrict__ out) { \
    I i = id<I>(); \
    out[i] = a[i] / b[i]; \
  }

KERNELS(unsigned, unsigned long long, u32)
KERNELS(int, long long, i32)
