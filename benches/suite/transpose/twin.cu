const int TILE = 32, ROWS = 8;

extern "C" __global__ void transpose(const float *__restrict__ from, float *__restrict__ to, int rows, int columns) {
  __shared__ float tile[TILE][TILE + 1];
  int tx = threadIdx.x, ty = threadIdx.y;
  int column = blockIdx.x * TILE + tx, row = blockIdx.y * TILE + ty;
#pragma unroll
  for (int part = 0; part < TILE; part += ROWS)
    if (row + part < rows && column < columns) tile[ty + part][tx] = from[(row + part) * columns + column];
  __syncthreads();
  int to_column = blockIdx.y * TILE + tx, to_row = blockIdx.x * TILE + ty;
#pragma unroll
  for (int part = 0; part < TILE; part += ROWS)
    if (to_row + part < columns && to_column < rows) to[(to_row + part) * rows + to_column] = tile[tx][ty + part];
}
