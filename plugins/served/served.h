/* SPDX-License-Identifier: MIT */
/* served.h: a process's part in a store of `hipmm serve`, on one device. The memory is one range of addresses, with chunks mapped
 * one behind the other. A writer creates chunks as its blocks need them, and a block starts where the last one ended. A reader
 * maps the chunks of the writer. All of it is under the resource's lock, also while it waits for the server. */
#ifndef HIPMM_PLUGINS_SERVED_SERVED_H
#define HIPMM_PLUGINS_SERVED_SERVED_H

#include "../../core/base/output_file.h"
#include "../common/serve_format.h"

#include <hipmm/plugin.h>
#include <pthread.h>

struct served_options {
  const char *store;
  int64_t deadline;
  uint32_t is_writer; /* the index of the mode */
};

/* ---- client.c: the connection to the server ---- */

struct served_client {
  int file; /* -1: none */
  struct output_file_identity identity;
};

/* Attaches to the device's part of the store. Waits until it is granted, up to the deadline. Fills the answer. On failure there is
 * no connection, and the reason says why; is_late_out: since the deadline has passed. */
bool served_client_open(struct served_client *client, const char *store, struct serve_attach *attach, int64_t deadline,
                        bool *is_late_out, char reason[PEER_REASON_BYTES]);

/* Sends the request with the descriptors of `sent`; the answer replaces it, and `received` gets its descriptors, at most as many as
 * received->count. is_refused_out: the server has said no, and the connection goes on; else it has ended. */
bool served_client_ask(struct served_client *client, struct serve_message *message, const struct peer_files *sent,
                       struct peer_files *received, bool *is_refused_out, char reason[PEER_REASON_BYTES]);

/* Whether the server is still there. */
bool served_client_is_open(const struct served_client *client);
void served_client_close(struct served_client *client);

/* ---- The resource ---- */

enum served_state {
  SERVED_DETACHED, /* nothing was asked for yet, or what was asked for has failed */
  SERVED_WRITING,
  SERVED_READING, /* also the writer after its commit */
  SERVED_LOST     /* the server has ended: what is mapped stays */
};

struct served_chunk {
  hipmm_hip_chunk_t handle; /* NULL: released, so that the mapping alone keeps the memory */
  size_t bytes;
};

struct served_name {
  size_t offset, bytes, description_bytes;
  size_t block_offset; /* a writer's, of the block that it goes with: one of 0 bytes may lie behind that */
  char *text;          /* the name with its 0, then the description */
};

struct served {
  const struct hipmm_services *services;
  const struct served_options *options;
  pthread_mutex_t lock;
  enum served_state state;
  bool is_sealed; /* the memory is a store's, readable only, and counted as held as a whole */
  struct served_client client;

  char *start; /* of the addresses; NULL: none are reserved */
  size_t room, granule;
  size_t mapped, top;          /* bytes from the start: with memory, and behind the last block */
  size_t n_blocks;             /* that are live and the writer's */
  hipmm_stream_t stream;       /* that fills new memory with zeros; NULL: none yet */
  struct served_chunk *chunks; /* SERVE_MOST_CHUNKS; NULL: none yet */
  uint32_t n_chunks;

  struct served_name *names;
  uint32_t n_names, names_room;
};

/* ---- memory.c: addresses and chunks. The device is current ---- */

/* Reserves addresses for `bytes`, rounded up. */
enum hipmm_status served_memory_reserve(struct served *served, uint64_t bytes);

/* Maps new memory, which is zero, until there are `end` bytes. */
enum hipmm_status served_memory_grow(struct served *served, size_t end);

/* Maps another process's memory, for reading only, behind what is mapped. */
enum hipmm_status served_memory_import(struct served *served, int file, uint64_t bytes);

/* Makes all memory readable only, or writable again. */
enum hipmm_status served_memory_protect(struct served *served, bool is_read_only);

/* Releases the handles, so that nothing but the mappings reaches the memory. */
void served_memory_drop_handles(struct served *served);

/* Unmaps all of it. */
void served_memory_release(struct served *served);

/* ---- names.c ---- */

/* Copies. HIPMM_E_ARGUMENT: taken. */
enum hipmm_status served_names_add(struct served *served, const char *name, size_t name_bytes, const void *description,
                                   struct served_name place);

/* Forgets the names of the block at the offset, or all. */
void served_names_drop(struct served *served, size_t block_offset);
void served_names_clear(struct served *served);

/* The message in a hipmm_share_pointer (hipmm/serve.h). With the lock; `get` after served_store_attach(), unless it is writing. */
enum hipmm_status served_names_put(struct served *served, const void *message);
enum hipmm_status served_names_get(struct served *served, void *message);

/* ---- store.c: both sides of the server, with the lock ---- */

/* Attaches in the resource's mode, if that was not done, and checks that the server is still there. */
enum hipmm_status served_store_attach(struct served *served);

/* The action. */
enum hipmm_status served_store_commit(struct served *served);

#endif
