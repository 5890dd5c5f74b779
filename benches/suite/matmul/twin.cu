extern "C" __global__ void naive(const float *__restrict__ a, const float *__restrict__ b,
                                 float *__restrict__ c, int m, int n, int k) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (row < m && column < n) {
    float sum = 0.0f;
    for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + column];
    c[row * n + column] = sum;
  }
}

const int SIDE = 16;

extern "C" __global__ void tiled(const float *__restrict__ a, const float *__restrict__ b,
                                 float *__restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[SIDE][SIDE];
  __shared__ float b_tile[SIDE][SIDE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = blockIdx.y * blockDim.y + ty, column = blockIdx.x * blockDim.x + tx;
  float sum = 0.0f;
  for (int first = 0; first < k; first += SIDE) {
    int ka = first + tx, kb = first + ty;
    a_tile[ty][tx] = row < m && ka < k ? a[row * k + ka] : 0.0f;
    b_tile[ty][tx] = kb < k && column < n ? b[kb * n + column] : 0.0f;
    __syncthreads();
    for (int i = 0; i < SIDE; i++) sum += a_tile[ty][i] * b_tile[i][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[row * n + column] = sum;
}

const int TILE = 128, OWN = 8, DEPTH = 8;

extern "C" __global__ void registers(const float *__restrict__ a, const float *__restrict__ b,
                                     float *__restrict__ c, int m, int n, int k) {
  __shared__ float a_tile[DEPTH][TILE];
  __shared__ float b_tile[DEPTH][TILE];
  int tx = threadIdx.x, ty = threadIdx.y, thread = ty * 16 + tx;
  int first_row = blockIdx.y * TILE, first_column = blockIdx.x * TILE;
  float sums[OWN][OWN] = {};
  for (int first = 0; first < k; first += DEPTH) {
    for (int part = 0; part < 4; part++) {
      int i = thread + part * 256;
      int row = i / DEPTH, depth = i % DEPTH;
      int from_row = first_row + row, from_depth = first + depth;
      a_tile[depth][row] = from_row < m && from_depth < k ? a[from_row * k + from_depth] : 0.0f;
      depth = i / TILE;
      int column = i % TILE, from_column = first_column + column;
      from_depth = first + depth;
      b_tile[depth][column] = from_depth < k && from_column < n ? b[from_depth * n + from_column] : 0.0f;
    }
    __syncthreads();
    for (int depth = 0; depth < DEPTH; depth++) {
      float a_part[OWN], b_part[OWN];
#pragma unroll
      for (int i = 0; i < OWN; i++) {
        a_part[i] = a_tile[depth][ty * OWN + i];
        b_part[i] = b_tile[depth][tx * OWN + i];
      }
#pragma unroll
      for (int i = 0; i < OWN; i++)
#pragma unroll
        for (int j = 0; j < OWN; j++) sums[i][j] += a_part[i] * b_part[j];
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < OWN; i++)
#pragma unroll
    for (int j = 0; j < OWN; j++) {
      int row = first_row + ty * OWN + i, column = first_column + tx * OWN + j;
      if (row < m && column < n) c[row * n + column] = sums[i][j];
    }
}
