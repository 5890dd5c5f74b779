const int SIDE = 16;
const float RATE = 0.3f, MOMENTUM = 0.3f;

extern "C" __global__ void forward(const float *__restrict__ input, float *__restrict__ weights,
                                   float *__restrict__ sums, int input_len) {
  __shared__ float values[SIDE];
  __shared__ float products[SIDE][SIDE];
  int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int row = SIDE * by + ty + 1, at = (SIDE + 1) * row + tx + 1;
  if (tx == 0 && row < input_len) values[ty] = input[row];
  __syncthreads();
  products[ty][tx] = row < input_len ? weights[at] * values[ty] : 0.0f;
  __syncthreads();
  for (int half = 1; half <= 8; half *= 2) {
    if (ty % (2 * half) == 0) products[ty][tx] += products[ty + half][tx];
    __syncthreads();
  }
  if (row < input_len) weights[at] = products[ty][tx];
  if (tx == 0) sums[by * SIDE + ty] = products[0][ty];
}

extern "C" __global__ void adjust(const float *__restrict__ delta, const float *__restrict__ input,
                                  float *__restrict__ weights, float *__restrict__ old, int input_len) {
  int by = blockIdx.y, tx = threadIdx.x, ty = threadIdx.y;
  int row = SIDE * by + ty + 1, at = (SIDE + 1) * row + tx + 1;
  if (row < input_len) {
    float change = RATE * delta[tx + 1] * input[row] + MOMENTUM * old[at];
    weights[at] += change;
    old[at] = change;
  }
  __syncthreads();
  if (ty == 0 && by == 0) {
    float change = RATE * delta[tx + 1] + MOMENTUM * old[tx + 1];
    weights[tx + 1] += change;
    old[tx + 1] = change;
  }
}
