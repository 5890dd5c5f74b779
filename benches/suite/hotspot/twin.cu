const int BLOCK = 16, STEPS = 2, WIDTH = BLOCK - 2 * STEPS;

struct Chip {
  float step, row, column, air;
};

extern "C" __global__ void hotspot(Chip chip, const float *__restrict__ power, const float *__restrict__ from,
                                   float *__restrict__ to, int side, float ambient) {
  __shared__ float now[BLOCK][BLOCK];
  __shared__ float own_power[BLOCK][BLOCK];
  __shared__ float next[BLOCK][BLOCK];
  int tx = threadIdx.x, ty = threadIdx.y, last = side - 1;
  int row = WIDTH * (int)blockIdx.y - STEPS + ty;
  int column = WIDTH * (int)blockIdx.x - STEPS + tx;
  bool inside = row >= 0 && row <= last && column >= 0 && column <= last;
  int at = row * side + column;
  if (inside) {
    now[ty][tx] = from[at];
    own_power[ty][tx] = power[at];
  }
  __syncthreads();
  int north = row > 0 && ty > 0 ? ty - 1 : ty;
  int south = row < last && ty < BLOCK - 1 ? ty + 1 : ty;
  int west = column > 0 && tx > 0 ? tx - 1 : tx;
  int east = column < last && tx < BLOCK - 1 ? tx + 1 : tx;
  bool computed = false;
  for (int step = 0; step < STEPS; step++) {
    int low = step + 1, high = BLOCK - 2 - step;
    computed = inside && tx >= low && tx <= high && ty >= low && ty <= high;
    if (computed) {
      float own = now[ty][tx];
      float along_column = (now[south][tx] + now[north][tx] - 2.0f * own) * chip.column;
      float along_row = (now[ty][east] + now[ty][west] - 2.0f * own) * chip.row;
      float to_air = (ambient - own) * chip.air;
      next[ty][tx] = own + chip.step * (own_power[ty][tx] + along_column + along_row + to_air);
    }
    __syncthreads();
    if (step < STEPS - 1 && computed) now[ty][tx] = next[ty][tx];
    __syncthreads();
  }
  if (computed) to[at] = next[ty][tx];
}
