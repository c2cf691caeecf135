/* SPDX-License-Identifier: MIT */
/* lock_ranks.h: every lock of hipmm, and its rank. A thread that holds a lock takes only locks of ranks below it in
 * this table. The table of doc/locks.md is this one (tests/check-locks.sh), and a build with --enable-checks
 * asserts it (lock_order.c). A new lock has a row among `lock_rows`; a new call of a function of the program has one
 * among `lock_programs`. */
#ifndef HIPMM_TESTS_LAB_LOCKS_LOCK_RANKS_H
#define HIPMM_TESTS_LAB_LOCKS_LOCK_RANKS_H

#include <stddef.h>
#include <stdint.h>

enum lock_rank {
  LOCK_FRAMEWORK,
  LOCK_SERVED,
  LOCK_SERVED_HANDLES,
  LOCK_LIFECYCLE,
  LOCK_PINNED,
  LOCK_TURN,
  LOCK_DEVICE_TABLE,
  LOCK_TORCH,
  LOCK_TORCH_WAITING,
  LOCK_TORCH_BLOCKS,
  LOCK_SETTING,
  LOCK_INSTANCE,
  LOCK_THREAD_END,
  LOCK_PEERS,
  LOCK_EXPORTS,
  LOCK_PLUGIN,
  LOCK_PLUGIN_LOCAL,
  LOCK_PLUGIN_PART,
  LOCK_PLUGIN_TABLE,
  LOCK_STACK_TRACES,
  LOCK_WATCH,
  LOCK_PLUGIN_LIST,
  LOCK_LEAF,
  LOCK_HOST_MEMORY,
  LOCK_COUNTERS,
  LOCK_COUNTER_SHARDS,
  LOCK_SPIN,
  LOCK_NVIDIA_CONTEXT,
  LOCK_NVIDIA_DRIVER,
  LOCK_SOFTWARE_START,
  LOCK_SOFTWARE,
  LOCK_SOFTWARE_CALLS,
  LOCK_RACES,
  LOCK_REGISTRY,
  LOCK_LOG_OPENING,
  LOCK_LOG,
  LOCK_ONCE,
  LOCK_RANKS
};

/* clang-format off */
/* What the locks of a rank protect; around what they are held. */
static const struct lock_rank_text {
  const char *name, *protects;
} lock_ranks[LOCK_RANKS] = {
  [LOCK_FRAMEWORK] = {"first use", "the first use by a framework, by RMM's C interface, and under `hipmm run`; around `hipmm_init()`"},
  [LOCK_SERVED] = {"devices of `hipmm run`", "which devices are served; around the building of a device's stack"},
  [LOCK_SERVED_HANDLES] = {"handles of `hipmm run`", "streams, pools and shared memory of the program; around `hipmm_stream_retain()`"},
  [LOCK_LIFECYCLE] = {"lifecycle", "init and finalize, one at a time; around the destruction of stacks"},
  [LOCK_PINNED] = {"pinned resource", "the stacks for host buffers; around their building"},
  [LOCK_TURN] = {"turn to ask for memory", "one thread that is out of memory at a time; waited for at most 50 ms; around calls of the resources of a device, and the building of a stack"},
  [LOCK_DEVICE_TABLE] = {"device table", "entries and current resources, who builds or extends a stack; not while that is built"},
  [LOCK_TORCH] = {"private pools", "PyTorch's private pools; around no resource"},
  [LOCK_TORCH_WAITING] = {"blocks that wait", "PyTorch's freed blocks that further streams use; around no resource"},
  [LOCK_TORCH_BLOCKS] = {"block records", "records of PyTorch's blocks; around no resource"},
  [LOCK_SETTING] = {"setting, suspending", "one `hipmm_set()` of a resource at a time, one suspend or resume in all; around those ops"},
  [LOCK_INSTANCE] = {"instance", "a plugin that is not thread-safe; around its calls, from the top of a stack down"},
  [LOCK_THREAD_END] = {"end of a thread", "caches of a thread that ends, while their owner takes them back; an owner that is destroyed waits for it"},
  [LOCK_PEERS] = {"socket for other processes", "the start and the end of its thread; around the question whether it is used"},
  [LOCK_EXPORTS] = {"handles for other processes", "which blocks of all pools have a handle; around a pool's own lock"},
  [LOCK_PLUGIN] = {"a plugin's own", "sub-allocators and `thread_safe`; around calls to the upstream, so from the top of a stack down"},
  [LOCK_PLUGIN_LOCAL] = {"local arenas", "what an arena or pool has for a thread and stream; under its own lock, one at a time"},
  [LOCK_PLUGIN_PART] = {"parts of plugins", "live blocks (shards by address), driver pools, open files; around calls of HIP"},
  [LOCK_PLUGIN_TABLE] = {"tables of plugins", "a table or a file each; around no resource"},
  [LOCK_STACK_TRACES] = {"stack traces", "call stacks of live blocks"},
  [LOCK_WATCH] = {"watches of held memory", "functions of `hooks` and `recording` that are told of growth; held around them"},
  [LOCK_PLUGIN_LIST] = {"plugin list", "loaded plugins; around the loading of a file"},
  [LOCK_LEAF] = {"leaves", "a table each"},
  [LOCK_HOST_MEMORY] = {"host memory", "the program's allocator; around it"},
  [LOCK_COUNTERS] = {"statistics", "the sums, and which shards count"},
  [LOCK_COUNTER_SHARDS] = {"shards of statistics", "the counters of some threads; several under the lock of the sums"},
  [LOCK_SPIN] = {"spin locks", "a list or a ring each; for a few instructions"},
  [LOCK_NVIDIA_CONTEXT] = {"contexts of NVIDIA's driver", "which devices have one; around calls of the driver"},
  [LOCK_NVIDIA_DRIVER] = {"opening of NVIDIA's driver", "the table of its functions; around calls of the driver"},
  [LOCK_SOFTWARE_START] = {"start of a runtime", "`HIPMM_SOFTWARE` is read once"},
  [LOCK_SOFTWARE] = {"runtime", "the whole software device; never while work runs"},
  [LOCK_SOFTWARE_CALLS] = {"calls of a runtime", "counts and failures of the software device's calls"},
  [LOCK_RACES] = {"race detector", "what is known of the program's work and blocks; around no call of HIP"},
  [LOCK_REGISTRY] = {"registry", "what the program registered; a fork takes it last"},
  [LOCK_LOG_OPENING] = {"opening of the log", "`HIPMM_LOG` is read once"},
  [LOCK_LOG] = {"log", "its file; its sink, around which it is held"},
  [LOCK_ONCE] = {"once", "keys and fork handlers; around no call of hipmm"},
};

enum {
  LOCK_NESTS = 1,    /* several of the rank may be held, always in one order */
  LOCK_ASCENDS = 2,  /* several of the rank may be held, taken in the order of their addresses */
  LOCK_GUARDED = 4, /* several of the rank may be held, by a thread that holds one of the rank before */
  LOCK_REFUSES = 8,  /* taking it twice, or waiting for a circle of threads, is refused with an error */
  LOCK_UNCHECKED = 16 /* a part of a lock that has a row itself */
};

/* The locks of a file, by how the file calls them. NULL: all others of the file. */
static const struct lock_row {
  const char *file, *expression;
  enum lock_rank rank;
  unsigned flags;
} lock_rows[] = {
  {"core/framework/framework_device.c", "&owners_lock", LOCK_TORCH_BLOCKS, 0},
  {"core/framework/framework_device.c", NULL, LOCK_FRAMEWORK, 0},
  {"core/compat/rmm_api.c", "&log_lock", LOCK_LEAF, 0},
  {"core/compat/rmm_api.c", NULL, LOCK_FRAMEWORK, 0},
  {"tools/preload/init.c", NULL, LOCK_FRAMEWORK, 0},
  {"core/base/lifecycle.c", "&once", LOCK_ONCE, 0},
  {"core/base/lifecycle.c", NULL, LOCK_LIFECYCLE, 0},
  {"core/container/pinned_resource.c", NULL, LOCK_PINNED, 0},
  {"core/call/device_table.c", NULL, LOCK_DEVICE_TABLE, 0},
  {"core/framework/torch_pools.c", NULL, LOCK_TORCH, 0},
  {"core/framework/torch_waiting.c", NULL, LOCK_TORCH_WAITING, 0},
  {"core/framework/torch_blocks.c", NULL, LOCK_TORCH_BLOCKS, 0},
  {"core/reclaim/reclaim.c", NULL, LOCK_TURN, 0},
  {"core/inspect/control.c", NULL, LOCK_LEAF, 0},
  {"core/inspect/settings.c", NULL, LOCK_SETTING, LOCK_NESTS | LOCK_REFUSES},
  {"core/call/suspend.c", NULL, LOCK_SETTING, LOCK_REFUSES},
  {"core/stack/locked_ops.c", NULL, LOCK_INSTANCE, LOCK_NESTS | LOCK_REFUSES},

  {"plugins/common/biased_lock.c", NULL, LOCK_PLUGIN, LOCK_UNCHECKED},
  {"plugins/common/biased_lock.h", "&local->lock", LOCK_PLUGIN_LOCAL, LOCK_GUARDED},
  {"plugins/common/biased_lock.h", "&other->lock", LOCK_PLUGIN_LOCAL, LOCK_GUARDED},
  {"plugins/common/biased_lock.h", NULL, LOCK_PLUGIN, LOCK_NESTS},
  {"plugins/statistics/counters.c", "&counters->lock", LOCK_COUNTERS, 0},
  {"plugins/statistics/counters.c", NULL, LOCK_COUNTER_SHARDS, LOCK_GUARDED},
  {"plugins/statistics/counters.h", NULL, LOCK_COUNTER_SHARDS, LOCK_GUARDED},
  {"plugins/common/spin_lock.h", NULL, LOCK_SPIN, 0},
  {"plugins/common/peer_socket.c", "&server.lock", LOCK_PEERS, 0},
  {"plugins/common/peer_socket.c", "&once", LOCK_ONCE, 0},
  {"plugins/pool/share.c", "&exports.lock", LOCK_EXPORTS, 0},
  {"plugins/guard/blocks.c", NULL, LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/guard/guard.c", NULL, LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/guard/quarantine.c", NULL, LOCK_PLUGIN_TABLE, LOCK_NESTS},

  {"plugins/common/thread_cache.c", "watch", LOCK_THREAD_END, LOCK_NESTS},
  {"plugins/common/thread_cache.c", "&once", LOCK_ONCE, 0},
  {"plugins/common/thread_cache.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/common/live_blocks.c", NULL, LOCK_PLUGIN_PART, LOCK_ASCENDS},
  {"plugins/common/stack_traces.c", NULL, LOCK_STACK_TRACES, 0},
  {"plugins/common/driver_pool.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/common/driver_share.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/common/source.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/device/peers.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/device/import.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/advise/advise.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/callback/ranges.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/callback/callback.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/failure_callback/failure_callback.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/fixed_buffer/region.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/limiting/credit.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/reserving/budget.c", NULL, LOCK_PLUGIN_TABLE, 0},
  {"plugins/served/served.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/spilling/spilling.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/spilling/movables.c", "&once", LOCK_ONCE, 0},
  {"plugins/spilling/movables.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/spilling/file.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/common/content_file.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/logging/sink.c", "&all_lock", LOCK_PLUGIN_PART, 0},
  {"plugins/logging/sink.c", "&log->wake_lock", LOCK_PLUGIN_TABLE, 0},
  {"plugins/logging/sink.c", "&log->drain.lock", LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/logging/sink.c", "lock", LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/logging/drain.c", NULL, LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/recording/record_file.c", "&all_lock", LOCK_PLUGIN_PART, 0},
  {"plugins/recording/record_file.c", NULL, LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/recording/recorder.c", "&recorder->file.lock", LOCK_PLUGIN_TABLE, LOCK_NESTS},
  {"plugins/recording/recorder.c", NULL, LOCK_PLUGIN_PART, 0},
  {"plugins/recording/recording.c", NULL, LOCK_LEAF, 0},

  {"core/stack/held_watch.c", NULL, LOCK_WATCH, 0},
  {"core/plugin/plugin_load.c", NULL, LOCK_PLUGIN_LIST, 0},
  {"core/plugin/plugin_path.c", NULL, LOCK_ONCE, 0},
  {"core/call/handle.c", "&once", LOCK_ONCE, 0},
  {"core/call/handle.c", NULL, LOCK_LEAF, 0},
  {"core/stack/instance.c", NULL, LOCK_LEAF, 0},
  {"core/stack/instance_memory.c", NULL, LOCK_LEAF, 0},
  {"core/stack/physical.c", NULL, LOCK_LEAF, 0},
  {"core/stack/dependencies.c", NULL, LOCK_LEAF, 0},
  {"core/stack/wrapped_ops.c", NULL, LOCK_LEAF, 0},
  {"core/stack/stack_list.c", NULL, LOCK_LEAF, 0},
  {"core/stack/stream_registry.c", NULL, LOCK_LEAF, 0},
  {"core/base/block_map.c", NULL, LOCK_LEAF, 0},
  {"core/option/registry.c", NULL, LOCK_REGISTRY, 0},
  {"core/inspect/publish.c", "&once", LOCK_ONCE, 0},
  {"core/inspect/publish.c", NULL, LOCK_LEAF, 0},
  {"core/base/os_memory.c", NULL, LOCK_HOST_MEMORY, 0},
  {"core/base/asymmetric_fence.c", NULL, LOCK_ONCE, 0},
  {"core/base/callers.c", NULL, LOCK_ONCE, 0},
  {"core/base/log.c", "&once", LOCK_LOG_OPENING, 0},
  {"core/base/log.c", NULL, LOCK_LOG, LOCK_NESTS},
  {"core/base/log_sink.c", NULL, LOCK_LOG, LOCK_NESTS},

  {"tools/preload/blocks.c", NULL, LOCK_LEAF, 0},
  {"tools/preload/devices.c", NULL, LOCK_SERVED, 0},
  {"tools/preload/failure.c", NULL, LOCK_LEAF, 0},
  {"tools/preload/past.c", NULL, LOCK_LEAF, 0},
  {"tools/preload/pools.c", NULL, LOCK_SERVED_HANDLES, LOCK_NESTS},
  {"tools/preload/release.c", NULL, LOCK_LEAF, 0},
  {"tools/preload/report_ends.c", NULL, LOCK_LEAF, 0},
  {"tools/preload/share.c", NULL, LOCK_SERVED_HANDLES, LOCK_NESTS},
  {"tools/preload/streams.c", NULL, LOCK_SERVED_HANDLES, LOCK_NESTS},

  {"plugins/runtimes/nvidia/context.c", NULL, LOCK_NVIDIA_CONTEXT, 0},
  {"plugins/runtimes/nvidia/driver.c", NULL, LOCK_NVIDIA_DRIVER, 0},
  {"plugins/runtimes/software/call_table.c", NULL, LOCK_SOFTWARE_CALLS, 0},
  {"plugins/race/race_detector.c", NULL, LOCK_RACES, 0},
  {"plugins/runtimes/software/call.c", "&call_once", LOCK_SOFTWARE_START, 0},
  {"plugins/runtimes/software/stream.c", "&stream_once", LOCK_ONCE, 0},
  {"plugins/runtimes/software/allocation.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/call.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/configure.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/observer.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/device.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/execute.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/graph_memory.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/observer.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/scheduler_stepped.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/scheduler_threads.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/stream.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/submit.c", NULL, LOCK_SOFTWARE, 0},
  {"plugins/runtimes/software/virtual.c", NULL, LOCK_SOFTWARE, 0},
  {NULL, NULL, LOCK_RANKS, 0},
};

#define LOCK_BIT(rank) (UINT64_C(1) << (rank))

/* The locks of resources that are held around calls of other resources, and all locks that are, and so around an allocator of
 * the program below. The calls of hipmm that such a function makes begin the order anew. A call that needs a lock of the
 * thread is refused, and so is one that would wait for a lock of a resource (attempt_check_wait()). A failure handler
 * runs under none of them. */
#define LOCK_OF_RESOURCE (LOCK_BIT(LOCK_SETTING) | LOCK_BIT(LOCK_INSTANCE) | LOCK_BIT(LOCK_PLUGIN))
#define LOCK_AROUND_UPSTREAM \
  (LOCK_OF_RESOURCE | LOCK_BIT(LOCK_LIFECYCLE) | LOCK_BIT(LOCK_TURN) | LOCK_BIT(LOCK_THREAD_END))

/* Where functions of the program are called, and the locks that may be held then. Functions that may run under any lock
 * make no call of hipmm: each is refused (lifecycle_forbid_reentry()). */
static const struct lock_program {
  const char *file;
  uint64_t ranks;
} lock_programs[] = {
  {"core/base/log_sink.c", UINT64_MAX},
  {"core/base/os_memory.c", UINT64_MAX},
  {"plugins/hooks/hooks.c", UINT64_MAX},
  {"plugins/spilling/movables.c", UINT64_MAX},
  {"core/framework/torch.c", 0},
  {"plugins/callback/callback.c", LOCK_AROUND_UPSTREAM},
  {"plugins/failure_callback/failure_callback.c", 0},
  {"plugins/runtimes/software/execute.c", UINT64_MAX & ~LOCK_BIT(LOCK_SOFTWARE)},
  {NULL, 0},
};
/* clang-format on */

#endif
