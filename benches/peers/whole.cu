// A whole program, the twin of that in benches/startup/whole.rs: two vectors go to the device, saxpy runs on them a
// hundred times, one comes back. It prints how long each part took, in microseconds, then the last value.
// benches/startup.rs compiles it with `nvcc -O3` and times its process.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void saxpy(unsigned n, float a, const float *__restrict__ x, float *__restrict__ y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    y[i] = a * x[i] + y[i];
  }
}

static void check(cudaError_t error) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s\n", cudaGetErrorString(error));
    std::exit(1);
  }
}

int main() {
  auto start = std::chrono::steady_clock::now();
  auto part = [&] {
    auto now = std::chrono::steady_clock::now();
    std::printf("%f\n", std::chrono::duration<double, std::micro>(now - start).count());
    start = std::chrono::steady_clock::now();
  };
  check(cudaFree(0));
  part();
  const unsigned n = 1 << 24;
  const size_t bytes = n * sizeof(float);
  std::vector<float> x(n, 1.0f), y(n, 2.0f);
  part();
  float *device_x, *device_y;
  check(cudaMalloc(&device_x, bytes));
  check(cudaMalloc(&device_y, bytes));
  check(cudaMemcpy(device_x, x.data(), bytes, cudaMemcpyHostToDevice));
  check(cudaMemcpy(device_y, y.data(), bytes, cudaMemcpyHostToDevice));
  part();
  for (int i = 0; i < 100; i++) {
    saxpy<<<n / 256, 256>>>(n, 3.0f, device_x, device_y);
  }
  check(cudaGetLastError());
  part();
  check(cudaMemcpy(y.data(), device_y, bytes, cudaMemcpyDeviceToHost));
  part();
  check(cudaFree(device_x));
  check(cudaFree(device_y));
  part();
  std::printf("%f\n", y[n - 1]);
}
