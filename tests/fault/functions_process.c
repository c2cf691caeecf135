/* SPDX-License-Identifier: MIT */
/* functions_process.c: scenarios of memory of other processes, of frameworks, and of what a program registers; see
 * functions.h. */
#include "functions.h"

#include <hipmm/control.h>
#include <hipmm/inspect.h>
#include <hipmm/share.h>
#include <hipmm/torch.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Other processes ---- */

static void share(const void *argument)
{
  struct hipmm_resource *shared = NULL, *imported = NULL, *memory = NULL;
  struct hipmm_share_pointer pointer;
  struct hipmm_share_block block;
  struct hipmm_share_part parts[8];
  void *ptr = NULL, *seen = NULL;
  int fd = -1;
  (void)argument;
  memset(&pointer, 0, sizeof pointer);
  memset(&block, 0, sizeof block);
  SWEEP_OUT(shared, hipmm_resource_get_by_name, 0, "shared");
  SWEEP_OUT(ptr, hipmm_allocate, shared, BYTES, NULL);
  SWEEP_OUT(fd, hipmm_share_export_fd, shared);
  SWEEP_OUT(pointer, hipmm_share_export_pointer, shared, ptr);
  SWEEP_OUT(imported, hipmm_share_import_fd, 0, fd);
  SWEEP_OUT(seen, hipmm_share_import_pointer, imported, &pointer);
  SWEEP(hipmm_deallocate, imported, seen, 0, NULL);
  SWEEP(hipmm_deallocate, shared, ptr, BYTES, NULL);
  close(fd);
  hipmm_resource_release(imported);
  hipmm_resource_release(shared);
  SWEEP(hipmm_share_export_block, NULL, bystanders[2], &block, parts, 8);
  seen = NULL;
  SWEEP_OUT(memory, hipmm_resource_get_by_name, 0, "memory");
  SWEEP_OUT(seen, hipmm_share_import_block, memory, &block, parts, block.n_parts);
  expect(seen && holds(seen, BYTES, 0x52), "an imported block has other data");
  for (size_t i = 0; i < block.n_parts; i++) close(parts[i].fd);
  SWEEP(hipmm_deallocate, memory, seen, block.bytes, NULL);
  hipmm_resource_release(memory);
}

/* ---- Frameworks ---- */

/* Tries a function that returns a pointer twice. */
#define TWICE(pointer, function, ...)            \
  (pointer = SWEEP_PLAIN(function, __VA_ARGS__), \
   !(pointer) && sweep_may_fail() ? (pointer) = function(__VA_ARGS__) : (pointer))

static void use_torch(const void *argument)
{
  const struct hipmm_torch_pool pool = {1, 2};
  void *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;
  size_t bytes = 0, live = 0, peak = 0;
  (void)argument;
  SWEEP_PLAIN(hipmm_torch_on_failure, NULL);
  SWEEP_PLAIN(hipmm_torch_init, 2);
  expect(TWICE(first, hipmm_torch_malloc, BYTES, 0, stream), "hipmm_torch_malloc");
  SWEEP_PLAIN(hipmm_torch_record_stream, first, NULL);
  SWEEP_PLAIN(hipmm_torch_begin_allocate_to_pool, 0, pool, NULL);
  TWICE(second, hipmm_torch_malloc, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_end_allocate_to_pool, 0, pool);
  SWEEP_PLAIN(hipmm_torch_free, second, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_release_pool, 0, pool);
  SWEEP_PLAIN(hipmm_torch_memory_fraction, 1.0, 0);
  SWEEP(hipmm_torch_memory, 0, &live, &peak);
  SWEEP(hipmm_torch_reset_peak, 0);
  expect(SWEEP_PLAIN(hipmm_torch_base_alloc, first, &bytes) == first && bytes == BYTES,
         "a block of torch is not known");
  SWEEP_PLAIN(hipmm_torch_is_allocation, first);
  SWEEP_PLAIN(hipmm_torch_free, first, BYTES, 0, stream);
  SWEEP_OUT(fourth, hipmm_torch_try_malloc, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_free, fourth, BYTES, 0, stream);
  SWEEP_PLAIN(hipmm_torch_reset);
  expect(TWICE(third, hipmm_cupy_malloc, stream, BYTES, 0), "hipmm_cupy_malloc");
  SWEEP_PLAIN(hipmm_cupy_free, stream, third, 0);
}

/* ---- What a program registers; the log ---- */

static enum hipmm_status never_allocate(void *arg, size_t bytes, size_t alignment, hipmm_stream_t on, void **ptr_out)
{
  (void)arg, (void)bytes, (void)alignment, (void)on, (void)ptr_out;
  return HIPMM_E_OUT_OF_MEMORY;
}

static void never_free(void *arg, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t on)
{
  (void)arg, (void)ptr, (void)bytes, (void)alignment, (void)on;
}

static int give_up(void *arg, size_t bytes)
{
  (void)arg, (void)bytes;
  return 0;
}

static void ignore_event(void *arg, const struct hipmm_event *event)
{
  (void)arg, (void)event;
}

static void ignore_request(void *arg)
{
  (void)arg;
}

static void register_objects(const void *argument)
{
  static char region_memory[256];
  const struct hipmm_allocator allocator = {sizeof allocator, never_allocate, never_free, NULL};
  const struct hipmm_failure_handler failure = {sizeof failure, give_up, NULL};
  const struct hipmm_region region = {sizeof region, region_memory, sizeof region_memory};
  const struct hipmm_mempool mempool = {sizeof mempool, region_memory};
  const struct hipmm_hooks hooks = {sizeof hooks, 0, ignore_event, NULL};
  (void)argument;
  SWEEP(hipmm_allocator_register, "mine", &allocator);
  SWEEP(hipmm_failure_handler_register, "mine", &failure);
  SWEEP(hipmm_region_register, "mine", &region);
  SWEEP(hipmm_mempool_register, "mine", &mempool);
  SWEEP(hipmm_hooks_register, "mine", &hooks);
  SWEEP(hipmm_hooks_register, "mine", NULL);
  SWEEP(hipmm_control_register, "suspend", ignore_request, NULL);
  expect(SWEEP_PLAIN(hipmm_control_reply, "suspend", HIPMM_OK) == HIPMM_E_STATE, "nobody has asked, and has a reply");
  SWEEP(hipmm_control_register, "suspend", NULL, NULL);
  SWEEP(hipmm_allocator_register, "mine", NULL);
  SWEEP(hipmm_failure_handler_register, "mine", NULL);
  SWEEP(hipmm_region_register, "mine", NULL);
  SWEEP(hipmm_mempool_register, "mine", NULL);
}

static void ignore_line(void *arg, enum hipmm_log_level level, const char *about, const char *message)
{
  (void)arg, (void)level, (void)about, (void)message;
}

static void use_the_log(const void *argument)
{
  struct hipmm_error error = {.struct_size = sizeof error};
  enum hipmm_log_level level = SWEEP_PLAIN(hipmm_log_get_level);
  int refused = -1;
  (void)argument;
  SWEEP(hipmm_tag_push, "layer 7");
  SWEEP(hipmm_tag_pop);
  SWEEP(hipmm_log_set_file, log_file);
  SWEEP(hipmm_log_set_level, HIPMM_LOG_DEBUG);
  if (!hipmm_resource_query(NULL, "nothing", &(int64_t){0})) sweep_note("there is a value \"nothing\"");
  SWEEP_PLAIN(hipmm_last_error, &error);
  expect((error.status == HIPMM_E_ARGUMENT || sweep_may_fail()) && *SWEEP_PLAIN(hipmm_last_error_message),
         "an error has no record");
  SWEEP(hipmm_trim, 0); /* tells the log */
  SWEEP(hipmm_log_set_level, level);
  SWEEP(hipmm_log_set_sink, ignore_line, NULL, HIPMM_LOG_ERROR);
  SWEEP(hipmm_log_set_sink, NULL, NULL, HIPMM_LOG_ERROR);
  refused = SWEEP_PLAIN(hipmm_host_allocator_set, NULL) != HIPMM_OK; /* hipmm holds memory */
  expect(refused, "the host allocator was replaced while hipmm holds memory");
  expect(*SWEEP_PLAIN(hipmm_version) && SWEEP_PLAIN(hipmm_version_number) == HIPMM_VERSION, "the version is wrong");
  expect(*SWEEP_PLAIN(hipmm_status_string, HIPMM_OK) && *SWEEP_PLAIN(hipmm_runtime), "a text is missing");
}

static void end_log(const void *argument)
{
  end(argument);
  if (hipmm_log_set_file(getenv("HIPMM_LOG_OF_TEST"))) sweep_note("the log cannot be set back");
}

/* ---- Scenarios ---- */

const struct sweep_scenario process_scenarios[] = {
    {.name = "sharing", .begin = begin, .run = share, .end = end},
    {.name = "torch", .begin = begin, .run = use_torch, .end = end},
    {.name = "registration", .begin = begin, .run = register_objects, .end = end},
    {.name = "log", .begin = begin, .run = use_the_log, .end = end_log},
};

const size_t n_process_scenarios = sizeof process_scenarios / sizeof *process_scenarios;
