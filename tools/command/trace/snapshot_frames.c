/* SPDX-License-Identifier: MIT */
/* snapshot_frames.c: see snapshot_frames.h. */
#include "snapshot_frames.h"
#include "../../../core/base/text.h"

#include <stdio.h>
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

/* The number of a frame's line: a frame is in many stacks, and mostly in the same place. */
static bool snapshot_frames_line(struct stack_texts *texts, struct key_map *lines, const struct tree_value *frame,
                                 unsigned index, uint32_t *line_out)
{
  char text[SNAPSHOT_FRAME_BYTES + 1];
  uint64_t key = (uint64_t)(uintptr_t)frame * SNAPSHOT_MOST_FRAMES + index;
  uint64_t found = key_map_get(lines, key);
  *line_out = (uint32_t)(found - 1);
  if (found) return true;
  size_t length = snapshot_frame(frame, index, text);
  text[length] = '\n';
  return stack_texts_add_line(texts, text, length + 1, line_out) && key_map_put(lines, key, (uint64_t)*line_out + 1);
}

bool snapshot_frames_add(struct stack_texts *texts, struct key_map *lines, const struct tree_value *frames,
                         uint32_t *number_out)
{
  uint32_t numbers[SNAPSHOT_MOST_FRAMES];
  unsigned n = 0;
  for (int pass = 0; pass < 2 && !n; pass++) { /* all frames where none tells of the program */
    struct tree_walk walk = tree_walk_of(frames);
    for (const struct tree_value *frame; n < SNAPSHOT_MOST_FRAMES && (frame = tree_next(&walk)) != NULL;) {
      if (!pass && snapshot_frame_is_noise(frame)) continue;
      if (!snapshot_frames_line(texts, lines, frame, n, &numbers[n])) return false;
      n++;
    }
  }
  return stack_texts_add_lines(texts, numbers, n, number_out);
}
