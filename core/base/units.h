/* SPDX-License-Identifier: MIT */
/* units.h: sizes, percentages and durations with their units, as users write and read them. Thread-safe, independent of
 * the locale, and free of everything but the C library, so that plugins may compile them in. */
#ifndef HIPMM_CORE_BASE_UNITS_H
#define HIPMM_CORE_BASE_UNITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Formats a size: "1.5 GiB", "512 MiB", "17 bytes". Exact where two decimals suffice, else rounded to two decimals.
 * Returns `buffer`. */
const char *units_format_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes);

/* The same in a buffer of its own, which lasts to the end of the block, as for one call of printf(). */
#define UNITS_BYTES(bytes) units_format_bytes((bytes), (char[UNITS_TEXT_BYTES]){0}, UNITS_TEXT_BYTES)
enum { UNITS_TEXT_BYTES = 32 };

/* Each parser returns false on any other text and on overflow; errno is then ERANGE for an overflow, else EINVAL.
 *
 * Sizes: "4096", "512MiB", "1.5 GB". Units in any case: B, KB MB GB TB PB (1000^n) and KiB MiB GiB TiB PiB (1024^n), as
 * in RMM's parse_bytes. "16k" is no size. */
bool units_parse_bytes(const char *text, uint64_t *bytes_out);

/* Percentages: "50%", "12.5 %", "45% of total"; 0 or more. */
bool units_parse_percent(const char *text, double *percent_out, bool *is_of_total_out);

/* Durations in nanoseconds: "10ms", "1.5 s"; units ns us ms s min h. */
bool units_parse_duration(const char *text, int64_t *ns_out);

#endif
