/* SPDX-License-Identifier: MIT */
/* text.h: near names, quotations, names and JSON pointers, for messages. Thread-safe; takes any bytes. */
#ifndef HIPMM_CORE_BASE_TEXT_H
#define HIPMM_CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A search for the candidate nearest to a word that a user wrote: text_near() starts it, and text_near_try() tries one
 * candidate. The distance is Damerau's without regard to case, at most a third of the word's length and at least 1; that of
 * an abbreviation, such as max_size for maximum_size, is 1. */
struct text_near {
  const char *word;
  size_t too_far;   /* a candidate must be nearer */
  const char *name; /* the nearest so far; NULL: none is near enough */
};
struct text_near text_near(const char *word);
void text_near_try(struct text_near *near, const char *candidate);

/* The same for `n` candidates at once; NULL if none is near. */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);

/* Whether `word` is one of the words, which are NULL-terminated; NULL: there are none. */
bool text_is_listed(const char *const *words, const char *word);

/* The end of a message about an unknown word: "; did you mean \"pool\"?", or nothing if `name` is NULL. Returns
 * `buffer`. */
#define TEXT_HINT_BYTES 192
const char *text_hint(const char *name, char *buffer, size_t buffer_bytes);

/* The length in bytes of the first character of `text`, which is not empty: 1 to 4 for UTF-8, and 1 for a byte outside
 * of any character. `is_control_out`: a terminal would interpret the character instead of showing it (U+0000 to U+001F,
 * U+007F to U+009F, the single bytes 0x80 to 0x9f), or the character has no shape and changes how the text around it is
 * read: U+202E and the other marks of the direction of writing, invisible marks, line separators. */
size_t text_character(const char *text, bool *is_control_out);

/* Whether the text is UTF-8, and whether it is UTF-8 without such characters. */
bool text_is_utf8(const char *text);
bool text_is_plain(const char *text);

/* Writes the first character of `text`, which is no single byte above 0x7f, as JSON escapes it: "\u202e", above U+FFFF
 * two of them. Returns the character's length in bytes. */
#define TEXT_ESCAPE_BYTES 16
size_t text_escape(const char *text, char escaped[TEXT_ESCAPE_BYTES]);

/* Replaces each control character by "?", in place. Returns the new length, which is not larger. */
size_t text_make_plain(char *text);

/* Appends to a text in a buffer of `bytes`, as much as fits. */
void text_append(char *text, size_t bytes, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Bytes of a buffer for a quotation; every valid resource name fits without being cut. */
#define TEXT_QUOTE_BYTES 160

/* Quotes `text` for a message: in double quotes, with control characters escaped. A long text is cut between two
 * characters, with "…". Returns `buffer`. */
const char *text_quote(const char *text, char *buffer, size_t buffer_bytes);

/* Whether `name` is a valid name of a resource or of a registered object. TEXT_NAME_RULE is the rule for a message,
 * with TEXT_LONGEST_NAME as its argument; TEXT_NAME_PATTERN is a pattern of JSON Schema. */
enum { TEXT_LONGEST_NAME = 100 };
#define TEXT_NAME_RULE    "write at most %d letters, digits, \"_\", \"-\" and \".\", with no digit first"
#define TEXT_NAME_PATTERN "^[A-Za-z_.-][A-Za-z0-9_.-]*$"
bool text_is_name(const char *name);

/* Parses a device ordinal in its only form: "0", "12", not "012" or "+1". False on any other text. Plugins use it too. */
static inline bool text_parse_ordinal(const char *text, int *number_out)
{
  size_t length = strlen(text);
  if (!length || length > 9 || strspn(text, "0123456789") != length || (text[0] == '0' && length > 1)) return false;
  *number_out = atoi(text);
  return true;
}

/* A key for a table of texts (FNV-1a). Other texts may have the same. */
static inline uint64_t text_hash(const char *text, size_t length)
{
  uint64_t hash = UINT64_C(0xcbf29ce484222325);
  for (size_t i = 0; i < length; i++) hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
  return hash;
}

/* The ending of a noun after a count: "1 block", "2 blocks". Static string. */
static inline const char *text_plural(uint64_t count)
{
  return count == 1 ? "" : "s";
}

/* The JSON pointer of `key` in the object at `parent` (RFC 6901: "~" becomes "~0", "/" becomes "~1"). The caller frees
 * it with free(). NULL without host memory, and if `parent` is NULL. */
char *text_pointer(const char *parent, const char *key);

/* Writes "/", the key and an end at `end`, at most 2 * strlen(key) + 2 bytes. Returns where the end is. */
char *text_add_key(char *end, const char *key);

#endif
