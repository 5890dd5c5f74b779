const int WIDTH = 32, HEIGHT = 8;

extern "C" __global__ void jacobi(const float *__restrict__ from, float *__restrict__ to, int side) {
  __shared__ float tile[HEIGHT + 2][WIDTH + 2];
  int tx = threadIdx.x, ty = threadIdx.y;
  int column = blockIdx.x * blockDim.x + tx + 1, row = blockIdx.y * blockDim.y + ty + 1;
  bool inside = column < side - 1 && row < side - 1;
  int at = row * side + column;
  if (inside) {
    tile[ty + 1][tx + 1] = from[at];
    if (ty == 0) tile[0][tx + 1] = from[at - side];
    if (ty == HEIGHT - 1 || row == side - 2) tile[ty + 2][tx + 1] = from[at + side];
    if (tx == 0) tile[ty + 1][0] = from[at - 1];
    if (tx == WIDTH - 1 || column == side - 2) tile[ty + 1][tx + 2] = from[at + 1];
  }
  __syncthreads();
  if (inside) {
    float across = tile[ty + 1][tx] + tile[ty + 1][tx + 2];
    float along = tile[ty][tx + 1] + tile[ty + 2][tx + 1];
    to[at] = 0.25f * (across + along);
  }
}
