// CUDA C++ twin of listing 9 of Besard, Foket, De Sutter (2018), the fused broadcast
// y = f(2x^2 + 6x^3 - sqrt(x)) with f(t) = 3t^2 + 5t + 2, one element a thread, 32-bit index.
// tests/nvcc.rs counts the instructions that nvcc makes of it. Parameters: n elements; x and y in
// global memory, n elements each.

__device__ double f(double t) { return 3.0 * (t * t) + 5.0 * t + 2.0; }

extern "C" __global__ void broadcast(unsigned n, const double *__restrict__ x,
                                     double *__restrict__ y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double v = x[i];
    y[i] = f(2.0 * (v * v) + 6.0 * (v * (v * v)) - sqrt(v));
  }
}

// The same with the factors as parameters, as an array expression has its numbers, so that it is
// compiled once for all of them.
extern "C" __global__ void broadcast_scaled(unsigned n, double a, double b,
                                            const double *__restrict__ x, double *__restrict__ y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {
    double v = x[i];
    y[i] = f(a * (v * v) + b * (v * (v * v)) - sqrt(v));
  }
}

// What Kiln's bounds checks are, written by hand: the first thread to fault says where, and every
// thread that faults ends. The layout is that of `FaultChannel` and `FaultRecord` in
// jit-core/ir/src/fault.rs.
struct Record {
  unsigned state, site;
  unsigned long long kernel, index, length;
  unsigned block[3], thread[3];
};

struct Channel {
  unsigned claimed, padding;
  Record *record;
};

__device__ __noinline__ void fault(Channel *channel, unsigned site, unsigned index, unsigned length) {
  if (atomicExch(&channel->claimed, 1u) == 0) {
    Record *record = channel->record;
    record->site = site;
    record->kernel = 0x123456789abcdef0ull;
    record->index = index;
    record->length = length;
    record->block[0] = blockIdx.x;
    record->block[1] = blockIdx.y;
    record->block[2] = blockIdx.z;
    record->thread[0] = threadIdx.x;
    record->thread[1] = threadIdx.y;
    record->thread[2] = threadIdx.z;
    __threadfence_system();
    *(volatile unsigned *)&record->state = 1;
  }
}

extern "C" __global__ void broadcast_checked(const double *__restrict__ x, unsigned x_len,
                                             double *__restrict__ y, unsigned y_len,
                                             Channel *channel) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < y_len) {
    if (i >= x_len) {
      fault(channel, 0, i, x_len);
      return;
    }
    double v = x[i];
    y[i] = f(2.0 * (v * v) + 6.0 * (v * (v * v)) - sqrt(v));
  }
}
