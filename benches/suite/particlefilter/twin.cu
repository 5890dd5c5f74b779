const int BLOCK = 512;

struct Offset {
  int x, y;
};

__device__ double uniform(int *seeds, int i) {
  int next = (int)((unsigned)seeds[i] * 1103515245u + 12345u) % 2147483647;
  seeds[i] = next;
  return fabs(next / 2147483647.0);
}

__device__ double normal(int *seeds, int i) {
  double u = uniform(seeds, i), v = uniform(seeds, i);
  double cosine = cos(2.0 * 3.14159265358979323846 * v);
  return sqrt(-2.0 * log(u)) * cosine;
}

__device__ double nearest(double x) { return floor(x + 0.5); }

extern "C" __global__ void likelihood(const unsigned char *__restrict__ image,
                                      const Offset *__restrict__ object, int *__restrict__ seeds,
                                      double *__restrict__ xs, double *__restrict__ ys,
                                      double *__restrict__ weights, double *__restrict__ partial, int side,
                                      int pixels, int n) {
  __shared__ double sums[BLOCK];
  int tx = threadIdx.x, i = blockIdx.x * blockDim.x + tx;
  sums[tx] = 0.0;
  if (i < n) {
    double x = xs[i] + 1.0 + 5.0 * normal(seeds, i);
    double y = ys[i] - 2.0 + 2.0 * normal(seeds, i);
    xs[i] = x;
    ys[i] = y;
    double sum = 0.0;
    for (int j = 0; j < pixels; j++) {
      int column = (int)nearest(x) + object[j].x, row = (int)nearest(y) + object[j].y;
      int at = abs(row * side + column);
      if (at >= side * side) at = 0;
      double pixel = image[at], dark = pixel - 100.0, light = pixel - 228.0;
      sum += (dark * dark - light * light) / 50.0;
    }
    double weight = exp(sum / pixels) / n;
    weights[i] = weight;
    sums[tx] = weight;
  }
  __syncthreads();
  for (int half = BLOCK / 2; half > 0; half /= 2) {
    if (tx < half) sums[tx] += sums[tx + half];
    __syncthreads();
  }
  if (tx == 0) partial[blockIdx.x] = sums[0];
}

extern "C" __global__ void add_up(double *__restrict__ partial, int count) {
  double sum = 0.0;
  for (int i = 0; i < count; i++) sum += partial[i];
  partial[0] = sum;
}

extern "C" __global__ void normalize(double *__restrict__ weights, const double *__restrict__ partial, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) weights[i] /= partial[0];
}

extern "C" __global__ void cumulate(const double *__restrict__ weights, double *__restrict__ cumulated,
                                    double *__restrict__ start, int *__restrict__ seeds, int n) {
  double sum = 0.0;
  for (int i = 0; i < n; i++) {
    sum += weights[i];
    cumulated[i] = sum;
  }
  start[0] = uniform(seeds, 0) / n;
}

extern "C" __global__ void draw(const double *__restrict__ cumulated, const double *__restrict__ start,
                                const double *__restrict__ xs, const double *__restrict__ ys,
                                double *__restrict__ new_xs, double *__restrict__ new_ys, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double wanted = start[0] + (double)i / n;
    int index = n - 1;
    for (int j = 0; j < n; j++)
      if (cumulated[j] >= wanted) {
        index = j;
        break;
      }
    new_xs[i] = xs[index];
    new_ys[i] = ys[index];
  }
}
