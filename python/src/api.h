/* SPDX-License-Identifier: MIT */
/* api.h: the functions of libhipmm that the extension calls, as a table of pointers: `api.buffer_create` is
 * hipmm_buffer_create(). They are those of the package's own libhipmm; or, in a process of `hipmm run`, those of the object
 * that serves the process (preload.so has a core of its own), so that Python's memory and all other calls are served by one
 * stack, and are in one report. Included through extension.h. */
#ifndef HIPMM_PYTHON_SRC_API_H
#define HIPMM_PYTHON_SRC_API_H

#include <hipmm/buffer.h>
#include <hipmm/control.h>
#include <hipmm/hipmm.h>
#include <hipmm/inspect.h>
#include <hipmm/reserve.h>
#include <hipmm/share.h>
#include <hipmm/span.h>
#include <hipmm/spill.h>
#include <hipmm/stream.h>
#include <hipmm/torch.h>

/* clang-format off */
#define API_FUNCTIONS(X) \
  X(allocate_aligned) X(allocator_register) X(buffer_bytes) X(buffer_capacity_bytes) X(buffer_copy) \
  X(buffer_create) X(buffer_data) X(buffer_destroy) X(buffer_device) X(buffer_fill) X(buffer_read) \
  X(buffer_read_async) X(buffer_reserve) X(buffer_resize) X(buffer_resource) X(buffer_shrink_to_fit) \
  X(buffer_stream) X(buffer_try_create) X(buffer_try_destroy) X(buffer_write) X(call_site) X(buffer_write_async) X(control_register) X(control_reply) X(deallocate_aligned) X(device_attribute) X(device_count) \
  X(device_current) X(device_held_bytes) X(device_memory) X(device_name) X(device_set) X(driver_version) \
  X(failure_handler_register) X(finalize) X(get) X(init) X(init_from_file) X(init_from_string) X(init_if_needed) \
  X(is_initialized) X(last_error) X(list) X(log_set_sink) X(mempool_register) X(movable_create) X(movable_destroy) X(movable_pin) X(movable_unpin) X(query) X(reservation_release) X(reservation_resize) X(reserve) X(resource_create_from) \
  X(resource_access) X(resource_device) X(resource_get_by_name) X(resource_get_current) X(resource_get_for_device) X(resource_name) \
  X(resource_perform) X(resource_query) X(resource_release) X(resource_report) X(resource_reset_peaks) \
  X(resource_resume) X(resource_retain) X(resource_set_for_device) X(resource_suspend) X(resource_trim) X(resource_type) X(resource_upstream) \
  X(resource_upstream_count) X(resource_visit_blocks) X(runtime) X(runtime_version) X(set) X(share_import_pointer) X(snapshot) \
  X(span_commit) X(span_create) X(span_decommit) X(span_destroy) X(statistics_get) X(statistics_pop) X(statistics_push) X(stream_create) X(stream_destroy) X(stream_is_default) \
  X(stream_query) X(stream_retain) X(stream_retire) X(stream_synchronize) X(stream_wait) X(string_free) \
  X(tag_pop) X(tag_push) X(torch_memory) X(torch_reset_peak) X(version)
/* clang-format on */

struct api {
#define API_MEMBER(name) __typeof__(hipmm_##name) *name;
  API_FUNCTIONS(API_MEMBER)
#undef API_MEMBER
};

extern struct api api;

/* Chooses the functions, once, before the first call. Where the process is not under `hipmm run`, or that is another version
 * of hipmm, they stay the package's. */
void api_choose(void);

/* Any public function, by its whole name; NULL if there is none. */
void *api_function(const char *name);

/* The file of the functions in use; NULL if it is not known. */
const char *api_file(void);

/* Whether the functions are those of `hipmm run`. */
bool api_is_of_run(void);

#endif
