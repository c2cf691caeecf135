/* SPDX-License-Identifier: MIT */
/* serve.h: what the files of `hipmm serve` share. A store has a part for each device, and these parts have nothing to do with
 * each other. One thread does all of it. */
#ifndef HIPMM_TOOLS_COMMAND_SERVE_SERVE_H
#define HIPMM_TOOLS_COMMAND_SERVE_SERVE_H

#include "../../../plugins/common/serve_format.h"

#include <poll.h>

enum { SERVE_MOST_PARTS = 64 };

/* ---- part.c: the content of a store on a device ---- */

struct part {
  unsigned char device[16];
  bool is_used, is_committed;
  int *files; /* of the chunks, and their sizes */
  uint64_t *chunk_bytes, total_bytes;
  uint32_t n_chunks, n_names;
  struct part_name *names;
  char said[160]; /* the last line about its state */
};

/* NULL with a reason, as for the functions below: there are too many devices. */
struct part *part_of(struct part parts[SERVE_MOST_PARTS], const unsigned char device[16],
                     char reason[PEER_REASON_BYTES]);

/* Takes the files, unless it fails. */
bool part_add_chunks(struct part *part, const struct serve_chunks *chunks, struct peer_files *files,
                     char reason[PEER_REASON_BYTES]);
bool part_add_name(struct part *part, const struct serve_name *name, char reason[PEER_REASON_BYTES]);

/* False: there is no chunk, or name, with that number. The files stay the part's. */
bool part_read_chunks(const struct part *part, uint32_t first, struct serve_chunks *chunks_out,
                      struct peer_files *files);
bool part_read_name(const struct part *part, uint32_t number, struct serve_name *name_out);

void part_clear(struct part *part);

/* ---- clients.c: who is connected, and what each may do ---- */

enum client_role { CLIENT_NEW, CLIENT_WAITS_TO_WRITE, CLIENT_WAITS_TO_READ, CLIENT_WRITES, CLIENT_READS };

struct client {
  int file;         /* -1: none */
  int process_file; /* of the process, whose end counts though a fork of it may have the connection too; -1: not known */
  int process, told; /* whom the client was told that it waits for; -1: nobody yet */
  enum client_role role;
  int64_t end_ns; /* of the time to attach */
  uint64_t turn;  /* of waiting */
  struct part *part;
  int row; /* of clients_watch() */
};

struct clients {
  struct client all[SERVE_MOST_CLIENTS];
  struct part parts[SERVE_MOST_PARTS];
  uint64_t last_turn;
};

/* Owns the connection. */
void clients_add(struct clients *clients, int file);

/* Fills a row for each file of the clients, and no others: poll() takes no more rows than the process may have files. Returns
 * their number. */
int clients_watch(struct clients *clients, struct pollfd rows[2 * SERVE_MOST_CLIENTS]);

/* Answers requests, drops clients that have ended, and grants what has become possible. */
void clients_serve(struct clients *clients, const struct pollfd rows[2 * SERVE_MOST_CLIENTS]);

void clients_drop_all(struct clients *clients);

#endif
