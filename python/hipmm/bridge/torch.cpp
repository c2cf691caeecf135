/* SPDX-License-Identifier: MIT */
/* torch.cpp: hipmm as a full allocator of PyTorch's: a class over PyTorch's own CUDAAllocator that delegates what is
 * PyTorch's, and serves what is hipmm's. hipmm.torch compiles it at its first use against the headers of the PyTorch that
 * is installed, loads it, and calls hipmm_bridge_install(). PyTorch 2.8 to 2.15; a release whose class has changed does not
 * compile it, and keeps its own allocator.
 *
 * Whose a block is: what is allocated outside private pools is hipmm's. Private pools (captured graphs, MemPool) are those
 * of PyTorch's own allocator, which asks hipmm for their segments; a pool with an allocator of the user's is not touched.
 * Each block goes back by its address, and every DataPtr has the bridge's deleter, since PyTorch recognises its own blocks
 * by that.
 *
 * Order of locks: Bridge::pools_lock, then the device's lock of PyTorch's allocator, then Bridge::ranges_lock, then hipmm's.
 * All others, such as Source's, are held for a few instructions, and neither hipmm nor PyTorch is called under them. None is
 * held while PyTorch's functions for call stacks run, which wait for Python's global lock.
 *
 * A graph can have functions in Python (failure_callback, callback), for which hipmm waits for that lock too, and
 * which may call PyTorch. Apart from private pools, no lock is held here when hipmm allocates or frees. For those,
 * PyTorch's own allocator asks Source under its device's lock, and another thread may have Python's lock and wait for that
 * one (torch.cuda.memory_stats(), the end of a tensor). So such functions do not go with private pools, as the text of
 * hipmm.torch.use() says. */
#include <c10/core/StorageImpl.h>
#include <c10/core/impl/GPUTrace.h>
#include <c10/cuda/CUDAAllocatorConfig.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAGraphsC10Utils.h>
#include <c10/util/ApproximateClock.h>
#include <c10/util/flat_hash_map.h>
#include <torch/csrc/api/include/torch/version.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cxxabi.h>
#include <dlfcn.h>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <typeinfo>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

/* Whether this is PyTorch 2.MINOR or later. */
#define TORCH_IS(minor) (TORCH_VERSION_MAJOR > 2 || (TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR >= (minor)))

#if !TORCH_IS(8)
#error "hipmm's bridge needs PyTorch 2.8 or later"
#endif

/* The functions of hipmm, in this order: python/hipmm/_bridge.py fills the table by their names. hipmm/torch.h,
 * hipmm/hipmm.h and hipmm/inspect.h describe them. The file is compiled where those headers may be missing. */
extern "C" {
struct hipmm_resource;

struct hipmm_extent {
  const void *ptr;
  size_t bytes;
  uint32_t state, flags;
  void *stream;
};

struct hipmm_torch_pool {
  unsigned long long first, second;
};

struct hipmm_functions {
  int (*torch_try_malloc)(size_t bytes, int device, void *stream, void **ptr_out);
  void *(*torch_malloc)(ssize_t bytes, int device, void *stream);
  void (*torch_free)(void *ptr, ssize_t bytes, int device, void *stream);
  void (*torch_init)(int device_count);
  void (*torch_reset)(void);
  void (*torch_memory_fraction)(double fraction, int device);
  void (*torch_record_stream)(void *ptr, void *stream);
  void (*torch_end_allocate_to_pool)(int device, hipmm_torch_pool pool);
  int (*torch_is_allocation)(void *ptr);
  int (*device_held_bytes)(int device, size_t *now_out, size_t *peak_out);
  int (*resource_get_for_device)(int device, hipmm_resource **resource_out);
  void (*resource_release)(hipmm_resource *resource);
  int (*resource_reset_peaks)(hipmm_resource *resource);
  int (*resource_visit_blocks)(hipmm_resource *resource, void (*visitor)(void *arg, const hipmm_extent *extent),
                               void *arg);
  int (*resource_upstream_count)(hipmm_resource *resource, size_t *count_out);
  int (*resource_upstream)(hipmm_resource *resource, size_t index, hipmm_resource **upstream_out);
  const char *(*last_error_message)(void);
  int (*call_site)(size_t bytes, char *text, size_t text_bytes);
  void (*run_pass)(int passes); /* NULL: not under `hipmm run` */
};
}

namespace
{

namespace allocators = c10::cuda::CUDACachingAllocator;
using allocators::CheckpointDelta;
using allocators::CUDAAllocator;
using allocators::ShareableHandle;
using allocators::SnapshotInfo;
using c10::DataPtr;
using c10::DeviceIndex;
#if TORCH_IS(10)
using c10::MempoolId_t;
#else
using c10::cuda::MempoolId_t;
#endif
using c10::CachingDeviceAllocator::DeviceStats;
using Stat = c10::CachingAllocator::Stat;
using c10::CachingAllocator::StatType;
using Context = std::shared_ptr<c10::GatheredContext>;
using Filter = std::function<bool(cudaStream_t)>;
#if TORCH_IS(11)
using UserAllocator = std::shared_ptr<CUDAAllocator>;
#else
using UserAllocator = CUDAAllocator *;
#endif

constexpr int MOST_DEVICES = 64;
constexpr size_t GRANULE = 512; /* PyTorch's: every block's size is a multiple, and programs compute with that */
constexpr size_t MOST_SMALL = size_t{1} << 20; /* PyTorch counts blocks up to this as of its pool for small ones */
constexpr size_t MOST_BYTES = size_t{1} << 60;

hipmm_functions hipmm;

/* ---- All of an allocator, forwarded ---- */

/* Every virtual function of CUDAAllocator and its bases: some have a default that does nothing, so that a compiler does
 * not notice when one is missing. test_every_virtual_function_is_forwarded in python/tests/test_bridge.py compares this
 * class with the headers of each release. */
class Forward : public CUDAAllocator
{
public:
  explicit Forward(CUDAAllocator *to) : native(to)
  {
  }

  DataPtr allocate(size_t bytes) override
  {
    return native->allocate(bytes);
  }
  bool is_simple_data_ptr(const DataPtr &ptr) const override
  {
    return native->is_simple_data_ptr(ptr);
  }
  c10::DeleterFnPtr raw_deleter() const override
  {
    return native->raw_deleter();
  }
  void copy_data(void *to, const void *from, size_t bytes) const override
  {
    native->copy_data(to, from, bytes);
  }
  bool initialized() override
  {
    return native->initialized();
  }
  void emptyCache(MempoolId_t pool) override
  {
    native->emptyCache(pool);
  }
  DeviceStats getDeviceStats(DeviceIndex device) override
  {
    return native->getDeviceStats(device);
  }
  void resetAccumulatedStats(DeviceIndex device) override
  {
    native->resetAccumulatedStats(device);
  }
  void resetPeakStats(DeviceIndex device) override
  {
    native->resetPeakStats(device);
  }
  void recordStream(const DataPtr &ptr, c10::cuda::CUDAStream stream) override
  {
    native->recordStream(ptr, stream);
  }
#if TORCH_IS(9)
  void recordStream(const DataPtr &ptr, c10::Stream stream) override
  {
    recordStream(ptr, c10::cuda::CUDAStream(stream));
  }
#endif
#if TORCH_IS(10)
  std::pair<size_t, size_t> getMemoryInfo(DeviceIndex device) override
  {
    return native->getMemoryInfo(device);
  }
  std::vector<allocators::StreamSegmentSize> getExpandableSegmentSizes(DeviceIndex device) override
  {
    return native->getExpandableSegmentSizes(device);
  }
  void setNoSplit(DeviceIndex device, MempoolId_t pool) override
  {
    native->setNoSplit(device, pool);
  }
  void setUserMetadata(const std::string &metadata) override
  {
    native->setUserMetadata(metadata);
  }
  std::string getUserMetadata() override
  {
    return native->getUserMetadata();
  }
#endif
#if TORCH_IS(11)
  SnapshotInfo snapshot(MempoolId_t pool, bool include_traces) override
  {
    return native->snapshot(pool, include_traces);
  }
  void setUseOnOOM(DeviceIndex device, MempoolId_t pool, bool value) override
  {
    native->setUseOnOOM(device, pool, value);
  }
  void recordHistory(bool enabled, allocators::CreateContextFn recorder, size_t most, allocators::RecordContext when,
                     bool clears, const std::vector<std::string> &skipped) override
  {
    native->recordHistory(enabled, recorder, most, when, clears, skipped);
  }
#else
  SnapshotInfo snapshot(MempoolId_t pool) override
  {
    return native->snapshot(pool);
  }
  void setUseOnOOM(DeviceIndex device, MempoolId_t pool) override
  {
    native->setUseOnOOM(device, pool);
  }
  void recordHistory(bool enabled, allocators::CreateContextFn recorder, size_t most, allocators::RecordContext when,
                     bool clears) override
  {
    native->recordHistory(enabled, recorder, most, when, clears);
  }
#endif
#if TORCH_IS(12)
  Context getContextForPointer(const void *ptr) override
  {
    return native->getContextForPointer(ptr);
  }
  void attachOomRejectionObserver(allocators::OomRejectionObserver observer) override
  {
    native->attachOomRejectionObserver(std::move(observer));
  }
#endif
#if TORCH_IS(13)
  void markCaptureBegin(DeviceIndex device) override
  {
    native->markCaptureBegin(device);
  }
  void markCaptureEnd(DeviceIndex device) override
  {
    native->markCaptureEnd(device);
  }
  DataPtr allocateWithAddress(size_t bytes, void *address) override
  {
    return native->allocateWithAddress(bytes, address);
  }
#endif
#if TORCH_IS(14)
  bool supportsUserMetadata() override
  {
    return native->supportsUserMetadata();
  }
  void annotateMemory(const void *ptr, const std::string &metadata) override
  {
    native->annotateMemory(ptr, metadata);
  }
#endif
  void *raw_alloc(size_t bytes) override
  {
    return native->raw_alloc(bytes);
  }
  void *raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override
  {
    return native->raw_alloc_with_stream(bytes, stream);
  }
  void raw_delete(void *ptr) override
  {
    native->raw_delete(ptr);
  }
  void init(int device_count) override
  {
    native->init(device_count);
  }
  double getMemoryFraction(DeviceIndex device) override
  {
    return native->getMemoryFraction(device);
  }
  void setMemoryFraction(double fraction, DeviceIndex device) override
  {
    native->setMemoryFraction(fraction, device);
  }
  void enable(bool value) override
  {
    native->enable(value);
  }
  bool isEnabled() const override
  {
    return native->isEnabled();
  }
  void cacheInfo(DeviceIndex device, size_t *largest) override
  {
    native->cacheInfo(device, largest);
  }
  void *getBaseAllocation(void *ptr, size_t *bytes_out) override
  {
    return native->getBaseAllocation(ptr, bytes_out);
  }
  void beginAllocateToPool(DeviceIndex device, MempoolId_t pool, Filter filter) override
  {
    native->beginAllocateToPool(device, pool, std::move(filter));
  }
  void endAllocateToPool(DeviceIndex device, MempoolId_t pool) override
  {
    native->endAllocateToPool(device, pool);
  }
  void releasePool(DeviceIndex device, MempoolId_t pool) override
  {
    native->releasePool(device, pool);
  }
  int getPoolUseCount(DeviceIndex device, MempoolId_t pool) override
  {
    return native->getPoolUseCount(device, pool);
  }
  void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, UserAllocator allocator) override
  {
    native->createOrIncrefPool(device, pool, std::move(allocator));
  }
  bool checkPoolLiveAllocations(DeviceIndex device, MempoolId_t pool,
                                const std::unordered_set<void *> &expected) override
  {
    return native->checkPoolLiveAllocations(device, pool, expected);
  }
  ShareableHandle shareIpcHandle(void *ptr) override
  {
    return native->shareIpcHandle(ptr);
  }
  std::shared_ptr<void> getIpcDevPtr(std::string handle) override
  {
    return native->getIpcDevPtr(std::move(handle));
  }
  bool isHistoryEnabled() override
  {
    return native->isHistoryEnabled();
  }
  void recordAnnotation(const std::vector<std::pair<std::string, std::string>> &metadata) override
  {
    native->recordAnnotation(metadata);
  }
  void pushCompileContext(std::string &metadata) override
  {
    native->pushCompileContext(metadata);
  }
  void popCompileContext() override
  {
    native->popCompileContext();
  }
  void attachOutOfMemoryObserver(allocators::OutOfMemoryObserver observer) override
  {
    native->attachOutOfMemoryObserver(std::move(observer));
  }
  void attachAllocatorTraceTracker(allocators::AllocatorTraceTracker tracker) override
  {
    native->attachAllocatorTraceTracker(std::move(tracker));
  }
  void enablePeerAccess(DeviceIndex device, DeviceIndex other) override
  {
    native->enablePeerAccess(device, other);
  }
  cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream,
                          bool has_access) override
  {
    return native->memcpyAsync(to, to_device, from, from_device, bytes, stream, has_access);
  }
  std::shared_ptr<allocators::AllocatorState> getCheckpointState(DeviceIndex device, MempoolId_t pool) override
  {
    return native->getCheckpointState(device, pool);
  }
  CheckpointDelta setCheckpointPoolState(DeviceIndex device, std::shared_ptr<allocators::AllocatorState> state) override
  {
    return native->setCheckpointPoolState(device, std::move(state));
  }
  std::string name() override
  {
    return native->name();
  }

protected:
  CUDAAllocator *const native;
};

/* ---- hipmm's blocks ---- */

struct Block {
  size_t bytes = 0;     /* as allocated: a multiple of GRANULE */
  size_t requested = 0; /* as the program asked */
  cudaStream_t stream = nullptr;
  DeviceIndex device = 0;
  Context context; /* of the allocation, where PyTorch records call stacks */
};

/* The live blocks by address, in shards so that threads seldom meet. */
class Blocks
{
public:
  void add(void *ptr, Block block)
  {
    Shard &shard = of(ptr);
    std::lock_guard<std::mutex> hold(shard.lock);
    shard.blocks[ptr] = std::move(block);
  }
  bool find(const void *ptr, Block *block_out)
  {
    Shard &shard = of(ptr);
    std::lock_guard<std::mutex> hold(shard.lock);
    auto found = shard.blocks.find(const_cast<void *>(ptr));
    if (found != shard.blocks.end() && block_out) *block_out = found->second;
    return found != shard.blocks.end();
  }
  bool take(void *ptr, Block *block_out)
  {
    Shard &shard = of(ptr);
    std::lock_guard<std::mutex> hold(shard.lock);
    auto found = shard.blocks.find(ptr);
    if (found == shard.blocks.end()) return false;
    *block_out = std::move(found->second);
    shard.blocks.erase(found);
    return true;
  }
  std::map<size_t, Block> all(DeviceIndex device)
  {
    std::map<size_t, Block> blocks;
    for (Shard &shard : shards) {
      std::lock_guard<std::mutex> hold(shard.lock);
      for (const auto &entry : shard.blocks)
        if (entry.second.device == device) blocks.emplace(reinterpret_cast<size_t>(entry.first), entry.second);
    }
    return blocks;
  }

private:
  struct alignas(64) Shard {
    std::mutex lock;
    ska::flat_hash_map<void *, Block> blocks;
  };
  Shard &of(const void *ptr)
  {
    return shards[(reinterpret_cast<uintptr_t>(ptr) >> 9) * 0x9E3779B97F4A7C15u >> 58];
  }
  std::array<Shard, 64> shards;
};

/* ---- Figures ---- */

/* A request as PyTorch rounds it, with PYTORCH_ALLOC_CONF's roundup_power2_divisions: parts between two powers of 2. */
size_t rounded(size_t bytes)
{
#if TORCH_IS(10)
  size_t parts = c10::CachingAllocator::AcceleratorAllocatorConfig::roundup_power2_divisions(bytes);
#else
  size_t parts = allocators::CUDAAllocatorConfig::roundup_power2_divisions(bytes);
#endif
  if (parts > 1 && bytes > GRANULE * parts) {
    size_t power = GRANULE;
    while (power <= bytes / 2) power *= 2;
    size_t step = std::max<size_t>(power / parts, 1);
    return (bytes + step - 1) / step * step;
  }
  return std::max<size_t>((bytes + GRANULE - 1) / GRANULE, 1) * GRANULE;
}

enum Figure { ALLOCATIONS, ALLOCATED_BYTES, REQUESTED_BYTES, FIGURES };

constexpr size_t ALL = static_cast<size_t>(StatType::AGGREGATE), SMALL = static_cast<size_t>(StatType::SMALL_POOL),
                 LARGE = static_cast<size_t>(StatType::LARGE_POOL), TYPES = 3;

bool is_captured(cudaStream_t stream)
{
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  if (!cudaStreamIsCapturing(stream, &status)) return status != cudaStreamCaptureStatusNone;
  (void)cudaGetLastError();
  return false;
}

/* What hipmm's blocks of a device are, and the peaks of them and PyTorch's together. */
struct Figures {
  std::mutex lock;
  std::array<std::array<Stat, TYPES>, FIGURES> own; /* of hipmm's blocks: all, small, large */
  std::array<int64_t, FIGURES> native_now{};        /* of PyTorch's, when they last changed */
  std::array<int64_t, FIGURES> peak{};              /* of both */
  Stat reserved;                                    /* of both, as it is observed */
  int64_t retries = 0, failures = 0;                /* of hipmm's allocations: num_alloc_retries, num_ooms */
  int64_t grown = 0, shrunk = 0;                    /* as what hipmm holds was observed: num_device_alloc and _free */
  size_t held = 0;                                  /* by hipmm, then */
  std::atomic<size_t> allowed{SIZE_MAX};            /* bytes that may be held; SIZE_MAX: no limit */
  std::atomic<int64_t> source_bytes{0};             /* of PyTorch's segments that are hipmm's */
  std::atomic<int> begun{0};                        /* private pools that take allocations now */
  std::atomic<bool> is_used{false};                 /* hipmm's stack is built */
  std::atomic<bool> is_begun{false};                /* a block has been asked for */
  std::vector<cudaStream_t> origins;                /* the current streams where those pools began */

  /* Whether a stream of the device is captured. PyTorch ends no pool whose capture has failed, so `begun` does not say it. */
  bool is_capturing()
  {
    if (!begun.load(std::memory_order_acquire)) return false;
    std::vector<cudaStream_t> asked;
    {
      std::lock_guard<std::mutex> hold(lock);
      asked = origins;
    }
    return std::any_of(asked.begin(), asked.end(), is_captured);
  }

  void raise_peaks()
  {
    for (int i = 0; i < FIGURES; i++) peak[i] = std::max(peak[i], own[i][ALL].current + native_now[i]);
  }
  /* The lock is held. */
  void set_native(const DeviceStats &stats)
  {
    native_now = {stats.allocation[ALL].current, stats.allocated_bytes[ALL].current,
                  stats.requested_bytes[ALL].current};
    raise_peaks();
  }
  void count(const Block &block, bool is_free)
  {
    const std::array<size_t, FIGURES> by = {1, block.bytes, block.requested};
    std::lock_guard<std::mutex> hold(lock);
    for (int i = 0; i < FIGURES; i++)
      for (size_t type : {ALL, block.bytes <= MOST_SMALL ? SMALL : LARGE})
        is_free ? own[i][type].decrease(by[i]) : own[i][type].increase(by[i]);
    if (!is_free) raise_peaks();
  }
  int64_t allocated()
  {
    std::lock_guard<std::mutex> hold(lock);
    return own[ALLOCATED_BYTES][ALL].current + native_now[ALLOCATED_BYTES];
  }
};

/* ---- Segments of private pools ---- */

/* What the thread's backward pass runs now, such as "MulBackward0"; empty: nothing, or this PyTorch does not tell it. Calls no
 * Python. PyTorch's class of it is not included, since the compiler takes as much memory for that header as for the whole file:
 * the function that gives the object is looked up, and an object with virtual functions begins with the place of its table, in
 * front of which is its type. */
std::string running_operator()
{
  using Find = std::shared_ptr<void> (*)();
  static const Find find = [] {
    void *library = dlopen("libtorch_cpu.so", RTLD_LAZY | RTLD_NOLOAD);
    return reinterpret_cast<Find>(library ? dlsym(library, "_ZN5torch8autograd16get_current_nodeEv") : nullptr);
  }();
  const std::shared_ptr<void> node = find ? find() : nullptr;
  if (!node) return {};
  const std::type_info *type = (*static_cast<const std::type_info *const *const *>(node.get()))[-1];
  if (!type) return {}; /* compiled without types */
  const std::unique_ptr<char, void (*)(void *)> text{abi::__cxa_demangle(type->name(), nullptr, nullptr, nullptr),
                                                     std::free};
  std::string name = text ? text.get() : type->name();
  for (const std::string part : {"torch::autograd::", "generated::"})
    if (name.compare(0, part.size(), part) == 0) name.erase(0, part.size());
  return name;
}

/* While there is one, the thread's allocation has the frames of Python as its call stack, if a resource keeps call stacks and chooses
 * the allocation. PyTorch's operators have released Python's lock: it is taken, as for PyTorch's own recorder, by a thread that has
 * run Python, so no other lock may be held. A thread of the backward pass has none: its frame is the operator. */
class CallSite
{
public:
  explicit CallSite(size_t bytes)
  {
    bool lacks_frames = hipmm.call_site(bytes, text, sizeof text);
    if (lacks_frames && python.of_thread && python.of_thread()) {
      int state = python.take();
      lacks_frames = hipmm.call_site(bytes, text, sizeof text);
      python.give(state);
    }
    const std::string name = lacks_frames ? running_operator() : std::string{};
    if (name.empty()) return;
    int length = std::snprintf(text, sizeof text, "autograd: %.1000s from torch\n", name.c_str());
    (void)hipmm.call_site(SIZE_MAX, text, static_cast<size_t>(length));
  }
  ~CallSite()
  {
    (void)hipmm.call_site(0, nullptr, 0);
  }
  CallSite(const CallSite &) = delete;
  CallSite &operator=(const CallSite &) = delete;

private:
  struct Python {
    Python()
    {
      of_thread = reinterpret_cast<void *(*)()>(dlsym(RTLD_DEFAULT, "PyGILState_GetThisThreadState"));
      take = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "PyGILState_Ensure"));
      give = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "PyGILState_Release"));
      if (!take || !give) of_thread = nullptr;
    }
    void *(*of_thread)(); /* NULL: there is no Python */
    int (*take)();
    void (*give)(int);
  };
  static inline const Python python;
  char text[8192];
};

/* The last segment of which hipmm had no memory, in the thread's present call of PyTorch's own allocator. */
struct Shortage {
  size_t bytes = 0; /* 0: it had, or was not asked */
  std::string reason;
};
thread_local Shortage segment_shortage;

/* What PyTorch's own allocator asks for the segments of its private pools: under its device's lock, and possibly in a
 * capture. Never throws. */
class Source : public Forward
{
public:
  explicit Source(CUDAAllocator *to) : Forward(to)
  {
  }

  /* Memory that any stream may use at once: what was freed on another stream is waited for, on a stream that nobody captures. */
  void *raw_alloc(size_t bytes) override
  {
    void *ptr = nullptr;
    DeviceIndex device = current();
    segment_shortage.bytes = 0;
    if (device < 0) return nullptr;
    Relaxed relaxed;
    cudaStream_t stream = stream_of(device);
    figures[device].is_used = true;
    if (hipmm.torch_try_malloc(bytes, device, stream, &ptr)) {
      segment_shortage = {bytes, hipmm.last_error_message()};
      return nullptr;
    }
    if (!may_keep(device, stream)) {
      (void)cudaGetLastError();
      hipmm.torch_free(ptr, static_cast<ssize_t>(bytes), device, stream);
      return nullptr;
    }
    {
      std::lock_guard<std::mutex> hold(lock);
      segments[ptr] = {bytes, device};
    }
    figures[device].source_bytes += static_cast<int64_t>(bytes);
    return ptr;
  }
  /* PyTorch's own allocator has given up: the last attempt for the segment, by which hipmm counts and logs the failure. */
  void give_up()
  {
    DeviceIndex device = current();
    if (device < 0) return;
    Relaxed relaxed;
    cudaStream_t stream = stream_of(device);
    auto bytes = static_cast<ssize_t>(segment_shortage.bytes);
    hipmm.torch_free(hipmm.torch_malloc(bytes, device, stream), bytes, device, stream);
  }
  void *raw_alloc_with_stream(size_t bytes, cudaStream_t) override
  {
    return raw_alloc(bytes);
  }

  /* Work of any stream may still use the memory, which cudaFree() would wait for. While a stream of the device is captured
   * there is no waiting: the segment is freed once that is over. */
  void raw_delete(void *ptr) override
  {
    Segment segment;
    {
      std::lock_guard<std::mutex> hold(lock);
      auto found = segments.find(ptr);
      if (found == segments.end()) return;
      segment = found->second;
      if (figures[segment.device].is_capturing()) {
        waiting.push_back(ptr);
        return;
      }
      segments.erase(found);
    }
    give_back(ptr, segment);
  }
  void free_waiting()
  {
    std::vector<void *> ptrs;
    {
      std::lock_guard<std::mutex> hold(lock);
      ptrs.swap(waiting);
    }
    for (void *ptr : ptrs) raw_delete(ptr);
  }
  bool has(size_t address)
  {
    std::lock_guard<std::mutex> hold(lock);
    return segments.count(reinterpret_cast<void *>(address)) != 0;
  }
  /* The start of the segment that contains the address; NULL: none does. */
  void *start_of(void *ptr)
  {
    std::lock_guard<std::mutex> hold(lock);
    auto next = segments.upper_bound(ptr);
    if (next == segments.begin()) return nullptr;
    const auto &found = *std::prev(next);
    return static_cast<char *>(ptr) < static_cast<char *>(found.first) + found.second.bytes ? found.first : nullptr;
  }
  std::string name() override
  {
    return "hipmm";
  }

private:
  friend class Bridge;
  struct Segment {
    size_t bytes = 0;
    DeviceIndex device = 0;
  };
  /* Allows what a capture forbids, and does not get into it. */
  struct Relaxed {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    bool has_mode = !cudaThreadExchangeStreamCaptureMode(&mode);
    ~Relaxed()
    {
      if (has_mode) (void)cudaThreadExchangeStreamCaptureMode(&mode);
    }
  };
  static DeviceIndex current() noexcept
  {
    int device = -1;
    return cudaGetDevice(&device) || device >= MOST_DEVICES ? -1 : static_cast<DeviceIndex>(device);
  }
  /* The default stream, where there can be no other. */
  cudaStream_t stream_of(DeviceIndex device)
  {
    std::lock_guard<std::mutex> hold(lock);
    cudaStream_t &stream = streams[device];
    if (!stream && cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking)) stream = nullptr;
    return stream;
  }
  bool may_keep(DeviceIndex device, cudaStream_t stream)
  {
    size_t held = 0, allowed = figures[device].allowed;
    return !cudaStreamSynchronize(stream) &&
           (allowed == SIZE_MAX || hipmm.device_held_bytes(device, &held, nullptr) || held <= allowed);
  }
  void give_back(void *ptr, const Segment &segment)
  {
    int before = current();
    if (before != segment.device) (void)cudaSetDevice(segment.device);
    (void)cudaDeviceSynchronize();
    hipmm.torch_free(ptr, static_cast<ssize_t>(segment.bytes), segment.device, streams[segment.device]);
    figures[segment.device].source_bytes -= static_cast<int64_t>(segment.bytes);
    if (before >= 0 && before != segment.device) (void)cudaSetDevice(before);
  }

  std::mutex lock;
  std::map<void *, Segment> segments;
  std::vector<void *> waiting; /* of segments */
  std::array<cudaStream_t, MOST_DEVICES> streams{};
  Figures *figures = nullptr;
};

/* ---- History ---- */

using allocators::RecordContext;
using allocators::TraceEntry;

thread_local std::vector<std::string> compile_contexts;

/* Events of hipmm's blocks, as PyTorch's own allocator keeps those of its blocks. */
class History
{
public:
  Context context_for(RecordContext level) const
  {
    allocators::CreateContextFn function = recorder.load();
    return when.load() >= level && function ? function() : nullptr;
  }
  bool is_watched() const
  {
    return is_on.load(std::memory_order_relaxed) || has_trackers.load(std::memory_order_relaxed);
  }
  void set(bool on, allocators::CreateContextFn function, size_t n, RecordContext level, bool clears, unsigned skips)
  {
    std::lock_guard<std::mutex> hold(lock);
    recorder = on ? function : nullptr;
    when = on ? level : RecordContext::NEVER;
    is_on = on;
    most = std::max<size_t>(n, 1);
    skipped = skips;
    if (clears || entries.size() > most) entries.clear(), next = 0;
  }
  void add_tracker(allocators::AllocatorTraceTracker tracker)
  {
    std::lock_guard<std::mutex> hold(lock);
    trackers.push_back(std::move(tracker));
    has_trackers = true;
  }
  void add(CUDAAllocator *native, TraceEntry::Action action, const Block &block, size_t address, Context context,
           const std::string *metadata = nullptr)
  {
    if (!is_watched()) return;
    Context kept = when.load() >= RecordContext::ALLOC ? std::move(context) : nullptr;
    TraceEntry entry(action, block.device, address, block.requested, block.stream, MempoolId_t{0, 0},
                     c10::getApproximateTime(), std::move(kept), compile_contexts.empty() ? "" : compile_contexts.back()
#if TORCH_IS(10)
                                                                     ,
                     metadata ? *metadata : native->getUserMetadata()
#endif
    );
    (void)native, (void)metadata;
    std::vector<allocators::AllocatorTraceTracker> asked;
    {
      std::lock_guard<std::mutex> hold(lock);
      asked = trackers;
    }
    for (const auto &tracker : asked) tracker(entry);
    entry.time_.t_ = c10::getTime() / 1000;
    std::lock_guard<std::mutex> hold(lock);
    if (!is_on || skipped >> action & 1) return;
    if (entries.size() < most) {
      entries.push_back(std::move(entry));
    } else {
      entries[next] = std::move(entry);
      next = (next + 1) % most;
    }
  }
  void append_to(std::vector<std::vector<TraceEntry>> &traces)
  {
    std::lock_guard<std::mutex> hold(lock);
    for (const TraceEntry &entry : entries)
      if (static_cast<size_t>(entry.device_) < traces.size()) traces[entry.device_].push_back(entry);
    for (auto &trace : traces)
      std::stable_sort(trace.begin(), trace.end(),
                       [](const TraceEntry &a, const TraceEntry &b) { return a.time_.t_ < b.time_.t_; });
  }

private:
  std::atomic<allocators::CreateContextFn> recorder{nullptr};
  std::atomic<RecordContext> when{RecordContext::NEVER};
  std::atomic<bool> is_on{false}, has_trackers{false};
  std::mutex lock;
  size_t most = 1, next = 0;
  unsigned skipped = 0; /* a bit for each action */
  std::vector<TraceEntry> entries;
  std::vector<allocators::AllocatorTraceTracker> trackers;
};

/* ---- Ranges that hipmm holds ---- */

struct Extent {
  size_t address, bytes;
  bool is_live, begins;
};

void add_extent(void *arg, const hipmm_extent *extent)
{
  auto *extents = static_cast<std::vector<Extent> *>(arg);
  extents->push_back(
      {reinterpret_cast<size_t>(extent->ptr), extent->bytes, extent->state == 1, (extent->flags & 1) != 0});
}

/* The ranges of the topmost resources at or below `resource` that divide memory, or are sources. */
std::vector<Extent> extents_of(hipmm_resource *resource, int depth)
{
  std::vector<Extent> own, below;
  size_t n = 0;
  hipmm.resource_visit_blocks(resource, add_extent, &own);
  bool divides = std::any_of(own.begin(), own.end(), [](const Extent &extent) { return !extent.is_live; });
  if (divides || depth > 16 || hipmm.resource_upstream_count(resource, &n)) return own;
  for (size_t i = 0; i < n; i++) {
    hipmm_resource *upstream;
    if (hipmm.resource_upstream(resource, i, &upstream)) continue;
    std::vector<Extent> found = extents_of(upstream, depth + 1);
    hipmm.resource_release(upstream);
    below.insert(below.end(), found.begin(), found.end());
  }
  return below.empty() ? own : below;
}

/* By address, each once: resources of a graph may stand on the same one. */
std::vector<Extent> extents_held(DeviceIndex device)
{
  std::vector<Extent> extents;
  hipmm_resource *resource;
  if (hipmm.resource_get_for_device(device, &resource)) return extents;
  extents = extents_of(resource, 0);
  hipmm.resource_release(resource);
  std::stable_sort(extents.begin(), extents.end(),
                   [](const Extent &a, const Extent &b) { return a.address < b.address; });
  auto is_same = [](const Extent &a, const Extent &b) { return a.address == b.address; };
  extents.erase(std::unique(extents.begin(), extents.end(), is_same), extents.end());
  return extents;
}

/* What is held, as ranges that touch no other: by where each begins, where it ends. */
using Ranges = std::map<size_t, size_t>;

Ranges ranges_held(DeviceIndex device, Source &source)
{
  Ranges ranges;
  size_t begin = 0, end = 0;
  for (const Extent &extent : extents_held(device)) {
    if (extent.is_live && source.has(extent.address)) continue; /* PyTorch tells of those itself */
    if (end && extent.address > end) ranges[begin] = end;
    if (!end || extent.address > end) begin = extent.address;
    end = std::max(end, extent.address + (extent.bytes + GRANULE - 1) / GRANULE * GRANULE);
  }
  if (end) ranges[begin] = end;
  return ranges;
}

/* What of `from` is not in `without`. */
Ranges ranges_without(const Ranges &from, const Ranges &without)
{
  Ranges left;
  for (const auto &range : from) {
    size_t begin = range.first;
    auto other = without.upper_bound(begin);
    if (other != without.begin()) --other;
    for (; other != without.end() && other->first < range.second; ++other) {
      if (other->second <= begin) continue;
      if (other->first > begin) left[begin] = other->first;
      begin = other->second;
    }
    if (begin < range.second) left[begin] = range.second;
  }
  return left;
}

/* ---- The allocator ---- */

class Bridge;
Bridge *bridge;
void bridge_delete(void *ptr);

std::string format_size(uint64_t bytes)
{
  char text[40];
  if (bytes <= 1024)
    snprintf(text, sizeof text, "%llu bytes", static_cast<unsigned long long>(bytes));
  else if (bytes <= 1048576)
    snprintf(text, sizeof text, "%.2f KiB", static_cast<double>(bytes) / 1024);
  else if (bytes <= 1073741824)
    snprintf(text, sizeof text, "%.2f MiB", static_cast<double>(bytes) / 1048576);
  else
    snprintf(text, sizeof text, "%.2f GiB", static_cast<double>(bytes) / 1073741824);
  return text;
}

/* Makes a device current, until the end of the scope. */
class OnDevice
{
public:
  explicit OnDevice(DeviceIndex device)
  {
    C10_CUDA_CHECK(c10::cuda::GetDevice(&before));
    if (before != device) C10_CUDA_CHECK(c10::cuda::SetDevice(device));
  }
  OnDevice(const OnDevice &) = delete;
  OnDevice &operator=(const OnDevice &) = delete;
  ~OnDevice()
  {
    C10_CUDA_CHECK_WARN(c10::cuda::MaybeSetDevice(before));
  }

private:
  DeviceIndex before = 0;
};

class Bridge : public Forward
{
public:
  Bridge(CUDAAllocator *to, bool under_run) : Forward(to), source(to), is_under_run(under_run)
  {
    source.figures = figures.data();
    is_native = to->name() == "native";
    is_uncached = getenv("PYTORCH_NO_CUDA_MEMORY_CACHING") != nullptr;
    bool is_enabled = to->isEnabled();
    if (!is_enabled) to->enable(true);
    native_deleter = to->raw_deleter();
    if (!is_enabled) to->enable(false);
  }

  /* ---- Allocating and freeing ---- */

  DataPtr allocate(size_t bytes) override
  {
    TORCH_CHECK_WITH(OutOfMemoryError, bytes < MOST_BYTES,
                     "CUDA out of memory. Tried to allocate more than 1EB memory.");
    DeviceIndex device = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    if (!serves(device)) return adopt(native->allocate(bytes));
    void *ptr = bytes ? take(device, bytes, c10::cuda::getCurrentCUDAStream(device)) : nullptr;
    return {ptr, ptr, &bridge_delete, c10::Device(c10::DeviceType::CUDA, device)};
  }
  void *raw_alloc(size_t bytes) override
  {
    DeviceIndex device = 0;
    if (!bytes) return nullptr;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    return raw_alloc_with_stream(bytes, c10::cuda::getCurrentCUDAStream(device));
  }
  void *raw_alloc_with_stream(size_t bytes, cudaStream_t stream) override
  {
    DeviceIndex device = 0;
    if (!bytes) return nullptr;
    TORCH_CHECK_WITH(OutOfMemoryError, bytes < MOST_BYTES,
                     "CUDA out of memory. Tried to allocate more than 1EB memory.");
    C10_CUDA_CHECK(c10::cuda::GetDevice(&device));
    return serves(device) ? take(device, bytes, stream) : native->raw_alloc_with_stream(bytes, stream);
  }
  /* PyTorch's own takes the block to be of its cache or not by whether that is enabled now. */
  void raw_delete(void *ptr) override
  {
    if (!ptr || free_own(ptr)) return;
    native->raw_delete(ptr);
    native_changes++;
  }
  /* Of a DataPtr with the bridge's deleter: if the block is not hipmm's, it is of PyTorch's cache. */
  void delete_cached(void *ptr)
  {
    if (!ptr || free_own(ptr)) return;
    if (n_moved.load(std::memory_order_relaxed)) end_moved(ptr);
    native_deleter(ptr);
    native_changes++;
  }
  /* False: the block is not hipmm's. */
  bool free_own(void *ptr)
  {
    Block block;
    if (!blocks.take(ptr, &block)) return false;
    Context context = history.context_for(RecordContext::ALL);
    size_t address = reinterpret_cast<size_t>(ptr);
    if (const auto *interpreter = c10::impl::GPUTrace::get_trace())
      (*interpreter)->trace_gpu_memory_deallocation(c10::DeviceType::CUDA, address);
    figures[block.device].count(block, true);
    history.add(native, TraceEntry::FREE_REQUESTED, block, address, context ? context : block.context);
    history.add(native, TraceEntry::FREE_COMPLETED, block, address, context ? context : block.context);
    report(ptr, -static_cast<int64_t>(block.bytes), block.device);
    if (!figures[block.device].begun || !is_captured(block.stream))
      hipmm.torch_free(ptr, static_cast<ssize_t>(block.bytes), block.device, block.stream);
    else
      keep_for_capture(ptr, block);
    return true;
  }
  c10::DeleterFnPtr raw_deleter() const override
  {
    return is_cached() ? &bridge_delete : native->raw_deleter();
  }
#if TORCH_IS(13)
  DataPtr allocateWithAddress(size_t bytes, void *address) override
  {
    return adopt(native->allocateWithAddress(bytes, address));
  }
#endif
  void init(int device_count) override
  {
    native->init(device_count);
    hipmm.torch_init(device_count);
  }

  /* PyTorch's own allocator knows its blocks by the deleter too. */
  using Forward::recordStream;
  void recordStream(const DataPtr &ptr, c10::cuda::CUDAStream stream) override
  {
    Block block;
    if (!ptr.get()) return;
    if (ptr.get_deleter() != &bridge_delete) {
      native->recordStream(ptr, stream);
    } else if (!blocks.find(ptr.get(), &block)) {
      struct Alias {
        DataPtr ptr;
        ~Alias()
        {
          (void)ptr.release_context();
        }
      } alias{DataPtr(ptr.get(), ptr.get(), native_deleter, ptr.device())};
      native->recordStream(alias.ptr, stream);
    } else if (block.stream != stream.stream()) {
      DeviceIndex before = 0;
      C10_CUDA_CHECK(c10::cuda::GetDevice(&before));
      if (before != stream.device_index()) C10_CUDA_CHECK(c10::cuda::SetDevice(stream.device_index()));
      hipmm.torch_record_stream(ptr.get(), stream.stream());
      if (before != stream.device_index()) C10_CUDA_CHECK(c10::cuda::SetDevice(before));
    }
  }
  void *getBaseAllocation(void *ptr, size_t *bytes_out) override
  {
    Block block;
    if (!blocks.find(ptr, &block)) return native->getBaseAllocation(ptr, bytes_out);
    if (bytes_out) *bytes_out = block.bytes;
    return ptr;
  }

  /* Memory of hipmm's may be mapped, which a copy between devices without access to each other has to be told. */
  cudaError_t memcpyAsync(void *to, int to_device, const void *from, int from_device, size_t bytes, cudaStream_t stream,
                          bool has_access) override
  {
    if (has_access || to_device == from_device)
      return native->memcpyAsync(to, to_device, from, from_device, bytes, stream, has_access);
    return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream);
  }
  bool has(const void *ptr)
  {
    return blocks.find(ptr, nullptr);
  }
  /* Moves a storage of hipmm's into memory of PyTorch's own. All work of the device ends before, and the copy after. What the
   * storage had before lives as long as what it has now: arrays of other libraries, captured graphs and the like may still
   * have its address, and must not meet another tensor there. */
  void move(c10::StorageImpl &storage)
  {
    Block block;
    const void *before = storage.data();
    if (!storage.resizable() || !blocks.find(before, &block)) return;
    OnDevice on(block.device);
    DataPtr moved = allocate_for_others(storage.nbytes());
    C10_CUDA_CHECK(cudaDeviceSynchronize());
    C10_CUDA_CHECK(cudaMemcpy(moved.get(), before, storage.nbytes(), cudaMemcpyDeviceToDevice));
    C10_CUDA_CHECK(cudaDeviceSynchronize()); /* the copy returns before it is done */
    const void *now = moved.get();
    DataPtr old = storage.set_data_ptr(std::move(moved));
    const std::lock_guard<std::mutex> guard_of_moved(moved_lock);
    moved_from.emplace(now, std::move(old));
    n_moved++;
  }

  /* A handle stands for all of an allocation of the driver, whose start PyTorch takes the block's segment to be. */
  ShareableHandle shareIpcHandle(void *ptr) override
  {
    void *segment = source.start_of(ptr);
    TORCH_CHECK(!blocks.find(ptr, nullptr) && (!segment || hipmm.torch_is_allocation(segment)),
                "hipmm: this tensor's memory cannot be shared with another process: it is a part of what hipmm holds, "
                "and its storage cannot be moved. Share a copy of the tensor (clone()).");
    return native->shareIpcHandle(ptr);
  }

  /* ---- Private pools ---- */

  /* PyTorch's own allocator counts the uses of a pool: create, begin and release. It has no answer for a pool that it does
   * not know, so the bridge counts too. */
  void beginAllocateToPool(DeviceIndex device, MempoolId_t pool, Filter filter) override
  {
    std::lock_guard<std::mutex> hold(pools_lock);
    int &uses = pool_uses[{device, pool}];
    bool is_new = is_native && !uses;
    if (!is_native) use_once(device);
    if (is_new) native->createOrIncrefPool(device, pool, segments());
    try {
      native->beginAllocateToPool(device, pool, filter);
    } catch (...) {
      if (is_new) native->releasePool(device, pool);
      throw;
    }
    if (is_new) native->releasePool(device, pool); /* begin has counted a use itself */
    uses++;
    cudaStream_t origin = c10::cuda::getCurrentCUDAStream(device);
    begun[device].push_back({pool, std::move(filter), origin});
    std::lock_guard<std::mutex> hold_figures(figures[device].lock);
    figures[device].origins.push_back(origin);
    figures[device].begun++;
  }

  /* PyTorch's allocator for cudaMallocAsync() prepares a device at its first block there, by calls that end a capture. Without
   * the bridge it has had one before any capture. */
  void use_once(DeviceIndex device)
  {
    cudaStream_t stream = c10::cuda::getCurrentCUDAStream(device);
    if (device < 0 || device >= MOST_DEVICES || is_prepared[device] || is_captured(stream)) return;
    Source::Relaxed relaxed;
    OnDevice on(device);
    native->raw_delete(native->raw_alloc_with_stream(1, stream));
    is_prepared[device] = true;
  }

  void endAllocateToPool(DeviceIndex device, MempoolId_t pool) override
  {
    {
      std::lock_guard<std::mutex> hold(pools_lock);
      (void)forget(device, pool);
      native->endAllocateToPool(device, pool);
    }
    finish(device, pool);
  }

  /* PyTorch calls no end after a capture that failed: its filter must not be called once the pool is released. */
  void releasePool(DeviceIndex device, MempoolId_t pool) override
  {
    {
      std::lock_guard<std::mutex> hold(pools_lock);
      auto found = pool_uses.find({device, pool});
      if (found != pool_uses.end() && --found->second <= 0) {
        pool_uses.erase(found);
        while (forget(device, pool)) native->endAllocateToPool(device, pool);
      }
      native->releasePool(device, pool);
    }
    finish(device, pool);
  }
  void createOrIncrefPool(DeviceIndex device, MempoolId_t pool, UserAllocator allocator) override
  {
    std::lock_guard<std::mutex> hold(pools_lock);
    int &uses = pool_uses[{device, pool}];
    if (!allocator && is_native && !uses) allocator = segments();
    native->createOrIncrefPool(device, pool, std::move(allocator));
    uses++;
  }
  CheckpointDelta setCheckpointPoolState(DeviceIndex device, std::shared_ptr<allocators::AllocatorState> state) override
  {
    CheckpointDelta delta = native->setCheckpointPoolState(device, std::move(state));
    for (DataPtr &ptr : delta.dataptrs_allocd) ptr = adopt(std::move(ptr));
    native_changes++;
    return delta;
  }
  void emptyCache(MempoolId_t pool) override
  {
    native->emptyCache(pool);
    native_changes++;
    source.free_waiting();
    if (pool != MempoolId_t{0, 0} || !is_any_used()) return;
    hipmm.torch_reset();
    Context context = history.context_for(RecordContext::ALL);
    for (int device = 0; device < MOST_DEVICES; device++)
      if (figures[device].is_used) watch_ranges(static_cast<DeviceIndex>(device), context);
  }

  /* ---- Figures ---- */

  DeviceStats getDeviceStats(DeviceIndex device) override
  {
    DeviceStats stats = native->getDeviceStats(device);
    if (device < 0 || device >= MOST_DEVICES) return stats;
    Figures &of = figures[device];
    size_t held = 0, held_peak = 0;
    if (of.is_used && hipmm.device_held_bytes(device, &held, &held_peak)) held = held_peak = 0;
    int64_t others = stats.reserved_bytes[ALL].current - of.source_bytes;
    std::lock_guard<std::mutex> hold(of.lock);
    of.set_native(stats);
    merge(stats.allocation, of, ALLOCATIONS);
    merge(stats.active, of, ALLOCATIONS);
    merge(stats.allocated_bytes, of, ALLOCATED_BYTES);
    merge(stats.active_bytes, of, ALLOCATED_BYTES);
    merge(stats.requested_bytes, of, REQUESTED_BYTES);
    observe(of.reserved, static_cast<int64_t>(held) + others, static_cast<int64_t>(held_peak) + others);
    /* Of what hipmm holds, the blocks that are large count as large, and all else as small, as in snapshot(). So a capture
     * changes the large pool's figures only by what PyTorch has for it: its small tensors of the generator's are in idle
     * memory. */
    int64_t large = stats.reserved_bytes[LARGE].current + of.own[ALLOCATED_BYTES][LARGE].current;
    large = std::min(large, of.reserved.current); /* what sleeps is live, and not held */
    stats.reserved_bytes[ALL] = of.reserved;
    observe(stats.reserved_bytes[LARGE], large, large);
    observe(stats.reserved_bytes[SMALL], of.reserved.current - large, of.reserved.peak - large);
    of.grown += held > of.held;
    of.shrunk += held < of.held;
    of.held = held;
    stats.num_device_alloc += of.grown;
    stats.num_device_free += of.shrunk;
    stats.num_alloc_retries += of.retries;
    stats.num_ooms += of.failures;
    return stats;
  }
  void resetAccumulatedStats(DeviceIndex device) override
  {
    native->resetAccumulatedStats(device);
    if (device < 0 || device >= MOST_DEVICES) return;
    Figures &of = figures[device];
    std::lock_guard<std::mutex> hold(of.lock);
    for (auto &figure : of.own)
      for (Stat &stat : figure) stat.reset_accumulated();
    of.reserved.reset_accumulated();
    of.retries = of.failures = of.grown = of.shrunk = 0;
  }
  void resetPeakStats(DeviceIndex device) override
  {
    hipmm_resource *resource;
    native->resetPeakStats(device);
    if (device < 0 || device >= MOST_DEVICES) return;
    Figures &of = figures[device];
    if (of.is_used && !hipmm.resource_get_for_device(device, &resource)) {
      hipmm.resource_reset_peaks(resource);
      hipmm.resource_release(resource);
    }
    (void)getDeviceStats(device); /* what is held may have shrunk unobserved */
    std::lock_guard<std::mutex> hold(of.lock);
    for (int i = 0; i < FIGURES; i++) {
      for (Stat &stat : of.own[i]) stat.reset_peak();
      of.peak[i] = of.own[i][ALL].current + of.native_now[i];
    }
    of.reserved.reset_peak();
  }
  void setMemoryFraction(double fraction, DeviceIndex device) override
  {
    native->setMemoryFraction(fraction, device);
    size_t free = 0, total = 0;
    DeviceIndex before = 0;
    C10_CUDA_CHECK(c10::cuda::GetDevice(&before));
    C10_CUDA_CHECK(c10::cuda::SetDevice(device));
    cudaError_t code = cudaMemGetInfo(&free, &total);
    C10_CUDA_CHECK(c10::cuda::SetDevice(before));
    C10_CUDA_CHECK(code);
    hipmm.torch_memory_fraction(fraction, device);
    figures.at(device).allowed = fraction < 1 ? static_cast<size_t>(static_cast<double>(total) * fraction) : SIZE_MAX;
  }

  /* hipmm's idle memory can serve a request in one piece, where it is mapped. */
  void cacheInfo(DeviceIndex device, size_t *largest) override
  {
    size_t held = 0;
    native->cacheInfo(device, largest);
    if (device < 0 || device >= MOST_DEVICES) return;
    Figures &of = figures[device];
    if (!of.is_used || hipmm.device_held_bytes(device, &held, nullptr)) return;
    std::lock_guard<std::mutex> hold(of.lock);
    int64_t idle = static_cast<int64_t>(held) - of.own[ALLOCATED_BYTES][ALL].current - of.source_bytes;
    if (idle > 0) *largest = std::max(*largest, static_cast<size_t>(idle));
  }

#if TORCH_IS(11)
  SnapshotInfo snapshot(MempoolId_t pool, bool include_traces) override
  {
    SnapshotInfo info = native->snapshot(pool, include_traces);
#else
  SnapshotInfo snapshot(MempoolId_t pool) override
  {
    SnapshotInfo info = native->snapshot(pool);
    bool include_traces = true;
#endif
    if (pool == MempoolId_t{0, 0})
      for (int device = 0; device < MOST_DEVICES; device++)
        if (figures[device].is_used) add_segments(info, static_cast<DeviceIndex>(device));
    if (include_traces) history.append_to(info.device_traces);
    return info;
  }

#if TORCH_IS(11)
  void recordHistory(bool enabled, allocators::CreateContextFn recorder, size_t most, RecordContext when, bool clears,
                     const std::vector<std::string> &skipped) override
  {
    unsigned skips = 0;
    native->recordHistory(enabled, recorder, most, when, clears, skipped);
    for (const std::string &action : skipped) skips |= 1u << c10::CachingDeviceAllocator::parseTraceEntryAction(action);
    history.set(enabled, recorder, most, when, clears, skips);
    watch_from_now();
  }
#else
  void recordHistory(bool enabled, allocators::CreateContextFn recorder, size_t most, RecordContext when,
                     bool clears) override
  {
    native->recordHistory(enabled, recorder, most, when, clears);
    history.set(enabled, recorder, most, when, clears, 0);
    watch_from_now();
  }
#endif
#if TORCH_IS(12)
  Context getContextForPointer(const void *ptr) override
  {
    Block block;
    return blocks.find(ptr, &block) ? block.context : native->getContextForPointer(ptr);
  }
#endif
#if TORCH_IS(14)
  void annotateMemory(const void *ptr, const std::string &metadata) override
  {
    Block block;
    if (blocks.find(ptr, &block))
      history.add(native, TraceEntry::ANNOTATE, block, reinterpret_cast<size_t>(ptr), block.context, &metadata);
    else
      native->annotateMemory(ptr, metadata);
  }
#endif
  void pushCompileContext(std::string &metadata) override
  {
    native->pushCompileContext(metadata);
    compile_contexts.push_back(metadata);
  }
  void popCompileContext() override
  {
    native->popCompileContext();
    if (!compile_contexts.empty()) compile_contexts.pop_back();
  }
  void attachOutOfMemoryObserver(allocators::OutOfMemoryObserver observer) override
  {
    native->attachOutOfMemoryObserver(observer);
    std::lock_guard<std::mutex> hold(observers_lock);
    observers.push_back(std::move(observer));
  }
  void attachAllocatorTraceTracker(allocators::AllocatorTraceTracker tracker) override
  {
    native->attachAllocatorTraceTracker(tracker);
    history.add_tracker(std::move(tracker));
    watch_from_now();
  }

private:
  /* ---- Allocating ---- */

  bool is_cached() const
  {
    return !is_uncached && native->isEnabled();
  }
  bool serves(DeviceIndex device) const
  {
    return device >= 0 && device < MOST_DEVICES && is_cached() && native->initialized();
  }

  /* Gives a block of PyTorch's own allocator the bridge's deleter. What the program has it take from the runtime, without a
   * cache, has another deleter, and keeps it. */
  DataPtr adopt(DataPtr ptr)
  {
    if (!is_uncached) (void)ptr.compare_exchange_deleter(native_deleter, &bridge_delete);
    native_changes++;
    return ptr;
  }

  /* The runtime's own memory, also under `hipmm run`, whose pool may map its memory. */
  DataPtr allocate_for_others(size_t bytes)
  {
    struct Passing {
      Passing()
      {
        if (hipmm.run_pass) hipmm.run_pass(1);
      }
      ~Passing()
      {
        if (hipmm.run_pass) hipmm.run_pass(0);
      }
    } passing;
    try {
      return adopt(native->allocate(bytes));
    } catch (const c10::OutOfMemoryError &) {
      hipmm.torch_reset(); /* what hipmm holds and does not use is in the way */
    }
    return adopt(native->allocate(bytes));
  }

  void end_moved(const void *ptr)
  {
    DataPtr old; /* freed without the lock */
    const std::lock_guard<std::mutex> guard(moved_lock);
    auto found = moved_from.find(ptr);
    if (found == moved_from.end()) return;
    old = std::move(found->second);
    moved_from.erase(found);
    n_moved--;
  }

  bool is_for_pool(DeviceIndex device, cudaStream_t stream)
  {
    if (!figures[device].begun.load(std::memory_order_acquire)) return false;
    std::lock_guard<std::mutex> hold(pools_lock);
    for (const Begun &entry : begun[device])
      if (entry.filter(stream)) return true;
    return false;
  }

  /* The first allocation on the device: per_process_memory_fraction of PYTORCH_ALLOC_CONF holds. */
  void begin(DeviceIndex device)
  {
    Figures &of = figures[device];
    of.is_used = true;
    if (of.is_begun.exchange(true) || !is_native || of.allowed != SIZE_MAX) return;
    double fraction = native->getMemoryFraction(device);
    if (fraction < 1) setMemoryFraction(fraction, device);
  }

  /* One attempt. NULL: *reason_out is hipmm's, or empty where the block would be more than may be held. The last attempt is
   * by the function that counts a failure, and logs it. */
  void *obtain(const Block &block, std::string *reason_out, bool is_last)
  {
    void *ptr = nullptr;
    size_t held = 0;
    Figures &of = figures[block.device];
    auto bytes = static_cast<ssize_t>(block.bytes);
    if (!of.is_begun.load(std::memory_order_relaxed)) begin(block.device);
    if (is_last)
      ptr = hipmm.torch_malloc(bytes, block.device, block.stream);
    else if (hipmm.torch_try_malloc(block.bytes, block.device, block.stream, &ptr))
      ptr = nullptr;
    if (!ptr) *reason_out = hipmm.last_error_message();
    if (!ptr || of.allowed == SIZE_MAX || hipmm.device_held_bytes(block.device, &held, nullptr) || held <= of.allowed)
      return ptr;
    reason_out->clear();
    hipmm.torch_free(ptr, bytes, block.device, block.stream);
    return nullptr;
  }

  void *take(DeviceIndex device, size_t requested, cudaStream_t stream)
  {
    Block block;
    block.bytes = rounded(requested);
    block.requested = requested;
    block.stream = stream;
    block.device = device;
    if (is_for_pool(device, stream)) return take_from_native(device, requested, stream);
    block.context = history.context_for(RecordContext::STATE);
    std::string reason;
    CallSite site(block.bytes);
    void *ptr = obtain(block, &reason, false);
    if (!ptr && !(ptr = take_after_shortage(block, &reason))) return take_as_last(block, reason);
    size_t address = reinterpret_cast<size_t>(ptr);
    blocks.add(ptr, block);
    refresh_if_changed(device);
    figures[device].count(block, false);
    watch_ranges(device, block.context);
    history.add(native, TraceEntry::ALLOC, block, address, block.context);
    report(ptr, static_cast<int64_t>(block.bytes), device);
    if (const auto *interpreter = c10::impl::GPUTrace::get_trace())
      (*interpreter)->trace_gpu_memory_allocation(c10::DeviceType::CUDA, address);
    return ptr;
  }

  void *take_from_native(DeviceIndex device, size_t bytes, cudaStream_t stream)
  {
    void *ptr = nullptr;
    segment_shortage.bytes = 0;
    try {
      ptr = native->raw_alloc_with_stream(bytes, stream);
    } catch (c10::OutOfMemoryError &error) {
      if (segment_shortage.bytes) {
        error.add_context("hipmm: " + segment_shortage.reason);
        source.give_up();
      }
      throw;
    }
    native_changes++;
    refresh_if_changed(device);
    return ptr;
  }

  /* hipmm has given back its own idle memory by now. PyTorch's may be in the way; nothing is freed under a capture. */
  void *take_after_shortage(const Block &block, std::string *reason_out)
  {
    try {
      if (!figures[block.device].is_capturing()) emptyCache({0, 0});
    } catch (const c10::Error &) {
      /* a capture that PyTorch's own allocator knows of has not ended */
    }
    void *ptr = obtain(block, reason_out, true);
    if (ptr) count_shortage(block.device, false);
    return ptr;
  }

  /* PyTorch's own allocator is asked, for its sentence, its observers and the pools that may be used at a shortage. Where
   * a limit of hipmm's is what is wanting, it would find the memory that the limit forbids. */
  void *take_as_last(const Block &block, const std::string &reason)
  {
    size_t free = 0, total = 0, allowed = figures[block.device].allowed;
    C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
    if (allowed != SIZE_MAX || (free >= block.bytes && !is_under_run)) refuse(block, reason, free, total, allowed);
    try {
      void *ptr = native->raw_alloc_with_stream(block.requested, block.stream);
      native_changes++;
      return ptr;
    } catch (c10::OutOfMemoryError &error) {
      if (!reason.empty()) error.add_context("hipmm: " + reason);
      throw;
    }
  }

  /* Of what PyTorch's own allocator was not asked for, which counts too. */
  void count_shortage(DeviceIndex device, bool is_failure)
  {
    std::lock_guard<std::mutex> hold(figures[device].lock);
    figures[device].retries++;
    if (is_failure) figures[device].failures++;
  }

  [[noreturn]] void refuse(const Block &block, const std::string &reason, size_t free, size_t total, size_t allowed)
  {
    DeviceStats stats = getDeviceStats(block.device);
    auto live = static_cast<size_t>(stats.allocated_bytes[ALL].current);
    auto held = static_cast<size_t>(stats.reserved_bytes[ALL].current);
    std::vector<allocators::OutOfMemoryObserver> asked;
    count_shortage(block.device, true);
    history.add(native, TraceEntry::OOM, block, free, block.context);
    c10::reportOutOfMemoryToProfiler(static_cast<int64_t>(block.requested), live, held,
                                     c10::Device(c10::DeviceType::CUDA, block.device));
    {
      std::lock_guard<std::mutex> hold(observers_lock);
      asked = observers;
    }
    for (const auto &observer : asked) observer(block.device, block.bytes, allowed == SIZE_MAX ? total : allowed, free);
    std::string text = "CUDA out of memory. Tried to allocate " + format_size(block.bytes) + ". GPU " +
                       std::to_string(static_cast<int>(block.device)) + " has a total capacity of " +
                       format_size(total) + " of which " + format_size(free) + " is free. ";
    if (allowed != SIZE_MAX) text += format_size(allowed) + " allowed; ";
    text += "Of the allocated memory " + format_size(live) + " is allocated by PyTorch, and " +
            format_size(held > live ? held - live : 0) + " is reserved by PyTorch but unallocated.";
    if (!reason.empty()) text += " (hipmm: " + reason + ")";
    throw c10::OutOfMemoryError({__func__, __FILE__, static_cast<uint32_t>(__LINE__)}, text);
  }

  void report(void *ptr, int64_t bytes, DeviceIndex device)
  {
    size_t held = 0;
    if (!c10::memoryProfilingEnabled()) return;
    if (hipmm.device_held_bytes(device, &held, nullptr)) held = 0;
    c10::reportMemoryUsageToProfiler(ptr, bytes, static_cast<size_t>(figures[device].allocated()), held,
                                     c10::Device(c10::DeviceType::CUDA, device));
  }

  /* ---- Private pools ---- */

  struct Begun {
    MempoolId_t pool;
    Filter filter;
    cudaStream_t origin;
  };

  UserAllocator segments()
  {
#if TORCH_IS(11)
    return UserAllocator(std::shared_ptr<void>(), &source);
#else
    return &source;
#endif
  }

  /* The last begin of the pool is over. False: there is none. pools_lock is held. */
  bool forget(DeviceIndex device, MempoolId_t pool)
  {
    std::vector<Begun> &entries = begun[device];
    auto is_of_pool = [&](const Begun &entry) { return entry.pool == pool; };
    auto found = std::find_if(entries.rbegin(), entries.rend(), is_of_pool);
    if (found == entries.rend()) return false;
    Figures &of = figures[device];
    std::lock_guard<std::mutex> hold(of.lock);
    of.origins.erase(std::find(of.origins.begin(), of.origins.end(), found->origin));
    of.begun--;
    entries.erase(std::next(found).base());
    return true;
  }

  /* A block of a stream that is captured: not every resource of hipmm can take it back before the capture is over. */
  void keep_for_capture(void *ptr, const Block &block)
  {
    std::lock_guard<std::mutex> hold(kept_lock);
    kept.emplace_back(ptr, block);
  }

  /* What was freed in a capture and kept for it is freed now. */
  void finish(DeviceIndex device, MempoolId_t pool)
  {
    std::vector<std::pair<void *, Block>> freed;
    native_changes++;
    if (figures[device].is_capturing()) return;
    {
      std::lock_guard<std::mutex> hold(kept_lock);
      auto is_other = [device](const std::pair<void *, Block> &entry) { return entry.second.device != device; };
      auto middle = std::stable_partition(kept.begin(), kept.end(), is_other);
      freed.assign(middle, kept.end());
      kept.erase(middle, kept.end());
    }
    for (const auto &entry : freed)
      hipmm.torch_free(entry.first, static_cast<ssize_t>(entry.second.bytes), device, entry.second.stream);
    hipmm.torch_end_allocate_to_pool(device, {pool.first, pool.second});
    source.free_waiting();
  }

  /* ---- Figures ---- */

  bool is_any_used() const
  {
    return std::any_of(figures.begin(), figures.end(), [](const Figures &of) { return of.is_used.load(); });
  }

  /* PyTorch's own blocks have changed since the figures of the device were read. */
  void refresh_if_changed(DeviceIndex device)
  {
    uint64_t now = native_changes.load(std::memory_order_relaxed);
    if (seen[device].exchange(now, std::memory_order_relaxed) != now) refresh(device);
  }
  void refresh(DeviceIndex device)
  {
    std::optional<Source::Relaxed> relaxed;
    if (!is_native)
      relaxed.emplace(); /* its figures are those of the runtime's pool: a capture forbids to ask for them */
    DeviceStats stats = native->getDeviceStats(device);
    Figures &of = figures[device];
    std::lock_guard<std::mutex> hold(of.lock);
    of.set_native(stats);
  }

  template <class Stats> static void merge(Stats &stats, const Figures &of, Figure figure)
  {
    for (size_t type = 0; type < TYPES; type++) {
      Stat &stat = stats[type];
      const Stat &own = of.own[figure][type];
      stat.peak = std::max({stat.peak, own.peak, stat.current + own.current});
      stat.current += own.current;
      stat.allocated += own.allocated;
      stat.freed += own.freed;
    }
    stats[ALL].peak = std::max(stats[ALL].peak, of.peak[figure]);
  }
  /* Tells PyTorch's histories and trackers how what is held has changed. Once they begin, what is held already is no change. */
  void watch_ranges(DeviceIndex device, const Context &context, bool is_told = true)
  {
    size_t held = 0;
    Ranges gone, come;
    if (!history.is_watched() || hipmm.device_held_bytes(device, &held, nullptr)) return;
    {
      std::lock_guard<std::mutex> hold(ranges_lock);
      if (is_told && held == ranges_bytes[device]) return;
      Ranges now = ranges_held(device, source);
      gone = ranges_without(ranges[device], now);
      come = ranges_without(now, ranges[device]);
      ranges[device] = std::move(now);
      ranges_bytes[device] = held;
    }
    Block part;
    part.device = device;
    for (const auto &each :
         {std::make_pair(&gone, TraceEntry::SEGMENT_UNMAP), std::make_pair(&come, TraceEntry::SEGMENT_MAP)})
      for (const auto &range : *each.first) {
        part.requested = part.bytes = range.second - range.first;
        if (is_told) history.add(native, each.second, part, range.first, context);
      }
  }
  void watch_from_now()
  {
    for (int device = 0; device < MOST_DEVICES; device++)
      if (figures[device].is_used) watch_ranges(static_cast<DeviceIndex>(device), nullptr, false);
  }
  static void observe(Stat &stat, int64_t now, int64_t peak)
  {
    if (now > stat.current)
      stat.allocated += now - stat.current;
    else
      stat.freed += stat.current - now;
    stat.current = now;
    stat.peak = std::max({stat.peak, now, peak});
  }

  /* hipmm's ranges as segments that can grow, without what PyTorch has of them for private pools, and what others have. A
   * segment has small blocks only, or none, as PyTorch's have. */
  void add_segments(SnapshotInfo &info, DeviceIndex device)
  {
    std::map<size_t, Block> live = blocks.all(device);
    allocators::SegmentInfo segment;
    auto end = [&] {
      if (segment.total_size) info.segments.push_back(std::move(segment));
      segment = allocators::SegmentInfo();
    };
    auto place = [&](size_t address, size_t bytes, const Block *block) {
      bool is_large = block && bytes > MOST_SMALL;
      if (segment.address + segment.total_size != address || segment.is_large != is_large) end();
      begin_segment(segment, device, address, is_large);
      add_block(segment, bytes, block);
    };
    for (const Extent &extent : extents_held(device)) {
      auto found = live.find(extent.address);
      if (extent.begins) end();
      if (found != live.end()) {
        place(extent.address, found->second.bytes, &found->second);
        live.erase(found);
      } else if (!extent.is_live) {
        place(extent.address, extent.bytes, nullptr);
      }
    }
    end();
    for (const auto &entry : live) {
      place(entry.first, entry.second.bytes, &entry.second);
      end();
    }
  }
  static void begin_segment(allocators::SegmentInfo &segment, DeviceIndex device, size_t address, bool is_large)
  {
    if (segment.total_size) return;
    segment.address = address;
    segment.device = device;
    segment.is_large = is_large;
    segment.is_expandable = true;
  }
  static void add_block(allocators::SegmentInfo &segment, size_t bytes, const Block *block)
  {
    allocators::BlockInfo info;
    info.size = bytes;
    segment.total_size += bytes;
    if (block) {
      info.requested_size = block->requested;
      info.allocated = info.active = true;
      info.context_when_allocated = block->context;
      segment.allocated_size += bytes;
      segment.active_size += bytes;
      segment.requested_size += block->requested;
      if (!segment.stream) segment.stream = block->stream;
    }
    segment.blocks.push_back(std::move(info));
  }

  Source source;
  bool is_under_run, is_native, is_uncached;
  std::array<bool, MOST_DEVICES> is_prepared{}; /* of PyTorch's own allocator, if it is not the native one */
  c10::DeleterFnPtr native_deleter;             /* of blocks of its cache */
  Blocks blocks;
  std::array<Figures, MOST_DEVICES> figures;
  std::array<std::atomic<uint64_t>, MOST_DEVICES> seen{};
  std::atomic<uint64_t> native_changes{0}; /* of the blocks of PyTorch's own allocator */
  History history;
  std::mutex pools_lock;
  std::mutex moved_lock;
  std::unordered_map<const void *, DataPtr> moved_from; /* by what a storage has now, what it had */
  std::atomic<size_t> n_moved{0};
  std::array<std::vector<Begun>, MOST_DEVICES> begun;
  std::map<std::pair<DeviceIndex, MempoolId_t>, int> pool_uses;
  std::mutex kept_lock;
  std::vector<std::pair<void *, Block>> kept; /* freed blocks of streams that are captured */
  std::mutex ranges_lock;                     /* held while hipmm is asked, never while PyTorch is */
  std::array<Ranges, MOST_DEVICES> ranges;
  std::array<size_t, MOST_DEVICES> ranges_bytes{};
  std::mutex observers_lock;
  std::vector<allocators::OutOfMemoryObserver> observers;
};

void bridge_delete(void *ptr)
{
  bridge->delete_cached(ptr);
}

} // namespace

/* ---- For hipmm.torch ---- */

/* Puts the bridge into the place of PyTorch's own allocator, and leaves it there until the process ends. Returns NULL, or
 * why it is not done, when nothing is changed: an allocator that has started, or that is not PyTorch's own. */
extern "C" __attribute__((visibility("default"))) const char *hipmm_bridge_install(const hipmm_functions *functions,
                                                                                   int is_under_run)
{
  static std::string refusal;
  try {
    CUDAAllocator *before = allocators::get();
    if (bridge) return nullptr;
    if (before->name() == "pluggable") return "the program has put an allocator of its own into PyTorch";
    if (before->initialized())
      return "PyTorch's allocator has started: hipmm.torch.use() comes before torch.cuda.set_device() and the first "
             "tensor";
    hipmm = *functions;
    bridge = new Bridge(before, is_under_run != 0);
    if (!allocators::allocator.compare_exchange_strong(before, bridge)) {
      delete std::exchange(bridge, nullptr);
      return "the program has put an allocator of its own into PyTorch";
    }
    /* With the least priority that has an effect, which is PyTorch's own: an allocator of the program's can follow. */
    for (int priority = 0; priority <= UINT8_MAX; priority++) {
      c10::SetAllocator(c10::DeviceType::CUDA, bridge, static_cast<uint8_t>(priority));
      if (c10::GetAllocator(c10::DeviceType::CUDA) == bridge) break;
    }
    return nullptr;
  } catch (const std::exception &error) {
    refusal = error.what();
    return refusal.c_str();
  }
}

/* Whether a block of hipmm's begins at the address. */
extern "C" __attribute__((visibility("default"))) int hipmm_bridge_has(void *ptr)
{
  return bridge && bridge->has(ptr);
}

/* Moves a storage (StorageImpl) of hipmm's into memory of PyTorch's own allocator, which other processes can open. Others are
 * left as they are. Called with Python's global lock held, so that no thread of Python begins work on the storage meanwhile.
 * NULL, or what failed, with the storage unchanged; *is_out_of_memory: for want of memory. */
extern "C" __attribute__((visibility("default"))) const char *hipmm_bridge_move(void *storage, int *is_out_of_memory)
{
  static thread_local std::string refusal;
  *is_out_of_memory = 0;
  try {
    if (bridge) bridge->move(*static_cast<c10::StorageImpl *>(storage));
    return nullptr;
  } catch (const std::exception &error) {
    *is_out_of_memory = dynamic_cast<const c10::OutOfMemoryError *>(&error) != nullptr;
    refusal = error.what();
    return refusal.c_str();
  }
}

/* Whether the bridge is what PyTorch asks. */
extern "C" __attribute__((visibility("default"))) int hipmm_bridge_is_current()
{
  return bridge && allocators::get() == bridge;
}
