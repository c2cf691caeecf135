/* SPDX-License-Identifier: MIT */
/* store.c: see served.h. A commit makes the memory readable only before the server gets any of it; names and chunks are sent in
 * one go, so that a writer that ends before has left nothing. */
#include "served.h"

#include <string.h>

static enum hipmm_status served_store_fail(const struct served *served, enum hipmm_status status, const char *reason)
{
  return served->services->fail(served->services, status, NULL, "store \"%s\": %s", served->options->store, reason);
}

static enum hipmm_status served_store_lose(struct served *served)
{
  served_client_close(&served->client);
  served->state = SERVED_LOST;
  return served->services->fail(
      served->services, HIPMM_E_IO, NULL,
      "store \"%s\": its server has ended. What this process has mapped stays valid; start `hipmm serve %s`, and make "
      "another resource to use the store again",
      served->options->store, served->options->store);
}

/* ---- Reading ---- */

static enum hipmm_status served_store_ask(struct served *served, struct serve_message *message,
                                          const struct peer_files *sent, struct peer_files *received)
{
  char reason[PEER_REASON_BYTES];
  bool is_refused;
  if (served_client_ask(&served->client, message, sent, received, &is_refused, reason)) return HIPMM_OK;
  return served_store_fail(served, HIPMM_E_IO, reason);
}

/* The server counts the chunks in the order that they are mapped in. */
static enum hipmm_status served_store_import_next(struct served *served)
{
  struct serve_message message = {.verb = SERVE_GET_CHUNKS, .number = served->n_chunks};
  struct peer_files files = {.count = SERVE_MESSAGE_CHUNKS};
  uint64_t total_bytes = served->mapped;
  enum hipmm_status status = served_store_ask(served, &message, NULL, &files);
  if (status) return status;
  if (!serve_are_chunks(&message.chunks, files.count, &total_bytes))
    status = served_store_fail(served, HIPMM_E_IO, "its server has sent chunks that are not sound");
  for (unsigned i = 0; i < files.count && !status; i++)
    status = served_memory_import(served, files.files[i], message.chunks.bytes[i]);
  peer_files_close(&files);
  return status;
}

static enum hipmm_status served_store_get_name(struct served *served, uint32_t number)
{
  struct serve_message message = {.verb = SERVE_GET_NAME, .number = number};
  enum hipmm_status status = served_store_ask(served, &message, NULL, NULL);
  const struct serve_name *name = &message.name;
  if (status) return status;
  if (!serve_is_name(name, served->mapped))
    return served_store_fail(served, HIPMM_E_IO, "its server has sent a name that is not sound");
  return served_names_add(
      served, name->text, name->name_bytes, name->text + name->name_bytes,
      (struct served_name){.offset = name->offset, .bytes = name->bytes, .description_bytes = name->description_bytes});
}

static enum hipmm_status served_store_import(struct served *served, const struct serve_attach *attach)
{
  enum hipmm_status status = HIPMM_OK;
  if (!attach->n_chunks || attach->n_chunks > SERVE_MOST_CHUNKS || attach->n_names > SERVE_MOST_NAMES)
    return served_store_fail(served, HIPMM_E_IO, "its server has sent numbers that are not sound");
  while (!status && served->n_chunks < attach->n_chunks) status = served_store_import_next(served);
  for (uint32_t i = 0; i < attach->n_names && !status; i++) status = served_store_get_name(served, i);
  return status;
}

/* ---- Attaching ---- */

static void served_store_count(struct served *served)
{
  served->is_sealed = true;
  served->services->count_held(served->services, (int64_t)served->mapped);
}

/* The most that a store can have here. */
static enum hipmm_status served_store_reserve(struct served *served)
{
  const struct hipmm_services *services = served->services;
  size_t free_bytes, total_bytes;
  int code = services->hip->MemGetInfo(&free_bytes, &total_bytes);
  if (code) return services->refuse_hip(services, "hipMemGetInfo", code, 0);
  return served_memory_reserve(served, total_bytes);
}

static void served_store_detach(struct served *served)
{
  served_names_clear(served);
  served_memory_release(served);
  served_client_close(&served->client);
  served->state = SERVED_DETACHED;
}

static enum hipmm_status served_store_open(struct served *served)
{
  const struct hipmm_services *services = served->services;
  struct serve_attach attach = {.is_writer = served->options->is_writer};
  bool is_late;
  char reason[PEER_REASON_BYTES];
  int code = services->hip->DeviceGetUuid(attach.device, services->device);
  if (code) return services->refuse_hip(services, "hipDeviceGetUuid", code, 0);
  if (!served_client_open(&served->client, served->options->store, &attach, served->options->deadline, &is_late,
                          reason))
    return served_store_fail(served, is_late ? HIPMM_E_STATE : HIPMM_E_IO, reason);
  enum hipmm_status status = served_store_reserve(served);
  if (!status && !attach.is_writer) status = served_store_import(served, &attach);
  if (status) {
    served_store_detach(served);
    return status;
  }
  served->state = attach.is_writer ? SERVED_WRITING : SERVED_READING;
  if (!attach.is_writer) served_store_count(served);
  return HIPMM_OK;
}

enum hipmm_status served_store_attach(struct served *served)
{
  const struct hipmm_services *services = served->services;
  if (served->state == SERVED_DETACHED) {
    int previous = services->enter_device(services);
    enum hipmm_status status = served_store_open(served);
    services->leave_device(services, previous);
    return status;
  }
  return served->state != SERVED_LOST && served_client_is_open(&served->client) ? HIPMM_OK : served_store_lose(served);
}

/* ---- Committing ---- */

static enum hipmm_status served_store_send_chunks(struct served *served)
{
  const struct hipmm_services *services = served->services;
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t done = 0; done < served->n_chunks && !status;) {
    struct serve_message message = {.verb = SERVE_PUT_CHUNKS};
    struct peer_files files = {.count = 0};
    while (done < served->n_chunks && files.count < SERVE_MESSAGE_CHUNKS && !status) {
      int code = services->hip->MemExport(&files.files[files.count], served->chunks[done].handle);
      if (code) status = services->refuse_hip(services, "hipMemExportToShareableHandle", code, 0);
      if (!code) message.chunks.bytes[files.count++] = served->chunks[done++].bytes;
    }
    message.chunks.n = files.count;
    if (!status) status = served_store_ask(served, &message, &files, NULL);
    peer_files_close(&files);
  }
  return status;
}

static enum hipmm_status served_store_send_names(struct served *served)
{
  enum hipmm_status status = HIPMM_OK;
  for (uint32_t i = 0; i < served->n_names && !status; i++) {
    const struct served_name *name = &served->names[i];
    size_t name_bytes = strlen(name->text);
    struct serve_message message = {.verb = SERVE_PUT_NAME,
                                    .name = {.offset = name->offset,
                                             .bytes = name->bytes,
                                             .name_bytes = (uint32_t)name_bytes,
                                             .description_bytes = (uint32_t)name->description_bytes}};
    memcpy(message.name.text, name->text, name_bytes);
    memcpy(message.name.text + name_bytes, name->text + name_bytes + 1, name->description_bytes);
    status = served_store_ask(served, &message, NULL, NULL);
  }
  return status;
}

static enum hipmm_status served_store_send(struct served *served)
{
  struct serve_message begin = {.verb = SERVE_BEGIN}, commit = {.verb = SERVE_COMMIT};
  enum hipmm_status status = served_store_ask(served, &begin, NULL, NULL);
  if (!status) status = served_store_send_chunks(served);
  if (!status) status = served_store_send_names(served);
  return status ? status : served_store_ask(served, &commit, NULL, NULL);
}

/* Blocks belong to the store from here on. */
static void served_store_seal(struct served *served)
{
  const struct hipmm_services *services = served->services;
  struct hipmm_block block;
  served_memory_drop_handles(served);
  while (services->untrack_any(services, &block) == HIPMM_OK) continue;
  served_store_count(served);
  served->state = SERVED_READING;
}

/* Where the connection ended, the server may have it all, so the memory stays as it is. Else it is written on, unless it cannot be
 * made writable again. */
static enum hipmm_status served_store_commit_here(struct served *served)
{
  const struct hipmm_services *services = served->services;
  int code = services->hip->DeviceSynchronize();
  if (code) return services->refuse_hip(services, "hipDeviceSynchronize", code, 0);
  enum hipmm_status status = served_memory_protect(served, true);
  if (!status) status = served_store_send(served);
  if (!status)
    served_store_seal(served);
  else if (!served_client_is_open(&served->client) || served_memory_protect(served, false))
    served->state = SERVED_LOST;
  return status;
}

enum hipmm_status served_store_commit(struct served *served)
{
  const struct hipmm_services *services = served->services;
  if (!served->options->is_writer)
    return served_store_fail(served, HIPMM_E_STATE, "a reader cannot commit; set \"mode\": \"write\"");
  if (served->is_sealed) return served_store_fail(served, HIPMM_E_STATE, "it is committed already");
  if (served->state == SERVED_DETACHED || !served->n_names)
    return served_store_fail(served, HIPMM_E_STATE,
                             "nothing in it has a name; allocate, and name blocks with hipmm_serve_put()");
  enum hipmm_status status = served_store_attach(served);
  if (status) return status;
  int previous = services->enter_device(services);
  status = served_store_commit_here(served);
  services->leave_device(services, previous);
  return status;
}
