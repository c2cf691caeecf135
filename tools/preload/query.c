/* SPDX-License-Identifier: MIT */
/* query.c: answers the program's questions about memory; see operations.h. */
#include "operations.h"

#include "../../core/call/device_table.h"
#include "../../core/option/option_value.h"
#include "../../core/stack/instance_options.h"
#include "../../core/stack/physical.h"
#include "blocks.h"
#include "contexts.h"
#include "failure.h"
#include "frameworks.h"
#include "init.h"
#include "next_symbol.h"

#include <hipmm/share.h>
#include <string.h>

enum { ERROR_NOT_FOUND = 500 };

/* ---- How much there is ----
 *
 * A limit counts if every path from the top of the stack to a source leads through it: the value "limit_bytes" (of
 * `limiting`), or the option "maximum_size" (of `pool` and others like it). The process has the graph's "limit_physical". */

static bool query_value(const struct instance *instance, const char *name, uint64_t *value_out)
{
  const struct hipmm_plugin *plugin = &instance->node->plugin->descriptor;
  uint32_t row = descriptor_row(plugin->values, plugin->n_values, name);
  int64_t value;
  if (row == plugin->n_values || instance->resource.ops->query(instance->resource.self, row, &value) || value < 0)
    return false;
  *value_out = (uint64_t)value;
  return true;
}

static const struct hipmm_option *query_size_option(const struct graph_node *node, const char *name)
{
  const struct hipmm_plugin *plugin = &node->plugin->descriptor;
  const struct hipmm_option *row = option_find(plugin->options, plugin->n_options, name);
  return row && row->type == HIPMM_OPTION_BYTES ? row : NULL;
}

static bool query_maximum_size(const struct instance *instance, uint64_t *bytes_out)
{
  const struct hipmm_option *row = query_size_option(instance->node, "maximum_size");
  if (!row) return false;
  memcpy(bytes_out, (const char *)atomic_load(&instance->options)->options + row->offset, sizeof *bytes_out);
  return *bytes_out != HIPMM_UNLIMITED;
}

/* What this resource lets through at most, and how much of it is taken. */
static bool query_limit(const struct instance *instance, uint64_t *limit_out, uint64_t *taken_out)
{
  if (query_value(instance, "limit_bytes", limit_out) && query_value(instance, "allocated_bytes", taken_out))
    return true;
  return query_maximum_size(instance, limit_out) && query_value(instance, "live_bytes", taken_out);
}

/* The same before the resource is built; of a percentage, the share of all memory. */
static bool query_planned_limit(const struct graph_node *node, uint64_t total, uint64_t *limit_out)
{
  const struct hipmm_option *row = query_size_option(node, "limit");
  struct option_number number;
  if (!row) row = query_size_option(node, "maximum_size");
  if (!row || !option_current_number(row, node->object, &number)) return false;
  *limit_out =
      number.is_percent ? option_number_of_percent(number, total, total, device_table_count()) : (uint64_t)number.value;
  return true;
}

/* Whether no source can be reached from the top but through `node`. */
static bool query_all_paths_cross(const struct graph *graph, int top, int node)
{
  bool is_reached[GRAPH_MAX_NODES] = {false};
  is_reached[top] = true;
  for (int i = top; i >= 0; i--) {
    const struct graph_node *at = &graph->nodes[i];
    if (!is_reached[i] || i == node) continue;
    if (at->plugin->descriptor.role == HIPMM_ROLE_SOURCE) return false;
    for (size_t r = 0; r < at->n_references; r++) is_reached[at->references[r]] = true;
  }
  return true;
}

static uint64_t query_least(uint64_t a, uint64_t b)
{
  return a < b ? a : b;
}

/* `left`: NULL for the total alone. */
static void query_apply(uint64_t limit, uint64_t taken, uint64_t *total, uint64_t *left)
{
  *total = query_least(*total, limit);
  if (left) *left = query_least(*left, limit > taken ? limit - taken : 0);
}

static void query_apply_limits(const struct served_device *served, uint64_t *total, uint64_t *left)
{
  const struct stack *stack = served->stack;
  const uint64_t idle = left ? (uint64_t)devices_idle_bytes(served) : 0, held = physical_held_bytes(served->device);
  uint64_t limit, taken;
  if (left) *left += idle;
  query_apply(physical_limit(served->device), held > idle ? held - idle : 0, total, left);
  for (int i = 0; i <= stack->top; i++) {
    const struct instance *instance = &stack->instances[i];
    if (instance->created && query_limit(instance, &limit, &taken) &&
        query_all_paths_cross(stack->graph, stack->top, i))
      query_apply(limit, taken, total, left);
  }
  if (left) *left = query_least(*left, *total);
}

int query_memory_info(enum hook hook, size_t *free_bytes, size_t *total_bytes)
{
  enum family family = hook_family(hook);
  bool is_outermost = reentry_enter();
  bool is_driver = family == FAMILY_DRIVER; /* which refuses the call where no context is current */
  bool is_for_us = is_outermost && (!is_driver || (!init_is_off(family) && contexts_current_device(family) >= 0));
  bool is_served = is_for_us && init_ready(family);
  struct served_device *served = is_served ? devices_get(family, contexts_current_device(family)) : NULL;
  int code = next_two_pointers(hook, free_bytes, total_bytes);
  if (served && !code && free_bytes && total_bytes) query_apply_limits(served, total_bytes, free_bytes);
  return reentry_finish(hook, served ? code ? OUTCOME_FAILED : OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* ---- How much a device has ---- */

/* What query_memory_info() will say. Programs ask so of devices that they never use, so no stack is built for the answer. */
static uint64_t query_limited_total(enum family family, int device, uint64_t total)
{
  struct graph *graph;
  uint64_t limit;
  if (init_is_off(family) || !init_ready_without_wait(family)) return total;
  const struct served_device *served = devices_if_served(device);
  if (served) {
    query_apply_limits(served, &total, NULL);
    return total;
  }
  if (device_table_graph(device, &graph)) return total;
  const int top = graph_top(graph, device);
  for (int i = 0; i <= top; i++)
    if (query_planned_limit(&graph->nodes[i], total, &limit) && query_all_paths_cross(graph, top, i))
      query_apply(limit, 0, &total, NULL);
  graph_release(graph);
  query_apply(physical_expected_limit(device, total), 0, &total, NULL);
  return total;
}

int query_total(enum hook hook, size_t *bytes, int device)
{
  bool is_outermost = init_enter();
  int code = ((int (*)(size_t *, int))next_function_of(hook))(bytes, device);
  if (is_outermost && !code && bytes) *bytes = query_limited_total(hook_family(hook), device, *bytes);
  reentry_leave();
  return code;
}

/* Where totalGlobalMem lies: behind the name up to HIP 5; behind the name and the identifiers since HIP 6 and CUDA 10. A
 * runtime may have either layout under each name of its function, so HIP's is the one that has the device's total there. */
static size_t query_place_of_total(enum family family, const char *properties, int device)
{
  enum { BEFORE_6 = 256, SINCE_6 = 288 };
  size_t total = 0, found = 0;
  next_function next = family == FAMILY_HIP ? next_find(HOOK_hipDeviceTotalMem) : NULL;
  if (!next || ((int (*)(size_t *, int))next)(&total, device)) return SINCE_6;
  memcpy(&found, properties + BEFORE_6, sizeof found);
  return found == total ? BEFORE_6 : SINCE_6;
}

int query_properties(enum hook hook, void *properties, int device)
{
  size_t total;
  bool is_outermost = init_enter();
  int code = ((int (*)(void *, int))next_function_of(hook))(properties, device);
  if (is_outermost && !code && properties) {
    char *place = (char *)properties + query_place_of_total(hook_family(hook), properties, device);
    memcpy(&total, place, sizeof total);
    total = query_limited_total(hook_family(hook), device, total);
    memcpy(place, &total, sizeof total);
  }
  reentry_leave();
  return code;
}

/* ---- Where it is ---- */

static bool query_may_look(bool is_outermost, const void *ptr)
{
  return is_outermost && ptr && init_was_ready() && !init_is_forked();
}

static bool query_find_block(bool is_outermost, const void *ptr, struct block *block_out)
{
  return query_may_look(is_outermost, ptr) && blocks_find(ptr, block_out);
}

/* What the stacks hold at a pointer that the runtime knows. For the program free memory is unknown. */
static enum blocks_held query_find_held(bool is_outermost, const void *ptr, struct block *block_out)
{
  return query_may_look(is_outermost, ptr) ? blocks_find_held(ptr, block_out) : BLOCKS_NOT_HELD;
}

int query_address_range(enum hook hook, void **base, size_t *bytes, void *ptr)
{
  typedef int range_function(void **base, size_t *bytes, void *ptr);
  struct block block;
  int code = 0;
  bool is_outermost = reentry_enter(), is_ours = (base || bytes) && query_find_block(is_outermost, ptr, &block);
  if (!is_ours) code = ((range_function *)next_function_of(hook))(base, bytes, ptr);
  enum blocks_held held = is_ours || code ? BLOCKS_NOT_HELD : query_find_held(is_outermost, ptr, &block);
  if (held == BLOCKS_HELD_FREE) code = failure_set(hook_family(hook), ERROR_NOT_FOUND);
  is_ours |= held == BLOCKS_HELD_LIVE;
  if (is_ours && base) *base = block_start(&block);
  if (is_ours && bytes) *bytes = block_bytes(&block);
  return reentry_finish(hook, is_ours ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* The runtime knows only the beginning of its own allocation. */
int query_size(enum hook hook, void *ptr, size_t *bytes)
{
  struct block block;
  bool is_outermost = reentry_enter();
  enum blocks_held held = bytes ? query_find_held(is_outermost, ptr, &block) : BLOCKS_NOT_HELD;
  if (held == BLOCKS_HELD_FREE)
    return reentry_finish(hook, OUTCOME_PASSED, failure_set(hook_family(hook), HIPMM_HIP_ERROR_INVALID_VALUE));
  if (held != BLOCKS_HELD_LIVE || block_start(&block) != ptr)
    return reentry_finish(hook, OUTCOME_PASSED, next_two_pointers(hook, ptr, bytes));
  *bytes = block_bytes(&block);
  return reentry_finish(hook, OUTCOME_SERVED, 0);
}

/* As hipPointer_attribute and CUpointer_attribute number them. */
enum {
  ATTRIBUTE_CONTEXT = 1,
  ATTRIBUTE_BUFFER_ID = 7,
  ATTRIBUTE_LEGACY_IPC = 10,
  ATTRIBUTE_RANGE_START = 11,
  ATTRIBUTE_RANGE_SIZE = 12
};

/* Writes as many bytes as HIP and the driver do: numbers have 32 bits in HIP, and 64 in the driver, which are the same
 * bytes first. The driver knows no context of mapped memory. False for attributes that are those of the runtime's
 * allocation. */
static bool query_answer_attribute(enum family family, const struct block *block, int attribute, void *data)
{
  bool is_driver = family == FAMILY_DRIVER;
  uint64_t id = block->id, bytes = block_bytes(block);
  void *start = block_start(block), *context = NULL;
  size_t width = is_driver ? sizeof id : sizeof block->id;
  switch (attribute) {
  case ATTRIBUTE_BUFFER_ID:
    if (id) memcpy(data, &id, width);
    return id != 0;
  case ATTRIBUTE_RANGE_START: memcpy(data, &start, sizeof start); return true;
  case ATTRIBUTE_RANGE_SIZE: memcpy(data, &bytes, width); return true;
  case ATTRIBUTE_CONTEXT:
    if (is_driver && block->kind == KIND_DEVICE) context = contexts_primary(block->served->device);
    if (context) memcpy(data, &context, sizeof context);
    return context != NULL;
  default: return false;
  }
}

/* The driver has no IPC handles of mapped memory, and says so; hipmm may have one, and UCX asks for none where the answer is no:
 * then it copies through host memory, and says nothing. The driver has written its answer, of as many bytes as it likes. */
static void query_amend_attribute(const struct block *block, int attribute, void *data)
{
  static const uint64_t worth_a_word = 1 << 20; /* a pool may share blocks from this size on */
  static atomic_bool is_written;
  struct hipmm_share_pointer pointer;
  void *base = NULL;
  size_t bytes = 0;
  if (attribute != ATTRIBUTE_LEGACY_IPC || block->kind != KIND_DEVICE) return;
  if (!devices_are_mapped_at(block_start(block), &base, &bytes)) return;
  if (!hipmm_share_export_pointer(block->served->resources[KIND_DEVICE], block_start(block), &pointer))
    *(unsigned char *)data = 1;
  else if (block_bytes(block) >= worth_a_word)
    message_write_once(
        &is_written,
        "a library asked whether other processes can open a block, as it does before direct copies; they cannot: %s",
        hipmm_last_error_message());
}

/* Whether the driver's answer is not the block's. */
static bool query_is_of_block(int attribute)
{
  return attribute == ATTRIBUTE_CONTEXT || attribute == ATTRIBUTE_BUFFER_ID || attribute == ATTRIBUTE_RANGE_START ||
         attribute == ATTRIBUTE_RANGE_SIZE;
}

/* query_find_held() for such a question, and for others, whose answer is the driver's own if the block is live. For those it is
 * not worth a look at every extent where the package allocates too: most pointers that are in no block of the program's calls are
 * its blocks then, and a compiled kernel asks for each of its arguments at each launch. Free memory is answered for as the driver
 * does. */
static enum blocks_held query_look(bool is_of_block, bool is_outermost, const void *ptr, struct block *block_out)
{
  return is_of_block || !frameworks_are_attached() ? query_find_held(is_outermost, ptr, block_out) : BLOCKS_NOT_HELD;
}

int query_attribute(enum hook hook, void *data, int attribute, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter(), is_ours = data && query_find_block(is_outermost, ptr, &block);
  if (is_ours && query_answer_attribute(hook_family(hook), &block, attribute, data))
    return reentry_finish(hook, OUTCOME_SERVED, 0);
  int code = ((int (*)(void *, int, void *))next_function_of(hook))(data, attribute, ptr);
  if (is_ours && !code) query_amend_attribute(&block, attribute, data);
  if (is_ours || code) return reentry_finish(hook, is_ours ? OUTCOME_SERVED : OUTCOME_PASSED, code);
  enum blocks_held held = query_look(query_is_of_block(attribute), is_outermost, ptr, &block);
  if (held == BLOCKS_HELD_FREE) code = failure_set(hook_family(hook), HIPMM_HIP_ERROR_INVALID_VALUE);
  bool is_answered = held == BLOCKS_HELD_LIVE && query_answer_attribute(hook_family(hook), &block, attribute, data);
  return reentry_finish(hook, is_answered ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* An address that the runtime does not know. Its answer for such an address differs between releases. */
static char unknown;

/* Whether the runtime knows the pointer at all: many that it is asked for are of the host. */
static bool query_is_known(enum family family, void *ptr)
{
  enum { MEMORY_TYPE = 2 };
  int type = 0;
  next_function next = family == FAMILY_DRIVER ? next_find(HOOK_cuPointerGetAttribute) : NULL;
  return !next || !((int (*)(void *, int, void *))next)(&type, MEMORY_TYPE, ptr);
}

int query_attribute_list(enum hook hook, unsigned count, int *attributes, void **data, void *ptr)
{
  typedef int list_function(unsigned count, int *attributes, void **data, void *ptr);
  struct block block;
  bool is_outermost = reentry_enter(), is_ours = attributes && data && query_find_block(is_outermost, ptr, &block);
  bool is_known = !is_ours && attributes && data && is_outermost && query_is_known(hook_family(hook), ptr);
  enum blocks_held held = is_known ? query_find_held(is_outermost, ptr, &block) : BLOCKS_NOT_HELD;
  is_ours |= held == BLOCKS_HELD_LIVE;
  int code =
      ((list_function *)next_function_of(hook))(count, attributes, data, held == BLOCKS_HELD_FREE ? &unknown : ptr);
  for (unsigned i = 0; is_ours && !code && i < count; i++)
    if (!query_answer_attribute(hook_family(hook), &block, attributes[i], data[i]))
      query_amend_attribute(&block, attributes[i], data[i]);
  return reentry_finish(hook, is_ours ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* The beginning of hipPointerAttribute_t and cudaPointerAttributes; CUDA's ends before is_managed. */
struct pointer_attributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};

/* An address without a device pointer is not even looked up: libraries ask for each of their host buffers. */
int query_attributes(enum hook hook, void *attributes, const void *ptr)
{
  struct block block;
  struct pointer_attributes *found = attributes, before;
  bool is_outermost = reentry_enter(), is_ours = found && query_find_block(is_outermost, ptr, &block);
  bool is_hip = hook_family(hook) == FAMILY_HIP;
  size_t bytes = is_hip ? sizeof before : offsetof(struct pointer_attributes, is_managed);
  if (found) memcpy(&before, found, bytes);
  int code = next_two_pointers(hook, attributes, ptr);
  if (is_ours && !code && is_hip && block.kind == KIND_PINNED) found->flags = block.flags;
  if (!is_ours && !code && found->device_pointer && query_look(false, is_outermost, ptr, &block) == BLOCKS_HELD_FREE) {
    memcpy(found, &before, bytes); /* what a call that fails leaves */
    code = next_two_pointers(hook, attributes, &unknown);
  }
  return reentry_finish(hook, is_ours ? OUTCOME_SERVED : OUTCOME_PASSED, code);
}

/* The flags are the program's: the resource may have allocated with others. */
int query_host_flags(enum hook hook, unsigned *flags, void *ptr)
{
  struct block block;
  bool is_outermost = reentry_enter();
  if (!flags || !query_find_block(is_outermost, ptr, &block) || block.kind != KIND_PINNED)
    return reentry_finish(hook, OUTCOME_PASSED, next_two_pointers(hook, flags, ptr));
  *flags = block.flags;
  return reentry_finish(hook, OUTCOME_SERVED, 0);
}
