// CUDA C++ twins of Kiln's saxpy: y = a * x + y, one element a thread, 32-bit index.
// benches/gpu.rs compiles this file with `nvcc -O3 -cubin` and times both in one process.
// Parameters: n elements; a; x and y in global memory, n elements each.

extern "C" __global__ void saxpy_f32(unsigned n, float a, const float *__restrict__ x,
                                     float *__restrict__ y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a * x[i] + y[i];
  }
}

extern "C" __global__ void saxpy_f64(unsigned n, double a, const double *__restrict__ x,
                                     double *__restrict__ y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a * x[i] + y[i];
  }
}
