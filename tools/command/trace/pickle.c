/* SPDX-License-Identifier: MIT */
/* pickle.c: see tree_read_pickle(). A pickle is a program for a machine with a stack and a memo. Python's own reader may
 * import and call what the pickle names; this one knows only the operations that build numbers, texts, lists, tuples and
 * dictionaries, which is all that PyTorch writes of its allocator. Nothing in the pickle is trusted. */
#include "../array.h"
#include "tree.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The operations, by the names of Python's pickletools. */
enum {
  PICKLE_MARK = '(',
  PICKLE_STOP = '.',
  PICKLE_POP = '0',
  PICKLE_POP_MARK = '1',
  PICKLE_DUP = '2',
  PICKLE_BINBYTES = 'B',
  PICKLE_SHORT_BINBYTES = 'C',
  PICKLE_BINFLOAT = 'G',
  PICKLE_BININT = 'J',
  PICKLE_BININT1 = 'K',
  PICKLE_BININT2 = 'M',
  PICKLE_NONE = 'N',
  PICKLE_BINUNICODE = 'X',
  PICKLE_EMPTY_LIST = ']',
  PICKLE_APPEND = 'a',
  PICKLE_APPENDS = 'e',
  PICKLE_BINGET = 'h',
  PICKLE_LONG_BINGET = 'j',
  PICKLE_BINPUT = 'q',
  PICKLE_LONG_BINPUT = 'r',
  PICKLE_SETITEM = 's',
  PICKLE_TUPLE = 't',
  PICKLE_SETITEMS = 'u',
  PICKLE_EMPTY_TUPLE = ')',
  PICKLE_EMPTY_DICT = '}',
  PICKLE_PROTO = 0x80,
  PICKLE_TUPLE1 = 0x85,
  PICKLE_TUPLE3 = 0x87,
  PICKLE_NEWTRUE = 0x88,
  PICKLE_NEWFALSE = 0x89,
  PICKLE_LONG1 = 0x8a,
  PICKLE_SHORT_BINUNICODE = 0x8c,
  PICKLE_BINUNICODE8 = 0x8d,
  PICKLE_BINBYTES8 = 0x8e,
  PICKLE_MEMOIZE = 0x94,
  PICKLE_FRAME = 0x95,
};

/* For each byte of a pickle as many bytes of values; and one value on the stack, a mark and an entry of the memo for so many
 * bytes. A snapshot needs a third. */
enum { PICKLE_TREE_BYTES = 16, PICKLE_BYTES_A_VALUE = 4, PICKLE_LEAST_BYTES = 1 << 16 };

/* What was read is given back to the system in pieces of so many bytes. */
enum { PICKLE_PIECE_BYTES = 1 << 22 };

struct pickle {
  struct tree *tree;
  const unsigned char *start, *at, *end;
  const unsigned char *kept; /* from here on the bytes are there */
  struct tree_value **stack, **memo;
  size_t *marks;
  size_t n_stack, stack_capacity, n_memo, memo_capacity, n_marks, marks_capacity;
  const char *mistake; /* what is wrong; NULL: nothing */
};

static struct tree_value pickle_nothing = {.kind = TREE_OTHER}; /* what tells nothing is one value, and stays so */

static bool pickle_fail(struct pickle *pickle, const char *mistake)
{
  if (!pickle->mistake) pickle->mistake = mistake;
  return false;
}

/* ---- Reading --------------------------------------------------------------------------------------------------- */

static const unsigned char *pickle_bytes(struct pickle *pickle, uint64_t bytes)
{
  const unsigned char *at = pickle->at;
  if (bytes > (uint64_t)(pickle->end - at)) return pickle_fail(pickle, "is cut off"), NULL;
  pickle->at += bytes;
  return at;
}

/* A number of up to 8 bytes, the lowest first, without sign. */
static bool pickle_unsigned(struct pickle *pickle, unsigned bytes, uint64_t *number_out)
{
  const unsigned char *at = pickle_bytes(pickle, bytes);
  *number_out = 0;
  for (unsigned i = 0; at && i < bytes; i++) *number_out |= (uint64_t)at[i] << 8 * i;
  return at != NULL;
}

/* Why there is no memory for a value: a damaged pickle can name one thing in thousands of places. */
static bool pickle_fail_full(struct pickle *pickle)
{
  const struct tree *tree = pickle->tree;
  return pickle_fail(pickle, tree->bytes > tree->most_bytes ? "is damaged: it makes more values than it has room for"
                                                            : "out of memory");
}

/* Makes room for item `used`; new items are zero. */
static bool pickle_grow(struct pickle *pickle, void *array_in_out, size_t used, size_t *capacity, size_t item_bytes)
{
  size_t bytes = (size_t)(pickle->end - pickle->start);
  if (used > bytes / PICKLE_BYTES_A_VALUE + PICKLE_LEAST_BYTES)
    return pickle_fail(pickle, "is damaged: it makes more values than it has room for");
  return array_grow_zeroed(array_in_out, used, capacity, item_bytes) || pickle_fail(pickle, "out of memory");
}

/* ---- The stack and the memo ------------------------------------------------------------------------------------ */

static bool pickle_push(struct pickle *pickle, struct tree_value *value)
{
  if (!value) return pickle_fail_full(pickle);
  if (!pickle_grow(pickle, &pickle->stack, pickle->n_stack, &pickle->stack_capacity, sizeof *pickle->stack))
    return false;
  pickle->stack[pickle->n_stack++] = value;
  return true;
}

/* Where the values above the last mark begin, which is removed. */
static bool pickle_take_mark(struct pickle *pickle, size_t *from_out)
{
  if (!pickle->n_marks) return pickle_fail(pickle, "is damaged");
  *from_out = pickle->marks[--pickle->n_marks];
  return *from_out <= pickle->n_stack || pickle_fail(pickle, "is damaged");
}

static bool pickle_put(struct pickle *pickle, uint64_t index)
{
  if (!pickle->n_stack || index > (uint64_t)(pickle->end - pickle->start)) return pickle_fail(pickle, "is damaged");
  size_t used = index > pickle->n_memo ? (size_t)index : pickle->n_memo;
  if (index >= pickle->memo_capacity &&
      !pickle_grow(pickle, &pickle->memo, used, &pickle->memo_capacity, sizeof *pickle->memo))
    return false;
  pickle->memo[index] = pickle->stack[pickle->n_stack - 1];
  if (index >= pickle->n_memo) pickle->n_memo = (size_t)index + 1;
  return true;
}

static bool pickle_get(struct pickle *pickle, uint64_t index)
{
  if (index >= pickle->n_memo || !pickle->memo[index]) return pickle_fail(pickle, "is damaged");
  return pickle_push(pickle, pickle->memo[index]);
}

/* ---- Lists and dictionaries ------------------------------------------------------------------------------------ */

/* Moves the values from `from` on into the list or dictionary below them. */
static bool pickle_collect(struct pickle *pickle, size_t from, enum tree_kind kind)
{
  size_t step = kind == TREE_MAP ? 2 : 1;
  if (!from || from > pickle->n_stack || (pickle->n_stack - from) % step) return pickle_fail(pickle, "is damaged");
  struct tree_value *into = pickle->stack[from - 1];
  if (tree_kind_of(into) != kind) return pickle_fail(pickle, "is damaged");
  if (!tree_append(pickle->tree, into, pickle->stack + from, (pickle->n_stack - from) / step))
    return pickle_fail_full(pickle);
  pickle->n_stack = from;
  return true;
}

/* Replaces the values from `from` on by a list of them. */
static bool pickle_tuple(struct pickle *pickle, size_t from)
{
  struct tree_value *list = tree_new(pickle->tree, TREE_LIST);
  if (list && !tree_append(pickle->tree, list, pickle->stack + from, pickle->n_stack - from)) list = NULL;
  pickle->n_stack = from;
  return pickle_push(pickle, list);
}

/* ---- Operations ------------------------------------------------------------------------------------------------ */

/* A number whose highest bit is the sign. */
static bool pickle_signed(struct pickle *pickle, unsigned bytes)
{
  uint64_t number;
  if (!pickle_unsigned(pickle, bytes, &number)) return false;
  if (bytes && bytes < 8 && number >> (8 * bytes - 1)) number |= UINT64_MAX << 8 * bytes;
  return pickle_push(pickle, tree_number(pickle->tree, (int64_t)number));
}

/* A number of 9 bytes is one above INT64_MAX, such as an address; of longer ones there are none in a snapshot. */
static bool pickle_long(struct pickle *pickle)
{
  uint64_t bytes;
  if (!pickle_unsigned(pickle, 1, &bytes)) return false;
  if (bytes <= 8) return pickle_signed(pickle, (unsigned)bytes);
  const unsigned char *at = pickle_bytes(pickle, bytes);
  if (!at) return false;
  if (bytes > 9 || at[8]) return pickle_push(pickle, &pickle_nothing);
  pickle->at = at;
  return pickle_signed(pickle, 8) && pickle_bytes(pickle, 1);
}

static bool pickle_text(struct pickle *pickle, unsigned length_bytes)
{
  uint64_t bytes;
  if (!pickle_unsigned(pickle, length_bytes, &bytes)) return false;
  const unsigned char *text = pickle_bytes(pickle, bytes);
  return text && pickle_push(pickle, tree_copy_text(pickle->tree, (const char *)text, (size_t)bytes));
}

static bool pickle_skip(struct pickle *pickle, unsigned length_bytes)
{
  uint64_t bytes = 0;
  if (length_bytes && !pickle_unsigned(pickle, length_bytes, &bytes)) return false;
  return pickle_bytes(pickle, length_bytes ? bytes : 8) && pickle_push(pickle, &pickle_nothing);
}

static bool pickle_pop(struct pickle *pickle)
{
  if (!pickle->n_stack) return pickle_fail(pickle, "is damaged");
  pickle->n_stack--;
  return true;
}

static bool pickle_mark(struct pickle *pickle)
{
  if (!pickle_grow(pickle, &pickle->marks, pickle->n_marks, &pickle->marks_capacity, sizeof *pickle->marks))
    return false;
  pickle->marks[pickle->n_marks++] = pickle->n_stack;
  return true;
}

/* The operations that use the values above a mark. */
static bool pickle_run_marked(struct pickle *pickle, unsigned operation)
{
  size_t from;
  if (!pickle_take_mark(pickle, &from)) return false;
  if (operation == PICKLE_TUPLE) return pickle_tuple(pickle, from);
  if (operation == PICKLE_POP_MARK) return pickle->n_stack = from, true;
  return pickle_collect(pickle, from, operation == PICKLE_APPENDS ? TREE_LIST : TREE_MAP);
}

/* The operations on the values at the top of the stack, or on the memo. */
static bool pickle_run_stacked(struct pickle *pickle, unsigned operation)
{
  size_t n = pickle->n_stack, values = operation - PICKLE_TUPLE1 + 1;
  uint64_t index;
  switch (operation) {
  case PICKLE_BINGET:
  case PICKLE_LONG_BINGET:
    return pickle_unsigned(pickle, operation == PICKLE_BINGET ? 1 : 4, &index) && pickle_get(pickle, index);
  case PICKLE_BINPUT:
  case PICKLE_LONG_BINPUT:
    return pickle_unsigned(pickle, operation == PICKLE_BINPUT ? 1 : 4, &index) && pickle_put(pickle, index);
  case PICKLE_MEMOIZE: return pickle_put(pickle, pickle->n_memo);
  case PICKLE_APPEND: return n ? pickle_collect(pickle, n - 1, TREE_LIST) : pickle_fail(pickle, "is damaged");
  case PICKLE_SETITEM: return n > 1 ? pickle_collect(pickle, n - 2, TREE_MAP) : pickle_fail(pickle, "is damaged");
  case PICKLE_DUP: return n ? pickle_push(pickle, pickle->stack[n - 1]) : pickle_fail(pickle, "is damaged");
  case PICKLE_POP: return pickle_pop(pickle);
  }
  if (operation < PICKLE_TUPLE1 || operation > PICKLE_TUPLE3)
    return pickle_fail(pickle, "has Python objects other than numbers, texts, lists and dictionaries");
  return n >= values ? pickle_tuple(pickle, n - values) : pickle_fail(pickle, "is damaged");
}

static bool pickle_run(struct pickle *pickle, unsigned operation)
{
  switch (operation) {
  case PICKLE_PROTO: return pickle_bytes(pickle, 1) != NULL;
  case PICKLE_FRAME: return pickle_bytes(pickle, 8) != NULL;
  case PICKLE_MARK: return pickle_mark(pickle);
  case PICKLE_TUPLE:
  case PICKLE_APPENDS:
  case PICKLE_SETITEMS:
  case PICKLE_POP_MARK: return pickle_run_marked(pickle, operation);
  case PICKLE_NONE:
  case PICKLE_NEWTRUE:
  case PICKLE_NEWFALSE: return pickle_push(pickle, &pickle_nothing);
  case PICKLE_EMPTY_TUPLE:
  case PICKLE_EMPTY_LIST: return pickle_push(pickle, tree_new(pickle->tree, TREE_LIST));
  case PICKLE_EMPTY_DICT: return pickle_push(pickle, tree_new(pickle->tree, TREE_MAP));
  case PICKLE_BININT: return pickle_signed(pickle, 4);
  case PICKLE_BININT1:
  case PICKLE_BININT2: {
    uint64_t number;
    return pickle_unsigned(pickle, operation == PICKLE_BININT1 ? 1 : 2, &number) &&
           pickle_push(pickle, tree_number(pickle->tree, (int64_t)number));
  }
  case PICKLE_LONG1: return pickle_long(pickle);
  case PICKLE_BINFLOAT: return pickle_skip(pickle, 0);
  case PICKLE_SHORT_BINBYTES: return pickle_skip(pickle, 1);
  case PICKLE_BINBYTES: return pickle_skip(pickle, 4);
  case PICKLE_BINBYTES8: return pickle_skip(pickle, 8);
  case PICKLE_SHORT_BINUNICODE: return pickle_text(pickle, 1);
  case PICKLE_BINUNICODE: return pickle_text(pickle, 4);
  case PICKLE_BINUNICODE8: return pickle_text(pickle, 8);
  }
  return pickle_run_stacked(pickle, operation);
}

/* Gives back the whole pages of what was read. */
static void pickle_give_back(struct pickle *pickle)
{
  if (!pickle->tree->gives_back || pickle->at - pickle->kept < PICKLE_PIECE_BYTES) return;
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  const uintptr_t from = ((uintptr_t)pickle->kept + page - 1) & -page, to = (uintptr_t)pickle->at & -page;
  if (from < to) madvise((void *)from, to - from, MADV_DONTNEED);
  pickle->kept = (const unsigned char *)to;
}

struct tree_value *tree_read_pickle(struct tree *tree, const char *data, size_t bytes, char *message,
                                    size_t message_bytes)
{
  struct pickle pickle = {.tree = tree, .start = (const unsigned char *)data};
  pickle.at = pickle.kept = pickle.start;
  pickle.end = pickle.start + bytes;
  tree->most_bytes = PICKLE_TREE_BYTES * (bytes + PICKLE_LEAST_BYTES);
  struct tree_value *root = NULL;
  const unsigned char *operation;
  do {
    pickle_give_back(&pickle);
    operation = pickle_bytes(&pickle, 1);
  } while (operation && *operation != PICKLE_STOP && pickle_run(&pickle, *operation));
  if (!pickle.mistake && pickle.n_stack == 1) root = pickle.stack[0];
  if (!root)
    snprintf(message, message_bytes, "%s at byte %zu of its pickle; nothing was read",
             pickle.mistake ? pickle.mistake : "is damaged",
             (size_t)((operation ? operation : pickle.end) - pickle.start));
  free(pickle.stack);
  free(pickle.memo);
  free(pickle.marks);
  return root;
}
