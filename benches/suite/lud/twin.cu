const int TILE = 16;

extern "C" __global__ void diagonal(float *__restrict__ m, int side, int at) {
  __shared__ float tile[TILE][TILE];
  int tx = threadIdx.x, corner = at * side + at;
  for (int i = 0; i < TILE; i++) tile[i][tx] = m[corner + i * side + tx];
  __syncthreads();
  for (int i = 0; i < TILE - 1; i++) {
    if (tx > i) {
      for (int j = 0; j < i; j++) tile[tx][i] -= tile[tx][j] * tile[j][i];
      tile[tx][i] /= tile[i][i];
    }
    __syncthreads();
    if (tx > i)
      for (int j = 0; j < i + 1; j++) tile[i + 1][tx] -= tile[i + 1][j] * tile[j][tx];
    __syncthreads();
  }
  for (int i = 1; i < TILE; i++) m[corner + i * side + tx] = tile[i][tx];
}

extern "C" __global__ void perimeter(float *__restrict__ m, int side, int at) {
  __shared__ float pivot[TILE][TILE];
  __shared__ float across[TILE][TILE];
  __shared__ float down[TILE][TILE];
  int tx = threadIdx.x, half = TILE / 2, corner = at * side + at;
  int right = corner + (blockIdx.x + 1) * TILE;
  int below = corner + (blockIdx.x + 1) * TILE * side;
  if (tx < TILE) {
    for (int i = 0; i < half; i++) pivot[i][tx] = m[corner + i * side + tx];
    for (int i = 0; i < TILE; i++) across[i][tx] = m[right + i * side + tx];
  } else {
    int column = tx - TILE;
    for (int i = half; i < TILE; i++) pivot[i][column] = m[corner + i * side + column];
    for (int i = 0; i < TILE; i++) down[i][column] = m[below + i * side + column];
  }
  __syncthreads();
  if (tx < TILE) {
    for (int i = 1; i < TILE; i++)
      for (int j = 0; j < i; j++) across[i][tx] -= pivot[i][j] * across[j][tx];
  } else {
    int row = tx - TILE;
    for (int i = 0; i < TILE; i++) {
      for (int j = 0; j < i; j++) down[row][i] -= down[row][j] * pivot[j][i];
      down[row][i] /= pivot[i][i];
    }
  }
  __syncthreads();
  if (tx < TILE) {
    for (int i = 1; i < TILE; i++) m[right + i * side + tx] = across[i][tx];
  } else {
    int column = tx - TILE;
    for (int i = 0; i < TILE; i++) m[below + i * side + column] = down[i][column];
  }
}

extern "C" __global__ void internal(float *__restrict__ m, int side, int at) {
  __shared__ float across[TILE][TILE];
  __shared__ float down[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = at + (blockIdx.y + 1) * TILE, column = at + (blockIdx.x + 1) * TILE;
  across[ty][tx] = m[(at + ty) * side + column + tx];
  down[ty][tx] = m[(row + ty) * side + at + tx];
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < TILE; i++) sum += down[ty][i] * across[i][tx];
  m[(row + ty) * side + column + tx] -= sum;
}
