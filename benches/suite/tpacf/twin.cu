const int BLOCK = 128, BINS = 20;

struct Point {
  float x, y, z;
};

extern "C" __global__ void count_pairs(const Point *__restrict__ points, const float *__restrict__ edges,
                                 unsigned *__restrict__ counts, int n) {
  __shared__ Point tile[BLOCK];
  __shared__ float bounds[BINS];
  __shared__ unsigned own_counts[BINS + 1];
  int tx = threadIdx.x;
  if (tx < BINS) bounds[tx] = edges[tx];
  if (tx <= BINS) own_counts[tx] = 0;
  int i = blockIdx.x * blockDim.x + tx;
  bool known = i < n;
  Point own = points[known ? i : 0];
  for (int first = 0; first <= (int)blockIdx.x * BLOCK; first += BLOCK) {
    __syncthreads();
    if (first + tx < n) tile[tx] = points[first + tx];
    __syncthreads();
    for (int j = 0; j < BLOCK; j++) {
      if (known && first + j < i) {
        Point other = tile[j];
        float cosine = own.x * other.x + own.y * other.y + own.z * other.z;
        int low = 0, high = BINS;
        while (low < high) {
          int middle = (low + high) / 2;
          if (cosine >= bounds[middle])
            high = middle;
          else
            low = middle + 1;
        }
        atomicAdd(&own_counts[low], 1u);
      }
    }
  }
  __syncthreads();
  if (tx <= BINS) atomicAdd(&counts[tx], own_counts[tx]);
}
