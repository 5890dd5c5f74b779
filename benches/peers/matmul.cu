// CUDA C++ twins of Kiln's matrix products: c = a * b, square n x n matrices of f32 in row-major
// order, blocks of 16 x 16 threads, one element of c a thread. Any n: what lies over the edge
// counts as zero, as in Kiln's kernels. nvcc contracts each multiplication and addition to an fma.
// benches/gpu.rs compiles this file with `nvcc -O3 -cubin` and times both in one process.

#define TILE 16

extern "C" __global__ void naive_matmul(unsigned n, const float *__restrict__ a,
                                        const float *__restrict__ b, float *__restrict__ c) {
  unsigned row = blockIdx.y * blockDim.y + threadIdx.y;
  unsigned column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n && column < n) {
    float sum = 0.0f;
    for (unsigned i = 0; i < n; ++i) {
      sum += a[row * n + i] * b[i * n + column];
    }
    c[row * n + column] = sum;
  }
}

// Tiles of both factors in static shared memory (CUDA C++ Programming Guide, "Shared Memory").
extern "C" __global__ void tiled_matmul(unsigned n, const float *__restrict__ a,
                                        const float *__restrict__ b, float *__restrict__ c) {
  __shared__ float As[TILE][TILE];
  __shared__ float Bs[TILE][TILE];
  unsigned tx = threadIdx.x, ty = threadIdx.y;
  unsigned row = blockIdx.y * TILE + ty;
  unsigned column = blockIdx.x * TILE + tx;
  float sum = 0.0f;
  for (unsigned first = 0; first < n; first += TILE) {
    unsigned ka = first + tx, kb = first + ty;
    As[ty][tx] = row < n && ka < n ? a[row * n + ka] : 0.0f;
    Bs[ty][tx] = kb < n && column < n ? b[kb * n + column] : 0.0f;
    __syncthreads();
#pragma unroll
    for (unsigned i = 0; i < TILE; ++i) {
      sum += As[ty][i] * Bs[i][tx];
    }
    __syncthreads();
  }
  if (row < n && column < n) {
    c[row * n + column] = sum;
  }
}
