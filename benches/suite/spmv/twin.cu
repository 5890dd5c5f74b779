const int BLOCK = 128;

extern "C" __global__ void scalar(const unsigned *__restrict__ rows, const unsigned *__restrict__ columns,
                                  const float *__restrict__ values, const float *__restrict__ x,
                                  float *__restrict__ y, int n) {
  int row = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < n) {
    float sum = 0.0f;
    int end = rows[row + 1];
    for (int at = rows[row]; at < end; at++) sum += values[at] * x[columns[at]];
    y[row] = sum;
  }
}

extern "C" __global__ void cached(const unsigned *__restrict__ rows, const unsigned *__restrict__ columns,
                                  const float *__restrict__ values, const float *__restrict__ x,
                                  float *__restrict__ y, int n) {
  __shared__ float part[BLOCK];
  int first = blockIdx.x * BLOCK, row = first + threadIdx.x;
  if (row < n) part[threadIdx.x] = x[row];
  __syncthreads();
  if (row < n) {
    float sum = 0.0f;
    int end = rows[row + 1];
    for (int at = rows[row]; at < end; at++) {
      int column = columns[at];
      bool near = column >= first && column < first + BLOCK;
      sum += values[at] * (near ? part[column - first] : x[column]);
    }
    y[row] = sum;
  }
}

extern "C" __global__ void warp(const unsigned *__restrict__ rows, const unsigned *__restrict__ columns,
                                const float *__restrict__ values, const float *__restrict__ x,
                                float *__restrict__ y, int n) {
  int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
  if (row < n) {
    int first = rows[row], end = rows[row + 1];
    float sum = 0.0f;
    for (int at = first + lane; at < end; at += 32) sum += values[at] * x[columns[at]];
    for (int apart = 16; apart > 0; apart /= 2) sum += __shfl_down_sync(0xffffffff, sum, apart);
    if (lane == 0) y[row] = sum;
  }
}
