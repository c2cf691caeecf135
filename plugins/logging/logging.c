/* SPDX-License-Identifier: MIT */
/* logging.c: an adaptor that writes a row for each allocation and free to a file, in RMM's format (row.h), which RMM's
 * tools and `hipmm replay` read. The calling thread adds the row; another thread writes it (sink.h).
 *
 * As in RMM, the row of an allocation is added after it succeeded and the row of a free before it is forwarded, so the
 * rows of an address are in true order with any number of threads. Where the upstream then refuses the free, a row "free
 * failure" follows. A free without a size is written with the block's size. */
#include "../../core/base/output_file.h"
#include "../common/descriptor.h"
#include "sink.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct logging_options {
  const char *file;
  uint32_t append, auto_flush, enabled;
  uint64_t rotate_size;
  int64_t rotate_files;
};

struct logging {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  struct sink *sink;
  atomic_bool is_enabled;
};

/* ---- Allocating and freeing ---- */

static bool logging_is_enabled(struct logging *logging)
{
  return __builtin_expect(atomic_load_explicit(&logging->is_enabled, memory_order_relaxed), 1);
}

static enum hipmm_status logging_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                          void **ptr_out)
{
  struct logging *logging = self;
  void *ptr = NULL;
  enum hipmm_status status = hipmm_upstream_allocate(logging->upstream, bytes, alignment, stream, &ptr);
  if (__builtin_expect(status != HIPMM_OK, 0) && hipmm_is_tried_again(logging->services, status)) return status;
  if (logging_is_enabled(logging))
    sink_add(logging->sink, status ? ROW_ALLOCATE_FAILURE : ROW_ALLOCATE, ptr, bytes, stream);
  if (!status) *ptr_out = ptr;
  return status;
}

static enum hipmm_status logging_deallocate(void *self, void *ptr, size_t bytes, size_t alignment,
                                            hipmm_stream_t stream)
{
  struct logging *logging = self;
  struct hipmm_block block = {.ptr = ptr, .bytes = bytes};
  if (!logging_is_enabled(logging)) return hipmm_upstream_deallocate(logging->upstream, ptr, bytes, alignment, stream);
  if (ptr && !bytes && logging->services->find_below(logging->services, ptr, &block)) block.bytes = 0;
  sink_add(logging->sink, ROW_FREE, ptr, block.bytes, stream);
  enum hipmm_status status = hipmm_upstream_deallocate(logging->upstream, ptr, bytes, alignment, stream);
  if (__builtin_expect(status != HIPMM_OK, 0)) sink_add(logging->sink, ROW_FREE_FAILURE, ptr, block.bytes, stream);
  return status;
}

/* ---- Values and actions ---- */

enum logging_value { ROWS, LOST_ROWS, METADATA_BYTES, N_VALUES };

static const struct hipmm_feature logging_values[N_VALUES] = {
    [ROWS] = {"rows", "rows", "Rows so far, including those not yet written"},
    [LOST_ROWS] = {"lost_rows", "rows", "Rows that could not be written"},
    [METADATA_BYTES] = {"metadata_bytes", "bytes", "Host memory for rows that are not yet written"},
};

static void logging_count(struct logging *logging, int64_t *values_out)
{
  struct sink_counts counts = sink_count(logging->sink);
  values_out[ROWS] = counts.rows;
  values_out[LOST_ROWS] = counts.lost_rows;
  values_out[METADATA_BYTES] = counts.metadata_bytes;
}

static enum hipmm_status logging_query(void *self, size_t index, int64_t *value_out)
{
  int64_t values[N_VALUES];
  logging_count(self, values);
  *value_out = values[index];
  return HIPMM_OK;
}

static const struct hipmm_feature logging_actions[] = {
    {.name = "flush", .doc = "Writes all rows so far to the file"},
};

/* There is one action. */
static enum hipmm_status logging_perform(void *self, size_t index, int64_t *values_out)
{
  struct logging *logging = self;
  (void)index;
  enum hipmm_status status = sink_flush(logging->sink);
  logging_count(logging, values_out);
  return status;
}

/* ---- Life ---- */

struct logging_opening {
  const struct logging *logging;
  const struct logging_options *given;
  struct sink *sink;
};

static enum hipmm_status logging_open_log(void *closure, const char *name, enum log_file_clash *clash_out)
{
  struct logging_opening *opening = closure;
  const struct logging_options *given = opening->given;
  const struct log_file_spec spec = {name, given->append, given->rotate_size, given->rotate_files};
  return sink_open(opening->logging->services, &spec, given->auto_flush, clash_out, &opening->sink);
}

/* The default is RMM's environment variable, as in RMM. */
static const char *logging_file_wanted(const struct logging_options *options)
{
  return options->file ? options->file : secure_getenv("RMM_LOG_FILE");
}

/* Two resources of one stack may share a terminal or a pipe, but no file. */
static bool logging_is_stream(const char *name)
{
  struct stat status;
  return !stat(name, &status) && !S_ISREG(status.st_mode);
}

static void logging_validate(const struct hipmm_validation *validation, const void *options)
{
  const struct logging_options *given = options;
  const char *pattern = logging_file_wanted(given), *other = validation->same_as(validation, "file");
  if (!pattern || !*pattern) {
    validation->error(validation, pattern ? "file" : NULL,
                      "the name of a file is missing; write \"file\": \"hipmm.%%r.csv\", or set RMM_LOG_FILE");
    return;
  }
  log_file_validate(validation, "file", pattern);
  if (given->rotate_size && given->rotate_size < 2 * OUTPUT_BYTES)
    validation->error(validation, "rotate_size", "%llu bytes are too few; write 0 or at least \"128KiB\"",
                      (unsigned long long)given->rotate_size);
  if (other && !logging_is_stream(pattern))
    validation->error(validation, "file",
                      "resource \"%s\" of the same stack writes \"%.500s\" too; give each a file of its own", other,
                      pattern);
}

static enum hipmm_status logging_create(const struct hipmm_services *services, const void *options,
                                        struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct logging_options *given = options;
  const char *pattern = logging_file_wanted(given);
  (void)n_upstreams; /* one, as the descriptor says */
  struct logging *logging = services->host_allocate(services, sizeof *logging);
  if (!logging) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  logging->services = services;
  logging->upstream = upstreams[0];
  atomic_init(&logging->is_enabled, given->enabled);
  struct logging_opening opening = {.logging = logging, .given = given};
  enum hipmm_status status = log_file_open_own(services, "logging", pattern, logging_open_log, &opening);
  logging->sink = opening.sink;
  if (status)
    services->host_free(services, logging, sizeof *logging);
  else
    *self_out = logging;
  return status;
}

/* Only `enabled` may change. */
static enum hipmm_status logging_reconfigure(void *self, const char *option, const void *options)
{
  struct logging *logging = self;
  const struct logging_options *given = options;
  (void)option;
  atomic_store_explicit(&logging->is_enabled, given->enabled, memory_order_relaxed);
  return HIPMM_OK;
}

static void logging_destroy(void *self)
{
  struct logging *logging = self;
  sink_close(logging->sink);
  logging->services->host_free(logging->services, logging, sizeof *logging);
}

static const struct hipmm_option logging_option_table[] = {
    {.name = "file",
     .type = HIPMM_OPTION_STRING,
     .offset = offsetof(struct logging_options, file),
     .doc = "Name of the file, such as \"hipmm.%r.csv\"; " LOG_FILE_NAMES
            ". Default: the environment variable RMM_LOG_FILE",
     .variable = "RMM_LOG_FILE"},
    {.name = "append",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct logging_options, append),
     .initial = "false",
     .doc =
         "Add rows to what the file has; without it, an old file is overwritten. Several processes may append to one "
         "file that is not rotated"},
    {.name = "rotate_size",
     .type = HIPMM_OPTION_BYTES,
     .offset = offsetof(struct logging_options, rotate_size),
     .initial = "0",
     .unit = "bytes",
     .doc = "The most that one file has; then it is renamed to FILE.1, an older FILE.1 to FILE.2 and so on, and a new "
            "file begins. 0: one file of any size; else at least 128KiB"},
    {.name = "rotate_files",
     .type = HIPMM_OPTION_INTEGER,
     .offset = offsetof(struct logging_options, rotate_files),
     .initial = "1",
     .unit = "files",
     .doc = "How many renamed files stay; the oldest is overwritten",
     .minimum = "1",
     .maximum = "1000"},
    {.name = "auto_flush",
     .type = HIPMM_OPTION_BOOL,
     .offset = offsetof(struct logging_options, auto_flush),
     .initial = "false",
     .doc = "Write each row at once, which is slow. Without it, a crash or _exit loses the rows of the last 10 ms"},
    {.name = "enabled",
     .type = HIPMM_OPTION_BOOL,
     .flags = HIPMM_OPTION_RELOADABLE,
     .offset = offsetof(struct logging_options, enabled),
     .initial = "true",
     .doc = "Whether rows are written; the file is created in any case. A block that is allocated while this is off "
            "and freed while it is on has a row only for its free"},
};

static const struct hipmm_ops logging_ops = {
    .struct_size = sizeof logging_ops,
    .allocate = logging_allocate,
    .deallocate = logging_deallocate,
    .query = logging_query,
    .perform = logging_perform,
    .reconfigure = logging_reconfigure,
};

HIPMM_EXPORT extern const struct hipmm_plugin logging_LTX_hipmm_plugin;

const struct hipmm_plugin logging_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_ADAPTOR,
    PLUGIN_OPTIONS(logging_option_table, struct logging_options),
    .type = "logging",
    .version = "1.0",
    .doc = "Writes a row for each allocation and free into a file, in RMM's format",
    PLUGIN_VALUES(logging_values),
    PLUGIN_ACTIONS(logging_actions),
    .ops = &logging_ops,
    .create = logging_create,
    .destroy = logging_destroy,
    .validate = logging_validate,
};
