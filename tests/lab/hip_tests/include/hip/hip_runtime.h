/* SPDX-License-Identifier: MIT */
/* hip_runtime.h: stands in front of HIP's own for host programs of tests/lab/hip_tests. A kernel is a function of the
 * host; its launch, which convert.py rewrites, is work of its stream that runs the function once for each thread of
 * the grid, one after the other. Cooperation of the threads of a block ends the program as "needs a GPU". */
#ifndef HIPMM_TESTS_HIP_TESTS_INCLUDE_HIP_HIP_RUNTIME_H
#define HIPMM_TESTS_HIP_TESTS_INCLUDE_HIP_HIP_RUNTIME_H

#include <hip/hip_version.h>

#include <hip/hip_common.h>
#include <hip/hip_runtime_api.h>
#include <hip/hip_vector_types.h>
#include <hip/library_types.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <thread>
#include <tuple>
#include <unistd.h>
#include <vector>

#undef __shared__
#define __shared__ static thread_local
#define __managed__
#define __launch_bounds__(...)
#define HIP_KERNEL_NAME(...)          __VA_ARGS__
#define HIP_SYMBOL(symbol)            symbol
#define HIP_DYNAMIC_SHARED(type, var) type *var = (type *)::host_kernel::shared;

inline thread_local dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace host_kernel
{
inline thread_local bool is_first_thread;
inline thread_local unsigned long long clock_jumps, wall_khz, clock_khz;
alignas(64) inline thread_local char shared[65536];

[[noreturn]] inline void needs_gpu(const char *what)
{
  fprintf(stderr, "HOST_KERNEL_NEEDS_GPU: %s\n", what);
  _exit(77);
}

/* Kernels that wait until a time has passed do so in their first thread; in the others the clock jumps ahead. */
inline unsigned long long ticks(unsigned long long khz)
{
  if (!is_first_thread) return clock_jumps += 1ull << 40;
  auto ns = std::chrono::steady_clock::now().time_since_epoch().count();
  return (unsigned long long)((double)ns * (double)khz / 1e6);
}

inline unsigned long long attribute(hipDeviceAttribute_t which, int otherwise)
{
  int value = 0;
  return !hipDeviceGetAttribute(&value, which, 0) && value > 0 ? value : otherwise;
}

struct configuration {
  dim3 grid, block;
  size_t shared_bytes;
  hipStream_t stream;
};

inline configuration configure(dim3 grid, dim3 block, size_t shared_bytes = 0, hipStream_t stream = nullptr)
{
  return {grid, block, shared_bytes, stream};
}

struct work {
  std::function<void()> thread;
  bool is_captured; /* a graph may run it any number of times */
  dim3 grid, block;
  unsigned long long wall_khz, clock_khz;
};

template <class Visitor> void for_each_of(dim3 size, Visitor visitor)
{
  for (unsigned z = 0; z < size.z; z++)
    for (unsigned y = 0; y < size.y; y++)
      for (unsigned x = 0; x < size.x; x++) visitor(dim3(x, y, z));
}

inline void run(void *closure)
{
  work *one = (work *)closure;
  gridDim = one->grid;
  blockDim = one->block;
  wall_khz = one->wall_khz;
  clock_khz = one->clock_khz;
  is_first_thread = true;
  for_each_of(one->grid, [&](dim3 block) {
    for_each_of(one->block, [&](dim3 thread) {
      blockIdx = block;
      threadIdx = thread;
      one->thread();
      is_first_thread = false;
    });
  });
  if (!one->is_captured) delete one;
}

template <class Kernel> struct launcher {
  configuration given;
  Kernel kernel;
  template <class... Arguments> void operator()(Arguments... arguments) const
  {
    static const unsigned long long wall = attribute(hipDeviceAttributeWallClockRate, 100000);
    static const unsigned long long clock = attribute(hipDeviceAttributeClockRate, 1000000);
    Kernel copy = kernel;
    hipStreamCaptureStatus capture = hipStreamCaptureStatusNone;
    bool is_captured = !hipStreamIsCapturing(given.stream, &capture) && capture != hipStreamCaptureStatusNone;
    work *one =
        new work{[copy, arguments...]() { copy(arguments...); }, is_captured, given.grid, given.block, wall, clock};
    if (hipLaunchHostFunc(given.stream, run, one)) delete one;
  }
};

template <class Kernel> launcher<Kernel> launch(configuration given, Kernel kernel)
{
  return {given, kernel};
}
} // namespace host_kernel

#define hipLaunchKernelGGL(kernel, grid, block, bytes, stream, ...)           \
  ::host_kernel::launch(::host_kernel::configure(grid, block, bytes, stream), \
                        [=](auto... each) { (kernel)(each...); })(__VA_ARGS__)

#define __builtin_amdgcn_s_sleep(x) usleep(1)
#define hipThreadIdx_x              threadIdx.x
#define hipThreadIdx_y              threadIdx.y
#define hipThreadIdx_z              threadIdx.z
#define hipBlockIdx_x               blockIdx.x
#define hipBlockIdx_y               blockIdx.y
#define hipBlockIdx_z               blockIdx.z
#define hipBlockDim_x               blockDim.x
#define hipBlockDim_y               blockDim.y
#define hipBlockDim_z               blockDim.z
#define hipGridDim_x                gridDim.x
#define hipGridDim_y                gridDim.y
#define hipGridDim_z                gridDim.z

static inline unsigned long long wall_clock64()
{
  return ::host_kernel::ticks(::host_kernel::wall_khz);
}
static inline long long clock64()
{
  return (long long)::host_kernel::ticks(::host_kernel::clock_khz);
}
static inline long long __clock64()
{
  return clock64();
}
static inline long long clock_()
{
  return clock64();
}

/* ---- Atomics and fences: of the host ---- */

static inline void __threadfence()
{
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
static inline void __threadfence_system()
{
  __threadfence();
}
static inline void __threadfence_block()
{
  __threadfence();
}
template <class T, class U> T atomicAdd(T *at, U value)
{
  if constexpr (std::is_integral_v<T>) return __atomic_fetch_add(at, (T)value, __ATOMIC_SEQ_CST);
  T old = *at;
  *at = old + (T)value;
  return old;
}
template <class T, class U> T atomicSub(T *at, U value)
{
  return atomicAdd(at, (T)(0 - (T)value));
}
template <class T, class U> T atomicExch(T *at, U value)
{
  return __atomic_exchange_n(at, (T)value, __ATOMIC_SEQ_CST);
}
template <class T, class U, class V> T atomicCAS(T *at, U expected, V value)
{
  T seen = (T)expected;
  __atomic_compare_exchange_n(at, &seen, (T)value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
  return seen;
}
template <class T, class U> T atomicAdd_system(T *at, U value)
{
  return atomicAdd(at, value);
}
template <class T, class U> T atomicSub_system(T *at, U value)
{
  return atomicSub(at, value);
}
template <class T, class U> T atomicExch_system(T *at, U value)
{
  return atomicExch(at, value);
}
template <class T, class U, class V> T atomicCAS_system(T *at, U expected, V value)
{
  return atomicCAS(at, expected, value);
}

#define __HIP_MEMORY_SCOPE_SINGLETHREAD                 1
#define __HIP_MEMORY_SCOPE_WAVEFRONT                    2
#define __HIP_MEMORY_SCOPE_WORKGROUP                    3
#define __HIP_MEMORY_SCOPE_AGENT                        4
#define __HIP_MEMORY_SCOPE_SYSTEM                       5
#define __hip_atomic_load(at, order, scope)             __atomic_load_n(at, order)
#define __hip_atomic_store(at, value, order, scope)     __atomic_store_n(at, value, order)
#define __hip_atomic_fetch_add(at, value, order, scope) __atomic_fetch_add(at, value, order)
#define __hip_atomic_exchange(at, value, order, scope)  __atomic_exchange_n(at, value, order)
template <class T, class U> bool __hip_atomic_compare_exchange_strong(T *at, T *expected, U value, int, int, int)
{
  return __atomic_compare_exchange_n(at, expected, (T)value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
template <class T, class U> bool __hip_atomic_compare_exchange_weak(T *at, T *expected, U value, int, int, int)
{
  return __hip_atomic_compare_exchange_strong(at, expected, value, 0, 0, 0);
}

/* ---- What only a GPU can ---- */

static inline void __syncthreads()
{
  ::host_kernel::needs_gpu("__syncthreads");
}
template <class T> T __shfl(T value, int, int = 0)
{
  ::host_kernel::needs_gpu("__shfl");
  return value;
}

#define NEEDS_GPU(type, name)                                           \
  template <class T = void, class... Arguments> type name(Arguments...) \
  {                                                                     \
    ::host_kernel::needs_gpu(#name);                                    \
  }
NEEDS_GPU(T, tex1D)
NEEDS_GPU(T, tex2D)
NEEDS_GPU(T, tex3D)
NEEDS_GPU(T, tex2Dgather)
NEEDS_GPU(T, tex1Dfetch)
NEEDS_GPU(T, tex1DLayered)
NEEDS_GPU(T, tex2DLayered)
NEEDS_GPU(T, texCubemap)
NEEDS_GPU(T, texCubemapLayered)
NEEDS_GPU(T, tex2DLod)
NEEDS_GPU(T, tex1DLod)
NEEDS_GPU(void, surf1Dread)
NEEDS_GPU(void, surf1Dwrite)
NEEDS_GPU(void, surf2Dread)
NEEDS_GPU(void, surf2Dwrite)
NEEDS_GPU(void, surf3Dread)
NEEDS_GPU(void, surf3Dwrite)
#undef NEEDS_GPU

template <class A, class B> constexpr auto min(A a, B b) -> decltype(a + b)
{
  return a < b ? a : b;
}
template <class A, class B> constexpr auto max(A a, B b) -> decltype(a + b)
{
  return a > b ? a : b;
}

#endif
