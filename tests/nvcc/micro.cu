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

extern "C" __global__ void count_trailing(const unsigned *__restrict__ x, unsigned *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __clz(__brev(x[i]));
}

extern "C" __global__ void count_leading(const unsigned *__restrict__ x, unsigned *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = __clz(x[i]);
}

extern "C" __global__ void sum_of_differences(const unsigned *__restrict__ x, const unsigned *__restrict__ y,
                                              unsigned *__restrict__ z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = __usad(x[i], y[i], z[i]);
}

extern "C" __global__ void sum_of_short_differences(const unsigned short *__restrict__ x,
                                                    const unsigned short *__restrict__ y, unsigned *__restrict__ z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = __usad(x[i], y[i], z[i]);
}

extern "C" __global__ void __launch_bounds__(64) bounded(unsigned *__restrict__ y) {
    int t = threadIdx.x;
    y[t] = t / 64;
}

__device__ void turn(float *values, float by) {
    for (int j = 0; j < 8; ++j) {
        float a = values[j], b = values[j + 8];
        values[j] = (a + b) * by;
        values[j + 8] = fmaf(a - b, by, a);
    }
    for (int j = 0; j < 4; ++j) {
        float a = values[j], b = values[j + 4];
        values[j] = (a + b) * by;
        values[j + 4] = fmaf(a - b, by, a);
    }
}

extern "C" __global__ void turn_twice(float *__restrict__ x, float by) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float values[16];
    for (int j = 0; j < 16; ++j)
        values[j] = x[i + j * 32];
    turn(values, by);
    turn(values, by + 1.0f);
    for (int j = 0; j < 16; ++j)
        x[i + j * 32] = values[j];
}

struct Body {
    float at[3];
    float mass;
};

extern "C" __global__ void read_structs(const Body *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Body body = x[i];
    y[i] = body.mass * (body.at[0] + body.at[1] + body.at[2]);
}

extern "C" __global__ void read_four(const float *__restrict__ x, float *__restrict__ y) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float *four = x + 4 * i;
    y[i] = four[3] * (four[0] + four[1] + four[2]);
}

extern "C" __global__ void scale_tile(const unsigned *__restrict__ x, unsigned *__restrict__ y, int n) {
    int first = blockIdx.x * 2048 + threadIdx.x;
    bool full = (blockIdx.x + 1) * 2048 <= n;
#pragma unroll
    for (int j = 0; j < 16; ++j) {
        int i = first + j * 128;
        if (full || i < n)
            y[i] = x[i] * 3;
    }
}
