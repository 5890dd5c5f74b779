struct Node {
  int first, count;
};

extern "C" __global__ void reach(const Node *__restrict__ nodes, const int *__restrict__ edges,
                                 bool *__restrict__ last, unsigned char *__restrict__ next,
                                 const bool *__restrict__ visited, int *__restrict__ costs, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && last[i]) {
    last[i] = false;
    Node node = nodes[i];
    int cost = costs[i] + 1;
    for (int at = node.first; at < node.first + node.count; at++) {
      int to = edges[at];
      if (!visited[to]) {
        costs[to] = cost;
        next[to] = 1;
      }
    }
  }
}

extern "C" __global__ void advance(bool *__restrict__ last, unsigned char *__restrict__ next,
                                   bool *__restrict__ visited, unsigned char *__restrict__ more, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && next[i]) {
    last[i] = true;
    visited[i] = true;
    more[0] = 1;
    next[i] = 0;
  }
}
