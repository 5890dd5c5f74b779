const int CIRCLES = 7, POINTS = 150, MARGIN = 22, REACH = 6;

struct Direction {
  float cosine, sine;
};

struct Offset {
  int x, y;
};

extern "C" __global__ void score_circles(const float *__restrict__ gradient_x, const float *__restrict__ gradient_y,
                                 const Offset *__restrict__ offsets, const Direction *__restrict__ directions,
                                 float *__restrict__ scores, int height, int width) {
  int i = blockIdx.x * blockDim.x + threadIdx.x, inner = width - 2 * MARGIN;
  int row = i / inner + MARGIN, column = i % inner + MARGIN;
  if (row < height - MARGIN) {
    float best = 0.0f;
    for (int circle = 0; circle < CIRCLES; circle++) {
      float mean = 0.0f, squares = 0.0f;
      for (int point = 0; point < POINTS; point++) {
        Offset offset = offsets[circle * POINTS + point];
        int at = (row + offset.y) * width + column + offset.x;
        Direction direction = directions[point];
        float along = gradient_x[at] * direction.cosine + gradient_y[at] * direction.sine;
        float off = along - mean;
        mean += off / (point + 1);
        squares += off * (along - mean);
      }
      float variance = squares / (POINTS - 1);
      best = fmaxf(best, mean * mean / variance);
    }
    scores[row * width + column] = best;
  }
}

extern "C" __global__ void dilate(const float *__restrict__ scores, const unsigned char *__restrict__ disk,
                                  float *__restrict__ largest, int height, int width, int all) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < all) {
    int row = i / width, column = i % width;
    float best = 0.0f;
    for (int a = 0; a < 2 * REACH + 1; a++) {
      int y = row - REACH + a;
      if (y >= 0 && y < height)
        for (int b = 0; b < 2 * REACH + 1; b++) {
          int x = column - REACH + b;
          if (x >= 0 && x < width && disk[a * (2 * REACH + 1) + b] != 0)
            best = fmaxf(best, scores[y * width + x]);
        }
    }
    largest[i] = best;
  }
}
