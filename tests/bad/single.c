/* SPDX-License-Identifier: MIT */
/* single.c: an adaptor that says it is not thread-safe, and counts how often two threads were in it all the same. */
#include <hipmm/plugin.h>
#include <sched.h>
#include <stdatomic.h>

struct single {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  atomic_int inside;
  atomic_int_fast64_t overlaps;
};

static void single_enter(struct single *single)
{
  if (atomic_fetch_add(&single->inside, 1)) single->overlaps++;
  sched_yield();
}

static void single_leave(struct single *single)
{
  atomic_fetch_sub(&single->inside, 1);
}

static enum hipmm_status single_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  struct single *single = self;
  single_enter(single);
  enum hipmm_status status = hipmm_upstream_allocate(single->upstream, bytes, alignment, stream, ptr_out);
  single_leave(single);
  return status;
}

static enum hipmm_status single_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct single *single = self;
  single_enter(single);
  enum hipmm_status status = hipmm_upstream_deallocate(single->upstream, ptr, bytes, alignment, stream);
  single_leave(single);
  return status;
}

static enum hipmm_status single_trim(void *self, size_t keep_bytes)
{
  (void)keep_bytes;
  single_enter(self);
  single_leave(self);
  return HIPMM_OK;
}

static enum hipmm_status single_query(void *self, size_t index, int64_t *value_out)
{
  struct single *single = self;
  (void)index;
  single_enter(single);
  *value_out = single->overlaps;
  single_leave(single);
  return HIPMM_OK;
}

static enum hipmm_status single_reconfigure(void *self, const char *option, const void *options)
{
  (void)option, (void)options;
  single_enter(self);
  single_leave(self);
  return HIPMM_OK;
}

static enum hipmm_status single_visit(void *self, void (*see)(void *closure, const struct hipmm_extent *extent),
                                      void *closure)
{
  single_enter(self);
  see(closure, &(struct hipmm_extent){.ptr = self, .bytes = 256, .state = HIPMM_EXTENT_LIVE});
  single_leave(self);
  return HIPMM_OK;
}

static enum hipmm_status single_report(void *self, void (*write)(void *closure, const char *line), void *closure)
{
  single_enter(self);
  write(closure, "one at a time");
  single_leave(self);
  return HIPMM_OK;
}

static enum hipmm_status single_perform(void *self, size_t index, int64_t *values_out)
{
  return single_query(self, index, values_out);
}

/* It keeps no block of its own: the core asks the upstream. */
static enum hipmm_status single_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  (void)ptr, (void)block_out;
  single_enter(self);
  single_leave(self);
  return HIPMM_E_POINTER;
}

static int single_covers(void *self, const void *ptr)
{
  (void)ptr;
  single_enter(self);
  single_leave(self);
  return 0;
}

static enum hipmm_status single_locate(void *self, const void *ptr, struct hipmm_location *location_out)
{
  (void)location_out;
  return single_find(self, ptr, NULL);
}

static void single_see_stream(void *self, hipmm_stream_t stream)
{
  (void)stream;
  single_enter(self);
  single_leave(self);
}

static enum hipmm_status single_visit_chunks(void *self, const void *ptr,
                                             int (*visitor)(void *closure, const struct hipmm_chunk *chunk),
                                             void *closure)
{
  single_enter(self);
  visitor(closure, &(struct hipmm_chunk){NULL, ptr, 256});
  single_leave(self);
  return HIPMM_OK;
}

static enum hipmm_status single_grant_access(void *self, int device)
{
  (void)device;
  return single_trim(self, 0);
}

static enum hipmm_status single_process_end(void *self, enum hipmm_process_end moment)
{
  (void)moment;
  return single_trim(self, 0);
}

static enum hipmm_status single_suspend(void *self, enum hipmm_content content)
{
  (void)content;
  return single_trim(self, 0);
}

static enum hipmm_status single_resume(void *self)
{
  return single_trim(self, 0);
}

struct single_options {
  int64_t level;
};

static const struct hipmm_option single_table[] = {{.name = "level",
                                                    .type = HIPMM_OPTION_INTEGER,
                                                    .flags = HIPMM_OPTION_RELOADABLE,
                                                    .offset = offsetof(struct single_options, level),
                                                    .initial = "0",
                                                    .doc = "For tests"}};

static const struct hipmm_feature single_values[] = {{"overlaps", NULL, "Times that two threads were in it"}};

static const struct hipmm_feature single_actions[] = {{"look", NULL, "Reads the values"}};

static const struct hipmm_ops single_ops = {.struct_size = sizeof single_ops,
                                            .allocate = single_allocate,
                                            .deallocate = single_deallocate,
                                            .trim = single_trim,
                                            .query = single_query,
                                            .reconfigure = single_reconfigure,
                                            .visit = single_visit,
                                            .report = single_report,
                                            .perform = single_perform,
                                            .find = single_find,
                                            .covers = single_covers,
                                            .locate = single_locate,
                                            .visit_chunks = single_visit_chunks,
                                            .grant_access = single_grant_access,
                                            .process_end = single_process_end,
                                            .suspend = single_suspend,
                                            .resume = single_resume,
                                            .stream_retire = single_see_stream,
                                            .stream_retain = single_see_stream};

static enum hipmm_status single_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)options, (void)n_upstreams;
  struct single *single = services->host_allocate(services, sizeof *single);
  if (!single) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  single->services = services;
  single->upstream = upstreams[0];
  *self_out = single;
  return HIPMM_OK;
}

static void single_destroy(void *self)
{
  struct single *single = self;
  single->services->host_free(single->services, single, sizeof *single);
}

HIPMM_EXPORT extern const struct hipmm_plugin single_LTX_hipmm_plugin;

const struct hipmm_plugin single_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "single",
    .version = "1",
    .doc = "Must not be entered twice at once",
    .role = HIPMM_ROLE_ADAPTOR,
    .flags = HIPMM_PLUGIN_NOT_THREAD_SAFE | HIPMM_PLUGIN_HANDS_ON,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = single_table,
    .n_options = 1,
    .options_bytes = sizeof(struct single_options),
    .values = single_values,
    .n_values = 1,
    .actions = single_actions,
    .n_actions = 1,
    .ops = &single_ops,
    .create = single_create,
    .destroy = single_destroy,
};
