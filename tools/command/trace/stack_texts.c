/* SPDX-License-Identifier: MIT */
/* stack_texts.c: see stack_texts.h. */
#include "stack_texts.h"
#include "../../../core/base/text.h"
#include "../array.h"

bool stack_texts_add(struct stack_texts *texts, const char *text, uint32_t *number_out)
{
  uint64_t hash = text_hash(text, strlen(text));
  for (;; hash++) { /* another text can have the hash */
    *number_out = (uint32_t)key_map_get(&texts->by_hash, hash);
    if (!*number_out) break;
    if (strcmp(texts->items[*number_out], text) == 0) return true;
  }
  size_t number = texts->n ? texts->n : 1;
  char *copy = number < UINT32_MAX ? strdup(text) : NULL;
  if (!copy || !array_grow_zeroed(&texts->items, number, &texts->capacity, sizeof *texts->items) ||
      !key_map_put(&texts->by_hash, hash, number))
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
  key_map_clear(&texts->by_hash);
  *texts = (struct stack_texts){0};
}
