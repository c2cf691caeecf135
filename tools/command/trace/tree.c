/* SPDX-License-Identifier: MIT */
/* tree.c: see tree.h. Snapshots have millions of values: each takes 24 bytes, and 16 in a list or 24 in a map. */
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
  struct tree_value *value = tree_new(tree, TREE_NUMBER);
  if (value) value->number = number;
  return value;
}

struct tree_value *tree_text(struct tree *tree, const char *text, size_t bytes)
{
  struct tree_value *value = tree_new(tree, TREE_TEXT);
  if (!value) return NULL;
  value->text = text;
  value->length = bytes < UINT32_MAX ? (uint32_t)bytes : UINT32_MAX;
  return value;
}

bool tree_append(struct tree *tree, struct tree_value *list, const struct tree_value *key, struct tree_value *value)
{
  struct tree_item *item = tree_take(tree, key ? sizeof *item : offsetof(struct tree_item, key));
  if (!item) return false;
  item->next = NULL;
  item->value = value;
  if (key) item->key = key;
  if (list->last)
    list->last->next = item;
  else
    list->first = item;
  list->last = item;
  list->length += list->length < UINT32_MAX;
  return true;
}

bool tree_text_is(const struct tree_value *value, const char *text)
{
  return value && value->kind == TREE_TEXT && value->length == strlen(text) &&
         memcmp(value->text, text, value->length) == 0;
}

const struct tree_value *tree_get(const struct tree_value *map, const char *key, enum tree_kind kind)
{
  if (!map || map->kind != TREE_MAP) return NULL;
  const struct tree_item *item = map->first;
  for (unsigned i = 0; item && i < TREE_MOST_KEYS; i++, item = item->next)
    if (tree_text_is(item->key, key)) return item->value->kind == kind ? item->value : NULL;
  return NULL;
}

int64_t tree_get_number(const struct tree_value *map, const char *key, int64_t missing)
{
  const struct tree_value *value = tree_get(map, key, TREE_NUMBER);
  return value ? value->number : missing;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------ */

static struct tree_value *tree_copy_text(struct tree *tree, const char *text, size_t bytes)
{
  char *copy = tree_take(tree, bytes + 1);
  if (copy) memcpy(copy, text, bytes + 1);
  return copy ? tree_text(tree, copy, bytes) : NULL;
}

static struct tree_value *tree_of_json(struct tree *tree, const json_t *json);

static struct tree_value *tree_of_object(struct tree *tree, const json_t *json)
{
  struct tree_value *map = tree_new(tree, TREE_MAP);
  for (void *at = json_object_iter((json_t *)json); map && at; at = json_object_iter_next((json_t *)json, at)) {
    const char *name = json_object_iter_key(at);
    struct tree_value *key = tree_copy_text(tree, name, strlen(name));
    struct tree_value *value = tree_of_json(tree, json_object_iter_value(at));
    if (!key || !value || !tree_append(tree, map, key, value)) return NULL;
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
    if (!value || !tree_append(tree, list, NULL, value)) return NULL;
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
