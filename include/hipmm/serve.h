/* SPDX-License-Identifier: MIT */
/* hipmm/serve.h: names in a store of `hipmm serve`, which owns device memory for programs that come and go.
 *
 * A resource of the type `served` is a process's part in a store (`hipmm describe served`). The writer's allocates memory, gives
 * names to it with hipmm_serve_put(), and commits with hipmm_resource_perform(resource, "commit"). From then on its memory can only
 * be read, and other processes find it by hipmm_serve_get(). They map the writer's memory itself, for reading only: work that
 * writes there is a fatal fault of the device. So a store is for parameters. A model that writes to a buffer of its own after
 * loading copies it first.
 *
 * Both functions are inline: a message goes through hipmm_share_import_pointer(). The conventions of hipmm.h hold. Both are
 * thread-safe. */
#ifndef HIPMM_SERVE_H
#define HIPMM_SERVE_H

#include <hipmm/share.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes of a name and of a description, without a 0 at their ends. */
enum { HIPMM_SERVE_MOST_NAME_BYTES = 255, HIPMM_SERVE_MOST_DESCRIPTION_BYTES = 1024 };

/* What the data of a struct hipmm_share_pointer begins with that has a message. Its own address and the message's follow, so that
 * bytes of another process are never taken for a message. */
#define HIPMM_SERVE_PUT "hipmmPut"
#define HIPMM_SERVE_GET "hipmmGet"

/* Gives a name to memory. The caller sets struct_size = sizeof(struct hipmm_serve_put_message). A field that is 0 or NULL has its
 * default. Later releases may add fields. */
struct hipmm_serve_put_message {
  size_t struct_size;
  const char *name; /* unique; no control characters */
  const void *ptr;  /* a live block of the resource */
  size_t offset;    /* in the block */
  size_t bytes;
  const void *description; /* the program's own, such as a tensor's type and shape; any bytes */
  size_t description_bytes;
};

/* Finds a name. The caller sets struct_size = sizeof(struct hipmm_serve_get_message), and `name`, or a name's `index`. The
 * call writes the other fields, and `name` if it was NULL. What they point to lives as long as the resource. */
struct hipmm_serve_get_message {
  size_t struct_size;
  const char *name; /* NULL: the name at `index` */
  size_t index;     /* from 0, in the order of the writer's calls */
  void *ptr;        /* device memory for reading only; 256-aligned where the writer's offset was 0 */
  size_t bytes;
  const void *description;
  size_t description_bytes;
  size_t n_names; /* of the store on this device */
};

/* For the two functions below. */
static inline enum hipmm_status hipmm_serve_send(struct hipmm_resource *resource, const char *kind, void *message)
{
  struct hipmm_share_pointer carrier;
  void *self = &carrier, *unused = NULL;
  memset(&carrier, 0, sizeof carrier);
  carrier.magic = HIPMM_SHARE_MAGIC;
  carrier.version = HIPMM_SHARE_VERSION;
  carrier.struct_size = sizeof carrier;
  memcpy(carrier.data, kind, 8);
  memcpy(carrier.data + 8, &self, sizeof self);
  memcpy(carrier.data + 16, &message, sizeof message);
  return hipmm_share_import_pointer(resource, &carrier, &unused);
}

/* The writer, before it commits. The name goes with the block if that is freed before. HIPMM_E_ARGUMENT: a field is wrong, or the
 * name is taken. HIPMM_E_POINTER: `ptr` is no live block. HIPMM_E_SIZE: beyond the block. HIPMM_E_STATE: committed already.
 * HIPMM_E_LIMIT: too many names. */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_serve_put(struct hipmm_resource *resource,
                                                                 const struct hipmm_serve_put_message *put)
{
  return hipmm_serve_send(resource, HIPMM_SERVE_PUT, (void *)(uintptr_t)put);
}

/* A reader, or the writer after its commit. A reader waits for the commit, up to the resource's `deadline`, and its first call
 * maps the store. HIPMM_E_ARGUMENT: no such name, or index. HIPMM_E_STATE: nothing was committed in time, and the message
 * names the process that is writing; or the resource is a writer that has not committed. HIPMM_E_IO: there is no server, or
 * it has ended; what was mapped stays valid. */
HIPMM_MUST_CHECK static inline enum hipmm_status hipmm_serve_get(struct hipmm_resource *resource,
                                                                 struct hipmm_serve_get_message *get)
{
  return hipmm_serve_send(resource, HIPMM_SERVE_GET, get);
}

#ifdef __cplusplus
}
#endif
#endif
