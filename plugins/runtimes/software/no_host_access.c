/* SPDX-License-Identifier: MIT */
/* no_host_access.c: copies and fills where the application cannot touch device memory, and so this process cannot either: they
 * go by way of the files that the memory lies in. Slower, for programs that are to run on a GPU one day. Called by
 * execute.c alone. */
#include "internal.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLOSED_CHUNK_BYTES ((size_t)1 << 20)

static const char closed_no_memory[] = "cannot be reached: out of host memory";

/* Between memory and a buffer. What lies in no device's file is the host's, and touched as always. */
static const char *no_host_access_closed_transfer(char *memory, char *buffer, size_t bytes, bool is_write)
{
  while (bytes > 0) {
    struct software_place place;
    uintptr_t at = (uintptr_t)memory;
    if (!software_heap_locate(at, &place) && !software_virtual_locate(at, &place)) {
      memmove(is_write ? memory : buffer, is_write ? buffer : memory, bytes);
      return NULL;
    }
    size_t count = bytes < place.bytes ? bytes : place.bytes;
    ssize_t done = is_write ? pwrite(place.fd, buffer, count, (off_t)place.offset)
                            : pread(place.fd, buffer, count, (off_t)place.offset);
    if (done <= 0) return closed_no_memory;
    memory += done;
    buffer += done;
    bytes -= (size_t)done;
  }
  return NULL;
}

const char *software_closed_copy(const struct software_operation *operation)
{
  size_t bytes = operation->to.bytes;
  if (operation->staged) return no_host_access_closed_transfer(operation->to.start, operation->staged, bytes, true);
  char *buffer = malloc(bytes); /* of the whole: the two may overlap */
  if (!buffer) return closed_no_memory;
  const char *why = no_host_access_closed_transfer(operation->from.start, buffer, bytes, false);
  if (!why) why = no_host_access_closed_transfer(operation->to.start, buffer, bytes, true);
  free(buffer);
  return why;
}

const char *software_closed_fill(const struct software_operation *operation)
{
  size_t bytes = operation->to.bytes, chunk = bytes < CLOSED_CHUNK_BYTES ? bytes : CLOSED_CHUNK_BYTES;
  char *buffer = malloc(chunk);
  if (!buffer) return closed_no_memory;
  software_fill(buffer, chunk, operation->value, operation->value_bytes);
  const char *why = NULL;
  for (size_t done = 0; done < bytes && !why; done += chunk)
    why = no_host_access_closed_transfer(operation->to.start + done, buffer,
                                         bytes - done < chunk ? bytes - done : chunk, true);
  free(buffer);
  return why;
}
