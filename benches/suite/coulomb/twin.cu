const int OWN = 8, FEW = 250;

struct __align__(16) Charge {
  float x, y, height, charge;
};

extern "C" __global__ void potential(const Charge *__restrict__ charges, float *__restrict__ to, int side,
                                     float spacing, int count) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x * OWN + threadIdx.x;
  int apart = blockDim.x;
  float x = spacing * column, y = spacing * row;
  float sums[OWN] = {};
  for (int i = 0; i < count; i++) {
    Charge charge = charges[i];
    float dy = y - charge.y, rest = dy * dy + charge.height, dx = x - charge.x;
#pragma unroll
    for (int own = 0; own < OWN; own++) {
      sums[own] += charge.charge * (1.0f / sqrtf(dx * dx + rest));
      dx += spacing * apart;
    }
  }
#pragma unroll
  for (int own = 0; own < OWN; own++) {
    int here = column + own * apart;
    if (row < side && here < side) to[row * side + here] += sums[own];
  }
}

struct Portion {
  Charge charges[FEW];
};

extern "C" __global__ void potential_by_value(const __grid_constant__ Portion portion, int count,
                                              float *__restrict__ to, int side, float spacing) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x * OWN + threadIdx.x;
  int apart = blockDim.x;
  float x = spacing * column, y = spacing * row;
  float sums[OWN] = {};
  for (int i = 0; i < count; i++) {
    Charge charge = portion.charges[i];
    float dy = y - charge.y, rest = dy * dy + charge.height, dx = x - charge.x;
#pragma unroll
    for (int own = 0; own < OWN; own++) {
      sums[own] += charge.charge * (1.0f / sqrtf(dx * dx + rest));
      dx += spacing * apart;
    }
  }
#pragma unroll
  for (int own = 0; own < OWN; own++) {
    int here = column + own * apart;
    if (row < side && here < side) to[row * side + here] += sums[own];
  }
}
