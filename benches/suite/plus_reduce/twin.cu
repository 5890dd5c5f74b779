const int BLOCK = 256;

extern "C" __global__ void plus_reduce(const int *__restrict__ input, int *__restrict__ total, int n) {
  __shared__ int x[BLOCK];
  int i = blockIdx.x * blockDim.x + threadIdx.x, thread = threadIdx.x;
  x[thread] = i < n ? input[i] : 0;
  __syncthreads();
  for (int s = blockDim.x / 2; s > 0; s /= 2) {
    if (thread < s) x[thread] += x[thread + s];
    __syncthreads();
  }
  if (thread == 0) atomicAdd(total, x[0]);
}
