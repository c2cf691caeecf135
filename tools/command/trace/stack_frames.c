/* SPDX-License-Identifier: MIT */
/* stack_frames.c: see stack_frames.h. */
#include "stack_frames.h"
#include "../../../core/base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STACK_FRAMES_NATIVE = 3 }; /* native frames that a name has at most */

static bool stack_frames_begins(const char *start, const char *end, const char *part)
{
  size_t length = strlen(part);
  return (size_t)(end - start) >= length && memcmp(start, part, length) == 0;
}

static const char *stack_frames_find(const char *start, const char *end, const char *part)
{
  return memmem(start, (size_t)(end - start), part, strlen(part));
}

bool stack_frames_next(const char **at, struct stack_frame *frame_out)
{
  const char *line = *at;
  while (*line == '\n') line++;
  const char *end = line + strcspn(line, "\n"), *digits = end;
  *at = end;
  if (end == line) return false;
  const char *name = stack_frames_find(line, end, " in ");
  name = name ? name + 4 : line;
  const char *from = stack_frames_find(name, end, " from ");
  *frame_out = (struct stack_frame){name, from ? from : end, from ? from + 6 : end, end, 0};
  while (digits > frame_out->file && digits[-1] >= '0' && digits[-1] <= '9') digits--;
  if (digits > frame_out->file + 1 && digits < end && digits[-1] == ':' && end - digits < 10) {
    frame_out->line = strtoul(digits, NULL, 10);
    frame_out->file_end = digits - 1;
  }
  return true;
}

/* ---- Names ----------------------------------------------------------------------------------------------------- */

static bool stack_frames_is_python(const struct stack_frame *frame)
{
  size_t length = (size_t)(frame->file_end - frame->file);
  return frame->line && ((length > 3 && memcmp(frame->file_end - 3, ".py", 3) == 0) || *frame->file == '<');
}

/* The file as its package names it; NULL: it is of no installed package but the program's own. */
static const char *stack_frames_in_package(const struct stack_frame *frame)
{
  static const char *const folders[] = {"/site-packages/", "/dist-packages/", "/lib/python"};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
    const char *found = stack_frames_find(frame->file, frame->file_end, folders[i]);
    if (!found) continue;
    found += strlen(folders[i]); /* that of Python's own ends in a version */
    while (found < frame->file_end && found[-1] != '/') found++;
    return found;
  }
  return NULL;
}

/* Whether a native frame only allocates for its caller, in PyTorch. */
static bool stack_frames_is_helper(const struct stack_frame *frame)
{
  static const char *const helpers[] = {
      "c10::", "at::detail::", "at::(anonymous namespace)::", "at::meta::", "at::_ops::"};
  for (size_t i = 0; i < sizeof helpers / sizeof *helpers; i++)
    if (stack_frames_begins(frame->name, frame->name_end, helpers[i])) return true;
  return false;
}

/* The end of a name, before the parameters of a function of C++, those of a template, and "+0x12". */
static const char *stack_frames_name_end(const struct stack_frame *frame)
{
  static const char anonymous[] = "(anonymous namespace)";
  const char *end = frame->name_end;
  for (const char *at = frame->name + 1; at < end; at++) {
    if (stack_frames_begins(at, end, anonymous)) at += strlen(anonymous);
    bool is_operator = at - frame->name >= 8 && memcmp(at - 8, "operator", 8) == 0;
    if (!is_operator && (*at == '(' || *at == '<' || stack_frames_begins(at, end, "+0x"))) return at;
  }
  return end;
}

struct stack_frames_name {
  char *text;
  size_t bytes, used;
};

static void stack_frames_write(struct stack_frames_name *name, const char *before, const char *start, const char *end)
{
  int n = name->used < name->bytes
              ? snprintf(name->text + name->used, name->bytes - name->used, "%s%.*s", before, (int)(end - start), start)
              : 0;
  if (n > 0) name->used += (size_t)n;
}

/* "name from file:7", and of native code "name from library.so", or the library alone if the name is not known. */
static void stack_frames_add(struct stack_frames_name *name, const struct stack_frame *frame)
{
  const char *end = stack_frames_name_end(frame), *file = frame->file, *file_end = frame->file_end;
  const char *in_package = stack_frames_in_package(frame), *between = name->used ? " ← " : "";
  char line[24] = "";
  if (frame->line) {
    if (in_package) file = in_package;
    snprintf(line, sizeof line, ":%lu", frame->line);
  } else {
    const char *offset = stack_frames_find(file, file_end, " (+0x");
    if (offset) file_end = offset;
    for (const char *at = file; at < file_end; at++)
      if (*at == '/') file = at + 1;
  }
  bool has_file = file < file_end && *file != '?';
  if (has_file && end - frame->name == 1 && *frame->name == '?') {
    stack_frames_write(name, between, file, file_end);
    return;
  }
  stack_frames_write(name, between, frame->name, end);
  if (has_file && (frame->line || !*between)) stack_frames_write(name, " from ", file, file_end);
  stack_frames_write(name, "", line, line + strlen(line));
}

/* The innermost frame of Python, and the innermost of the program's own. False: there is none of Python. */
static bool stack_frames_name_python(const char *text, struct stack_frames_name *name)
{
  struct stack_frame frame;
  while (stack_frames_next(&text, &frame)) {
    if (!stack_frames_is_python(&frame)) continue;
    bool is_own = !stack_frames_in_package(&frame);
    if (is_own || !name->used) stack_frames_add(name, &frame);
    if (is_own) break;
  }
  return name->used;
}

/* Of native code: the function that PyTorch derives, if there is one; or else the innermost frames, without PyTorch's helpers
 * if anything else is left. */
static void stack_frames_name_native(const char *text, struct stack_frames_name *name)
{
  static const char derived[] = "torch::autograd::generated::";
  struct stack_frame frame;
  size_t n = 0;
  for (const char *at = text; !name->used && stack_frames_next(&at, &frame);)
    if (stack_frames_begins(frame.name, frame.name_end, derived) &&
        stack_frames_find(frame.name, stack_frames_name_end(&frame), "::apply")) {
      frame.name += strlen(derived);
      stack_frames_add(name, &frame);
    }
  for (int pass = 0; pass < 2 && !name->used; pass++)
    for (const char *at = text; n < STACK_FRAMES_NATIVE && stack_frames_next(&at, &frame);) {
      if (!pass && stack_frames_is_helper(&frame)) continue;
      stack_frames_add(name, &frame);
      n++;
    }
}

/* Ends a name that was cut between two characters. */
static void stack_frames_cut(char *name, size_t name_bytes)
{
  static const char ellipsis[] = "…";
  size_t end = 0, n;
  bool is_control;
  while (name[end] && end + (n = text_character(name + end, &is_control)) + sizeof ellipsis <= name_bytes) end += n;
  memcpy(name + end, ellipsis, sizeof ellipsis);
}

void stack_frames_name(const char *text, char *name, size_t name_bytes)
{
  struct stack_frames_name made = {.text = name, .bytes = name_bytes};
  *name = '\0';
  if (!stack_frames_name_python(text, &made)) stack_frames_name_native(text, &made);
  if (made.used >= name_bytes) stack_frames_cut(name, name_bytes);
}
