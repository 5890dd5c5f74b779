struct Place {
  float latitude, longitude;
};

extern "C" __global__ void distances(const Place *__restrict__ places, float *__restrict__ to, Place from,
                                     int n) {
  int i = blockDim.x * (gridDim.x * blockIdx.y + blockIdx.x) + threadIdx.x;
  if (i < n) {
    float dx = from.latitude - places[i].latitude, dy = from.longitude - places[i].longitude;
    to[i] = sqrtf(dx * dx + dy * dy);
  }
}
