/* SPDX-License-Identifier: MIT */
/* tag.c: see tag.h. A thread's tags are a text of its own, so that a name need not outlive the call, and a thread that ends
 * leaves nothing. */
#include "tag.h"
#include "error.h"
#include "text.h"

#include <string.h>

enum { TAG_MOST_NAME_BYTES = 63 };

static _Thread_local struct {
  size_t bytes;
  char lines[HIPMM_MOST_TAG_BYTES + 1]; /* the outermost first; each ends with a newline */
} tags;

uint32_t tag_is_used;

const char *tag_lines(const struct hipmm_services *services)
{
  (void)services;
  return tags.lines;
}

enum hipmm_status hipmm_tag_push(const char *name)
{
  const size_t bytes = name ? strnlen(name, TAG_MOST_NAME_BYTES + 1) : 0;
  if (!bytes) return error_set(HIPMM_E_ARGUMENT, "hipmm_tag_push: the name is %s", name ? "empty" : "NULL");
  if (bytes > TAG_MOST_NAME_BYTES)
    return error_set(HIPMM_E_ARGUMENT, "hipmm_tag_push: the name has more than %d bytes", TAG_MOST_NAME_BYTES);
  if (!text_is_plain(name))
    return error_set(HIPMM_E_ARGUMENT, "hipmm_tag_push: the name is not UTF-8, or has control characters");
  if (tags.bytes + bytes + 1 > HIPMM_MOST_TAG_BYTES)
    return error_set(HIPMM_E_STATE,
                     "hipmm_tag_push: the tags of this thread would have more than %d bytes; end some, or use shorter "
                     "names",
                     HIPMM_MOST_TAG_BYTES);
  memcpy(tags.lines + tags.bytes, name, bytes);
  memcpy(tags.lines + tags.bytes + bytes, "\n", 2);
  tags.bytes += bytes + 1;
  __atomic_store_n(&tag_is_used, 1, __ATOMIC_RELAXED);
  return HIPMM_OK;
}

enum hipmm_status hipmm_tag_pop(void)
{
  if (!tags.bytes) return error_set(HIPMM_E_STATE, "hipmm_tag_pop: this thread has no tag");
  do tags.bytes--;
  while (tags.bytes && tags.lines[tags.bytes - 1] != '\n');
  tags.lines[tags.bytes] = '\0';
  return HIPMM_OK;
}
