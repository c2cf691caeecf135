/* SPDX-License-Identifier: MIT */
/* peer_message.h: what is sent between processes of one user, and the folder of their sockets, $XDG_RUNTIME_DIR/hipmm. Called by
 * peer_socket.c, and by both sides of `hipmm serve`. */
#ifndef HIPMM_PLUGINS_COMMON_PEER_MESSAGE_H
#define HIPMM_PLUGINS_COMMON_PEER_MESSAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/un.h>

/* What a message is about. A kind keeps its number. */
enum peer_kind {
  PEER_BLOCK = 1, /* a block's memory, see share_handle.h */
  PEER_CONTROL,   /* what `hipmm ctl` wants, see control_format.h */
  PEER_STORE,     /* a store of `hipmm serve`, see serve_format.h */
  PEER_KINDS
};

enum { PEER_MOST_BYTES = 4096, PEER_MOST_FILES = 64, PEER_REASON_BYTES = 512, PEER_PATIENCE_S = 5 };
enum { PEER_MAGIC = 0x70696d68 /* "hmip" in memory */, PEER_VERSION = 1 };

/* The socket of a store is called so, with the store's name behind it. */
#define PEER_STORE_PREFIX "store-"

struct peer_header {
  uint32_t magic;
  uint16_t version, kind;
  uint32_t is_refused; /* an answer that says why, as text without a 0 at its end */
  uint32_t bytes;      /* of the data */
};

struct peer_message {
  struct peer_header header;
  char data[PEER_MOST_BYTES - sizeof(struct peer_header)];
};

/* File descriptors that come with a message. */
struct peer_files {
  unsigned count;
  int files[PEER_MOST_FILES];
};

void peer_files_close(struct peer_files *files);

/* Writes the reason and returns false. */
bool peer_refuse(char reason[PEER_REASON_BYTES], const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The folder for sockets, which is made if need be; -1 with a reason if it is not safe. */
int peer_open_folder(bool is_made, char reason[PEER_REASON_BYTES]);

/* The address leads through the opened folder, whose path may be too long for a socket, and may change. */
struct sockaddr_un peer_address(int folder, const char *name);

/* A connection to the socket `name` of the folder, or -1 with errno. With SOCK_NONBLOCK in `flags` it does not wait for a process
 * that is stopped. */
int peer_connect(int folder, const char *name, int flags, int patience_s);

/* Whether the other end is a process of the same user, and this process (0: any). */
bool peer_is_same_user(int file, pid_t process);

/* Sends a message whose header has its kind and its bytes, with the descriptors, which the caller closes. False with errno. */
bool peer_send(int file, struct peer_message *message, const struct peer_files *files, int flags);

/* Whether a valid message of the kind (0: any) came; else errno has the reason: EPROTO for a connection that has ended, or what
 * is no valid message, EMFILE if descriptors were lost. At most `files->count` of its descriptors are kept, and the others are
 * closed. */
bool peer_receive(int file, unsigned kind, struct peer_message *message, struct peer_files *files, int flags);

#endif
