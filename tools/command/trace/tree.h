/* SPDX-License-Identifier: MIT */
/* tree.h: values as pickles and JSON have them: numbers, texts, lists and maps, in memory that is freed at once. A value can
 * be in several lists, even in itself, so a reader goes to a fixed depth. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_TREE_H
#define HIPMM_TOOLS_COMMAND_TRACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tree_kind { TREE_OTHER /* null, true, a float, … */, TREE_NUMBER, TREE_TEXT, TREE_LIST, TREE_MAP };

/* Only this file and tree.c look into a value: a pointer that is odd is a number of 63 bits. */
struct tree_value {
  enum tree_kind kind;
  uint32_t length; /* of a text, in bytes; of a list or map, its items */
  union {
    int64_t number;   /* above INT64_MAX as UINT64_MAX has it */
    const char *text; /* not terminated */
    struct {
      struct tree_chunk *first, *last;
    };
  };
};

/* The keys of maps that have the same ones. */
struct tree_shape {
  size_t n;
  const struct tree_value *keys[];
};

/* Items of a list or map that were added together. */
struct tree_chunk {
  struct tree_chunk *next;
  union {
    size_t n;                       /* of a list */
    const struct tree_shape *shape; /* of a map */
  };
  const struct tree_value *values[];
};

enum { TREE_SHAPES = 16 };

/* Memory of values; all zero is empty. */
struct tree {
  struct tree_block *blocks;
  char *at, *end;
  size_t bytes, most_bytes;               /* taken, and as many as may be; 0: any */
  struct tree_shape *shapes[TREE_SHAPES]; /* of the last maps */
  unsigned next_shape;
  bool gives_back; /* set by the caller: a pickle is memory of malloc(), whose pages are given back as they are read */
};

void tree_clear(struct tree *tree);

/* NULL, false: out of memory, or more than most_bytes. A text stays the caller's; tree_copy_text() copies it. */
struct tree_value *tree_new(struct tree *tree, enum tree_kind kind);
struct tree_value *tree_number(struct tree *tree, int64_t number);
struct tree_value *tree_copy_text(struct tree *tree, const char *text, size_t bytes);

/* Adds `n` values to a list; or to a map, for which `values` has a key before each value. */
bool tree_append(struct tree *tree, struct tree_value *list, struct tree_value *const *values, size_t n);

/* Reads JSON. NULL: `message` has the reason. */
struct tree_value *tree_read_json(struct tree *tree, const char *data, size_t bytes, char *message,
                                  size_t message_bytes);

/* Reads a Python pickle of protocol 2 to 5, without what would run code: classes, functions and their calls are refused.
 * NULL: `message` has the reason. */
struct tree_value *tree_read_pickle(struct tree *tree, const char *data, size_t bytes, char *message,
                                    size_t message_bytes);

static inline enum tree_kind tree_kind_of(const struct tree_value *value)
{
  return (uintptr_t)value & 1 ? TREE_NUMBER : value->kind;
}

/* The values of a list, one after another; none of NULL. */
struct tree_walk {
  const struct tree_chunk *chunk;
  size_t at;
};

static inline struct tree_walk tree_walk_of(const struct tree_value *list)
{
  return (struct tree_walk){list ? list->first : NULL, 0};
}

/* NULL: the list is at its end. */
static inline const struct tree_value *tree_next(struct tree_walk *walk)
{
  while (walk->chunk && walk->at == walk->chunk->n) *walk = (struct tree_walk){walk->chunk->next, 0};
  return walk->chunk ? walk->chunk->values[walk->at++] : NULL;
}

/* The first value of a list; NULL if `value` is no list, or an empty one. */
static inline const struct tree_value *tree_first(const struct tree_value *value)
{
  struct tree_walk walk = tree_walk_of(value && tree_kind_of(value) == TREE_LIST ? value : NULL);
  return tree_next(&walk);
}

/* The value of a key, with that kind; NULL without. `map` may be NULL, or no map. */
const struct tree_value *tree_get(const struct tree_value *map, const char *key, enum tree_kind kind);

/* A number; 0 if it is none. */
int64_t tree_number_of(const struct tree_value *value);

/* The number of a key; `missing` without. */
int64_t tree_get_number(const struct tree_value *map, const char *key, int64_t missing);

bool tree_texts_are_equal(const struct tree_value *one, const struct tree_value *other);
bool tree_text_is(const struct tree_value *value, const char *text);

#endif
