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
