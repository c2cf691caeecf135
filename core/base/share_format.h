/* SPDX-License-Identifier: MIT */
/* share_format.h: what the plugins and `hipmm run` both know of the handles of mapped blocks (hipmm/share.h). */
#ifndef HIPMM_CORE_BASE_SHARE_FORMAT_H
#define HIPMM_CORE_BASE_SHARE_FORMAT_H

/* The first bytes of such a handle; without the 0 at the end. */
#define SHARE_FORMAT_MAGIC "hipmmIPC"
enum { SHARE_FORMAT_MAGIC_BYTES = sizeof SHARE_FORMAT_MAGIC - 1 };

/* Where other processes may get blocks, a pool gives each block of at least so many bytes a chunk, or a segment, of its own. */
enum { SHARE_FORMAT_LEAST_BYTES = 1 << 20 };

#endif
