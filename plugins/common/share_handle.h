/* SPDX-License-Identifier: MIT */
/* share_handle.h: the handle of a block in mapped memory, which pool makes and device opens, and what the two send each other to
 * get the block's memory (peer_socket.h). */
#ifndef HIPMM_PLUGINS_COMMON_SHARE_HANDLE_H
#define HIPMM_PLUGINS_COMMON_SHARE_HANDLE_H

#include "../../core/base/share_format.h"
#include "peer_socket.h"

#include <hipmm/share.h>

/* The data of a hipmm_share_pointer, and a hipIpcMemHandle_t or cudaIpcMemHandle_t. */
struct share_handle {
  char magic[SHARE_FORMAT_MAGIC_BYTES];
  struct peer_identity owner;
  uint64_t id;              /* of the export: another block, or the same address again, has another id */
  uint64_t bytes;           /* of the block, as requested */
  uint64_t offset;          /* of the block in its first part */
  unsigned char device[16]; /* the UUID of the memory's device; 0: unknown */
};

_Static_assert(sizeof(struct share_handle) == sizeof(((struct hipmm_share_pointer *)0)->data), "fills the data");

/* A request has the id. Its answer has this, and a descriptor for each part, in the order of addresses. */
struct share_answer {
  struct hipmm_share_block block;
  uint64_t part_bytes[PEER_MOST_FILES]; /* of the parts that there are */
};

#endif
