const int TILE = 16;

__device__ int max3(int a, int b, int c) { return max(max(a, b), c); }

extern "C" __global__ void diagonal(const int *__restrict__ worth, int *__restrict__ scores, int side,
                                    int penalty, int number, int first) {
  __shared__ int cells[TILE + 1][TILE + 1];
  __shared__ int values[TILE][TILE];
  int tx = threadIdx.x;
  int tile_column = first + blockIdx.x, tile_row = number - tile_column;
  int corner = tile_row * TILE * side + tile_column * TILE;
  int rows = side - 1 - tile_row * TILE, columns = side - 1 - tile_column * TILE;
  if (tx == 0) cells[0][0] = scores[corner];
  for (int row = 0; row < TILE; row++)
    values[row][tx] = row < rows && tx < columns ? worth[corner + (row + 1) * side + tx + 1] : 0;
  cells[tx + 1][0] = tx < rows ? scores[corner + (tx + 1) * side] : 0;
  cells[0][tx + 1] = tx < columns ? scores[corner + tx + 1] : 0;
  __syncthreads();
  for (int step = 0; step < TILE; step++) {
    if (tx <= step) {
      int x = tx + 1, y = step - tx + 1;
      cells[y][x] = max3(cells[y - 1][x - 1] + values[y - 1][x - 1], cells[y][x - 1] - penalty,
                         cells[y - 1][x] - penalty);
    }
    __syncthreads();
  }
  for (int step = TILE - 2; step >= 0; step--) {
    if (tx <= step) {
      int x = tx + TILE - step, y = TILE - tx;
      cells[y][x] = max3(cells[y - 1][x - 1] + values[y - 1][x - 1], cells[y][x - 1] - penalty,
                         cells[y - 1][x] - penalty);
    }
    __syncthreads();
  }
  for (int row = 0; row < TILE; row++)
    if (row < rows && tx < columns) scores[corner + (row + 1) * side + tx + 1] = cells[row + 1][tx + 1];
}
