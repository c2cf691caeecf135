/* SPDX-License-Identifier: MIT */
/* tree.h: values as pickles and JSON have them: numbers, texts, lists and maps, in memory that is freed at once. A value can
 * be in several lists, even in itself, so a reader goes to a fixed depth. */
#ifndef HIPMM_TOOLS_COMMAND_TRACE_TREE_H
#define HIPMM_TOOLS_COMMAND_TRACE_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum tree_kind { TREE_OTHER /* null, true, a float, … */, TREE_NUMBER, TREE_TEXT, TREE_LIST, TREE_MAP };

struct tree_value {
  enum tree_kind kind;
  uint32_t length; /* of a text, in bytes; of a list or map, its items */
  union {
    int64_t number;   /* above INT64_MAX as UINT64_MAX has it */
    const char *text; /* not terminated */
    struct {
      struct tree_item *first, *last;
    };
  };
};

struct tree_item {
  struct tree_item *next;
  struct tree_value *value;
  const struct tree_value *key; /* of a map: items of lists do not have it */
};

/* Memory of values; all zero is empty. */
struct tree {
  struct tree_block *blocks;
  char *at, *end;
  size_t bytes, most_bytes; /* taken, and as many as may be; 0: any */
};

void tree_clear(struct tree *tree);

/* NULL, false: out of memory, or more than most_bytes. The text stays the caller's. */
struct tree_value *tree_new(struct tree *tree, enum tree_kind kind);
struct tree_value *tree_number(struct tree *tree, int64_t number);
struct tree_value *tree_text(struct tree *tree, const char *text, size_t bytes);
bool tree_append(struct tree *tree, struct tree_value *list, const struct tree_value *key, struct tree_value *value);

/* Reads JSON. NULL: `message` has the reason. */
struct tree_value *tree_read_json(struct tree *tree, const char *data, size_t bytes, char *message,
                                  size_t message_bytes);

/* Reads a Python pickle of protocol 2 to 5, without what would run code: classes, functions and their calls are refused. The
 * texts stay in `data`. NULL: `message` has the reason. */
struct tree_value *tree_read_pickle(struct tree *tree, const char *data, size_t bytes, char *message,
                                    size_t message_bytes);

/* The value of a key, with that kind; NULL without. `map` may be NULL, or no map. */
const struct tree_value *tree_get(const struct tree_value *map, const char *key, enum tree_kind kind);

/* The number of a key; `missing` without. */
int64_t tree_get_number(const struct tree_value *map, const char *key, int64_t missing);

bool tree_text_is(const struct tree_value *value, const char *text);

#endif
