// The kernels of benches/cpu/kernels.rs in OpenCL C, thread for thread: what opencl.py measures.
//
// Indices are signed or of size_t, as a programmer who tunes for these runtimes writes them: Intel's
// vectorizer takes an unsigned 32-bit index for wrapping and gathers. With UNSIGNED they are uint, as in
// the kernels of benches/cpu/kernels.rs and in most CUDA code.

#ifdef UNSIGNED
typedef uint index;
typedef uint long_index;
#else
typedef int index;
typedef size_t long_index;
#endif

#define TILE 16
#define BLOCK 256
#define BINS 256
#define WIDE 64
#define HIGH 4

kernel void fused(global const float *a, global const float *b, global const float *c,
                  global float *r, index n) {
  index i = get_global_id(0);
  if (i < n) r[i] = a[i] * b[i] + 2.0f * c[i] - 1.0f;
}

kernel void saxpy(float a, global const float *x, global float *y, index n) {
  index i = get_global_id(0);
  if (i < n) y[i] = a * x[i] + y[i];
}

// A sum of a group's partial sums in shared memory; the result is in tile[0].
void tree(local float *tile, index thread) {
  barrier(CLK_LOCAL_MEM_FENCE);
  for (uint step = BLOCK / 2; step > 0; step >>= 1) {
    if (thread < step) tile[thread] += tile[thread + step];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
}

// Grid-stride sum: one partial sum a group.
kernel void grid_sum(global const float *x, global float *partial, index n) {
  local float tile[BLOCK];
  index thread = get_local_id(0);
  float sum = 0.0f;
  for (long_index i = get_global_id(0); i < n; i += get_global_size(0)) sum += x[i];
  tile[thread] = sum;
  tree(tile, thread);
  if (thread == 0) partial[get_group_id(0)] = tile[0];
}

// One sum for each 256 elements.
kernel void tree_sum(global const float *x, global float *out, index n) {
  local float tile[BLOCK];
  index thread = get_local_id(0), i = get_global_id(0);
  tile[thread] = i < n ? x[i] : 0.0f;
  tree(tile, thread);
  if (thread == 0) out[get_group_id(0)] = tile[0];
}

kernel void matmul(global const float *a, global const float *b, global float *c, index n) {
  local float a_tile[TILE][TILE], b_tile[TILE][TILE];
  index tx = get_local_id(0), ty = get_local_id(1);
  index column = get_global_id(0), row = get_global_id(1);
  float sum = 0.0f;
  for (index first = 0; first < n; first += TILE) {
    index ka = first + tx, kb = first + ty;
    a_tile[ty][tx] = row < n && ka < n ? a[row * n + ka] : 0.0f;
    b_tile[ty][tx] = kb < n && column < n ? b[kb * n + column] : 0.0f;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (index i = 0; i < TILE; i++) sum += a_tile[ty][i] * b_tile[i][tx];
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (row < n && column < n) c[row * n + column] = sum;
}

kernel void naive_matmul(global const float *a, global const float *b, global float *c, index n) {
  index column = get_global_id(0), row = get_global_id(1);
  if (row >= n || column >= n) return;
  float sum = 0.0f;
  for (index i = 0; i < n; i++) sum += a[row * n + i] * b[i * n + column];
  c[row * n + column] = sum;
}

// 5 points, the block and its halo in shared memory; the border is copied.
kernel void stencil(global const float *in, global float *out, index n) {
  local float tile[HIGH + 2][WIDE + 2];
  index x = get_global_id(0), y = get_global_id(1);
  index tx = get_local_id(0) + 1, ty = get_local_id(1) + 1;
  if (x < n && y < n) {
    index i = y * n + x;
    tile[ty][tx] = in[i];
    if (tx == 1 && x > 0) tile[ty][0] = in[i - 1];
    if (tx == WIDE && x + 1 < n) tile[ty][WIDE + 1] = in[i + 1];
    if (ty == 1 && y > 0) tile[0][tx] = in[i - n];
    if (ty == HIGH && y + 1 < n) tile[HIGH + 1][tx] = in[i + n];
  }
  barrier(CLK_LOCAL_MEM_FENCE);
  if (x < n && y < n) {
    float here = tile[ty][tx];
    if (x > 0 && x + 1 < n && y > 0 && y + 1 < n)
      here = 0.5f * here +
             0.125f * (tile[ty][tx - 1] + tile[ty][tx + 1] + tile[ty - 1][tx] + tile[ty + 1][tx]);
    out[y * n + x] = here;
  }
}

// The same with loads straight from global memory.
kernel void stencil_direct(global const float *in, global float *out, index n) {
  index x = get_global_id(0), y = get_global_id(1);
  if (x >= n || y >= n) return;
  index i = y * n + x;
  float here = in[i];
  if (x > 0 && x + 1 < n && y > 0 && y + 1 < n)
    here = 0.5f * here + 0.125f * (in[i - 1] + in[i + 1] + in[i - n] + in[i + n]);
  out[i] = here;
}

// Inclusive scan of each 256 elements (Hillis and Steele), double buffered.
kernel void scan(global const float *x, global float *out, index n) {
  local float tile[2 * BLOCK];
  index thread = get_local_id(0), i = get_global_id(0), to = 0;
  tile[thread] = i < n ? x[i] : 0.0f;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index step = 1; step < BLOCK; step <<= 1) {
    index from = to;
    to = BLOCK - to;
    float sum = tile[from + thread];
    if (thread >= step) sum += tile[from + thread - step];
    tile[to + thread] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
  }
  if (i < n) out[i] = tile[to + thread];
}

// Accelerations; 20 floating-point operations a pair. `out` is x of all, y of all, z of all.
kernel void nbody(global const float *x, global const float *y, global const float *z,
                  global const float *mass, global float *out, index n) {
  index i = get_global_id(0);
  if (i >= n) return;
  float xi = x[i], yi = y[i], zi = z[i], ax = 0.0f, ay = 0.0f, az = 0.0f;
  for (index j = 0; j < n; j++) {
    float dx = x[j] - xi, dy = y[j] - yi, dz = z[j] - zi;
    float inverse = 1.0f / sqrt(dx * dx + dy * dy + dz * dz + 0.01f);
    float s = mass[j] * (inverse * inverse * inverse);
    ax += s * dx;
    ay += s * dy;
    az += s * dz;
  }
  out[i] = ax;
  out[n + i] = ay;
  out[2 * n + i] = az;
}

kernel void sin_exp_log(global const float *a, global const float *b, global const float *c,
                        global float *r, index n) {
  index i = get_global_id(0);
  if (i < n) r[i] = sin(a[i]) * exp(b[i]) + log(c[i] + 1.0f);
}

kernel void mandelbrot(global uint *out, index n) {
  index x = get_global_id(0), y = get_global_id(1);
  if (x >= n || y >= n) return;
  float scale = 2.5f / (float)n;
  float cx = -2.0f + (float)x * scale, cy = -1.25f + (float)y * scale;
  float zx = 0.0f, zy = 0.0f;
  uint steps = 0;
  while (steps < 256 && zx * zx + zy * zy <= 4.0f) {
    float next = zx * zx - zy * zy + cx;
    zy = 2.0f * zx * zy + cy;
    zx = next;
    steps++;
  }
  out[y * n + x] = steps;
}

kernel void histogram(global const uint *keys, global uint *counts, index n) {
  local uint bins[BINS];
  index thread = get_local_id(0);
  bins[thread] = 0;
  barrier(CLK_LOCAL_MEM_FENCE);
  for (index i = get_global_id(0); i < n; i += get_global_size(0)) atomic_inc(&bins[keys[i] % BINS]);
  barrier(CLK_LOCAL_MEM_FENCE);
  atomic_add(&counts[thread], bins[thread]);
}

kernel void empty(void) {}
