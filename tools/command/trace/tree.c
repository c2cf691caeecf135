/* SPDX-License-Identifier: MIT */
/* tree.c: see tree.h. Snapshots have millions of values: most are numbers, which take no
 * memory but the 8 bytes in their list or map; maps with equal keys share these. */
#include "tree.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A map is searched up to so many keys; those that are known have some dozen. */
enum { TREE_BLOCK_BYTES = 1 << 16, TREE_MOST_KEYS = 256 };

struct tree_block {
  struct tree_block *next;
};

/* ---- Memory ---------------------------------------------------------------------------------------------------- */

static void *tree_take(struct tree *tree, size_t bytes)
{
  bytes = (bytes + 7) & ~(size_t)7;
  tree->bytes += bytes;
  if (tree->most_bytes && tree->bytes > tree->most_bytes) return NULL;
  if ((size_t)(tree->end - tree->at) < bytes) {
    size_t most = sizeof(struct tree_block) + (bytes > TREE_BLOCK_BYTES ? bytes : TREE_BLOCK_BYTES);
    struct tree_block *block = malloc(most);
    if (!block) return NULL;
    block->next = tree->blocks;
    tree->blocks = block;
    tree->at = (char *)(block + 1);
    tree->end = (char *)block + most;
  }
  void *memory = tree->at;
  tree->at += bytes;
  return memory;
}

void tree_clear(struct tree *tree)
{
  for (struct tree_block *block = tree->blocks, *next; block; block = next) {
    next = block->next;
    free(block);
  }
  *tree = (struct tree){0};
}

/* ---- Values ---------------------------------------------------------------------------------------------------- */

struct tree_value *tree_new(struct tree *tree, enum tree_kind kind)
{
  struct tree_value *value = tree_take(tree, sizeof *value);
  if (value) *value = (struct tree_value){.kind = kind};
  return value;
}

struct tree_value *tree_number(struct tree *tree, int64_t number)
{
  if (number >= INTPTR_MIN / 2 && number <= INTPTR_MAX / 2)
    return (struct tree_value *)((uintptr_t)number << 1 | 1); /* no address */
  struct tree_value *value = tree_new(tree, TREE_NUMBER);
  if (value) value->number = number;
  return value;
}

struct tree_value *tree_copy_text(struct tree *tree, const char *text, size_t bytes)
{
  struct tree_value *value = tree_new(tree, TREE_TEXT);
  char *copy = value ? tree_take(tree, bytes) : NULL;
  if (!copy) return NULL;
  memcpy(copy, text, bytes);
  value->text = copy;
  value->length = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
  return value;
}

bool tree_texts_are_equal(const struct tree_value *one, const struct tree_value *other)
{
  return one->length == other->length && memcmp(one->text, other->text, one->length) == 0;
}

static bool tree_is_key(const struct tree_value *key, const struct tree_value *other)
{
  if (key == other || tree_kind_of(key) != TREE_TEXT || tree_kind_of(other) != TREE_TEXT) return key == other;
  return tree_texts_are_equal(key, other);
}

static bool tree_shape_is(const struct tree_shape *shape, struct tree_value *const *pairs, size_t n)
{
  size_t i = 0;
  if (!shape || shape->n != n) return false;
  while (i < n && tree_is_key(shape->keys[i], pairs[2 * i])) i++;
  return i == n;
}

/* The shape of a map with these keys. NULL: out of memory. */
static const struct tree_shape *tree_shape_of(struct tree *tree, struct tree_value *const *pairs, size_t n)
{
  for (unsigned i = 0; i < TREE_SHAPES; i++)
    if (tree_shape_is(tree->shapes[i], pairs, n)) return tree->shapes[i];
  struct tree_shape *shape = tree_take(tree, sizeof *shape + n * sizeof *shape->keys);
  if (!shape) return NULL;
  shape->n = n;
  for (size_t i = 0; i < n; i++) shape->keys[i] = pairs[2 * i];
  return tree->shapes[tree->next_shape++ % TREE_SHAPES] = shape;
}

bool tree_append(struct tree *tree, struct tree_value *list, struct tree_value *const *values, size_t n)
{
  const bool is_map = list->kind == TREE_MAP;
  const struct tree_shape *shape = is_map && n ? tree_shape_of(tree, values, n) : NULL;
  struct tree_chunk *chunk =
      n && (shape || !is_map) ? tree_take(tree, sizeof *chunk + n * sizeof *chunk->values) : NULL;
  if (!chunk) return !n;
  chunk->next = NULL;
  chunk->n = n;
  if (is_map) chunk->shape = shape;
  for (size_t i = 0; i < n; i++) chunk->values[i] = values[is_map ? 2 * i + 1 : i];
  if (list->last)
    list->last->next = chunk;
  else
    list->first = chunk;
  list->last = chunk;
  list->length = n < UINT32_MAX - list->length ? list->length + (uint32_t)n : UINT32_MAX;
  return true;
}

bool tree_text_is(const struct tree_value *value, const char *text)
{
  return value && tree_kind_of(value) == TREE_TEXT && value->length == strlen(text) &&
         memcmp(value->text, text, value->length) == 0;
}

const struct tree_value *tree_get(const struct tree_value *map, const char *key, enum tree_kind kind)
{
  unsigned looks = 0;
  if (!map || tree_kind_of(map) != TREE_MAP) return NULL;
  for (const struct tree_chunk *chunk = map->first; chunk && looks < TREE_MOST_KEYS; chunk = chunk->next)
    for (size_t i = 0; i < chunk->shape->n && looks < TREE_MOST_KEYS; i++, looks++)
      if (tree_text_is(chunk->shape->keys[i], key))
        return tree_kind_of(chunk->values[i]) == kind ? chunk->values[i] : NULL;
  return NULL;
}

int64_t tree_number_of(const struct tree_value *value)
{
  if (tree_kind_of(value) != TREE_NUMBER) return 0;
  return (uintptr_t)value & 1 ? (int64_t)(intptr_t)value >> 1 : value->number;
}

int64_t tree_get_number(const struct tree_value *map, const char *key, int64_t missing)
{
  const struct tree_value *value = tree_get(map, key, TREE_NUMBER);
  return value ? tree_number_of(value) : missing;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static struct tree_value *tree_of_json(struct tree *tree, const json_t *json);

static struct tree_value *tree_of_object(struct tree *tree, const json_t *json)
{
  struct tree_value *map = tree_new(tree, TREE_MAP);
  for (void *at = json_object_iter((json_t *)json); map && at; at = json_object_iter_next((json_t *)json, at)) {
    const char *name = json_object_iter_key(at);
    struct tree_value *pair[] = {tree_copy_text(tree, name, strlen(name)),
                                 tree_of_json(tree, json_object_iter_value(at))};
    if (!pair[0] || !pair[1] || !tree_append(tree, map, pair, 1)) return NULL;
  }
  return map;
}

/* jansson refuses JSON that is nested deeper than 2048. */
static struct tree_value *tree_of_json(struct tree *tree, const json_t *json)
{
  if (json_is_integer(json)) return tree_number(tree, json_integer_value(json));
  if (json_is_string(json)) return tree_copy_text(tree, json_string_value(json), json_string_length(json));
  if (json_is_object(json)) return tree_of_object(tree, json);
  struct tree_value *list = tree_new(tree, json_is_array(json) ? TREE_LIST : TREE_OTHER);
  for (size_t i = 0; list && i < json_array_size(json); i++) {
    struct tree_value *value = tree_of_json(tree, json_array_get(json, i));
    if (!value || !tree_append(tree, list, &value, 1)) return NULL;
  }
  return list;
}

struct tree_value *tree_read_json(struct tree *tree, const char *data, size_t bytes, char *message,
                                  size_t message_bytes)
{
  json_error_t error;
  json_t *json = json_loadb(data, bytes, JSON_ALLOW_NUL, &error);
  struct tree_value *value = json ? tree_of_json(tree, json) : NULL;
  if (!json && error.position >= 0 && (size_t)error.position >= bytes)
    snprintf(message, message_bytes, "is cut off: its JSON has no end; nothing was read");
  else if (!json)
    snprintf(message, message_bytes, "is no valid JSON: line %d, column %d: %s; nothing was read", error.line,
             error.column, error.text);
  else if (!value)
    snprintf(message, message_bytes, "out of memory while reading it");
  json_decref(json);
  return value;
}
