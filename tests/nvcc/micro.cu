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

__device__ void four_sums(const float *x, float *y, int i) {
    y[i] = x[i] + x[i + 1];
    y[i + 1] = x[i + 1] + x[i + 2];
    y[i + 2] = x[i + 2] + x[i + 3];
    y[i + 3] = x[i + 3] + x[i];
}

extern "C" __global__ void guarded_four(const float *__restrict__ x, float *__restrict__ y, int nx, int ny) {
    int i = 4 * threadIdx.x;
    if (i + 4 <= nx && i + 4 <= ny)
        four_sums(x, y, i);
}

extern "C" __global__ void guarded_four_of_grid(const float *__restrict__ x, float *__restrict__ y, int nx, int ny) {
    int i = 4 * (blockIdx.x * blockDim.x + threadIdx.x);
    if (i + 4 <= nx && i + 4 <= ny)
        four_sums(x, y, i);
}

extern "C" __global__ void guarded_loop(const float *__restrict__ x, float *__restrict__ sums, int nx, int n) {
    float sum = 0;
    for (int i = 0; i + 4 <= nx; i += 4)
        sum += x[i] * x[i + 1] - x[i + 2] * x[i + 3];
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < n)
        sums[at] = sum;
}

extern "C" __global__ void sums_over_barrier(float *__restrict__ x) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sums[16];
    for (int j = 0; j < 16; ++j)
        sums[j] = x[i + j * 128] + x[i + (j + 16) * 128];
    tile[threadIdx.x] = sums[0];
    __syncthreads();
    float first = tile[0];
    if (first > 0)
        for (int j = 0; j < 16; ++j)
            x[i + j * 128] = sums[j] * first;
}

extern "C" __global__ void divide_few_bits(const unsigned *__restrict__ x, const unsigned *__restrict__ y,
                                           unsigned *__restrict__ z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = (x[i] & 0xfff) / max(y[i] & 0xfff, 1u);
}

extern "C" __global__ void divide(const unsigned *__restrict__ x, const unsigned *__restrict__ y,
                                  unsigned *__restrict__ z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = x[i] / max(y[i], 1u);
}

extern "C" __global__ void divide_signed(const int *__restrict__ x, const int *__restrict__ y, int *__restrict__ z) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    z[i] = x[i] / y[i];
}

__device__ double polynomial(double v) {
    return ((v * 0.123456789 + 1.23456789) * v + 3.456789012) * v + 0.456789012;
}

extern "C" __global__ void polynomials(const double *__restrict__ x, double *__restrict__ y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = x[i];
    for (int turn = 0; turn < turns; ++turn)
        v = polynomial(v);
    y[i] = v;
}

extern "C" __global__ void polynomials_rolled(const double *__restrict__ x, double *__restrict__ y, int turns) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    double v = x[i];
#pragma unroll 1
    for (int turn = 0; turn < turns; ++turn)
        v = polynomial(v);
    y[i] = v;
}

struct Complex {
    float re, im;
};

__device__ Complex plus(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
__device__ Complex minus(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }

__device__ void transform_four(Complex *values, int first, int apart) {
    Complex a = values[first], b = values[first + apart];
    Complex c = values[first + 2 * apart], d = values[first + 3 * apart];
    Complex even = plus(a, c), odd = plus(b, d), left = minus(a, c), right = minus(b, d);
    values[first] = plus(even, odd);
    values[first + apart] = {left.re + right.im, left.im - right.re};
    values[first + 2 * apart] = minus(even, odd);
    values[first + 3 * apart] = {left.re - right.im, left.im + right.re};
}

__device__ void transformed(Complex *x, int columns, float step) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    Complex values[16];
    for (int j = 0; j < 16; ++j)
        values[j] = x[i + j * columns];
    for (int j = 0; j < 4; ++j)
        transform_four(values, j, 4);
    for (int j = 1; j < 16; ++j) {
        float sine, cosine;
        sincosf(step * (i * j), &sine, &cosine);
        Complex value = values[j];
        values[j] = {value.re * cosine + value.im * sine, value.im * cosine - value.re * sine};
    }
    for (int j = 0; j < 4; ++j)
        transform_four(values, 4 * j, 1);
    for (int j = 0; j < 16; ++j)
        x[i + j * columns] = values[j];
}

extern "C" __global__ void transform(Complex *__restrict__ x, int columns, float step) {
    transformed(x, columns, step);
}

extern "C" __global__ void transform_unrolled(Complex *__restrict__ x, int columns, float step) {
    transformed(x, columns, step);
}

extern "C" __global__ void search(const unsigned char *__restrict__ edges, const unsigned char *__restrict__ wanted,
                                  unsigned *__restrict__ steps, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        unsigned char stack[16];
        stack[0] = 0;
        int depth = 1;
        unsigned count = 0;
        while (depth > 0) {
            unsigned char node = stack[--depth];
            ++count;
            if (node == wanted[i])
                break;
            for (int k = 0; k < 4; ++k) {
                unsigned char next = edges[4 * node + k];
                if (next != 0 && depth < 16)
                    stack[depth++] = next;
            }
        }
        steps[i] = count;
    }
}
