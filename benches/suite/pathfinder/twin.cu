const int BLOCK = 256;

extern "C" __global__ void pathfinder(const int *__restrict__ wall, const int *__restrict__ from,
                                      int *__restrict__ to, int first, int rows, int columns) {
  __shared__ int costs[BLOCK];
  __shared__ int next[BLOCK];
  int tx = threadIdx.x;
  int width = BLOCK - 2 * rows;
  int column = width * (int)blockIdx.x - rows + tx;
  bool inside = column >= 0 && column < columns;
  int left = column > 0 && tx > 0 ? tx - 1 : tx;
  int right = column < columns - 1 && tx < BLOCK - 1 ? tx + 1 : tx;
  if (inside) costs[tx] = from[column];
  __syncthreads();
  for (int row = 0; row < rows; row++) {
    bool reached = tx > row && tx < BLOCK - 1 - row;
    if (reached && inside) {
      int best = min(min(costs[left], costs[tx]), costs[right]);
      next[tx] = best + wall[(first + row) * columns + column];
    }
    __syncthreads();
    if (reached && inside) costs[tx] = next[tx];
    __syncthreads();
  }
  bool own = tx >= rows && tx < BLOCK - rows;
  if (own && inside) to[column] = costs[tx];
}
