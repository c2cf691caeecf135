/* SPDX-License-Identifier: MIT */
/* snapshot_frames.c: see snapshot_frames.h. */
#include "snapshot_frames.h"
#include "../../../core/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SNAPSHOT_MOST_FRAMES = 128, SNAPSHOT_FRAME_BYTES = 768 };

/* A function of Python's C API, such as _PyEval_EvalFrameDefault. */
static bool snapshot_name_is_interpreter(const struct tree_value *name)
{
  const char *at = name->text, *end = at + name->length;
  if (at < end && *at == '_') at++;
  if (end - at < 3 || at[0] != 'P' || at[1] != 'y') return false;
  while (at < end && ((*at | 0x20) >= 'a' && (*at | 0x20) <= 'z')) at++;
  return at < end && *at == '_';
}

/* Whether a frame tells nothing of the program: it takes the stack, begins the thread, or is the interpreter of Python. With
 * stacks="all", as is the default, a third of the frames are such. */
static bool snapshot_frame_is_noise(const struct tree_value *frame)
{
  static const char *const begins[] = {"torch::unwind::",
                                       "torch::CapturedTraceback::gather",
                                       "torch::cuda::(anonymous namespace)::gather_with_cpp",
                                       "_start",
                                       "__libc_",
                                       "__clone"};
  const struct tree_value *name = tree_get(frame, "name", TREE_TEXT);
  if (!name || tree_get_number(frame, "line", 0)) return false;
  for (size_t i = 0; i < sizeof begins / sizeof *begins; i++)
    if (name->length >= strlen(begins[i]) && memcmp(name->text, begins[i], strlen(begins[i])) == 0) return true;
  return snapshot_name_is_interpreter(name);
}

/* Writes a frame as the adaptors do. Returns its length. */
static size_t snapshot_frame(const struct tree_value *frame, unsigned index, char line[SNAPSHOT_FRAME_BYTES])
{
  const struct tree_value *name = tree_get(frame, "name", TREE_TEXT), *file = tree_get(frame, "filename", TREE_TEXT);
  int64_t number = tree_get_number(frame, "line", 0);
  int name_bytes = name && name->length ? (int)(name->length < 300 ? name->length : 300) : 1;
  int used =
      snprintf(line, SNAPSHOT_FRAME_BYTES, "  #%u in %.*s", index, name_bytes, name && name->length ? name->text : "?");
  if (file && file->length)
    used += snprintf(line + used, SNAPSHOT_FRAME_BYTES - (size_t)used, " from %.*s",
                     (int)(file->length < 300 ? file->length : 300), file->text);
  if (number > 0) snprintf(line + used, SNAPSHOT_FRAME_BYTES - (size_t)used, ":%lld", (long long)number);
  return text_make_plain(line);
}

char *snapshot_frames_text(const struct tree_value *frames)
{
  unsigned index = 0;
  char *text = malloc((size_t)SNAPSHOT_MOST_FRAMES * SNAPSHOT_FRAME_BYTES + 1);
  size_t used = 0;
  if (!text) return NULL;
  for (int pass = 0; pass < 2 && !index; pass++) /* all frames where none tells of the program */
    for (const struct tree_item *item = frames->first; item && index < SNAPSHOT_MOST_FRAMES; item = item->next) {
      if (!pass && snapshot_frame_is_noise(item->value)) continue;
      used += snapshot_frame(item->value, index++, text + used);
      text[used++] = '\n';
    }
  text[used] = '\0';
  return text;
}
