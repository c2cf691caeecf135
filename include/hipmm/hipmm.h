/* SPDX-License-Identifier: MIT */
/* hipmm/hipmm.h: hipmm's interface for applications.
 *
 * A program describes its memory resources in a JSON graph, calls hipmm_init_from_file() once, and allocates device
 * memory from the graph's stack for each device.
 *
 * Conventions, for every function here unless it says otherwise:
 *   - It returns a status; 0 is success. hipmm_last_error() gives the reason of the calling thread's last failed call.
 *   - Output arguments come last, end in _out, and are written only on success.
 *   - Sizes are in bytes. A device is an ordinal from 0. A stream belongs to the device of the resource.
 *   - Before initialisation and after the last hipmm_finalize() it is HIPMM_E_STATE, except for calls on a resource to
 *     which the caller still has a reference.
 *   - A NULL argument is HIPMM_E_ARGUMENT, and the message names it. A NULL resource is the current device's current
 *     resource. A resource that is not live is HIPMM_E_ARGUMENT, as long as no new one has its place. A device that
 *     does not exist is HIPMM_E_NO_DEVICE.
 *   - Memory may be copied with any device current. Kernels of another device may use it under the same condition as
 *     memory of hipMalloc: the program has enabled peer access. Mapped memory and driver pools need no such call.
 *   - A copy on the default stream waits for the default stream of another device whose memory it reads if that memory
 *     is hipMalloc's. Copies of mapped memory and of driver pools' memory do not wait: order them with events, or use
 *     hipMemcpyPeer(). A pool with "growth": "auto" maps no memory if the process has several devices, except for
 *     PyTorch (hipmm/torch.h).
 *   - A struct that begins with struct_size may grow at its end in a later release; the caller sets struct_size to its
 *     own sizeof. Other structs never grow. doc/abi.md has the other promises.
 *   - It is thread-safe. It never aborts and never writes to standard output.
 *   - After fork(), every call in the child is HIPMM_E_STATE: a GPU runtime does not survive fork.
 *   - Signals may arrive in any call, and are not delayed for long. Their handlers must not call hipmm, nor jump out of
 *     it.
 *   - doc/undefined.md lists what hipmm does not survive, and what a program does instead.
 */
#ifndef HIPMM_HIPMM_H
#define HIPMM_HIPMM_H

#include <hipmm/version.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

#if defined(__GNUC__)
#define HIPMM_MUST_CHECK __attribute__((warn_unused_result))
#else
#define HIPMM_MUST_CHECK
#endif

/* A stream: HIP's hipStream_t, or the cudaStream_t of a program on NVIDIA. Both convert to it without a cast, and neither
 * runtime's header is needed. NULL is the device's default stream; the values 1 (legacy) and 2 (per-thread default) keep
 * HIP's meaning. */
typedef void *hipmm_stream_t;

/* A memory resource: a node of a stack. Reference-counted: the caller of a function that returns one owns a reference,
 * and releases it with hipmm_resource_release(). */
struct hipmm_resource;

/* The result of a call, grouped by what the caller can do. Values are stable. */
enum hipmm_status {
  HIPMM_OK = 0,

  /* The call is wrong: correct the program. */
  HIPMM_E_ARGUMENT = -1, /* an invalid argument: NULL, an alignment that is not a power of two, … */
  HIPMM_E_POINTER = -2,  /* not a live pointer of this resource: of another one, or freed already */
  HIPMM_E_SIZE = -3,     /* not the size with which the block was allocated; the block stays allocated */
  HIPMM_E_STATE = -4,    /* not initialised, or with another graph; in a fork's child or a capture; suspended */

  /* The configuration is wrong: correct the file or the environment. */
  HIPMM_E_IO = -10,     /* the file cannot be read */
  HIPMM_E_SYNTAX = -11, /* the file is not JSON */
  HIPMM_E_CONFIG = -12, /* the file is JSON but not a valid graph */

  /* A plugin is missing or defective: install another. */
  HIPMM_E_PLUGIN = -20,     /* not found, cannot be loaded, or failed in create */
  HIPMM_E_PLUGIN_ABI = -21, /* of another plugin ABI, or with an invalid descriptor */

  /* Out of memory: free some, or raise the limit that the message names. */
  HIPMM_E_OUT_OF_MEMORY = -30, /* the device, the host or the resource's maximum is exhausted */
  HIPMM_E_LIMIT = -31,         /* a configured limit forbids it (limiting, fixed_size) */

  /* The runtime or the device: see hip_code in struct hipmm_error. */
  HIPMM_E_NO_DEVICE = -40,     /* no runtime with a device, or no such device */
  HIPMM_E_NOT_SUPPORTED = -41, /* this runtime, device or resource cannot do it */
  HIPMM_E_HIP = -42,           /* a HIP call failed for another reason */

  HIPMM_E_INTERNAL = -50, /* a bug in hipmm */

  HIPMM_STATUS_FORCE_32BIT = 0x7fffffff /* no status: every enum here has such a value, so that it has 32 bits */
};

/* A constant English phrase for a status. Never NULL. May be called at any time. */
const char *hipmm_status_string(enum hipmm_status status);

/* The calling thread's error record. The caller sets struct_size = sizeof(struct hipmm_error). Texts are cut to fit. */
struct hipmm_error {
  size_t struct_size;
  int32_t status;     /* enum hipmm_status */
  int32_t hip_code;   /* the hipError_t behind it; 0 if none */
  int32_t line;       /* of the error in the graph file, from 1; 0 if none */
  int32_t column;     /* in characters, from 1; 0 if none */
  char file[512];     /* the graph file, or the source of the graph ("<string>"); empty if none */
  char path[512];     /* JSON pointer (RFC 6901) of the invalid value; empty if none */
  char resource[128]; /* name of the resource that failed; empty if none */
  char message[2048]; /* one line: where, what is wrong, what is allowed, what to do */
};

/* Copies the record of the last failed call. Before the first failure its status is HIPMM_OK and its message is empty.
 * NULL is ignored. May be called at any time, as may hipmm_last_error_message() and the versions. */
void hipmm_last_error(struct hipmm_error *error_out);

/* Only the record's message. Never NULL; valid until the next failing call on this thread. */
const char *hipmm_last_error_message(void);

/* The version of the library in use, as "major.minor.patch", and as a number like HIPMM_VERSION (hipmm/version.h). */
const char *hipmm_version(void);
int hipmm_version_number(void);

/* ---- The log ----------------------------------------------------------------------------------------------------- */

/* Levels of lines of the debug log, the most severe first. */
enum hipmm_log_level {
  HIPMM_LOG_OFF = -1, /* no lines, for hipmm_log_set_level() */
  HIPMM_LOG_ERROR,
  HIPMM_LOG_WARNING,
  HIPMM_LOG_INFO,
  HIPMM_LOG_DEBUG,
  HIPMM_LOG_TRACE,
  HIPMM_LOG_FORCE_32BIT = 0x7fffffff
};

/* Set up the debug log as the environment variable HIPMM_LOG=LEVEL:FILE does, in its place: lines up to `level` go to
 * standard error, or to the end of the file at `path`, which is created if need be (NULL: standard error). set_file
 * keeps the level. In the name %p stands for the process id, %h for the host's name, %r for the process's rank in its
 * job, %% for a percent sign. An invalid level, or another letter in the name, is HIPMM_E_ARGUMENT. A file that cannot
 * be opened, or that another user may have put into a folder such as /tmp (SECURITY.md), is HIPMM_E_IO.
 *
 * Level debug logs failed allocations with the reason, refused frees and growth. Level trace logs every call of every
 * resource (RMM: set_logging_level). Allocations cost more only while the log, or the sink, wants debug or trace. May
 * be called before initialisation. */
enum hipmm_status hipmm_log_set_level(enum hipmm_log_level level);
enum hipmm_status hipmm_log_set_file(const char *path);

/* The current level. May be called at any time. */
enum hipmm_log_level hipmm_log_get_level(void);

/* Sets the function that receives each line of the debug log up to `level`. `about` is the name of the resource or of
 * the part of hipmm that writes the line ("" for none); `message` is the line without its end. Both texts last for the
 * call. NULL removes the sink; no thread is inside the old sink when the call returns. An invalid level is
 * HIPMM_E_ARGUMENT.
 *
 * With a sink, lines go only to the sink unless the environment variable HIPMM_LOG (LEVEL or LEVEL:FILE) is set.
 * Without both, warnings and errors go to standard error.
 *
 * Any thread calls the sink, several at once, from within hipmm and possibly under its locks. Inside the sink every
 * call of hipmm is HIPMM_E_STATE except hipmm_last_error() and hipmm_status_string(); hipmm_allocate() and
 * hipmm_deallocate() with a resource are forbidden. May be called before initialisation; the sink stays after
 * hipmm_finalize(). */
enum hipmm_status hipmm_log_set_sink(void (*sink)(void *arg, enum hipmm_log_level level, const char *about,
                                                  const char *message),
                                     void *arg, enum hipmm_log_level level);

/* ---- Initialisation ---------------------------------------------------------------------------------------------- */

/* Initialise hipmm: read a graph, load its plugins and choose the runtime. No device is touched: a device's stack is
 * built at its first use, on that device. Calls are serialised. After a failure nothing is left behind, and the message
 * names the file, the JSON path and the remedy.
 *
 * Initialisation is counted, so that a program and the libraries in it can use hipmm independently. A second
 * initialisation with the same graph (the same JSON, wherever it was read, and the same runtime) succeeds and counts;
 * with another graph it is HIPMM_E_STATE, and the message names both sources and the necessary number of
 * hipmm_finalize() calls. Every user calls hipmm_finalize() as often as it has initialised hipmm. A library that needs
 * its own graph builds a stack beside it: see hipmm_stack_build_from_file().
 *
 * hipmm_init() takes the graph from HIPMM_CONFIG (a file's name, or the JSON itself), else from ./hipmm.json, else
 * from the system's hipmm/hipmm.json (under the configured sysconfdir). It ignores either of these two files, with a
 * warning, if a user other than root owns or can write the file or its folder. Without any graph, every device gets a
 * plain `device` resource, or what hipmm_torch_init() has chosen. A set-user-id program ignores the environment and
 * the working directory. HIPMM_RUNTIME overrides the runtime of every graph.
 *
 * With "current_device": "local_rank" in the graph, the first initialisation makes the device of the process's local
 * rank current for the calling thread, if a launcher gives this rank; hipmm_init_if_needed() never does. With "report",
 * the last hipmm_finalize(), or the process's exit(), writes a report. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_init(void);
HIPMM_MUST_CHECK enum hipmm_status hipmm_init_from_file(const char *path);
HIPMM_MUST_CHECK enum hipmm_status hipmm_init_from_string(const char *json);

/* As hipmm_init() if hipmm is not initialised; otherwise counts, whatever graph is in use. For libraries that allocate
 * from the program's resources. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_init_if_needed(void);

/* Whether hipmm is initialised: 1 or 0. Another thread may change that at any time. May be called at any time. */
int hipmm_is_initialized(void);

/* Undoes one initialisation. The last call releases the device table, and with it every stack of which no caller holds
 * a resource. Memory allocated from a destroyed stack is freed with it (a warning in the log counts it). A stack of
 * which a caller holds a resource lives on with its memory: the status is HIPMM_OK, and a warning in the log names each
 * such resource with its references and its stack's held bytes.
 *
 * Other threads may be inside hipmm meanwhile. The last call waits for calls without a resource, for calls that look
 * resources up or create them (new calls of these kinds are HIPMM_E_STATE), and for calls that use one stack after the
 * other, such as hipmm_list(), hipmm_snapshot() and hipmm_trim(). A call on a resource needs a reference until it
 * returns, so no such call may be under way in a stack that is being destroyed. Inside a function of the program that
 * hipmm calls, except visitors of resources, values and options, finalisation and initialisation are HIPMM_E_STATE. A
 * process may exit without calling it. */
enum hipmm_status hipmm_finalize(void);

/* Host memory for hipmm itself: records of blocks and streams, caches, handles, the plugins' own memory. `allocate`
 * returns zeroed memory, aligned to 4096 bytes, or NULL. Most requests are some KiB. Some are for hundreds of MiB of
 * which little is touched, as mmap() gives. Any thread calls both, some under locks: they must not call hipmm. hipmm
 * does not use them for memory that grows with the number of streams and small blocks, such as texts and graphs
 * (malloc), and for pools' arrays of records, which are reserved addresses. */
struct hipmm_host_allocator {
  size_t struct_size;
  void *(*allocate)(void *arg, size_t bytes);
  void (*deallocate)(void *arg, void *ptr, size_t bytes); /* with the size of the allocation */
  void *arg;
};

/* Installs it; NULL restores the operating system's memory. Possible while hipmm holds no such memory, before the first
 * use of hipmm; later it is HIPMM_E_STATE (Vulkan: VkAllocationCallbacks). Tries the functions with 4096 bytes: memory
 * that is not zeroed or not aligned is HIPMM_E_ARGUMENT. */
enum hipmm_status hipmm_host_allocator_set(const struct hipmm_host_allocator *allocator);

/* ---- Tags -------------------------------------------------------------------------------------------------------- */

/* The push says what the calling thread allocates for from now on, such as "layer 7". The pop ends the tag that this thread
 * pushed last. Tags nest: `recording`, `tracking` and `guard` keep all tags of the thread with each block that it allocates;
 * `hipmm report` shows the innermost of each block, and the outermost as steps of the program. Each thread has its own tags: a
 * new thread has none, and they end with the thread. `name` is copied. HIPMM_E_ARGUMENT: it is NULL, empty, longer than 63
 * bytes, not UTF-8, or has control characters. HIPMM_E_STATE, and nothing changes: the names of the thread's tags would have
 * more than 255 bytes together, counting one more for each; in the pop, the thread has no tag. Both take nanoseconds and no
 * lock, and need no initialised library. */
enum hipmm_status hipmm_tag_push(const char *name);
enum hipmm_status hipmm_tag_pop(void);

/* ---- Memory ------------------------------------------------------------------------------------------------------ */

/* Allocates `bytes` of memory, aligned to 256 bytes, for use on `stream`. Work that is submitted to `stream` may use
 * the memory at once; the caller orders other streams after it. Zero bytes give NULL and succeed. `resource` NULL means
 * the current device's current resource. HIPMM_E_OUT_OF_MEMORY and HIPMM_E_LIMIT: the message says which memory has
 * run out. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate(struct hipmm_resource *resource, size_t bytes, hipmm_stream_t stream,
                                                  void **ptr_out);

/* Frees memory of the same resource (NULL: of the current device's; no stack is built for it). Work that was submitted
 * to `stream` before may still use the memory. `bytes` is the size that was allocated, or 0 if the caller does not know
 * it; a resource that cannot find the size is HIPMM_E_NOT_SUPPORTED. NULL has no effect. A pointer of another resource,
 * one that was freed before (HIPMM_E_POINTER), and a wrong size (HIPMM_E_SIZE) change nothing.
 *
 * Graph capture: `stream` of an allocation or a free may be in a capture. Then hipmm makes no call that ends the
 * capture, in this thread, and in other threads too if the stream was retained or created by hipmm. Memory freed on the
 * stream is reused in the same capture; memory freed on other streams, only once their work has completed. A call that
 * must wait is HIPMM_E_STATE: a free to a source, hipmm_resource_trim(), an allocation of `monotonic`, and an
 * allocation of `pool` that must unmap memory which work on a stream that was not retained may still use. With `async`,
 * allocations and frees become nodes of the graph, as in HIP. The caller keeps the memory that the graph uses allocated
 * as long as the graph may run, and launches the graph after the work that was submitted to the stream before. */
enum hipmm_status hipmm_deallocate(struct hipmm_resource *resource, void *ptr, size_t bytes, hipmm_stream_t stream);

/* The same with an alignment in bytes, a power of two. Sources of device memory support up to 256; `pool`, `host` and
 * `pinned` support any. hipmm remembers each block's alignment if it needs it. A free only checks that `alignment` is a
 * power of two. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate_aligned(struct hipmm_resource *resource, size_t bytes,
                                                          size_t alignment, hipmm_stream_t stream, void **ptr_out);
enum hipmm_status hipmm_deallocate_aligned(struct hipmm_resource *resource, void *ptr, size_t bytes, size_t alignment,
                                           hipmm_stream_t stream);

/* ---- Resources --------------------------------------------------------------------------------------------------- */

/* The current resource of the current device, or of device `device`. Builds the device's stack at its first use. The
 * caller owns a reference. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_get_current(struct hipmm_resource **resource_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_get_for_device(int device, struct hipmm_resource **resource_out);

/* The graph's resource `name`, on `device`. In a "stack" array a resource's name is its type; the second one of a type,
 * counted from the top, is "type.2", and so on. A resource that no device's stack needs is built at the first request,
 * with those of its dependencies that the device's stack does not have. A failure leaves nothing new. The caller owns a
 * reference. An unknown name, or a resource only of other devices' stacks, is HIPMM_E_ARGUMENT. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_get_by_name(int device, const char *name,
                                                              struct hipmm_resource **resource_out);

/* The same in the stack of `resource`, which may be any resource of the stack (NULL: the current device's current
 * resource): for stacks of hipmm_stack_build_from_file(). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stack_get_by_name(struct hipmm_resource *resource, const char *name,
                                                           struct hipmm_resource **resource_out);

/* Make another resource of the same device current. The device table retains it while it is current, and until calls
 * that began with it end: keep a reference as long as memory allocated from it is in use. NULL resets to the graph's
 * resource, as the reset functions do. `previous_out` may be NULL; otherwise the caller owns a reference to the
 * previous current resource, and the device's stack is built if there was none yet. */
enum hipmm_status hipmm_resource_set_current(struct hipmm_resource *resource, struct hipmm_resource **previous_out);
enum hipmm_status hipmm_resource_set_for_device(int device, struct hipmm_resource *resource,
                                                struct hipmm_resource **previous_out);
enum hipmm_status hipmm_resource_reset_current(void);
enum hipmm_status hipmm_resource_reset_for_device(int device);

/* References. A reference keeps the whole stack alive, even after hipmm_finalize(). NULL is ignored; a resource that is
 * not live, and a release without a reference, are ignored and logged as errors. */
void hipmm_resource_retain(struct hipmm_resource *resource);
void hipmm_resource_release(struct hipmm_resource *resource);

/* The name in the graph, the plugin's type, and the device. The texts live as long as the resource. NULL and -1 if
 * `resource` is NULL or not live. */
const char *hipmm_resource_name(const struct hipmm_resource *resource);
const char *hipmm_resource_type(const struct hipmm_resource *resource);
int hipmm_resource_device(const struct hipmm_resource *resource);

/* Reads a value of the resource, such as "reserved_bytes", or of the nearest resource below that has this value (`hipmm
 * describe TYPE` lists the values and their units). HIPMM_E_ARGUMENT if none has it. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_query(struct hipmm_resource *resource, const char *name,
                                                        int64_t *value_out);

/* Performs an action of the resource, such as "push", "pop" or "flush", or of the nearest resource below that has this
 * action (`hipmm describe TYPE` lists the actions). HIPMM_E_ARGUMENT if none has it. */
enum hipmm_status hipmm_resource_perform(struct hipmm_resource *resource, const char *action);

/* The state of the resource, or of the nearest resource below that has a report, as lines for people: `tracking` lists
 * all live blocks, with stack traces if it records them. The caller frees the text with hipmm_string_free().
 * HIPMM_E_NOT_SUPPORTED if no resource has a report. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_report(struct hipmm_resource *resource, char **text_out);

/* Returns free memory to the upstreams, in this resource and in each one below it, until `keep_bytes` of free memory
 * are left in each. Waits for work that still uses the memory. Where a capture forbids that, what needs no wait is
 * returned, and the status is HIPMM_E_STATE. */
enum hipmm_status hipmm_resource_trim(struct hipmm_resource *resource, size_t keep_bytes);

/* The same for every resource of a device, and of all devices (PyTorch: empty_cache), in built stacks and in stacks
 * made in code. */
enum hipmm_status hipmm_device_trim(int device, size_t keep_bytes);
enum hipmm_status hipmm_trim(size_t keep_bytes);

/* Resets the peaks of this resource and of each one below it to the amounts held and allocated now: the values of
 * resources that have the action "reset_peaks", and the peak of hipmm_device_held_bytes(). */
enum hipmm_status hipmm_resource_reset_peaks(struct hipmm_resource *resource);

/* The bytes that all sources of the device's stack hold from the runtime: now, and their peak. For a driver's pool
 * (`async`) hipmm asks the driver for the bytes held now. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_held_bytes(int device, size_t *now_out, size_t *peak_out);

/* ---- Suspending -------------------------------------------------------------------------------------------------- */

/* How to treat a suspended resource's content. */
enum hipmm_content {
  HIPMM_CONTENT_KEEP = 1,    /* saved where the pool's options say, and restored */
  HIPMM_CONTENT_DISCARD = 2, /* dropped: it is undefined afterwards, even if the suspend fails */
  HIPMM_CONTENT_FORCE_32BIT = 0x7fffffff
};

/* suspend returns the device memory under `resource` to the device while all blocks stay allocated. resume puts memory
 * under the same addresses. Pointers, captured graphs and the order of streams stay valid. So two programs, or two
 * parts of one, use a device by turns. Each pool with mapped memory ("growth": "mapped", directly over `device`), the
 * resource itself and those below it, is suspended; other memory stays where it is, and a warning in the log says why.
 * If there is no such pool: HIPMM_E_NOT_SUPPORTED, and the message has the remedy.
 *
 * suspend releases idle memory, and waits for all work of the resource's device. During a graph capture it is
 * HIPMM_E_STATE, and the capture goes on. That holds for a stream that hipmm created or that was retained, for a stream
 * that the default stream waits for, and with AMD's runtime for any stream that the resource has served. NVIDIA's
 * driver cannot be asked about a handle that may no longer name a stream: there another stream's capture ends. The
 * caller ensures that until resume returns no other work uses the memory, on this device, on another one, or in another
 * process: such work fails as on memory that was never mapped. Too little host memory to keep the content is
 * HIPMM_E_OUT_OF_MEMORY, and a file for it that fails is HIPMM_E_IO: the resource is not suspended then. Memory that
 * was exported to another process (hipmm_share_export_block()) stays where it is, for as long as the block, or another
 * one beside it, is allocated. Devices that had access to the memory have it again afterwards.
 *
 * While it is suspended, an allocation from the resource, or from one that depends on it, is HIPMM_E_STATE. Frees,
 * queries, hipmm_snapshot() ("suspended": true), trims and the end of streams work. A freed block needs no memory to
 * resume. Releasing the last reference frees the saved content.
 *
 * resume waits for its copies, and on a full device first releases idle memory of the device's other resources, as
 * hipmm_device_trim() does. If it fails, as with HIPMM_E_OUT_OF_MEMORY or HIPMM_E_IO, the resource stays suspended,
 * nothing is lost, and the call can be repeated. Suspending twice, and resuming without suspending, is HIPMM_E_STATE. If
 * several pools are below, each is suspended or resumed by itself, pools already in that state are skipped, and the
 * status is the first failure. Other threads' calls on a pool wait meanwhile: saving and restoring take as long as
 * copying. */
enum hipmm_status hipmm_resource_suspend(struct hipmm_resource *resource, enum hipmm_content content);
enum hipmm_status hipmm_resource_resume(struct hipmm_resource *resource);

/* ---- Stacks made in code ----------------------------------------------------------------------------------------- */

/* Creates a resource of a type on a device, as a graph would, over resources of that device that the caller holds. The
 * new resource retains its upstreams, and is destroyed with its last reference; the caller owns one.
 * hipmm_resource_set_for_device() makes it current. The device's own stack is not built for it.
 *
 * `options_json` is a JSON object with the options of the type (`hipmm describe TYPE`); NULL means {}. An error in it
 * is HIPMM_E_CONFIG or HIPMM_E_SYNTAX, with the file "<options>" and the path of the value. A percentage is a
 * percentage of the memory that is free now. The name of the resource is its type, or "pool.2", "pool.3", … while other
 * created resources of that name live. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_create(int device, const char *type, const char *options_json,
                                                         struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                                         struct hipmm_resource **resource_out);

/* An option and its value as text (never grows): JSON, or plain text where JSON would have a string: "2GiB", "true",
 * "[\"a\", \"b\"]". */
struct hipmm_setting {
  const char *name;
  const char *value;
};

/* An object for an option that names one: a struct hipmm_allocator, hipmm_failure_handler, hipmm_hooks, hipmm_region or
 * hipmm_mempool (see below), as the option's type wants. It is copied; what it points to must live as long as the
 * resource. */
struct hipmm_object {
  const char *option; /* "allocator", "callback", "region", "pool_handle", … */
  const void *object;
};

/* The description of a resource to create. The caller sets struct_size = sizeof(struct hipmm_recipe); unused fields are
 * 0 or NULL. Nothing of it is kept. */
struct hipmm_recipe {
  size_t struct_size;
  const char *type;
  const char *name;    /* as in a graph; not the name of another live created resource. NULL: from the type */
  const char *options; /* a JSON object */
  const struct hipmm_setting *settings; /* override the options */
  size_t n_settings;
  struct hipmm_resource *const *upstreams;
  size_t n_upstreams;
  struct hipmm_resource *const *named_resources; /* resources that options name, such as those of bins */
  size_t n_named_resources;
  const struct hipmm_object *objects; /* instead of names in the options */
  size_t n_objects;
};

/* Creates a resource as hipmm_resource_create() does. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_create_from(int device, const struct hipmm_recipe *recipe,
                                                              struct hipmm_resource **resource_out);

/* Builds the stack of a whole graph on `device` beside the device table: for a library with its own graph, in a program
 * that uses hipmm with another graph or not at all. hipmm need not be initialised, and no hipmm_finalize() touches the
 * stack: `resource_out` gets its top, the resource that the graph has for this device, with a reference that the caller
 * owns, and the last reference destroys the stack. The stack never becomes current by itself. While it lives, streams
 * and events can be created and retained, devices counted, and resources created over it, without initialisation.
 *
 * A process uses one runtime: a graph that asks for another one is HIPMM_E_STATE, and the runtime's options have no
 * effect while another stack or the table uses it. `name` is for hipmm_list()'s paths, which begin with
 * "created/NAME/". It is a name as in a graph, and not another created stack's or resource's name; NULL: "stack",
 * "stack.2", … Inside a function of the program that hipmm calls: HIPMM_E_STATE. Other errors are those of
 * hipmm_init_from_file() and of the building of a stack. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_stack_build_from_file(int device, const char *name, const char *path,
                                                               struct hipmm_resource **resource_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_stack_build_from_string(int device, const char *name, const char *json,
                                                                 struct hipmm_resource **resource_out);

/* ---- Statistics -------------------------------------------------------------------------------------------------- */

/* The counters of a `statistics` resource (never grows; further ones would be values of hipmm_resource_query()): bytes as
 * requested, and allocations. As in RMM, the current counters may be negative inside a pushed scope that frees older
 * memory. */
struct hipmm_statistics {
  int64_t current_bytes, current_count;
  int64_t peak_bytes, peak_count;
  int64_t total_bytes, total_count;
};

/* Read the counters of the nearest `statistics` resource at or below `resource`. push starts a scope with zeroed
 * counters too, and writes the outer scope's counters. pop ends the scope too, and adds its counters to the outer one;
 * its peaks are those of the whole scope, even from before hipmm_resource_reset_peaks(). Popping the last scope is
 * HIPMM_E_STATE. `statistics_out` may be NULL in push and pop. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_statistics_get(struct hipmm_resource *resource,
                                                        struct hipmm_statistics *statistics_out);
enum hipmm_status hipmm_statistics_push(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out);
enum hipmm_status hipmm_statistics_pop(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out);

/* ---- Inspection and settings ------------------------------------------------------------------------------------- */

/* Values and options of live resources have paths: "devices/0/pool/reserved_bytes" is a value of the resource `pool` of
 * device 0's stack, "created/pool.2/maximum_size" an option of a resource made in code,
 * "created/mine/pool/reserved_bytes" a value in the stack `mine` of hipmm_stack_build_from_file(),
 * "devices/0/held_bytes" a value of the device. A device has paths once its stack is built; reading a path builds
 * nothing (HIPMM_E_STATE). An unknown path is HIPMM_E_ARGUMENT, and the message names the nearest one. Without
 * initialisation these functions work while a stack of hipmm_stack_build_from_file() lives. The caller owns the
 * returned texts, and frees them with hipmm_string_free(). */

/* Reads a value of one resource, as hipmm_resource_query() does, without the resources below. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_query(const char *path, int64_t *value_out);

/* Reads a value, or an option's current value, as JSON: 4096, "50%", null for an option without a value. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_get(const char *path, char **json_out);

/* Sets an option of a live resource. `value` is JSON, or plain text where JSON would have a string ("2GiB"); NULL
 * restores the default. The value is checked as in a graph (HIPMM_E_CONFIG); a percentage is a percentage of the memory
 * that was free when the resource was created. An option that is fixed at creation is HIPMM_E_NOT_SUPPORTED (`hipmm
 * describe TYPE` tells which). After a failure the option is unchanged. Each new value takes some hundred bytes of host
 * memory until the resource is destroyed. Calls for one resource are serialised; allocations continue meanwhile. */
enum hipmm_status hipmm_set(const char *path, const char *value);

/* Lists all values and options at or below `prefix` ("devices/0/pool", "created"; NULL: all) as a JSON array of objects with
 * "path", "kind" ("value" or "option"), "value" (null: none, or not available), "unit", "doc"; an option also has
 * "type", "default" (whether the value is the default) and "reloadable" (whether hipmm_set() accepts it). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_list(const char *prefix, char **json_out);

/* The state of all stacks as a JSON object: "version", "runtime" and "stacks", an array of objects with "device",
 * "source" (the graph's file), "top", "held_bytes", "peak_held_bytes" and "resources", from the top down. A resource
 * has "name", "type", "path" (null if it has none), "below" (the paths of its upstreams), "values" and "options" (each
 * {"value", "default", "reloadable"}); a source also has "held" ({"bytes", "blocks"}), a suspended resource "suspended"
 * (true); a resource that shows its memory also has "memory":
 *   "live", "free", "pending", "cached"   {"bytes", "blocks"} of blocks that are allocated, free on every stream, free
 *                                         on the stream where they were freed, kept for one thread
 *   "largest_free_bytes"                  the largest range that is free on every stream; memory that can be remapped
 *                                         counts as one range
 *   "fragmentation"                       1 - largest free / all free; 0 without free memory
 *   "streams"                             the same sums for each stream that has any
 *   "blockers"                            runs of blocks between two free blocks that could be joined, the run whose
 *                                         end would leave the largest hole first: "joined_bytes" of that hole,
 *                                         "below_bytes" and "above_bytes" free now, "n_blocks" between them, and
 *                                         "blocks", the first 16 ("address", "bytes", "state", "stream")
 * Other threads are not stopped: the snapshot may contain only a part of their work meanwhile. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_snapshot(char **json_out);

/* Frees a text of the functions above. NULL is ignored. May be called at any time. */
void hipmm_string_free(char *text);

/* ---- Objects of the program, which a graph names ----------------------------------------------------------------- */

/* A program registers its functions and its memory under names, and the graph names them in options of the types
 * `callback`, `failure_callback`, `fixed_buffer`, `async_view`, `hooks` and `spilling`. The struct is copied; what it
 * points to must live as long as a stack uses it. Registering a name of the same kind again replaces the object for
 * stacks that are built later; NULL removes the name. A name follows the rule for resource names. Registration is possible before
 * initialisation and stays after hipmm_finalize(). An invalid name, an incomplete struct, and removing an unknown name
 * are HIPMM_E_ARGUMENT. A stack whose graph names an unknown object cannot be built (HIPMM_E_CONFIG). Each struct
 * begins with struct_size, its size. The functions return to their caller (doc/undefined.md). */

/* Functions that allocate. `allocate` returns HIPMM_OK and writes a pointer that is aligned to `alignment` (a power of
 * two, at least 256), or returns another status. `deallocate` cannot fail, and gets the pointer and sizes of the
 * allocation; work on `stream` may still use the memory. The resource's device is current. Any thread calls them,
 * several at once. Neither may allocate from the resource that calls it (HIPMM_E_STATE), nor from a resource above
 * it.
 *
 * Both run within an allocation or a free: resources above that grow, a `thread_safe`, and a plugin that is not
 * thread-safe hold their locks meanwhile. The function's call on such a resource is HIPMM_E_STATE. So is a call that
 * would wait for a resource which another thread holds in the same way, or for a stack that another thread builds,
 * since that thread may wait for this one. hipmm_trim() and hipmm_device_trim() skip such a resource, and hipmm_list()
 * and hipmm_snapshot() omit the parts that they would wait for. Other threads' calls wait for the function. A resource
 * in use does not learn of a stream that the function retires: the function must not destroy streams. Code that frees
 * memory for an allocation belongs into a failure handler, which runs under no lock. */
struct hipmm_allocator {
  size_t struct_size;
  enum hipmm_status (*allocate)(void *arg, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out);
  void (*deallocate)(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream);
  void *arg;
};

/* Called after an allocation of `bytes` found no memory. Nonzero: try again; 0: let the allocation fail (RMM's
 * contract). It is called where the allocation has entered hipmm, and the allocation is then made again: the thread
 * holds no resource's lock. So the callback may use every resource, even resources above this one: free memory, trim,
 * allocate, create and release resources, set options, and wait for other threads. Only while a stack is being built, a
 * call that needs that stack, or one that another thread builds, is HIPMM_E_STATE. Threads that ask for that stack wait
 * for the callback, so it must not wait for them. If its own allocation runs out of memory here, that fails without
 * another call. The resource from which the program allocates must not lose its last reference meanwhile. Below a
 * program's allocator that allocates, the allocator's rules hold. */
struct hipmm_failure_handler {
  size_t struct_size;
  int (*callback)(void *arg, size_t bytes);
  void *arg;
};

/* Device memory that the program owns. */
struct hipmm_region {
  size_t struct_size;
  void *ptr;
  size_t bytes;
};

/* A driver's pool: `handle` is a hipMemPool_t, which the program owns. */
struct hipmm_mempool {
  size_t struct_size;
  void *handle;
};

/* The events that a `hooks` resource reports to the program (PyTorch: attachAllocatorTraceTracker, attachOutOfMemory-
 * Observer). */
enum hipmm_event_kind {
  HIPMM_EVENT_ALLOCATED = 1, /* `ptr` with `bytes` on `stream` */

  /* `ptr` is about to be freed on `stream`: no other thread has its address yet. `bytes` is 0 if the caller of the free does
   * not know it, and no resource below does. FREE_REFUSED follows if the free fails, and changed nothing. */
  HIPMM_EVENT_FREED,
  HIPMM_EVENT_FREE_REFUSED,
  HIPMM_EVENT_OUT_OF_MEMORY, /* `bytes` could not be allocated on `stream`: no memory, or a limit */

  /* A source below has taken `bytes` more from the runtime, or given them back; the sources of its device hold
   * `held_bytes` now. */
  HIPMM_EVENT_GREW,
  HIPMM_EVENT_SHRANK,

  /* Only for `spilling`, whose option `policy` names the function. Before it moves a buffer, it asks for the rank of each buffer
   * that may be moved: `ptr` is the struct hipmm_movable *, `bytes` its size, and `idle_ns` the time since it was unpinned. The
   * function may write any number to `*rank`, which is 0. The highest rank goes first; of equal ranks, the buffer that was unpinned
   * longest ago. hipmm may ask about a buffer until its hipmm_movable_destroy() has returned. */
  HIPMM_EVENT_RANK,
  HIPMM_EVENT_FORCE_32BIT = 0x7fffffff
};

struct hipmm_event {
  size_t struct_size;
  uint32_t kind; /* enum hipmm_event_kind */
  int32_t device;
  const char *resource; /* the name of the `hooks` resource, or of the source; lasts as long as that resource */
  void *ptr;
  size_t bytes;
  size_t held_bytes;
  hipmm_stream_t stream;
  uint64_t idle_ns; /* of HIPMM_EVENT_RANK; otherwise 0 */
  int64_t *rank;    /* of HIPMM_EVENT_RANK; otherwise NULL */
};

/* The program's function for events. Any thread calls it, several at once, and some under hipmm's locks: it must not
 * call hipmm (HIPMM_E_STATE), and not wait for a thread that does. `event` lasts for the call. */
struct hipmm_hooks {
  size_t struct_size;
  uint64_t kinds; /* bits 1 << HIPMM_EVENT_…: only these; 0: all */
  void (*callback)(void *arg, const struct hipmm_event *event);
  void *arg;
};

enum hipmm_status hipmm_hooks_register(const char *name, const struct hipmm_hooks *hooks);
enum hipmm_status hipmm_allocator_register(const char *name, const struct hipmm_allocator *allocator);
enum hipmm_status hipmm_failure_handler_register(const char *name, const struct hipmm_failure_handler *failure);
enum hipmm_status hipmm_region_register(const char *name, const struct hipmm_region *region);
enum hipmm_status hipmm_mempool_register(const char *name, const struct hipmm_mempool *mempool);

/* ---- Streams ----------------------------------------------------------------------------------------------------- */

/* Promises that `stream` lives until hipmm_stream_retire(). The promise makes the stream cheaper: its handle then names
 * the same stream in every call, threads may cache blocks for it, and an event on it suffices before another stream
 * gets one of its blocks. Without the promise a sub-allocator asks HIP at each call which stream the handle names (if
 * HIP can tell, since a new stream may have an old one's handle), and blocks freed on it serve other streams only after
 * the device was synchronised. The default stream needs no promise. */
enum hipmm_status hipmm_stream_retain(int device, hipmm_stream_t stream);

/* Tells every stack of the device that `stream` will be destroyed. Blocks that were freed on it become free on every
 * stream. Call it before hipStreamDestroy(). After hipmm_finalize() it tells the stacks of which callers still hold a
 * resource. */
enum hipmm_status hipmm_stream_retire(int device, hipmm_stream_t stream);

/* ---- Devices ----------------------------------------------------------------------------------------------------- */

/* The number of devices of the runtime in use, and the calling thread's current device. Without initialisation both
 * work while a stack of hipmm_stack_build_from_file() lives. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_count(int *count_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_current(int *device_out);

/* The runtime in use: "amd", "nvidia", "software", or the path in the graph. NULL before the first initialisation. The
 * text lives as long as the process. */
const char *hipmm_runtime(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
