// Twins of the kernels of `micro.rs`.

extern "C" __global__ void sine_and_cosine(const double *__restrict__ x, double *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = sin(x[i]) * cos(x[i]);
}

extern "C" __global__ void sine_cosine(const double *__restrict__ x, double *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double sine, cosine;
    sincos(x[i], &sine, &cosine);
    y[i] = sine * cosine;
}

extern "C" __global__ void single_sine(const float *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = sinf(x[i]);
}

extern "C" __global__ void triple_bytes(const unsigned char *__restrict__ x, unsigned char *__restrict__ y, int n) {
    for (int i = 0; i < n; ++i)
        y[i] = x[i] * 3;
}

struct Filter {
    float scale;
    float weights[16];
};

extern "C" __global__ void weigh(const Filter filter, const unsigned *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = filter.scale * filter.weights[x[i] % 16];
}

extern "C" __global__ void substitute(const unsigned char *__restrict__ x, unsigned char *__restrict__ y) {
    const unsigned char box[64] = {
        0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, 225,
        5, 38, 73, 110, 149, 190, 233, 27, 74, 123, 174, 227, 31, 88, 147, 208,
        20, 85, 152, 221, 41, 114, 189, 15, 94, 175, 7, 92, 179, 17, 108, 201,
        45, 142, 241, 91, 194, 48, 155, 13, 124, 237, 101, 218, 86, 207, 79, 204,
    };
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = box[x[i] % 64];
}

extern "C" __global__ void __launch_bounds__(64) bounded(unsigned *__restrict__ y) {
    int t = threadIdx.x;
    y[t] = t / 64;
}
