/* SPDX-License-Identifier: MIT */
/* static.cu: a CUDA program as nvcc makes it, with the runtime linked into it, for `hipmm run`. Kernels write memory of all
 * kinds and read it again; the values say which block and which round they are of, so that a block that two own at once
 * shows. Prints what must be the same with and without hipmm, and "all is well".
 *
 *   nvcc -O2 -o static static.cu && hipmm run --strict --report -- ./static
 */
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <vector>

static void good(int line, const char *call, cudaError_t code, cudaError_t wanted)
{
  if (code == wanted) return;
  fprintf(stderr, "static.cu:%d: %s is %s\n", line, call, cudaGetErrorName(code));
  exit(1);
}

#define GOOD(call)           good(__LINE__, #call, (call), cudaSuccess)
#define EXPECT(wanted, call) good(__LINE__, #call, (call), (wanted))

static void demand(int line, bool holds, const char *what)
{
  if (holds) return;
  fprintf(stderr, "static.cu:%d: not so: %s\n", line, what);
  exit(1);
}

#define DEMAND(what) demand(__LINE__, (what), #what)

__device__ unsigned value(unsigned seed, size_t i)
{
  return seed * 2654435761u ^ static_cast<unsigned>(i);
}

__global__ void write(unsigned *words, size_t count, unsigned seed)
{
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    words[i] = value(seed, i);
}

__global__ void compare(const unsigned *words, size_t count, unsigned seed, unsigned *wrong)
{
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
    if (words[i] != value(seed, i)) atomicAdd(wrong, 1);
}

static unsigned *wrong; /* managed: words that were not what a kernel wrote */

static void fill(void *memory, size_t bytes, unsigned seed, cudaStream_t stream)
{
  write<<<32, 256, 0, stream>>>(static_cast<unsigned *>(memory), bytes / 4, seed);
  GOOD(cudaGetLastError());
}

static void check(const void *memory, size_t bytes, unsigned seed, cudaStream_t stream)
{
  compare<<<32, 256, 0, stream>>>(static_cast<const unsigned *>(memory), bytes / 4, seed, wrong);
  GOOD(cudaGetLastError());
}

/* Pairs of blocks that live at once, of many sizes. */
static void use_pairs()
{
  for (unsigned round = 1; round <= 60; round++) {
    void *first, *second;
    size_t one = 4 * (1 + round * 977 % 300000), two = 4 * (1 + round * 7919 % 3000000);
    GOOD(cudaMalloc(&first, one));
    GOOD(cudaMalloc(&second, two));
    fill(first, one, round, nullptr);
    fill(second, two, round + 1000, nullptr);
    check(first, one, round, nullptr);
    check(second, two, round + 1000, nullptr);
    GOOD(cudaFree(first));
    GOOD(cudaFree(second));
  }
  GOOD(cudaDeviceSynchronize());
}

/* In the order of streams, without a wait in between: a block goes from stream to stream. */
static void use_streams()
{
  enum { STREAMS = 4, ROUNDS = 200, BYTES = 1 << 20 };
  cudaStream_t streams[STREAMS];
  cudaMemPool_t pool;
  for (auto &stream : streams) GOOD(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  GOOD(cudaDeviceGetDefaultMemPool(&pool, 0));
  for (unsigned round = 0; round < ROUNDS; round++) {
    cudaStream_t stream = streams[round % STREAMS];
    void *ordered, *pooled;
    size_t bytes = BYTES + 4096 * (round % 7);
    GOOD(cudaMallocAsync(&ordered, bytes, stream));
    GOOD(cudaMallocFromPoolAsync(&pooled, bytes, pool, stream));
    fill(ordered, bytes, round, stream);
    fill(pooled, bytes, ~round, stream);
    check(ordered, bytes, round, stream);
    check(pooled, bytes, ~round, stream);
    GOOD(cudaFreeAsync(ordered, stream));
    GOOD(cudaFreeAsync(pooled, stream));
  }
  for (auto &stream : streams) GOOD(cudaStreamDestroy(stream));
  GOOD(cudaDeviceSynchronize());
}

static void use_kinds()
{
  enum { ROWS = 33, WIDTH = 1000 };
  void *rows, *managed, *pinned;
  size_t pitch = 0;
  std::vector<unsigned char> host(WIDTH * ROWS, 0), back(WIDTH * ROWS, 1);
  for (size_t i = 0; i < host.size(); i++) host[i] = static_cast<unsigned char>(i * 31);
  GOOD(cudaMallocPitch(&rows, &pitch, WIDTH, ROWS));
  GOOD(cudaMemcpy2D(rows, pitch, host.data(), WIDTH, WIDTH, ROWS, cudaMemcpyHostToDevice));
  GOOD(cudaMemcpy2D(back.data(), WIDTH, rows, pitch, WIDTH, ROWS, cudaMemcpyDeviceToHost));
  DEMAND(host == back);
  printf("pitch of %d: %zu\n", WIDTH, pitch);

  cudaResourceDesc resource = {};
  cudaTextureDesc texture = {};
  cudaTextureObject_t object = 0;
  resource.resType = cudaResourceTypePitch2D; /* needs rows that are aligned for textures */
  resource.res.pitch2D = {rows, cudaCreateChannelDesc<unsigned char>(), WIDTH, ROWS, pitch};
  GOOD(cudaCreateTextureObject(&object, &resource, &texture, nullptr));
  GOOD(cudaDestroyTextureObject(object));
  GOOD(cudaFree(rows));

  GOOD(cudaMallocManaged(&managed, 1 << 20));
  fill(managed, 1 << 20, 5, nullptr);
  check(managed, 1 << 20, 5, nullptr);
  GOOD(cudaMallocHost(&pinned, 1 << 20));
  fill(pinned, 1 << 20, 6, nullptr);
  check(pinned, 1 << 20, 6, nullptr);
  GOOD(cudaDeviceSynchronize());
  GOOD(cudaFree(managed));
  GOOD(cudaFreeHost(pinned));
}

/* Memory of a captured graph is the driver's; hipmm's can be used in it. */
static void use_graph()
{
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t runnable;
  void *ours, *graphs;
  GOOD(cudaStreamCreate(&stream));
  GOOD(cudaMallocAsync(&ours, 1 << 16, stream));
  GOOD(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  GOOD(cudaMallocAsync(&graphs, 1 << 16, stream));
  fill(graphs, 1 << 16, 7, stream);
  GOOD(cudaMemcpyAsync(ours, graphs, 1 << 16, cudaMemcpyDeviceToDevice, stream));
  check(ours, 1 << 16, 7, stream);
  GOOD(cudaFreeAsync(graphs, stream));
  GOOD(cudaStreamEndCapture(stream, &graph));
  GOOD(cudaGraphInstantiate(&runnable, graph, 0));
  for (int i = 0; i < 3; i++) GOOD(cudaGraphLaunch(runnable, stream));
  GOOD(cudaStreamSynchronize(stream));
  GOOD(cudaGraphExecDestroy(runnable));
  GOOD(cudaGraphDestroy(graph));
  GOOD(cudaFreeAsync(ours, stream));
  GOOD(cudaStreamDestroy(stream));
}

static void ask()
{
  void *memory;
  size_t free_bytes, total;
  cudaPointerAttributes attributes;
  GOOD(cudaMemGetInfo(&free_bytes, &total));
  DEMAND(free_bytes > 0 && free_bytes <= total);
  EXPECT(cudaErrorMemoryAllocation, cudaMalloc(&memory, total * 2));
  EXPECT(cudaErrorMemoryAllocation, cudaGetLastError());
  GOOD(cudaMalloc(&memory, 4096));
  GOOD(cudaPointerGetAttributes(&attributes, static_cast<char *>(memory) + 100));
  DEMAND(attributes.type == cudaMemoryTypeDevice && attributes.device == 0);
  GOOD(cudaFree(memory));
  EXPECT(cudaErrorInvalidValue, cudaFree(memory)); /* again */
  EXPECT(cudaErrorInvalidValue, cudaGetLastError());
  GOOD(cudaPointerGetAttributes(&attributes, &free_bytes));
  DEMAND(attributes.type == cudaMemoryTypeUnregistered);
}

int main(int argc, char **)
{
  GOOD(cudaMallocManaged(&wrong, sizeof *wrong));
  *wrong = 0;
  use_pairs();
  use_streams();
  use_kinds();
  use_graph();
  ask();
  GOOD(cudaDeviceSynchronize());
  DEMAND(*wrong == 0);
  GOOD(cudaFree(wrong));
  printf("all is well\n");
  if (argc > 1) GOOD(cudaDeviceReset());
}
