/* SPDX-License-Identifier: MIT */
/* peer_socket.h: messages between hipmm in two processes of one user. Each process that serves others has a UNIX socket in
 * $XDG_RUNTIME_DIR/hipmm, and one thread behind it, which runs from the first peer_serve() on. A request is one message, and so
 * is its answer; a connection has one of each. Both sides check that the other one is of the same user, which is the only
 * boundary: such a process could read this one's memory anyway. Thread-safe. */
#ifndef HIPMM_PLUGINS_COMMON_PEER_SOCKET_H
#define HIPMM_PLUGINS_COMMON_PEER_SOCKET_H

#include "peer_message.h"

/* A process. The system uses its number again later, so its start and a random number tell it from others. */
struct peer_identity {
  int32_t process;
  uint32_t start; /* in clock ticks since the system's start */
  uint64_t nonce;
};

/* Fills the answer's data, header.bytes and files, which are closed once they were sent. False with the reason in answer->data,
 * as a string. The thread behind the socket calls it for a request with a valid header, one at a time. */
typedef bool peer_handler(const struct peer_message *request, struct peer_message *answer, struct peer_files *files);

/* Answers requests of this kind from now on. False with a reason: in a privileged process, and without a safe folder. */
bool peer_serve(enum peer_kind kind, peer_handler *handler, struct peer_identity *self_out,
                char reason[PEER_REASON_BYTES]);

/* Visits the sockets of all processes, until one visit returns true. A process may have several, of several objects in it. False
 * with a reason if the folder cannot be read. */
bool peer_visit(bool (*visit)(void *closure, const struct peer_identity *peer), void *closure,
                char reason[PEER_REASON_BYTES]);

/* Sends the request, which the answer replaces. At most files->count descriptors are accepted; the caller closes what it gets.
 * Waits for the answer for `patience_s` seconds, usually PEER_PATIENCE_S. False with a reason. */
bool peer_ask(const struct peer_identity *peer, struct peer_message *message, struct peer_files *files, int patience_s,
              char reason[PEER_REASON_BYTES]);

/* Ends the thread and removes the socket, unless `is_used` says otherwise. A peer_serve() meanwhile waits, and starts anew. */
void peer_end(bool (*is_used)(void));

#endif
