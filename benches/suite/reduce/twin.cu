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

struct Pair {
  long long a, b;
};

__device__ Pair with_above(Pair own, int apart) {
  return {own.a + __shfl_down_sync(0xffffffff, own.a, apart), own.b + __shfl_down_sync(0xffffffff, own.b, apart)};
}

extern "C" __global__ void sum_pair(const Pair *__restrict__ x, Pair *__restrict__ sums, int n) {
  __shared__ Pair of_warps[WARPS];
  Pair sum = {0, 0};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    Pair own = x[i];
    sum.a += own.a;
    sum.b += own.b;
  }
  for (int apart = 16; apart > 0; apart /= 2) sum = with_above(sum, apart);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) of_warps[warp] = sum;
  __syncthreads();
  if (warp == 0) {
    sum = {0, 0};
    if (lane < WARPS) sum = of_warps[lane];
    for (int apart = 4; apart > 0; apart /= 2) sum = with_above(sum, apart);
    if (lane == 0) sums[blockIdx.x] = sum;
  }
}

struct Best {
  float value;
  unsigned place;
};

__device__ Best better(Best a, Best b) {
  return b.value > a.value || b.value == a.value && b.place < a.place ? b : a;
}

__device__ Best better_above(Best own, int apart) {
  Best above = {__shfl_down_sync(0xffffffff, own.value, apart), __shfl_down_sync(0xffffffff, own.place, apart)};
  return better(own, above);
}

__device__ void store_best_of_block(Best own, Best *best) {
  __shared__ Best of_warps[WARPS];
  for (int apart = 16; apart > 0; apart /= 2) own = better_above(own, apart);
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  if (lane == 0) of_warps[warp] = own;
  __syncthreads();
  if (warp == 0) {
    own = {-INFINITY, 0xffffffff};
    if (lane < WARPS) own = of_warps[lane];
    for (int apart = 4; apart > 0; apart /= 2) own = better_above(own, apart);
    if (lane == 0) best[blockIdx.x] = own;
  }
}

extern "C" __global__ void argmax(const float *__restrict__ x, Best *__restrict__ best, int n) {
  Best own = {-INFINITY, 0xffffffff};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    if (x[i] > own.value) own = {x[i], (unsigned)i};
  store_best_of_block(own, best);
}

extern "C" __global__ void argmax_of_blocks(const Best *__restrict__ blocks, Best *__restrict__ best, int n) {
  Best own = {-INFINITY, 0xffffffff};
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) own = better(own, blocks[i]);
  store_best_of_block(own, best);
}
