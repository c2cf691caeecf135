/* SPDX-License-Identifier: MIT */
/* stack_texts.c: see stack_texts.h. Whatever has the hash of something else takes the next one. */
#include "stack_texts.h"
#include "../../../core/base/text.h"
#include "../array.h"

/* ---- Parts of lines -------------------------------------------------------------------------------------------- */

static bool stack_texts_add_part(struct stack_texts *texts, const char *text, size_t length, uint32_t *number_out)
{
  uint64_t hash = text_hash(text, length);
  for (;; hash++) {
    uint64_t found = key_map_get(&texts->parts_by_hash, hash);
    if (!found) break;
    const struct stack_part *part = &texts->parts[found - 1];
    *number_out = (uint32_t)(found - 1);
    if (part->length == length && memcmp(texts->bytes + part->start, text, length) == 0) return true;
  }
  size_t number = texts->n_parts;
  if (number >= UINT32_MAX || length > UINT32_MAX ||
      !array_grow(&texts->parts, number, &texts->parts_capacity, sizeof *texts->parts) ||
      !array_grow(&texts->bytes, texts->n_bytes + length, &texts->bytes_capacity, 1) ||
      !key_map_put(&texts->parts_by_hash, hash, number + 1))
    return false;
  texts->parts[number] = (struct stack_part){texts->n_bytes, (uint32_t)length};
  memcpy(texts->bytes + texts->n_bytes, text, length);
  texts->n_bytes += length;
  texts->n_parts++;
  *number_out = (uint32_t)number;
  return true;
}

/* Where the next part of a line begins: behind " in ", before the last " from ", and before the line's number. */
static const char *stack_line_split(const char *at, const char *end, int part)
{
  static const char name[] = " in ", file[] = " from ";
  const char *found = NULL, *number = end;
  switch (part) {
  case 0: found = memmem(at, (size_t)(end - at), name, sizeof name - 1); return found ? found + sizeof name - 1 : at;
  case 1:
    for (const char *next = at; (next = memmem(next, (size_t)(end - next), file, sizeof file - 1)); next++) found = next;
    return found ? found : end;
  case 2:
    while (number > at && number[-1] >= '0' && number[-1] <= '9') number--;
    return number;
  default: return end;
  }
}

static bool stack_texts_add_line(struct stack_texts *texts, const char *at, const char *end, uint32_t *number_out)
{
  struct stack_line line;
  for (int i = 0; i < STACK_LINE_PARTS; i++) {
    const char *next = stack_line_split(at, end, i);
    if (!stack_texts_add_part(texts, at, (size_t)(next - at), &line.parts[i])) return false;
    at = next;
  }
  uint64_t hash = text_hash((const char *)&line, sizeof line);
  for (;; hash++) {
    uint64_t found = key_map_get(&texts->lines_by_hash, hash);
    if (!found) break;
    *number_out = (uint32_t)(found - 1);
    if (memcmp(&texts->lines[found - 1], &line, sizeof line) == 0) return true;
  }
  size_t number = texts->n_lines;
  if (number >= UINT32_MAX || !array_grow(&texts->lines, number, &texts->lines_capacity, sizeof *texts->lines) ||
      !key_map_put(&texts->lines_by_hash, hash, number + 1))
    return false;
  texts->lines[texts->n_lines++] = line;
  *number_out = (uint32_t)number;
  return true;
}

/* ---- Texts ----------------------------------------------------------------------------------------------------- */

static bool stack_texts_add_frames(struct stack_texts *texts, const char *text)
{
  for (const char *end; *text; text = end) {
    end = text + strcspn(text, "\n");
    end += *end == '\n';
    if (!array_grow(&texts->frames, texts->n_frames, &texts->frames_capacity, sizeof *texts->frames) ||
        !stack_texts_add_line(texts, text, end, &texts->frames[texts->n_frames]))
      return false;
    texts->n_frames++;
  }
  return true;
}

bool stack_texts_add(struct stack_texts *texts, const char *text, uint32_t *number_out)
{
  size_t length = strlen(text), frames = texts->n_frames, number = texts->n ? texts->n : 1;
  uint64_t hash = text_hash(text, length);
  for (;; hash++) {
    *number_out = (uint32_t)key_map_get(&texts->by_hash, hash);
    if (!*number_out) break;
    if (strcmp(stack_texts_get(texts, *number_out), text) == 0) return true;
  }
  if (length >= texts->text_bytes) {
    char *larger = realloc(texts->text, 2 * length + 1);
    if (!larger) return false;
    texts->text = larger;
    texts->text_bytes = 2 * length + 1;
  }
  if (number >= UINT32_MAX || !array_grow_zeroed(&texts->ends, number, &texts->capacity, sizeof *texts->ends) ||
      !stack_texts_add_frames(texts, text) || !key_map_put(&texts->by_hash, hash, number)) {
    texts->n_frames = frames;
    return false;
  }
  texts->ends[number] = texts->n_frames;
  texts->n = number + 1;
  *number_out = (uint32_t)number;
  return true;
}

const char *stack_texts_get(const struct stack_texts *texts, uint32_t number)
{
  if (!number || number >= texts->n) return NULL;
  char *at = texts->text;
  for (size_t i = texts->ends[number - 1]; i < texts->ends[number]; i++)
    for (int k = 0; k < STACK_LINE_PARTS; k++) {
      const struct stack_part *part = &texts->parts[texts->lines[texts->frames[i]].parts[k]];
      memcpy(at, texts->bytes + part->start, part->length);
      at += part->length;
    }
  *at = '\0';
  return texts->text;
}

void stack_texts_clear(struct stack_texts *texts)
{
  free(texts->ends);
  free(texts->frames);
  free(texts->lines);
  free(texts->parts);
  free(texts->bytes);
  free(texts->text);
  key_map_clear(&texts->by_hash);
  key_map_clear(&texts->lines_by_hash);
  key_map_clear(&texts->parts_by_hash);
  *texts = (struct stack_texts){0};
}
