/* SPDX-License-Identifier: MIT */
/* use.c: see use.h. */
#include "use.h"

#include <stdlib.h>
#include <string.h>

enum { DEVICE_TO_HOST = 2 };

static void use_by_host(void *closure)
{
  struct use *use = closure;
  if (use->from)
    memcpy(use->to, use->from, use->bytes);
  else
    memset(use->to, use->pattern, use->bytes);
  free(use);
}

int use_submit(const struct hipmm_hip *hip, bool by_host, struct use use, hipmm_stream_t stream)
{
  if (!by_host && use.from) return hip->MemcpyAsync(use.to, use.from, use.bytes, DEVICE_TO_HOST, stream);
  if (!by_host) return hip->MemsetAsync(use.to, use.pattern, use.bytes, stream);
  struct use *copy = malloc(sizeof *copy);
  if (!copy) return HIPMM_HIP_ERROR_OUT_OF_MEMORY;
  *copy = use;
  int code = hip->LaunchHostFunc(stream, use_by_host, copy);
  if (code) free(copy);
  return code;
}
