const int TILE = 16;

extern "C" __global__ void diagonal(float *__restrict__ m, int side, int at) {
  __shared__ float tile[TILE][TILE];
  int tx = threadIdx.x, corner = at * side + at, left = side - at;
  for (int i = 0; i < TILE; i++)
    tile[i][tx] = i < left && tx < left ? m[corner + i * side + tx] : 0.0f;
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
  for (int i = 1; i < TILE; i++)
    if (i < left && tx < left) m[corner + i * side + tx] = tile[i][tx];
}

extern "C" __global__ void perimeter(float *__restrict__ m, int side, int at) {
  __shared__ float pivot[TILE][TILE];
  __shared__ float across[TILE][TILE];
  __shared__ float down[TILE][TILE];
  int tx = threadIdx.x, half = TILE / 2, corner = at * side + at;
  int apart = (blockIdx.x + 1) * TILE;
  int right = corner + apart, below = corner + apart * side, left = side - at - apart;
  if (tx < TILE) {
    for (int i = 0; i < half; i++) pivot[i][tx] = m[corner + i * side + tx];
    for (int i = 0; i < TILE; i++) across[i][tx] = tx < left ? m[right + i * side + tx] : 0.0f;
  } else {
    int column = tx - TILE;
    for (int i = half; i < TILE; i++) pivot[i][column] = m[corner + i * side + column];
    for (int i = 0; i < TILE; i++) down[i][column] = i < left ? m[below + i * side + column] : 0.0f;
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
    for (int i = 1; i < TILE; i++)
      if (tx < left) m[right + i * side + tx] = across[i][tx];
  } else {
    int column = tx - TILE;
    for (int i = 0; i < TILE; i++)
      if (i < left) m[below + i * side + column] = down[i][column];
  }
}

extern "C" __global__ void internal(float *__restrict__ m, int side, int at) {
  __shared__ float across[TILE][TILE];
  __shared__ float down[TILE][TILE];
  int tx = threadIdx.x, ty = threadIdx.y;
  int row = at + (blockIdx.y + 1) * TILE + ty, column = at + (blockIdx.x + 1) * TILE + tx;
  across[ty][tx] = column < side ? m[(at + ty) * side + column] : 0.0f;
  down[ty][tx] = row < side ? m[row * side + at + tx] : 0.0f;
  __syncthreads();
  float sum = 0.0f;
  for (int i = 0; i < TILE; i++) sum += down[ty][i] * across[i][tx];
  if (row < side && column < side) m[row * side + column] -= sum;
}
