/* SPDX-License-Identifier: MIT */
/* tracking.c: an adaptor that keeps a list of all live allocations, optionally with stack traces, and reports at the end
 * what was never freed.
 *
 * It refuses a free of an unknown pointer and a free with a wrong size, and writes both to the log; RMM's adaptor
 * forwards them. Requests of zero bytes are not listed. */
#include "../../core/base/text.h"
#include "../common/descriptor.h"
#include "../common/live_blocks.h"
#include "../common/stack_traces.h"

#include <stdio.h>

struct tracking_options {
  struct stack_options stack;
  int64_t most_reported;
  uint32_t report_at_end;
};

struct tracking {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct tracking_options options; /* may change while in use: read and written atomically */
  uint64_t refused_frees;
  struct live_blocks live;
  struct stack_traces traces;
};

struct tracking_record {
  struct live_block block;
  uint64_t trace; /* its number; 0: none */
};

/* ---- Stack traces ---- */

static void tracking_log_trace(struct tracking *tracking, const void *from)
{
  uint32_t trace = stack_traces_take(&tracking->traces, &tracking->options.stack, SIZE_MAX, from);
  stack_traces_log(&tracking->traces, trace, HIPMM_LOG_WARNING);
  stack_traces_drop(&tracking->traces, trace);
}

/* ---- Allocating ---- */

/* The address was in the list: its block was freed without this resource. */
static void tracking_report_replaced(struct tracking *tracking, const struct tracking_record *replaced)
{
  if (!replaced->block.ptr) return;
  tracking->services->log(tracking->services, HIPMM_LOG_WARNING,
                          "%p (%zu bytes, allocation %llu) was freed without this resource and is allocated again",
                          replaced->block.ptr, replaced->block.bytes, (unsigned long long)replaced->block.number);
  stack_traces_drop(&tracking->traces, (uint32_t)replaced->trace);
}

static enum hipmm_status tracking_add(struct tracking *tracking, void *ptr, size_t bytes, hipmm_stream_t stream,
                                      const void *from)
{
  struct tracking_record record = {{ptr, bytes, live_blocks_next_number(&tracking->live), stream}, 0}, replaced;
  record.trace = stack_traces_take(&tracking->traces, &tracking->options.stack, bytes, from);
  if (live_blocks_insert(&tracking->live, &record, &replaced)) {
    tracking_report_replaced(tracking, &replaced);
    return HIPMM_OK;
  }
  stack_traces_drop(&tracking->traces, (uint32_t)record.trace);
  return HIPMM_E_OUT_OF_MEMORY;
}

static enum hipmm_status tracking_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                           void **ptr_out)
{
  struct tracking *tracking = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(tracking->upstream, bytes, alignment, stream, &ptr);
  if (!status && ptr) {
    status = tracking_add(tracking, ptr, bytes, stream, __builtin_return_address(0));
    if (status) hipmm_upstream_deallocate(tracking->upstream, ptr, bytes, alignment, stream);
  }
  if (!status) *ptr_out = ptr;
  return status;
}

/* ---- Freeing ---- */

static void tracking_log_refusal(struct tracking *tracking, enum hipmm_status status, const void *ptr, size_t bytes,
                                 const struct live_block *block)
{
  const struct hipmm_services *services = tracking->services;
  __atomic_add_fetch(&tracking->refused_frees, 1, __ATOMIC_RELAXED);
  if (status == HIPMM_E_SIZE)
    services->log(services, HIPMM_LOG_WARNING, "%p is freed with %zu bytes and was allocated with %zu: refused", ptr,
                  bytes, block->bytes);
  else
    services->log(services, HIPMM_LOG_WARNING,
                  "%p is freed with %zu bytes and is not tracked: refused; allocations outstanding: %lld", ptr, bytes,
                  (long long)live_blocks_count(&tracking->live).count);
}

static enum hipmm_status tracking_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                             hipmm_stream_t stream)
{
  struct tracking *tracking = self;
  struct tracking_record record;
  if (!ptr) return hipmm_upstream_deallocate(tracking->upstream, ptr, bytes, alignment, stream);
  enum hipmm_status status = live_blocks_extract(&tracking->live, ptr, bytes, &record);
  if (status) {
    tracking_log_refusal(tracking, status, ptr, bytes, &record.block);
    tracking_log_trace(tracking, __builtin_return_address(0));
    return status;
  }
  status = hipmm_upstream_deallocate(tracking->upstream, ptr, record.block.bytes, alignment, stream);
  if (status) {
    live_blocks_restore(&tracking->live, &record);
    return status;
  }
  live_blocks_settle(&tracking->live, ptr);
  stack_traces_drop(&tracking->traces, (uint32_t)record.trace);
  return status;
}

/* ---- The list ---- */

/* The destination of a list: the log, or a function of the program. */
struct tracking_output {
  void (*write)(void *closure, const char *line);
  void *closure;
  size_t most; /* allocations that are named */
};

static __attribute__((format(printf, 2, 3))) void tracking_write(const struct tracking_output *output,
                                                                 const char *format, ...)
{
  char line[300];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  output->write(output->closure, line);
}

static void tracking_write_list(struct tracking *tracking, const struct live_blocks_list *list,
                                const struct tracking_output *output)
{
  const struct tracking_record *records = (const void *)list->records;
  size_t bytes = 0;
  for (size_t i = 0; i < list->count; i++) bytes += records[i].block.bytes;
  tracking_write(output, "device %d: %zu allocation%s outstanding, %zu byte%s", tracking->services->device, list->count,
                 text_plural(list->count), bytes, text_plural(bytes));
  for (size_t i = 0; i < list->count && i < output->most; i++) {
    tracking_write(output, "%p: %zu B (allocation %llu, stream %p)%s", records[i].block.ptr, records[i].block.bytes,
                   (unsigned long long)records[i].block.number, (void *)records[i].block.stream,
                   records[i].trace ? " : callstack:" : "");
    stack_traces_write(&tracking->traces, (uint32_t)records[i].trace, output->write, output->closure);
  }
  if (list->count > output->most)
    tracking_write(output, "and %zu more (see most_reported)", list->count - output->most);
}

/* A block that another thread frees meanwhile may appear with a wrong trace or without one. */
static enum hipmm_status tracking_write_outstanding(struct tracking *tracking, const struct tracking_output *output)
{
  const struct hipmm_services *services = tracking->services;
  struct live_blocks_list list;
  if (!live_blocks_list(&tracking->live, false, &list))
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the list of allocations");
  tracking_write_list(tracking, &list, output);
  live_blocks_drop_list(&tracking->live, list);
  return HIPMM_OK;
}

struct tracking_log {
  const struct hipmm_services *services;
  enum hipmm_log_level level;
};

static void tracking_log_line(void *closure, const char *line)
{
  const struct tracking_log *log = closure;
  log->services->log(log->services, log->level, "%s", line);
}

static enum hipmm_status tracking_log_outstanding(struct tracking *tracking)
{
  struct tracking_log log = {tracking->services,
                             live_blocks_count(&tracking->live).count ? HIPMM_LOG_WARNING : HIPMM_LOG_INFO};
  const struct tracking_output output = {tracking_log_line, &log,
                                         (size_t)__atomic_load_n(&tracking->options.most_reported, __ATOMIC_RELAXED)};
  return tracking_write_outstanding(tracking, &output);
}

static enum hipmm_status tracking_report(void *self, void (*write)(void *closure, const char *line), void *closure)
{
  const struct tracking_output all = {write, closure, SIZE_MAX};
  return tracking_write_outstanding(self, &all);
}

static enum hipmm_status tracking_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  struct tracking *tracking = self;
  return live_blocks_find_block(&tracking->live, ptr, block_out);
}

static enum hipmm_status tracking_visit(void *self, void (*visitor)(void *closure, const struct hipmm_extent *extent),
                                        void *closure)
{
  struct tracking *tracking = self;
  return live_blocks_visit(&tracking->live, visitor, closure);
}

/* ---- Values and actions ---- */

enum tracking_value { OUTSTANDING_BYTES, OUTSTANDING_COUNT, TOTAL_COUNT, REFUSED_FREES, METADATA_BYTES, N_VALUES };

static const struct hipmm_feature tracking_values[N_VALUES] = {
    [OUTSTANDING_BYTES] = {"outstanding_bytes", "bytes", "Bytes allocated now, as requested"},
    [OUTSTANDING_COUNT] = {"outstanding_count", "allocations", "Allocations live now"},
    [TOTAL_COUNT] = {"total_count", "allocations", "Allocations so far; the number of the latest one"},
    [REFUSED_FREES] = {"refused_frees", "frees", "Refused frees: unknown pointers and wrong sizes"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for the list and the traces"},
};

static void tracking_count(struct tracking *tracking, int64_t *values_out)
{
  struct live_blocks_counts counts = live_blocks_count(&tracking->live);
  values_out[OUTSTANDING_BYTES] = counts.bytes;
  values_out[OUTSTANDING_COUNT] = counts.count;
  values_out[TOTAL_COUNT] = (int64_t)__atomic_load_n(&tracking->live.numbers, __ATOMIC_RELAXED);
  values_out[REFUSED_FREES] = (int64_t)__atomic_load_n(&tracking->refused_frees, __ATOMIC_RELAXED);
  values_out[METADATA_BYTES] = counts.metadata_bytes + stack_traces_metadata_bytes(&tracking->traces);
}

static enum hipmm_status tracking_query(void *self, size_t index, int64_t *value_out)
{
  int64_t values[N_VALUES];
  tracking_count(self, values);
  *value_out = values[index];
  return HIPMM_OK;
}

static enum hipmm_status tracking_trim(void *self, size_t keep_bytes)
{
  struct tracking *tracking = self;
  (void)keep_bytes; /* of device memory */
  live_blocks_trim(&tracking->live);
  return HIPMM_OK;
}

static const struct hipmm_feature tracking_actions[] = {
    {.name = "log_outstanding", .doc = "Writes the list of live allocations to the log, oldest first"},
};

/* There is one action. */
static enum hipmm_status tracking_perform(void *self, size_t index, int64_t *values_out)
{
  (void)index;
  enum hipmm_status status = tracking_log_outstanding(self);
  if (!status) tracking_count(self, values_out);
  return status;
}

/* ---- Life ---- */

static void tracking_set(struct tracking *tracking, const struct tracking_options *given)
{
  stack_options_set(&tracking->options.stack, &given->stack, tracking->services);
  __atomic_store_n(&tracking->options.most_reported, given->most_reported, __ATOMIC_RELAXED);
  __atomic_store_n(&tracking->options.report_at_end, given->report_at_end, __ATOMIC_RELAXED);
}

static enum hipmm_status tracking_reconfigure(void *self, const char *option, const void *options)
{
  (void)option;
  tracking_set(self, options);
  return HIPMM_OK;
}

static enum hipmm_status tracking_create(const struct hipmm_services *services, const void *options,
                                         struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)n_upstreams; /* one, as the descriptor says */
  struct tracking *tracking = services->host_allocate(services, sizeof *tracking);
  if (!tracking) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  tracking->services = services;
  tracking->upstream = upstreams[0];
  tracking_set(tracking, options);
  live_blocks_open(&tracking->live, services, sizeof(struct tracking_record));
  stack_traces_open(&tracking->traces, services);
  *self_out = tracking;
  return HIPMM_OK;
}

static enum hipmm_status tracking_report_end(struct tracking *tracking)
{
  bool is_wanted = __atomic_load_n(&tracking->options.report_at_end, __ATOMIC_RELAXED);
  return is_wanted && live_blocks_count(&tracking->live).count ? tracking_log_outstanding(tracking) : HIPMM_OK;
}

static enum hipmm_status tracking_process_end(void *self, enum hipmm_process_end moment)
{
  return moment == HIPMM_PROCESS_ENDED ? tracking_report_end(self) : HIPMM_OK;
}

static void tracking_destroy(void *self)
{
  struct tracking *tracking = self;
  (void)!tracking_report_end(tracking);
  stack_traces_close(&tracking->traces);
  live_blocks_close(&tracking->live);
  tracking->services->host_free(tracking->services, tracking, sizeof *tracking);
}

static const struct hipmm_option tracking_option_table[] = {
    STACK_OPTIONS(tracking_options, HIPMM_OPTION_RELOADABLE, "512KiB", "64", ", for the list"),
    {.name = "most_reported",
     .type = HIPMM_OPTION_INTEGER,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct tracking_options, most_reported),
     .initial = "100",
     .unit = "allocations",
     .doc = "The most allocations that a list in the log names, oldest first; the rest is only counted",
     .minimum = "0"},
    {.name = "report_at_end",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct tracking_options, report_at_end),
     .initial = "true",
     .doc = "Write the list to the log if allocations are outstanding when the stack is destroyed"},
};

static const struct hipmm_ops tracking_ops = {
    .struct_size = sizeof tracking_ops,
    .allocate = tracking_allocate,
    .deallocate = tracking_deallocate,
    .trim = tracking_trim,
    .query = tracking_query,
    .perform = tracking_perform,
    .process_end = tracking_process_end,
    .find = tracking_find,
    .reconfigure = tracking_reconfigure,
    .visit = tracking_visit,
    .report = tracking_report,
};

HIPMM_EXPORT extern const struct hipmm_plugin tracking_LTX_hipmm_plugin;

const struct hipmm_plugin tracking_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(tracking_option_table, struct tracking_options),
    .type = "tracking",
    .version = "1.0",
    .doc = "Keeps a list of all live allocations, optionally with stack traces, and reports what was never freed",
    PLUGIN_VALUES(tracking_values),
    PLUGIN_ACTIONS(tracking_actions),
    .ops = &tracking_ops,
    .create = tracking_create,
    .destroy = tracking_destroy,
};
