/* SPDX-License-Identifier: MIT */
/* instance.h: a live resource, as callers, plugins and the core see it. */
#ifndef HIPMM_CORE_STACK_INSTANCE_H
#define HIPMM_CORE_STACK_INSTANCE_H

#include "../base/block_map.h"
#include "../base/error.h"
#include "../graph/graph.h"

#include <stdatomic.h>

struct stack;

/* A pointer of the program's own. */
struct instance_user_data {
  void *data;
  void (*release)(void *data);
};

/* What an instance depends on. Never changed, so that it is read without a lock: a further dependency means another
 * struct. The older ones live as long as the instance, and so does everything that they name. */
struct instance_dependencies {
  const struct instance_dependencies *older;
  unsigned depth;           /* longest way down to a source, itself included */
  struct instance **direct; /* its upstreams, then the resources that its options name */
  size_t n_direct;
  struct instance **closure; /* itself and all below it, each once, every one before its dependencies; then NULL */
  size_t n_closure;
  struct instance **finders; /* asked for a block that this instance does not know: of `closure`, in its order */
  size_t n_finders;
};

struct instance {
  struct hipmm_resource resource; /* first: the public handle is the instance's address */
  struct hipmm_services services;
  const struct graph_node *node;
  struct stack *stack;
  atomic_uint references;                   /* the references to the stack that the program holds by this resource */
  struct block_map block_map;               /* of a source */
  struct instance_options *_Atomic options; /* instance_options.h: the current ones */
  struct instance_options *all_options;     /* that were ever current, the newest first */
  struct key_tree_node *options_by_text;    /* instance_options.c: the same by their texts */
  uint64_t free_bytes;                      /* what percentages in its options are of */
  void *self;                               /* the plugin's, as create gave it */
  atomic_int_fast64_t held_bytes, peak_held_bytes; /* of a source: from the runtime */
  bool is_owed;             /* create succeeded, destroy is owed; the builder of the stack alone reads it */
  atomic_bool created;      /* complete with all that it needs, and may be visited */
  atomic_bool is_suspended; /* suspend.c: it has no memory */
  atomic_uint in_program;   /* attempt.c: threads in functions of the program that it has called */
  pthread_mutex_t setting;  /* inspect/settings.c: an option is being set */
  pthread_mutex_t lock;     /* locked_ops.c: for a plugin that is not thread-safe */
  struct instance_user_data user_data;
  struct hipmm_resource **upstreams;
  size_t n_upstreams;

  atomic_uint_fast64_t number; /* among all stacks: higher than the number of each dependency */
  const struct instance_dependencies *_Atomic dependencies;
  const struct instance_dependencies *next_dependencies; /* dependencies.c, under its lock, like the next two */
  struct instance *previous_linked, *next_linked;

  struct instance *next_free; /* instance_memory.c */
};

/* The instance behind a public handle. */
static inline struct instance *instance_from(const struct hipmm_resource *resource)
{
  return (struct instance *)(uintptr_t)resource;
}

/* The instance that has this table of services. */
static inline struct instance *instance_of_services(const struct hipmm_services *services)
{
  return (struct instance *)((char *)(uintptr_t)services - offsetof(struct instance, services));
}

/* The status that an op of the instance returned, for the program: see error_of_op(). A stale resource has refused the
 * call by itself. */
enum hipmm_status instance_fail_op(const struct instance *instance, enum hipmm_status status, const char *op);
static inline enum hipmm_status instance_finish_op(const struct instance *instance, enum hipmm_status status,
                                                   const char *op)
{
  if (__builtin_expect(status != HIPMM_OK, 0)) status = instance_fail_op(instance, status, op);
  return status;
}

/* The ops' deallocate, for the functions with which a call enters hipmm. */
static inline enum hipmm_status instance_deallocate(const struct hipmm_resource *resource, void *ptr, size_t bytes,
                                                    size_t alignment, hipmm_stream_t stream)
{
  return instance_finish_op(instance_from(resource),
                            resource->ops->deallocate(resource->self, ptr, bytes, alignment, stream), "deallocate");
}

/* ---- instance_memory.c ---- */

/* Memory for the `n` instances of a stack, zeroed, with resources that are not live yet. NULL without host memory. */
struct instance *instance_memory_allocate(size_t n);
void instance_memory_free(struct instance *instances, size_t n);

/* Zeroes an instance again: it is not live then. */
void instance_memory_clear(struct instance *instances, size_t n);

/* Whether it is a live resource: any pointer may be asked for. A stale one is recognised until its memory has a new
 * resource. */
bool instance_is_live(const struct hipmm_resource *resource);

#define INSTANCE_NOT_LIVE "resource is not a live resource: it never was one, or its last reference was released"

/* ---- dependencies.c ---- */

/* Sets the dependencies of a new instance: its upstreams and what its options name, all of which exist. */
enum hipmm_status dependencies_open(struct instance *instance);
void dependencies_close(struct instance *instance);

/* Adds a dependency to an instance that may be in use, and so to all that depends on it. Nothing if it is one already.
 * On failure nothing changes: HIPMM_E_CONFIG if `dependency` depends on the instance itself, or the stack gets too
 * deep. */
enum hipmm_status dependencies_add(struct instance *instance, struct instance *dependency);

/* Keeps the first `n` dependencies, and takes those away that were added since, unless there is no host memory for that.
 * They must live as long as the instance all the same. */
void dependencies_truncate(struct instance *instance, size_t n);

/* What the instance depends on now. */
static inline const struct instance_dependencies *dependencies_of(const struct instance *instance)
{
  return atomic_load_explicit(&instance->dependencies, memory_order_acquire);
}

/* A loop over the closure of an instance, and over all in it but the instance itself. */
#define CLOSURE_EACH(one, top)       CLOSURE_EACH_FROM(0, one, top)
#define CLOSURE_EACH_BELOW(one, top) CLOSURE_EACH_FROM(1, one, top)
#define CLOSURE_EACH_FROM(first, one, top) \
  for (struct instance *const *one##_at = dependencies_of(top)->closure + (first), *one; (one = *one##_at); one##_at++)

/* For qsort() of pointers to instances: a later one, which is nearer to the top, comes first. */
int dependencies_by_creation(const void *left, const void *right);

/* Whether `below` is in the closure of `instance`, and another instance. */
bool dependencies_include(const struct instance *instance, const struct instance *below);

/* Whether an instance with HIPMM_PLUGIN_ACCESSES_MEMORY depends on this one. Then writes its name. */
bool dependencies_find_accessor(const struct instance *below, char *name_out, size_t name_bytes);

/* Whether its blocks may be live blocks of a dependency, at the same addresses. */
bool dependencies_forward_blocks(const struct instance *instance);

/* ---- instance.c ---- */

/* The live block at `ptr`, asked of this instance and those below it, each once, and of an instance before its
 * dependencies; HIPMM_E_NOT_SUPPORTED when none can tell. */
enum hipmm_status instance_find(const struct instance *instance, const void *ptr, struct hipmm_block *block_out);
enum hipmm_status instance_find_below(const struct instance *instance, const void *ptr, struct hipmm_block *block_out);

/* The resource that divided, or asked the runtime for, the memory of the block that starts at `ptr`: of this instance and
 * those below it, adaptors left out. NULL if none of them knows the block. */
const struct instance *instance_owner_of(const struct instance *instance, const void *ptr);

/* services->is_kept_below and services->may_cut_up. */
int instance_is_kept_below(const struct hipmm_services *services);
int instance_may_cut_up(const struct hipmm_services *services, const struct hipmm_resource *other,
                        const struct hipmm_resource *resource);

/* The nearest instance, from this one down, whose table of values (or actions) has `name`, and its row; NULL if
 * none. */
const struct instance *instance_with_value(const struct instance *instance, const char *name, size_t *row_out);
const struct instance *instance_with_action(const struct instance *instance, const char *name, size_t *row_out);

/* What a source holds from the runtime now. One with HIPMM_PLUGIN_RECOUNTS is asked for that, so this may call the
 * runtime, and tell watches of held memory; if it fails, nothing is reported, and the last count stands. */
int64_t instance_held_bytes(const struct instance *instance);

/* HIPMM_ACCESS_… for memory of all sources of the closure. */
unsigned instance_access(const struct instance *instance);

/* The suspended instance whose memory an allocation from this one could be served with: itself, or, where it keeps memory
 * of others to divide it, one below; NULL if there is none. */
const struct instance *instance_suspended(const struct instance *instance);

/* A suspended instance that may have the memory of a block of this one: itself, or any below; NULL if there is none. */
const struct instance *instance_suspended_below(const struct instance *instance);

/* The program's pointer: set replaces it, and releases the one before; get returns it. */
void instance_set_user_data(struct instance *instance, struct instance_user_data data);
void *instance_get_user_data(const struct instance *instance);

/* ---- instance_services.c ---- */

/* Fills the instance's table of services; its node and stack are known, and the runtime is open. */
void instance_services_fill(struct instance *instance);

/* ---- held_watch.c: tells resources what sources hold ---- */

/* Tells the watches above the source that its device's sources hold `held_bytes` now, after a change of `bytes`. */
void held_watch_notify(const struct instance *source, int64_t bytes, int64_t held_bytes);

/* services->place, visit_places, watch_held and unwatch_held. */
void held_watch_place(const struct hipmm_services *services, const void *ptr, int64_t bytes);
enum hipmm_status held_watch_visit(const struct hipmm_services *services,
                                   void (*visitor)(void *closure, const char *holder, const void *ptr, int64_t bytes),
                                   void *closure);
enum hipmm_status held_watch_add(const struct hipmm_services *services,
                                 void (*changed)(void *closure, const char *source, int64_t bytes, int64_t held_bytes),
                                 void (*placed)(void *closure, const char *holder, const void *ptr, int64_t bytes),
                                 void *closure);
void held_watch_remove(const struct hipmm_services *services);

/* ---- wrapped_ops.c: lines in the debug log for the calls of a resource, and refusals while it is suspended ---- */

/* From now on, ops that tell the log, and refuse allocations from a suspended instance, take the place of the instance's,
 * whose resource is complete, whenever they are needed. False: there is no host memory for that. */
bool wrapped_ops_install(struct instance *instance);
void wrapped_ops_remove(struct instance *instance);

/* The log wants other lines, or an instance was suspended or resumed. */
void wrapped_ops_choose_all(void);

/* ---- locked_ops.c: one thread at a time for a resource whose plugin is not thread-safe ---- */

/* Initialises a lock that refuses the thread that has it with EDEADLK. */
void locked_ops_init_lock(pthread_mutex_t *lock);

/* Ops whose `self` is the instance; they call the plugin's ops under the instance's lock. A thread that has the lock is
 * refused with HIPMM_E_STATE. */
extern const struct hipmm_ops locked_ops;

#endif
