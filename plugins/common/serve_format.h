/* SPDX-License-Identifier: MIT */
/* serve_format.h: what `hipmm serve` and a resource of the type `served` send each other (peer_message.h, PEER_STORE). A client keeps
 * its connection: it is what the server knows the client by, and its end gives back all that the client had. Each request has one
 * answer, which is refused with a reason or has the request's verb. Only SERVE_ATTACH may be answered more than once: as long as
 * the client has to wait, an answer with `is_granted` 0 tells it whom it waits for. Each side checks whatever the other sends. */
#ifndef HIPMM_PLUGINS_COMMON_SERVE_FORMAT_H
#define HIPMM_PLUGINS_COMMON_SERVE_FORMAT_H

#include "peer_message.h"

#include <string.h>

enum serve_verb {
  SERVE_ATTACH = 1, /* attach: becomes the writer, or a reader, of the device's part of the store */
  SERVE_GET_CHUNKS, /* a reader; number: of the first chunk. The answer has `chunks`, and their descriptors */
  SERVE_GET_NAME,   /* a reader; number: of the name. The answer has `name` */
  SERVE_BEGIN,      /* the writer: forgets what it has sent so far */
  SERVE_PUT_CHUNKS, /* the writer: the next chunks, with their descriptors */
  SERVE_PUT_NAME,   /* the writer: the next name */
  SERVE_COMMIT      /* the writer: all was sent. It is a reader from then on */
};

enum {
  SERVE_MOST_CLIENTS = 256,
  SERVE_MOST_NAME_BYTES = 255,
  SERVE_MOST_DESCRIPTION_BYTES = 1024,
  SERVE_MOST_NAMES = 16384,
  SERVE_MOST_CHUNKS = 4096,
  SERVE_MESSAGE_CHUNKS = 32,
  SERVE_STORE_NAME_BYTES = 64
};

#define SERVE_MOST_BYTES (UINT64_C(1) << 46) /* of a store on a device */

struct serve_attach {
  unsigned char device[16]; /* UUID */
  uint32_t is_writer, is_granted;
  int32_t process; /* of the writer, or of a reader, that the client waits for; 0: none */
  uint32_t n_chunks, n_names;
};

struct serve_chunks {
  uint64_t n;
  uint64_t bytes[SERVE_MESSAGE_CHUNKS];
};

/* Memory at an offset of the chunks, which lie one behind the other. */
struct serve_name {
  uint64_t offset, bytes;
  uint32_t name_bytes, description_bytes;
  char text[SERVE_MOST_NAME_BYTES + SERVE_MOST_DESCRIPTION_BYTES]; /* the name, then the description, without a 0 */
};

/* The data of every message, both ways, except for an answer that is refused. */
struct serve_message {
  uint32_t verb, number;
  union {
    struct serve_attach attach;
    struct serve_chunks chunks;
    struct serve_name name;
  };
};

_Static_assert(sizeof(struct serve_message) <= sizeof(((struct peer_message *)0)->data), "fits into a message");

/* Whether the data is a whole message. */
static inline bool serve_read(const struct peer_message *message, struct serve_message *serve_out)
{
  if (message->header.bytes != sizeof *serve_out) return false;
  memcpy(serve_out, message->data, sizeof *serve_out);
  return true;
}

static inline void serve_write(struct peer_message *message, const struct serve_message *serve)
{
  message->header = (struct peer_header){
      .magic = PEER_MAGIC, .version = PEER_VERSION, .kind = PEER_STORE, .bytes = (uint32_t)sizeof *serve};
  memcpy(message->data, serve, sizeof *serve);
}

static inline bool serve_are_chunks(const struct serve_chunks *chunks, unsigned n_files, uint64_t *total_bytes)
{
  if (!chunks->n || chunks->n > SERVE_MESSAGE_CHUNKS || chunks->n != n_files) return false;
  for (uint64_t i = 0; i < chunks->n; i++) {
    if (!chunks->bytes[i] || chunks->bytes[i] > SERVE_MOST_BYTES - *total_bytes) return false;
    *total_bytes += chunks->bytes[i];
  }
  return true;
}

/* Names are printed, so they have no control characters. */
static inline bool serve_is_name(const struct serve_name *name, uint64_t total_bytes)
{
  if (!name->name_bytes || name->name_bytes > SERVE_MOST_NAME_BYTES ||
      name->description_bytes > SERVE_MOST_DESCRIPTION_BYTES)
    return false;
  for (uint32_t i = 0; i < name->name_bytes; i++)
    if ((unsigned char)name->text[i] < ' ' || name->text[i] == 0x7f) return false;
  return name->offset <= total_bytes && name->bytes <= total_bytes - name->offset;
}

/* The name of a store becomes a file's. */
#define SERVE_STORE_NAME_RULE "a store's name has 1 to 64 letters, digits, \"_\", \"-\" and \".\""

static inline bool serve_is_store_name(const char *name)
{
  size_t length = strlen(name);
  return length && length <= SERVE_STORE_NAME_BYTES &&
         strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") == length;
}

/* The file of its socket. */
struct serve_socket_name {
  char text[sizeof PEER_STORE_PREFIX + SERVE_STORE_NAME_BYTES];
};

static inline struct serve_socket_name serve_socket_name(const char *store)
{
  struct serve_socket_name name = {PEER_STORE_PREFIX};
  memcpy(name.text + sizeof PEER_STORE_PREFIX - 1, store, strlen(store));
  return name;
}

#endif
