/* SPDX-License-Identifier: MIT */
/* text.h: words for people: near names, quotations, JSON pointers, sizes with units. */
#ifndef HIPMM_CORE_BASE_TEXT_H
#define HIPMM_CORE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The name nearest to a word among those tried: text_near() begins with none, and text_near_try() takes a candidate
 * that is nearer than those before (Damerau's distance without regard to case, at most a third of the word's length, at
 * least 1). */
struct text_near {
  const char *word;
  size_t too_far;
  const char *name; /* NULL: none is near enough to be what was meant */
};
struct text_near text_near(const char *word);
void text_near_try(struct text_near *near, const char *candidate);

/* The same among `n` candidates at once. */
const char *text_nearest(const char *word, const char *const *candidates, size_t n);

/* What a message about an unknown word ends with: "; did you mean \"pool\"?", or nothing where `name` is NULL. Returns
 * `buffer`. */
#define TEXT_HINT_BYTES 192
const char *text_hint(const char *name, char *buffer, size_t buffer_bytes);

/* Bytes of the character that `text` begins with, which is not empty: 1 to 4 of UTF-8, and 1 for a byte that is in no
 * character. `is_control_out`: a terminal would obey it and not show it: U+0000 to U+001F, U+007F, U+0080 to U+009F,
 * and the lone bytes 0x80 to 0x9f. */
size_t text_character(const char *text, bool *is_control_out);

/* Puts "?" for each control character, in place. Returns the new length, which is not larger. */
size_t text_make_plain(char *text);

/* Room for a quotation; every valid resource name fits without being cut. */
#define TEXT_QUOTE_BYTES 160

/* Puts `text` in double quotes for a message: control characters escaped, what does not fit cut off with "…" between
 * two characters. Returns `buffer`. */
const char *text_quote(const char *text, char *buffer, size_t buffer_bytes);

/* Whether `name` may be the name of a resource or of a registered object; the rule, for a message, with the longest
 * length as its argument; and as a pattern of JSON Schema. */
enum { TEXT_LONGEST_NAME = 100 };
#define TEXT_NAME_RULE    "write at most %d letters, digits, \"_\", \"-\" and \".\", with no digit first"
#define TEXT_NAME_PATTERN "^[A-Za-z_.-][A-Za-z0-9_.-]*$"
bool text_is_name(const char *name);

/* Reads a device's number as it is written in only one way: "0", "12", not "012" or "+1". False on anything else. */
bool text_parse_ordinal(const char *text, int *number_out);

/* The ending of a noun after a count: "1 block", "2 blocks". */
static inline const char *text_plural(uint64_t count)
{
  return count == 1 ? "" : "s";
}

/* The JSON pointer of `key` in the object at `parent` (RFC 6901: "~" becomes "~0", "/" becomes "~1"). To be freed with
 * free(); NULL when there is no memory, or was none for `parent`. */
char *text_pointer(const char *parent, const char *key);

/* "1.5 GiB", "512 MiB", "17 bytes": exact when short, else two decimals. Returns `buffer`. */
const char *units_format_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes);

/* Reads "4096", "512MiB", "1.5GB", "16k" is refused; spaces before the unit are allowed; units any case: B KB MB GB TB
 * PB (1000^n) and KiB … PiB (1024^n), as RMM's parse_bytes. False on anything else, and on overflow with errno set to
 * ERANGE (EINVAL otherwise). */
bool units_parse_bytes(const char *text, uint64_t *bytes_out);

/* Reads "50%", "12.5 %": 0 to any. False on anything else. */
bool units_parse_percent(const char *text, double *percent_out);

/* Reads "10ms", "1.5 s", units ns us ms s min h, into nanoseconds. False on anything else and on overflow (as
 * above). */
bool units_parse_duration(const char *text, int64_t *ns_out);

#endif
