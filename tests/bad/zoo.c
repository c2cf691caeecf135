/* SPDX-License-Identifier: MIT */
/* zoo.c: an adaptor that makes the mistake which its option names, and none by default: each shows a check of
 * `hipmm plugin test` failing (tests/cmd/plugin.sh). */
#include <hipmm/plugin.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <unistd.h>

enum zoo_mistake {
  ZOO_NONE,
  ZOO_CRASHES,
  ZOO_DOUBLE_FREE,
  ZOO_ENDS_CAPTURES,
  ZOO_FAILS_AT_END,
  ZOO_FAILS_SILENTLY,
  ZOO_FOREIGN_STATUS,
  ZOO_FORGETS_SIZE,
  ZOO_GIVES_NULL,
  ZOO_GIVES_TWICE,
  ZOO_HALF_SERVES,
  ZOO_HANGS,
  ZOO_HOARDS,
  ZOO_IGNORES_HIP,
  ZOO_IGNORES_HOST,
  ZOO_IGNORES_UPSTREAM,
  ZOO_KEEPS_BLOCKS,
  ZOO_LEAKS_HOST,
  ZOO_MISALIGNS,
  ZOO_NEEDS_SIZE,
  ZOO_NO_QUERY,
  ZOO_OVERFLOWS,
  ZOO_RACES,
  ZOO_REFUSES_ZERO,
  ZOO_ROUNDS,
  ZOO_WRITES_ON_FAILURE
};

static const char *const zoo_mistakes[] = {
    [ZOO_NONE] = "none",
    [ZOO_CRASHES] = "crashes",
    [ZOO_DOUBLE_FREE] = "double_free",
    [ZOO_ENDS_CAPTURES] = "ends_captures",
    [ZOO_FAILS_AT_END] = "fails_at_end",
    [ZOO_FAILS_SILENTLY] = "fails_silently",
    [ZOO_FOREIGN_STATUS] = "foreign_status",
    [ZOO_FORGETS_SIZE] = "forgets_size",
    [ZOO_GIVES_NULL] = "gives_null",
    [ZOO_GIVES_TWICE] = "gives_twice",
    [ZOO_HALF_SERVES] = "half_serves",
    [ZOO_HANGS] = "hangs",
    [ZOO_HOARDS] = "hoards",
    [ZOO_IGNORES_HIP] = "ignores_hip",
    [ZOO_IGNORES_HOST] = "ignores_host",
    [ZOO_IGNORES_UPSTREAM] = "ignores_upstream",
    [ZOO_KEEPS_BLOCKS] = "keeps_blocks",
    [ZOO_LEAKS_HOST] = "leaks_host",
    [ZOO_MISALIGNS] = "misaligns",
    [ZOO_NEEDS_SIZE] = "needs_size",
    [ZOO_NO_QUERY] = "no_query",
    [ZOO_OVERFLOWS] = "overflows",
    [ZOO_RACES] = "races",
    [ZOO_REFUSES_ZERO] = "refuses_zero",
    [ZOO_ROUNDS] = "rounds",
    [ZOO_WRITES_ON_FAILURE] = "writes_on_failure",
    NULL,
};

struct zoo_options {
  uint32_t mistake;
};

struct zoo {
  const struct hipmm_services *services;
  struct hipmm_resource *upstream;
  enum zoo_mistake mistake;
  void *_Atomic last;
  atomic_uint calls;
};

static enum hipmm_status zoo_refuse(const struct zoo *zoo, enum hipmm_status status)
{
  return zoo->services->refuse(zoo->services, status, "refused, which is a mistake", 0, 0, 0);
}

/* ---- Allocations ---- */

/* Loses the block if what comes after it fails. */
static enum hipmm_status zoo_use_hip(struct zoo *zoo)
{
  hipmm_hip_event_t event;
  int code = zoo->services->hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING);
  if (code) return zoo->services->refuse_hip(zoo->services, "hipEventCreateWithFlags", code, 0);
  code = zoo->services->hip->EventDestroy(event);
  return code ? zoo->services->refuse_hip(zoo->services, "hipEventDestroy", code, 0) : HIPMM_OK;
}

static enum hipmm_status zoo_use_upstream_again(struct zoo *zoo, hipmm_stream_t stream)
{
  void *more;
  enum hipmm_status status = hipmm_upstream_allocate(zoo->upstream, 256, HIPMM_ALIGNMENT, stream, &more);
  return status ? status : hipmm_upstream_deallocate(zoo->upstream, more, 256, HIPMM_ALIGNMENT, stream);
}

/* Which mistake is made with a block that the upstream has given. */
static enum hipmm_status zoo_spoil(struct zoo *zoo, void **ptr, hipmm_stream_t stream)
{
  void *more;
  unsigned call = atomic_fetch_add(&zoo->calls, 1);
  switch (zoo->mistake) {
  case ZOO_GIVES_NULL: *ptr = NULL; break;
  case ZOO_GIVES_TWICE:
    if (call % 4 == 3 && zoo->last) *ptr = zoo->last;
    zoo->last = *ptr;
    break;
  case ZOO_HOARDS:
    if (call == 3) return hipmm_upstream_allocate(zoo->upstream, 1000, HIPMM_ALIGNMENT, stream, &more);
    break;
  case ZOO_IGNORES_HIP: return zoo_use_hip(zoo);
  case ZOO_IGNORES_UPSTREAM: return zoo_use_upstream_again(zoo, stream);
  case ZOO_MISALIGNS: *ptr = (char *)*ptr + 16; break;
  case ZOO_RACES:
    zoo->last = *ptr;
    for (int i = 0; i < 3; i++) sched_yield();
    *ptr = zoo->last;
    break;
  default: break;
  }
  return HIPMM_OK;
}

static enum hipmm_status zoo_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct zoo *zoo = self;
  void *ptr = NULL;
  size_t asked = bytes;
  if (zoo->mistake == ZOO_REFUSES_ZERO && !bytes) return zoo_refuse(zoo, HIPMM_E_ARGUMENT);
  if (zoo->mistake == ZOO_FAILS_SILENTLY && bytes > 1u << 30) return HIPMM_E_OUT_OF_MEMORY;
  if (zoo->mistake == ZOO_FOREIGN_STATUS && bytes > 1u << 30)
    return bytes == (1u << 31) + 1 ? HIPMM_CALL_AGAIN : (enum hipmm_status)7;
  if (zoo->mistake == ZOO_ROUNDS) asked = (bytes + 511) / 512 * 512;
  if (zoo->mistake == ZOO_OVERFLOWS && bytes) asked = bytes + 1000;
  enum hipmm_status status = hipmm_upstream_allocate(zoo->upstream, asked, alignment, stream, &ptr);
  if (!status && ptr) status = zoo_spoil(zoo, &ptr, stream);
  if (!status || zoo->mistake == ZOO_WRITES_ON_FAILURE) *ptr_out = ptr;
  return status;
}

static int zoo_try_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream, void **ptr_out)
{
  struct zoo *zoo = self;
  return zoo->mistake == ZOO_HALF_SERVES && !hipmm_upstream_allocate(zoo->upstream, bytes, alignment, stream, ptr_out);
}

/* ---- Frees ---- */

/* For work that is no part of a capture. */
static void zoo_wait_for_outside(const struct zoo *zoo, hipmm_stream_t stream)
{
  const struct hipmm_hip *hip = zoo->services->hip;
  hipmm_hip_event_t event;
  if (hip->EventCreateWithFlags(&event, HIPMM_HIP_EVENT_DISABLE_TIMING)) return;
  (void)hip->EventRecord(event, NULL);
  (void)hip->StreamWaitEvent(stream, event, 0);
  (void)hip->EventDestroy(event);
}

static enum hipmm_status zoo_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct zoo *zoo = self;
  if (zoo->mistake == ZOO_NEEDS_SIZE && ptr && !bytes) return zoo_refuse(zoo, HIPMM_E_SIZE);
  if (zoo->mistake == ZOO_KEEPS_BLOCKS && bytes > 1u << 18 && atomic_fetch_add(&zoo->calls, 1) % 2) return HIPMM_OK;
  if (zoo->mistake == ZOO_ENDS_CAPTURES) zoo_wait_for_outside(zoo, stream);
  if (zoo->mistake == ZOO_MISALIGNS && ptr) ptr = (char *)ptr - 16;
  if (zoo->mistake == ZOO_FORGETS_SIZE || zoo->mistake == ZOO_ROUNDS || zoo->mistake == ZOO_OVERFLOWS) bytes = 0;
  enum hipmm_status status = hipmm_upstream_deallocate(zoo->upstream, ptr, bytes, alignment, stream);
  return status == HIPMM_E_POINTER && zoo->mistake == ZOO_DOUBLE_FREE ? HIPMM_OK : status;
}

static enum hipmm_status zoo_trim(void *self, size_t keep_bytes)
{
  struct zoo *zoo = self;
  (void)keep_bytes;
  while (zoo->mistake == ZOO_HANGS) pause();
  return HIPMM_OK;
}

static enum hipmm_status zoo_query(void *self, size_t index, int64_t *value_out)
{
  struct zoo *zoo = self;
  volatile int *nowhere = NULL;
  (void)index;
  if (zoo->mistake == ZOO_CRASHES) return (enum hipmm_status) * nowhere;
  if (zoo->mistake != ZOO_NO_QUERY) *value_out = 0;
  return HIPMM_OK;
}

static enum hipmm_status zoo_process_end(void *self, enum hipmm_process_end moment)
{
  const struct zoo *zoo = self;
  int fails = zoo->mistake == ZOO_FAILS_AT_END && moment == HIPMM_PROCESS_ENDED;
  return fails ? zoo_refuse(zoo, HIPMM_E_STATE) : HIPMM_OK;
}

/* ---- The descriptor ---- */

static enum hipmm_status zoo_create(const struct hipmm_services *services, const void *options,
                                    struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  const struct zoo_options *given = options;
  (void)n_upstreams;
  struct zoo *zoo = services->host_allocate(services, sizeof *zoo);
  if (!zoo && given->mistake != ZOO_IGNORES_HOST)
    return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory");
  zoo->services = services;
  zoo->upstream = upstreams[0];
  zoo->mistake = (enum zoo_mistake)given->mistake;
  *self_out = zoo;
  return HIPMM_OK;
}

static void zoo_destroy(void *self)
{
  struct zoo *zoo = self;
  if (zoo->mistake != ZOO_LEAKS_HOST) zoo->services->host_free(zoo->services, zoo, sizeof *zoo);
}

static const struct hipmm_option zoo_table[] = {
    {.name = "mistake",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct zoo_options, mistake),
     .initial = "none",
     .doc = "The mistake that it makes",
     .choices = zoo_mistakes},
};

static const struct hipmm_feature zoo_values[] = {{"zoo_value", NULL, "Nothing"}};

static const struct hipmm_ops zoo_ops = {.struct_size = sizeof zoo_ops,
                                         .allocate = zoo_allocate,
                                         .deallocate = zoo_deallocate,
                                         .trim = zoo_trim,
                                         .query = zoo_query,
                                         .process_end = zoo_process_end,
                                         .try_allocate = zoo_try_allocate};

HIPMM_EXPORT extern const struct hipmm_plugin zoo_LTX_hipmm_plugin;

const struct hipmm_plugin zoo_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    .type = "zoo",
    .version = "1",
    .doc = "Makes mistakes",
    .role = HIPMM_ROLE_ADAPTOR,
    .min_upstreams = 1,
    .max_upstreams = 1,
    .options = zoo_table,
    .n_options = 1,
    .options_bytes = sizeof(struct zoo_options),
    .values = zoo_values,
    .n_values = 1,
    .ops = &zoo_ops,
    .create = zoo_create,
    .destroy = zoo_destroy,
};
