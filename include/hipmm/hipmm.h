/* SPDX-License-Identifier: MIT */
/* hipmm/hipmm.h: the application's interface of hipmm.
 *
 * A program describes its memory resources in a JSON graph, calls hipmm_init_from_file() once, and allocates device
 * memory through the stack that the graph describes for each device.
 *
 * Conventions, for every function here unless it says otherwise:
 *   - It returns a status; 0 is success. hipmm_last_error() tells the calling thread why its last failed call failed.
 *   - Output arguments come last, end in _out, and are written only on success.
 *   - Sizes are in bytes. Streams belong to the device of the resource they are used with.
 *   - Memory may be copied with any device current, and used by kernels of another device as memory of hipMalloc may:
 *     once the program has enabled peer access. Mapped memory and that of driver pools needs no such call.
 *   - A copy on the default stream waits for the default stream of another device whose memory it reads if that memory
 *     is hipMalloc's. Copies of mapped memory and of memory of driver pools do not wait: order them with events, or use
 *     hipMemcpyPeer(). A pool with "growth": "auto" maps no memory where the process has several devices, except for
 *     PyTorch (hipmm/torch.h).
 *   - It may be called from any thread. It never aborts and never writes to standard output.
 *   - After fork(), the child gets HIPMM_E_STATE: a GPU runtime does not survive fork.
 *   - A thread may be cancelled (pthread_cancel()) with deferred cancelability, the default: it does not end while it
 *     holds a lock of hipmm, also not within a function of the program that is called under one.
 */
#ifndef HIPMM_HIPMM_H
#define HIPMM_HIPMM_H

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

/* HIP's stream handle, declared as HIP's own headers do, so that neither header needs the other. NULL is the device's
 * default stream; the values 1 (legacy) and 2 (per-thread default) keep HIP's meaning. */
typedef struct ihipStream_t *hipStream_t;

/* A node of a stack that allocates. Reference-counted: whoever gets one from a function here gives it back with
 * hipmm_resource_release(). */
struct hipmm_resource;

/* What a call came to, grouped by what the caller can do about it. Values are stable. */
enum hipmm_status {
  HIPMM_OK = 0,

  /* The call is at fault: mend the program. */
  HIPMM_E_ARGUMENT = -1, /* an argument is outside its contract: NULL, an alignment that is no power of two, … */
  HIPMM_E_POINTER = -2,  /* a pointer that is not live in this resource: foreign, or freed already */
  HIPMM_E_SIZE = -3,     /* a block freed with another size than it was allocated with; it stays allocated */
  HIPMM_E_STATE = -4,    /* not initialised, initialised twice, in the child of a fork, or a graph is being captured */

  /* The configuration is at fault: mend the file or the environment. */
  HIPMM_E_IO = -10,     /* the file cannot be read */
  HIPMM_E_SYNTAX = -11, /* the file is not JSON */
  HIPMM_E_CONFIG = -12, /* the file is JSON but not a valid graph */

  /* A plugin is at fault: install or mend it. */
  HIPMM_E_PLUGIN = -20,     /* not found, cannot be loaded, or failed in create */
  HIPMM_E_PLUGIN_ABI = -21, /* speaks another plugin ABI, or its descriptor is broken */

  /* Memory is short: free some, or raise the limit that the message names. */
  HIPMM_E_OUT_OF_MEMORY = -30, /* the device, the host or the resource's maximum is exhausted */
  HIPMM_E_LIMIT = -31,         /* a configured limit forbids it (limiting, fixed_size) */

  /* The runtime or the device: see hip_code in struct hipmm_error. */
  HIPMM_E_NO_DEVICE = -40,     /* no runtime with a device, or no such device */
  HIPMM_E_NOT_SUPPORTED = -41, /* this runtime, device or resource cannot do it */
  HIPMM_E_HIP = -42,           /* a HIP call failed for another reason */

  HIPMM_E_INTERNAL = -50 /* a defect of hipmm */
};

/* A constant English phrase for a status. Never NULL. */
const char *hipmm_status_string(enum hipmm_status status);

/* Why the calling thread's last failed call failed. The caller sets struct_size = sizeof(struct hipmm_error). */
struct hipmm_error {
  size_t struct_size;
  int32_t status;     /* enum hipmm_status */
  int32_t hip_code;   /* the hipError_t behind it; 0 if none */
  int32_t line;       /* of a syntax error, from 1; 0 if none */
  int32_t column;     /* of a syntax error, from 1; 0 if none */
  char file[512];     /* the graph file, or the source of the graph ("<string>"); empty if none */
  char path[512];     /* JSON pointer (RFC 6901) of the value at fault; empty if none */
  char resource[128]; /* name of the resource at fault; empty if none */
  char message[2048]; /* the whole story in one line: where, what is wrong, what is allowed, what to do */
};

/* Copies the record; without any failure so far its status is HIPMM_OK and its message is empty. */
void hipmm_last_error(struct hipmm_error *error_out);

/* The record's message alone. Never NULL; valid until the next failing call on this thread. */
const char *hipmm_last_error_message(void);

/* The version of the library in use, as "major.minor.patch". */
const char *hipmm_version(void);

/* ---- The log ----------------------------------------------------------------------------------------------------- */

/* Levels of lines of the debug log, the gravest first. */
enum hipmm_log_level { HIPMM_LOG_ERROR, HIPMM_LOG_WARNING, HIPMM_LOG_INFO, HIPMM_LOG_DEBUG, HIPMM_LOG_TRACE };

/* Has `sink` called for each line of the debug log up to `level`, with the name of the resource or the part of hipmm
 * that speaks ("" for none) and the line without its end; both last for the call. NULL takes the sink away; when that
 * call returns, no thread is in the sink any more. Without a sink, and also with one when the environment variable
 * HIPMM_LOG (LEVEL or LEVEL:FILE) is set, lines go where that says; by default warnings go to standard error. The sink
 * is called by any thread, several at once, from within hipmm and maybe under its locks: what it calls of hipmm is
 * HIPMM_E_STATE, save hipmm_last_error() and hipmm_status_string(); hipmm_allocate() and hipmm_deallocate() on a
 * resource must not be called. May be called before initialisation, and lasts past finalisation. A level that is none:
 * HIPMM_E_ARGUMENT. */
enum hipmm_status hipmm_set_log_sink(void (*sink)(void *arg, enum hipmm_log_level level, const char *about,
                                                  const char *message),
                                     void *arg, enum hipmm_log_level level);

/* ---- Life ------------------------------------------------------------------------------------------------------ */

/* Reads a graph, loads its plugins and chooses the runtime. No device is touched: a device's stack is built when it is
 * first asked for, on that device. Calls are serialised. Initialising twice without hipmm_finalize() between is
 * HIPMM_E_STATE. On failure nothing stays behind, and the message names file, JSON path and remedy.
 *
 * hipmm_init() looks for the graph in the file that HIPMM_CONFIG names, ./hipmm.json, then the system's
 * hipmm/hipmm.json (under the configured sysconfdir); without any, every device gets a plain `device` resource. In a
 * set-user-id program the environment and the working directory are not trusted and skipped.
 * HIPMM_RUNTIME overrides the runtime of any graph. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_init(void);
HIPMM_MUST_CHECK enum hipmm_status hipmm_init_from_file(const char *path);
HIPMM_MUST_CHECK enum hipmm_status hipmm_init_from_string(const char *json);

/* Lets go of the per-device table and with it of every stack that no caller still holds a resource of. Memory that is
 * still allocated from a destroyed stack is gone with it (a warning in the log counts it). Stacks that callers hold live
 * on with all their memory: the status is HIPMM_OK, and a warning in the log names each resource that is held, with the
 * number of references and the bytes that its stack holds.
 *
 * May be called beside other calls. It waits for calls of other threads that were given no resource, and for those that
 * look resources up or create them; such calls are HIPMM_E_STATE from then on. A call on a resource needs a reference
 * until it returns, the caller's or that of the table before: no such call may be under way in a stack that is being
 * destroyed. Within a function of the program that is called by a call which it would wait for, it is HIPMM_E_STATE, as
 * initialisation is. Without initialisation: HIPMM_E_STATE. A process may exit without calling it. */
enum hipmm_status hipmm_finalize(void);

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

/* Allocates `bytes` of memory, aligned to 256 bytes, for use on `stream`. The memory may be used at once by work
 * submitted to `stream`; other streams must be ordered after it by the caller. Zero bytes give NULL and succeed.
 * `resource` NULL means the current device's resource. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate(struct hipmm_resource *resource, size_t bytes, hipStream_t stream,
                                                  void **ptr_out);

/* Frees memory that hipmm_allocate() of the same resource gave. Work submitted to `stream` before may still be using
 * it. `bytes` is the size that was allocated, or 0 where the caller does not know it; not every resource can find it
 * (HIPMM_E_NOT_SUPPORTED). NULL is freed without effect. A foreign pointer, one freed before, and a wrong size are
 * refused and change nothing.
 *
 * Either may name a stream from which a graph is being captured. Nothing that would end the capture is done then, nor
 * by other threads meanwhile if the stream was retained or is hipmm's own; of others they cannot know. What is freed on
 * the stream serves the same capture again, what other streams freed only once their work has passed. Calls that would
 * have to wait are refused with HIPMM_E_STATE: frees to a source, hipmm_resource_trim(), allocations of `monotonic`,
 * and those of `pool` for which it would have to unmap what work on streams that it cannot ask may still use. With
 * `async`, allocations and frees are part of the graph, as HIP has it, and hipmm_resource_trim() ends the capture. The
 * caller keeps what the graph uses allocated as long as it may run, and launches it after the work that the stream was
 * given before. */
enum hipmm_status hipmm_deallocate(struct hipmm_resource *resource, void *ptr, size_t bytes, hipStream_t stream);

/* The same with an alignment of the caller's, a power of two. Sources support up to 256; `pool` any. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_allocate_aligned(struct hipmm_resource *resource, size_t bytes,
                                                          size_t alignment, hipStream_t stream, void **ptr_out);
enum hipmm_status hipmm_deallocate_aligned(struct hipmm_resource *resource, void *ptr, size_t bytes, size_t alignment,
                                           hipStream_t stream);

/* ---- Resources ------------------------------------------------------------------------------------------------- */

/* The resource in force for the current device, or for device `device` (an ordinal from 0). Builds the device's stack
 * if this is its first use. The caller owns a reference. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_get_current_resource(struct hipmm_resource **resource_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_get_device_resource(int device, struct hipmm_resource **resource_out);

/* The instance on `device` of the resource that the graph calls `name`. In a "stack" array a resource is called as its
 * type; the second of a type, counted from the top, "type.2", and so on. The caller owns a reference. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_get_named_resource(int device, const char *name,
                                                            struct hipmm_resource **resource_out);

/* Puts another resource of the same device in force; the table keeps it alive until hipmm_finalize(). NULL resets to
 * the graph's own, as the reset functions do. `previous_out` may be NULL; otherwise the caller owns a reference, and
 * the device's stack is built if nothing was in force yet. */
enum hipmm_status hipmm_set_current_resource(struct hipmm_resource *resource, struct hipmm_resource **previous_out);
enum hipmm_status hipmm_set_device_resource(int device, struct hipmm_resource *resource,
                                            struct hipmm_resource **previous_out);
enum hipmm_status hipmm_reset_current_resource(void);
enum hipmm_status hipmm_reset_device_resource(int device);

/* References. A held resource keeps its stack alive, past hipmm_finalize() too. NULL is allowed and ignored. */
void hipmm_resource_retain(struct hipmm_resource *resource);
void hipmm_resource_release(struct hipmm_resource *resource);

/* The name in the graph, the plugin's type, and the device. The strings live as long as the resource. */
const char *hipmm_resource_name(const struct hipmm_resource *resource);
const char *hipmm_resource_type(const struct hipmm_resource *resource);
int hipmm_resource_device(const struct hipmm_resource *resource);

/* Reads a value that the resource offers, such as "reserved_bytes" (`hipmm describe TYPE` lists them). A name that the
 * resource does not offer is asked of the resources below it, nearest first. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_query(struct hipmm_resource *resource, const char *name,
                                                        int64_t *value_out);

/* Does what the resource, or the nearest below that offers it, calls `action`, such as "push", "pop" or "flush"
 * (`hipmm describe TYPE` lists them). */
enum hipmm_status hipmm_resource_perform(struct hipmm_resource *resource, const char *action);

/* What the resource, or the nearest below that has something to say, says of its state as a text of lines, for people:
 * of `tracking` the list of all that is allocated, with stack traces if it takes them. The caller frees it with
 * hipmm_string_free(). HIPMM_E_NOT_SUPPORTED if none has a text. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_report(struct hipmm_resource *resource, char **text_out);

/* Gives memory that no allocation uses back to where it came from, down to `keep_bytes` in each resource of the stack
 * below and including this one. Waits for work that still uses it. */
enum hipmm_status hipmm_resource_trim(struct hipmm_resource *resource, size_t keep_bytes);

/* Bytes that all sources of the device's stack hold from the runtime now, and the most that they held at once. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_held_bytes(int device, size_t *now_out, size_t *peak_out);

/* ---- Stacks made in code ----------------------------------------------------------------------------------------- */

/* Makes a resource of a type, as a graph would, on a device and over resources of that device that the caller holds.
 * The new resource keeps them alive, and is destroyed when its last reference goes; the caller owns one. It may be put
 * in force with hipmm_set_device_resource(). The device's own stack is not built for it.
 *
 * `options_json` is a JSON object with the options of the type (`hipmm describe TYPE`), NULL for {}; mistakes in it are
 * HIPMM_E_CONFIG or HIPMM_E_SYNTAX with the file "<options>" and the path of the value in it. A percentage is one of
 * the memory free now. The resource is called as its type, or "pool.2", "pool.3", … while others of that name live. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_create(int device, const char *type, const char *options_json,
                                                         struct hipmm_resource *const *upstreams, size_t n_upstreams,
                                                         struct hipmm_resource **resource_out);

/* An option by its name, with its value as text: as JSON, or plain where JSON would have a string: "2GiB", "true",
 * "[\"a\", \"b\"]". */
struct hipmm_setting {
  const char *name;
  const char *value;
};

/* The same with all that can be said. The caller sets struct_size = sizeof(struct hipmm_recipe); what is not wanted is
 * 0 or NULL. */
struct hipmm_recipe {
  size_t struct_size;
  const char *type;
  const char *name;    /* as in a graph; that of another created resource that lives is refused. NULL: from the type */
  const char *options; /* a JSON object */
  const struct hipmm_setting *settings; /* laid over the options */
  size_t n_settings;
  struct hipmm_resource *const *upstreams;
  size_t n_upstreams;
  struct hipmm_resource *const *named_resources; /* resources besides that options name, such as those of bins */
  size_t n_named_resources;
};

HIPMM_MUST_CHECK enum hipmm_status hipmm_resource_create_from(int device, const struct hipmm_recipe *recipe,
                                                              struct hipmm_resource **resource_out);

/* ---- Statistics ------------------------------------------------------------------------------------------------ */

/* What a `statistics` resource counts: requested bytes and allocations. As in RMM, `current` may be negative inside a
 * pushed scope that frees older memory. */
struct hipmm_statistics {
  int64_t current_bytes, current_count;
  int64_t peak_bytes, peak_count;
  int64_t total_bytes, total_count;
};

/* The nearest `statistics` resource at or below `resource`: its counters; push starts a scope with zeroed counters and
 * gives those of the scope before; pop ends a scope, gives its counters and adds them to the one before. Popping the
 * last scope is HIPMM_E_STATE. `statistics_out` may be NULL in push and pop. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_statistics_get(struct hipmm_resource *resource,
                                                        struct hipmm_statistics *statistics_out);
enum hipmm_status hipmm_statistics_push(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out);
enum hipmm_status hipmm_statistics_pop(struct hipmm_resource *resource, struct hipmm_statistics *statistics_out);

/* ---- Looking at what lives, and setting it ----------------------------------------------------------------------- */

/* What lives has paths: "devices/0/pool/reserved_bytes" is a value of the resource `pool` of device 0's stack,
 * "created/pool.2/maximum_size" an option of a resource made in code, "devices/0/held_bytes" of the device as a whole.
 * A device has paths once its stack is built; looking builds nothing (HIPMM_E_STATE). A path that leads nowhere is
 * HIPMM_E_ARGUMENT, with a near name. Texts that these functions give are the caller's, to be freed with
 * hipmm_string_free(). */

/* Reads a value of a resource: what hipmm_resource_query() reads, of that resource alone. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_query(const char *path, int64_t *value_out);

/* A value, or an option in force, as JSON: 4096, "50%", null for an option that has none. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_get(const char *path, char **json_out);

/* Sets an option of a resource while it is in use: `value` as JSON, or plain where JSON would have a string ("2GiB");
 * NULL for its default. It is checked as in a graph (HIPMM_E_CONFIG); a percentage is one of the memory that was free
 * when the resource was made. Options that cannot be set later are HIPMM_E_NOT_SUPPORTED (`hipmm describe TYPE` tells).
 * After a failure the option is as it was. Each new value takes some hundred bytes until the resource is destroyed.
 * Calls for one resource are serialised; allocations go on meanwhile. */
enum hipmm_status hipmm_set(const char *path, const char *value);

/* All values and options at or below `prefix` ("devices/0/pool"; NULL: all), as a JSON array of objects with "path",
 * "kind" ("value" or "option"), "value" (null: none, or not to be had), "unit", "doc"; for options also "type",
 * "default" (whether it is its default) and "reloadable" (whether hipmm_set() takes it). */
HIPMM_MUST_CHECK enum hipmm_status hipmm_list(const char *prefix, char **json_out);

/* The state of all stacks as a JSON object: "version", "runtime" and "stacks", an array of objects with "device",
 * "source" (the graph's file), "top", "held_bytes", "peak_held_bytes" and "resources", from the top down. A resource
 * has "name", "type", "path" (null if none leads to it), "below" (the paths of what it stands on), "values", "options"
 * (each {"value", "default", "reloadable"}); a source "held" ({"bytes", "blocks"}); and one that shows its memory
 * "memory":
 *   "live", "free", "pending", "cached"   {"bytes", "blocks"} of what is allocated, free for every stream, free on the
 *                                         stream where it was freed, kept for one thread
 *   "largest_free_bytes"                  of what is free for every stream, the most in one piece; what can be moved
 *                                         under other addresses counts as one piece
 *   "fragmentation"                       1 - largest free / all free; 0 when nothing is free
 *   "streams"                             the same sums for each stream that has any
 *   "pins"                                what keeps free memory apart: the blocks between two free ones that can be
 *                                         joined, those whose end would leave the largest hole first: "joined_bytes"
 *                                         that there would be, "below_bytes" and "above_bytes" free now, and
 *                                         "n_blocks" between, of which "blocks" has the first 16 ("address", "bytes",
 *                                         "state", "stream")
 * Nothing stops for it: what other threads do meanwhile may or may not show. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_snapshot(char **json_out);

/* Frees a text of the functions above. NULL is allowed. */
void hipmm_string_free(char *text);

/* ---- Objects of the program that a graph refers to by name ------------------------------------------------------- */

/* A graph is text; functions and memory of the program are not. The program registers them under a name, and options of
 * the types `callback`, `failure_callback`, `fixed_buffer` and `async_view` name them. The struct is copied; what it
 * points to must last as long as a stack uses it. Registering a name of the same kind again replaces the object for
 * stacks built later; NULL takes the name away. May be called before initialisation, and lasts past finalisation. Names
 * are as those of resources. A bad name, a struct without what it needs, and a name taken away that is not there are
 * HIPMM_E_ARGUMENT. A graph that names what is not registered is refused when the stack is built. */

/* Functions that allocate. `allocate` returns HIPMM_OK and writes a pointer aligned to `alignment` (a power of two, at
 * least 256), or returns another status. `deallocate` cannot fail, and gets what `allocate` got; on its stream work may
 * still use the memory. The resource's device is current. Any thread, several at once. Neither may allocate from the
 * resource that calls it (HIPMM_E_STATE), nor from one above it. */
struct hipmm_allocator {
  size_t struct_size;
  enum hipmm_status (*allocate)(void *arg, size_t bytes, size_t alignment, hipStream_t stream, void **ptr_out);
  void (*deallocate)(void *arg, void *ptr, size_t bytes, size_t alignment, hipStream_t stream);
  void *arg;
};

/* Called when an allocation of `bytes` failed for want of memory; nonzero: try again, 0: let it fail (RMM's contract).
 * It may free memory, and allocate, through hipmm, create and release resources, and wait for threads that end. But a
 * resource above that grows, thread_safe, and a third party's plugin that is not thread-safe hold their locks meanwhile:
 * they refuse what is asked of them (HIPMM_E_STATE), make other threads wait that use them, and do not hear of a stream
 * that is retired in it, so destroy none. A resource in which a call of the thread is under way must not lose its last
 * reference. */
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

/* A driver's pool, a hipMemPool_t. */
struct hipmm_mempool {
  size_t struct_size;
  void *handle;
};

enum hipmm_status hipmm_register_allocator(const char *name, const struct hipmm_allocator *allocator);
enum hipmm_status hipmm_register_failure(const char *name, const struct hipmm_failure_handler *failure);
enum hipmm_status hipmm_register_region(const char *name, const struct hipmm_region *region);
enum hipmm_status hipmm_register_mempool(const char *name, const struct hipmm_mempool *mempool);

/* ---- Streams --------------------------------------------------------------------------------------------------- */

/* Promises that `stream` lives until hipmm_stream_retire(). That makes it cheap: its handle is then known to name the
 * same stream at every call, threads may cache blocks for it, and when another stream wants one of its blocks, an event
 * on it is enough. Without the promise a sub-allocator asks HIP at each call which stream the handle names (where HIP
 * can tell: since a new stream may bear an old handle), and blocks that were freed on it go to other streams only once
 * the device was synchronised. The device's default stream needs no promise. */
enum hipmm_status hipmm_stream_retain(int device, hipStream_t stream);

/* Tells every stack of the stream's device that `stream` is about to be destroyed. Blocks that were freed on it become
 * safe to reuse on any stream. Call it before hipStreamDestroy(). Past hipmm_finalize() it tells the stacks that are
 * still held. */
enum hipmm_status hipmm_stream_retire(int device, hipStream_t stream);

/* ---- Devices --------------------------------------------------------------------------------------------------- */

/* Number of devices of the runtime in use; the current one of the calling thread. */
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_count(int *count_out);
HIPMM_MUST_CHECK enum hipmm_status hipmm_device_current(int *device_out);

/* "amd", "nvidia", "software", or the path that the graph names. NULL before initialisation. */
const char *hipmm_runtime(void);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
