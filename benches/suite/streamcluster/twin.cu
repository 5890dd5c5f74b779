struct Point {
  float weight, cost;
  long long centre;
};

__device__ float distance(int a, int b, const float *coordinates, int n, int dimensions) {
  float sum = 0.0f;
  for (int i = 0; i < dimensions; i++) {
    float apart = coordinates[i * n + a] - coordinates[i * n + b];
    sum += apart * apart;
  }
  return sum;
}

extern "C" __global__ void gain(const Point *__restrict__ points, const float *__restrict__ coordinates,
                                const int *__restrict__ table, bool *__restrict__ moves,
                                float *__restrict__ work, int dimensions, int centres, int next, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    Point point = points[i];
    float cost = point.weight * distance(i, next, coordinates, n, dimensions);
    int own = i * (centres + 1);
    if (cost < point.cost) {
      moves[i] = true;
      work[own + centres] = cost - point.cost;
    } else {
      int centre = table[point.centre];
      work[own + centre] += point.cost - cost;
    }
  }
}
