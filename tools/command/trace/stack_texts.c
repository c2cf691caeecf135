/* SPDX-License-Identifier: MIT */
/* stack_texts.c: see stack_texts.h. */
#include "stack_texts.h"
#include "../array.h"

static uint64_t stack_texts_hash(const char *text)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
  for (; *text; text++) hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
  return hash;
}

bool stack_texts_add(struct stack_texts *texts, const char *text, uint32_t *number_out)
{
  uint64_t hash = stack_texts_hash(text);
  for (;; hash++) { /* another text can have the hash */
    *number_out = pointer_map_get(&texts->by_hash, hash);
    if (*number_out == POINTER_MAP_NONE) break;
    if (strcmp(texts->items[*number_out], text) == 0) return true;
  }
  size_t number = texts->n ? texts->n : 1;
  char *copy = number < POINTER_MAP_NONE ? strdup(text) : NULL;
  if (!copy || !array_grow_zeroed(&texts->items, number, &texts->capacity, sizeof *texts->items) ||
      !pointer_map_put(&texts->by_hash, hash, (uint32_t)number))
    return free(copy), false;
  texts->items[number] = copy;
  texts->n = number + 1;
  *number_out = (uint32_t)number;
  return true;
}

const char *stack_texts_get(const struct stack_texts *texts, uint32_t number)
{
  return number < texts->n ? texts->items[number] : NULL;
}

void stack_texts_clear(struct stack_texts *texts)
{
  for (size_t i = 0; i < texts->n; i++) free(texts->items[i]);
  free(texts->items);
  pointer_map_clear(&texts->by_hash);
  *texts = (struct stack_texts){0};
}
