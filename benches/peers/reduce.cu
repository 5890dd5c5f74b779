// CUDA C++ twins of Kiln's block sum: adds the sum of x to total[0]. Blocks of 256 threads: each
// thread adds up its share of x with a grid-stride loop, a tree in shared memory adds up the block,
// and thread 0 adds the block's sum to total[0] with one atomic addition.
// Parameters: n elements; x in global memory, n elements; total, one element.

#define THREADS 256

template <typename T>
__device__ __forceinline__ void block_sum(unsigned n, const T *__restrict__ x,
                                          T *__restrict__ total) {
  __shared__ T tile[THREADS];
  unsigned thread = threadIdx.x;
  T sum = 0;
  for (unsigned i = blockIdx.x * THREADS + thread; i < n; i += gridDim.x * THREADS) {
    sum += x[i];
  }
  tile[thread] = sum;
  __syncthreads();
#pragma unroll
  for (unsigned half = THREADS / 2; half > 0; half /= 2) {
    if (thread < half) {
      tile[thread] += tile[thread + half];
    }
    __syncthreads();
  }
  if (thread == 0) {
    atomicAdd(total, tile[0]);
  }
}

extern "C" __global__ void block_sum_f32(unsigned n, const float *__restrict__ x,
                                         float *__restrict__ total) {
  block_sum(n, x, total);
}

extern "C" __global__ void block_sum_f64(unsigned n, const double *__restrict__ x,
                                         double *__restrict__ total) {
  block_sum(n, x, total);
}
