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
    for (const char *next = at; (next = memmem(next, (size_t)(end - next), file, sizeof file - 1)); next++)
      found = next;
    return found ? found : end;
  case 2:
    while (number > at && number[-1] >= '0' && number[-1] <= '9') number--;
    return number;
  default: return end;
  }
}

bool stack_texts_add_line(struct stack_texts *texts, const char *at, size_t bytes, uint32_t *line_out)
{
  struct stack_line line = {.length = (uint32_t)bytes};
  const char *end = at + bytes;
  for (int i = 0; i < STACK_LINE_PARTS; i++) {
    const char *next = stack_line_split(at, end, i);
    if (!stack_texts_add_part(texts, at, (size_t)(next - at), &line.parts[i])) return false;
    at = next;
  }
  uint64_t hash = text_hash((const char *)&line, sizeof line);
  for (;; hash++) {
    uint64_t found = key_map_get(&texts->lines_by_hash, hash);
    if (!found) break;
    *line_out = (uint32_t)(found - 1);
    if (memcmp(&texts->lines[found - 1], &line, sizeof line) == 0) return true;
  }
  size_t number = texts->n_lines;
  if (number >= UINT32_MAX || bytes > UINT32_MAX ||
      !array_grow(&texts->lines, number, &texts->lines_capacity, sizeof *texts->lines) ||
      !key_map_put(&texts->lines_by_hash, hash, number + 1))
    return false;
  texts->lines[texts->n_lines++] = line;
  *line_out = (uint32_t)number;
  return true;
}

/* ---- Texts ----------------------------------------------------------------------------------------------------- */

/* Adds the lines to those of all stacks, and has room for their text. */
static bool stack_texts_append(struct stack_texts *texts, const uint32_t *lines, size_t n)
{
  size_t bytes = 1;
  if (!array_grow(&texts->frames, texts->n_frames + n, &texts->frames_capacity, sizeof *texts->frames)) return false;
  for (size_t i = 0; i < n; i++) {
    texts->frames[texts->n_frames + i] = lines[i];
    bytes += texts->lines[lines[i]].length;
  }
  if (bytes <= texts->text_bytes) return true;
  char *larger = realloc(texts->text, 2 * bytes);
  if (!larger) return false;
  texts->text = larger;
  texts->text_bytes = 2 * bytes;
  return true;
}

static bool stack_texts_has(const struct stack_texts *texts, uint32_t number, const uint32_t *lines, size_t n)
{
  size_t start = texts->ends[number - 1];
  return texts->ends[number] - start == n && memcmp(texts->frames + start, lines, n * sizeof *lines) == 0;
}

bool stack_texts_add_lines(struct stack_texts *texts, const uint32_t *lines, size_t n, uint32_t *number_out)
{
  size_t number = texts->n ? texts->n : 1;
  uint64_t hash = text_hash((const char *)lines, n * sizeof *lines);
  for (;; hash++) {
    *number_out = (uint32_t)key_map_get(&texts->by_hash, hash);
    if (!*number_out) break;
    if (stack_texts_has(texts, *number_out, lines, n)) return true;
  }
  if (number >= UINT32_MAX || !array_grow_zeroed(&texts->ends, number, &texts->capacity, sizeof *texts->ends) ||
      !stack_texts_append(texts, lines, n) || !key_map_put(&texts->by_hash, hash, number))
    return false;
  texts->n_frames += n;
  texts->ends[number] = texts->n_frames;
  texts->n = number + 1;
  *number_out = (uint32_t)number;
  return true;
}

bool stack_texts_add(struct stack_texts *texts, const char *text, uint32_t *number_out)
{
  uint32_t *lines = NULL;
  size_t n = 0, capacity = 0;
  bool good = true;
  for (const char *end; good && *text; text = end) {
    end = text + strcspn(text, "\n");
    end += *end == '\n';
    good = array_grow(&lines, n, &capacity, sizeof *lines) &&
           stack_texts_add_line(texts, text, (size_t)(end - text), &lines[n]);
    n++;
  }
  good = good && stack_texts_add_lines(texts, lines ? lines : &(uint32_t){0}, n, number_out);
  free(lines);
  return good;
}

/* The number of a line of other texts. */
static bool stack_texts_copy_line(struct stack_texts *texts, const struct stack_texts *from, uint32_t line,
                                  struct key_map *lines, uint32_t *line_out)
{
  char text[2048], *at = text, *more = NULL;
  const struct stack_line *source = &from->lines[line];
  uint64_t found = key_map_get(lines, line);
  *line_out = (uint32_t)(found - 1);
  if (found) return true;
  if (source->length > sizeof text && !(at = more = malloc(source->length))) return false;
  char *start = at;
  for (int i = 0; i < STACK_LINE_PARTS; i++) {
    const struct stack_part *part = &from->parts[source->parts[i]];
    memcpy(at, from->bytes + part->start, part->length);
    at += part->length;
  }
  bool good =
      stack_texts_add_line(texts, start, source->length, line_out) && key_map_put(lines, line, (uint64_t)*line_out + 1);
  free(more);
  return good;
}

bool stack_texts_copy(struct stack_texts *texts, const struct stack_texts *from, uint32_t number, struct key_map *lines,
                      uint32_t *number_out)
{
  size_t start = from->ends[number - 1], n = from->ends[number] - start;
  uint32_t *copies = malloc((n + 1) * sizeof *copies);
  bool good = copies != NULL;
  for (size_t i = 0; good && i < n; i++)
    good = stack_texts_copy_line(texts, from, from->frames[start + i], lines, &copies[i]);
  good = good && stack_texts_add_lines(texts, copies, n, number_out);
  free(copies);
  return good;
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
