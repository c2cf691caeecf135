/* SPDX-License-Identifier: MIT */
/* served.c: the source of memory that `hipmm serve` owns: weights that one process loads and others map, read-only. Blocks of a
 * writer lie one behind the other. A free gives back what is at the end; other memory stays in the store, unused. */
#include "served.h"

#include "../common/descriptor.h"
#include "../common/device_wait.h"

#include <hipmm/serve.h>
#include <string.h>

/* ---- Memory ---- */

static bool served_holds(const struct served *served, const void *ptr)
{
  return (uintptr_t)ptr - (uintptr_t)served->start < served->mapped;
}

static enum hipmm_status served_check_writer(struct served *served)
{
  const struct hipmm_services *services = served->services;
  if (!served->options->is_writer)
    return services->refuse(services, HIPMM_E_NOT_SUPPORTED,
                            "a reader of a store allocates nothing; find memory by its name (hipmm_serve_get()), or "
                            "write a store with \"mode\": \"write\"",
                            0, 0, 0);
  if (served->is_sealed)
    return services->refuse(services, HIPMM_E_STATE,
                            "the store is committed and its memory can only be read; allocate from another resource", 0,
                            0, 0);
  return served_store_attach(served);
}

static enum hipmm_status served_obtain(struct served *served, size_t bytes, size_t alignment, void **ptr_out)
{
  const struct hipmm_services *services = served->services;
  uintptr_t start = (uintptr_t)served->start;
  uintptr_t ptr = (start + served->top + alignment - 1) & ~(uintptr_t)(alignment - 1);
  if (bytes > SIZE_MAX >> 8 || alignment > SIZE_MAX >> 8)
    return services->refuse(services, HIPMM_E_OUT_OF_MEMORY, "cannot allocate {0:bytes}: no memory is that large",
                            bytes, 0, 0);
  enum hipmm_status status = served_memory_grow(served, ptr - start + bytes);
  if (!status) status = services->track(services, (void *)ptr, bytes);
  if (status) return status;
  served->top = ptr - start + bytes;
  served->n_blocks++;
  *ptr_out = (void *)ptr;
  return HIPMM_OK;
}

static enum hipmm_status served_allocate(void *self, size_t bytes, size_t alignment, hipmm_stream_t stream,
                                         void **ptr_out)
{
  struct served *served = self;
  const struct hipmm_services *services = served->services;
  (void)stream; /* new memory is ready for every stream */
  if (!bytes) {
    *ptr_out = NULL;
    return HIPMM_OK;
  }
  pthread_mutex_lock(&served->lock);
  enum hipmm_status status = served_check_writer(served);
  if (!status) {
    int previous = services->enter_device(services);
    status = served_obtain(served, bytes, alignment, ptr_out);
    services->leave_device(services, previous);
  }
  pthread_mutex_unlock(&served->lock);
  return status;
}

static enum hipmm_status served_wait_for_work(const struct hipmm_services *services, hipmm_stream_t stream)
{
  int code = services->hip->StreamSynchronize(stream);
  return code ? services->refuse_hip(services, "hipStreamSynchronize", code, 0) : HIPMM_OK;
}

static enum hipmm_status served_free(struct served *served, void *ptr, size_t bytes, hipmm_stream_t stream)
{
  const struct hipmm_services *services = served->services;
  struct hipmm_block block;
  enum hipmm_status status = services->lookup(services, ptr, &block);
  if (!status) status = served_wait_for_work(services, stream);
  if (!status) status = services->untrack(services, ptr, bytes, &bytes);
  if (status) return status;
  size_t offset = (size_t)((char *)ptr - served->start);
  served_names_drop(served, offset);
  if (offset + bytes == served->top) served->top = offset;
  if (!--served->n_blocks) served->top = 0;
  return HIPMM_OK;
}

static enum hipmm_status served_deallocate(void *self, void *ptr, size_t bytes, size_t alignment, hipmm_stream_t stream)
{
  struct served *served = self;
  const struct hipmm_services *services = served->services;
  (void)alignment;
  if (!ptr) return HIPMM_OK;
  enum hipmm_status status = HIPMM_OK;
  pthread_mutex_lock(&served->lock);
  if (!served->is_sealed || !served_holds(served, ptr)) { /* a committed block is the store's */
    int previous = services->enter_device(services);
    status = served_free(served, ptr, bytes, stream);
    services->leave_device(services, previous);
  }
  pthread_mutex_unlock(&served->lock);
  return status;
}

static enum hipmm_status served_find(void *self, const void *ptr, struct hipmm_block *block_out)
{
  const struct served *served = self;
  return served->services->lookup(served->services, ptr, block_out);
}

/* ---- Names and the action ---- */

/* The carrier has its own address, so that no bytes of another process are followed. */
static bool served_open_message(const struct hipmm_share_pointer *carrier, const char *kind, void **message_out)
{
  const void *self;
  memcpy(&self, carrier->data + 8, sizeof self);
  memcpy(message_out, carrier->data + 16, sizeof *message_out);
  return !memcmp(carrier->data, kind, 8) && self == carrier && *message_out;
}

static enum hipmm_status served_get(struct served *served, void *message)
{
  enum hipmm_status status = served->state == SERVED_WRITING ? HIPMM_OK : served_store_attach(served);
  return status ? status : served_names_get(served, message);
}

static enum hipmm_status served_import_pointer(void *self, const struct hipmm_share_pointer *pointer, void **ptr_out)
{
  struct served *served = self;
  const struct hipmm_services *services = served->services;
  void *message;
  enum hipmm_status status;
  (void)ptr_out;
  pthread_mutex_lock(&served->lock);
  if (served_open_message(pointer, HIPMM_SERVE_PUT, &message))
    status = served_names_put(served, message);
  else if (served_open_message(pointer, HIPMM_SERVE_GET, &message))
    status = served_get(served, message);
  else
    status = services->fail(services, HIPMM_E_ARGUMENT, NULL,
                            "a store has names, and imports no blocks; see hipmm_serve_get()");
  pthread_mutex_unlock(&served->lock);
  return status;
}

/* These two are here so that a message comes through the resources above. */
static enum hipmm_status served_refuse_export(const struct served *served)
{
  return served->services->fail(served->services, HIPMM_E_NOT_SUPPORTED, NULL,
                                "the memory of a store is shared by its names (hipmm_serve_put())");
}

static enum hipmm_status served_export_fd(void *self, int *fd_out)
{
  (void)fd_out;
  return served_refuse_export(self);
}

static enum hipmm_status served_export_pointer(void *self, const void *ptr, struct hipmm_share_pointer *pointer_out)
{
  (void)ptr, (void)pointer_out;
  return served_refuse_export(self);
}

static enum hipmm_status served_perform(void *self, size_t index, int64_t *values_out)
{
  struct served *served = self;
  (void)index, (void)values_out; /* it has one action, and no values */
  pthread_mutex_lock(&served->lock);
  enum hipmm_status status = served_store_commit(served);
  pthread_mutex_unlock(&served->lock);
  return status;
}

/* ---- Life ---- */

static enum hipmm_status served_check_runtime(const struct hipmm_services *services)
{
  const struct hipmm_hip *hip = services->hip;
  int supported = 0;
  if (hip->DeviceGetAttribute(&supported, HIPMM_HIP_DEVICE_VIRTUAL_MEMORY, services->device)) hip->GetLastError();
  if (supported && hip->MemGetAllocationGranularity && hip->MemAddressReserve && hip->MemAddressFree &&
      hip->MemCreateShared && hip->MemRelease && hip->MemMap && hip->MemUnmap && hip->MemSetAccess && hip->MemExport &&
      hip->MemImport && hip->DeviceGetUuid)
    return HIPMM_OK;
  return services->fail(services, HIPMM_E_NOT_SUPPORTED, NULL,
                        "this runtime or device has no virtual memory that processes can share");
}

static enum hipmm_status served_create(const struct hipmm_services *services, const void *options,
                                       struct hipmm_resource *const *upstreams, size_t n_upstreams, void **self_out)
{
  (void)upstreams, (void)n_upstreams; /* it has none */
  enum hipmm_status status = served_check_runtime(services);
  if (status) return status;
  struct served *served = services->host_allocate(services, sizeof *served);
  if (!served) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  served->services = services;
  served->options = options;
  served->client.file = -1;
  pthread_mutex_init(&served->lock, NULL);
  *self_out = served;
  return HIPMM_OK;
}

static void served_destroy(void *self)
{
  struct served *served = self;
  const struct hipmm_services *services = served->services;
  struct hipmm_block block;
  if (served->mapped) device_wait_at_end(services);
  if (served->is_sealed) services->count_held(services, -(int64_t)served->mapped);
  while (services->untrack_any(services, &block) == HIPMM_OK) continue;
  served_memory_release(served);
  served_names_clear(served);
  served_client_close(&served->client);
  pthread_mutex_destroy(&served->lock);
  services->host_free(services, served, sizeof *served);
}

static void served_validate(const struct hipmm_validation *validation, const void *options_)
{
  const struct served_options *options = options_;
  if (options->store && !serve_is_store_name(options->store))
    validation->error(validation, "store", "%s", SERVE_STORE_NAME_RULE);
}

static const char *const served_modes[] = {"read", "write", NULL};

static const struct hipmm_option served_option_table[] = {
    {.name = "store",
     .type = HIPMM_OPTION_STRING,
     .flags = HIPMM_OPTION_REQUIRED,
     .offset = offsetof(struct served_options, store),
     .doc = "Name of the store, such as \"weights\", as given to `hipmm serve`; it has a part for each device"},
    {.name = "mode",
     .type = HIPMM_OPTION_ENUM,
     .offset = offsetof(struct served_options, is_writer),
     .initial = "read",
     .doc = "write: allocates, names blocks (hipmm/serve.h) and commits, with one writer at a time; read: finds names, "
            "and maps the memory read-only",
     .choices = served_modes},
    {.name = "deadline",
     .type = HIPMM_OPTION_DURATION,
     .offset = offsetof(struct served_options, deadline),
     .initial = "60s",
     .doc = "How long the first allocation waits for another writer, or for the readers of what it replaces, and the "
            "first search for a name waits for the commit",
     .minimum = "0s"},
};

static const struct hipmm_feature served_actions[] = {
    {.name = "commit",
     .doc = "Waits for the device's work, makes the memory readable only, and gives it to the store with its names"},
};

static const struct hipmm_sharing served_sharing = {.struct_size = sizeof served_sharing,
                                                    .export_fd = served_export_fd,
                                                    .export_pointer = served_export_pointer,
                                                    .import_pointer = served_import_pointer};

static const struct hipmm_ops served_ops = {
    .struct_size = sizeof served_ops,
    .allocate = served_allocate,
    .deallocate = served_deallocate,
    .find = served_find,
    .perform = served_perform,
    .sharing = &served_sharing,
};

HIPMM_EXPORT extern const struct hipmm_plugin served_LTX_hipmm_plugin;

const struct hipmm_plugin served_LTX_hipmm_plugin = {
    HIPMM_PLUGIN_HEAD,
    PLUGIN_OPTIONS(served_option_table, struct served_options),
    PLUGIN_ACTIONS(served_actions),
    .type = "served",
    .version = "1.0",
    .doc = "Memory of a store of `hipmm serve`, which one process writes and others map",
    .role = HIPMM_ROLE_SOURCE,
    .flags = HIPMM_PLUGIN_DEVICE_MEMORY | HIPMM_PLUGIN_FREE_WAITS | HIPMM_PLUGIN_UNDIVIDED,
    .ops = &served_ops,
    .create = served_create,
    .destroy = served_destroy,
    .validate = served_validate,
};
