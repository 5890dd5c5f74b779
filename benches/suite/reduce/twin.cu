const int BLOCK = 256, WARPS = BLOCK / 32;

template <class T> __device__ void reduce(const T *__restrict__ x, T *__restrict__ sums, int n) {
  __shared__ T of_warps[WARPS];
  T sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += x[i];
  for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffff, sum, apart);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = lane < WARPS ? of_warps[lane] : T(0);
    for (int apart = 4; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffff, sum, apart);
    if (lane == 0) sums[blockIdx.x] = sum;
  }
}

extern "C" __global__ void sum_i32(const int *__restrict__ x, int *__restrict__ sums, int n) {
  reduce(x, sums, n);
}

extern "C" __global__ void sum_f32(const float *__restrict__ x, float *__restrict__ sums, int n) {
  reduce(x, sums, n);
}

extern "C" __global__ void sum_f64(const double *__restrict__ x, double *__restrict__ sums, int n) {
  reduce(x, sums, n);
}
