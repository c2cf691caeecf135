/* SPDX-License-Identifier: MIT */
/* units.c: parses and formats sizes, percentages and durations. Called by the option reader and for messages. Never
 * uses strtod(), which obeys the application's locale. */
#include "units.h"
#include "text.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

/* whole + fraction / scale. Digits beyond the 18th decimal are dropped. */
struct decimal {
  uint64_t whole, fraction, scale;
  bool overflows;
};

struct unit {
  const char *name;
  uint64_t size;
};

static const struct unit bytes_units[] = {
    {"", 1},
    {"B", 1},
    {"KB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
    {"TB", 1000ull * 1000 * 1000 * 1000},
    {"PB", 1000ull * 1000 * 1000 * 1000 * 1000},
    {"KiB", 1ull << 10},
    {"MiB", 1ull << 20},
    {"GiB", 1ull << 30},
    {"TiB", 1ull << 40},
    {"PiB", 1ull << 50},
};

static const struct unit duration_units[] = {
    {"ns", 1},
    {"us", 1000},
    {"ms", 1000 * 1000},
    {"s", 1000 * 1000 * 1000},
    {"min", 60ull * 1000 * 1000 * 1000},
    {"h", 3600ull * 1000 * 1000 * 1000},
};

static bool units_is_digit(char c)
{
  return c >= '0' && c <= '9';
}

/* Parses digits, with a decimal point and more digits if there is one. Returns the text behind them, spaces skipped;
 * NULL without a digit. */
static const char *units_parse_decimal(const char *text, struct decimal *number)
{
  *number = (struct decimal){.scale = 1};
  if (!units_is_digit(*text)) return NULL;
  for (; units_is_digit(*text); text++) {
    uint64_t digit = (uint64_t)(*text - '0');
    number->overflows |= number->whole > (UINT64_MAX - digit) / 10;
    number->whole = number->whole * 10 + digit;
  }
  if (*text == '.')
    text++;
  else
    return text + strspn(text, " \t");
  for (; units_is_digit(*text); text++) {
    if (number->scale >= 1000000000000000000ull) continue;
    number->fraction = number->fraction * 10 + (uint64_t)(*text - '0');
    number->scale *= 10;
  }
  return text + strspn(text, " \t");
}

static bool units_fail(int code)
{
  errno = code;
  return false;
}

/* The number times the unit; false if that is above `maximum`. */
static bool units_multiply(const struct decimal *number, uint64_t unit, uint64_t maximum, uint64_t *product_out)
{
  unsigned __int128 product = (unsigned __int128)number->whole * unit;
  product += (unsigned __int128)number->fraction * unit / number->scale;
  if (number->overflows || product > maximum) return units_fail(ERANGE);
  *product_out = (uint64_t)product;
  return true;
}

/* A number with one of the units; false if it is above `maximum`. */
static bool units_parse(const char *text, const struct unit *units, size_t n,
                        int (*compare)(const char *, const char *), uint64_t maximum, uint64_t *value_out)
{
  struct decimal number;
  const char *name = units_parse_decimal(text, &number);
  for (size_t i = 0; name && i < n; i++)
    if (!compare(units[i].name, name)) return units_multiply(&number, units[i].size, maximum, value_out);
  return units_fail(EINVAL);
}

bool units_parse_bytes(const char *text, uint64_t *bytes_out)
{
  return units_parse(text, bytes_units, sizeof bytes_units / sizeof *bytes_units, strcasecmp, UINT64_MAX, bytes_out);
}

bool units_parse_percent(const char *text, double *percent_out, bool *is_of_total_out)
{
  struct decimal number;
  const char *rest = units_parse_decimal(text, &number);
  bool is_of_total = rest && !strcmp(rest, "% of total");
  if (!rest || (strcmp(rest, "%") && !is_of_total)) return units_fail(EINVAL);
  if (number.overflows) return units_fail(ERANGE);
  *is_of_total_out = is_of_total;
  *percent_out = (double)number.whole + (double)number.fraction / (double)number.scale;
  return true;
}

bool units_parse_duration(const char *text, int64_t *ns_out)
{
  uint64_t ns;
  if (!units_parse(text, duration_units, sizeof duration_units / sizeof *duration_units, strcmp, INT64_MAX, &ns))
    return false;
  *ns_out = (int64_t)ns;
  return true;
}

/* Hundredths of `unit` (a power of two from 1024) in `bytes`, rounded. */
static uint64_t units_hundredths(uint64_t bytes, uint64_t unit)
{
  return bytes / unit * 100 + (uint64_t)(((unsigned __int128)(bytes % unit) * 100 + unit / 2) / unit);
}

const char *units_format_bytes(uint64_t bytes, char *buffer, size_t buffer_bytes)
{
  static const char *const names[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) {
    snprintf(buffer, buffer_bytes, "%u byte%s", (unsigned)bytes, text_plural(bytes));
    return buffer;
  }
  size_t step = 0;
  uint64_t unit = 1024;
  while (step < 5 && units_hundredths(bytes, unit) >= 102400) {
    step++;
    unit *= 1024;
  }
  uint64_t shown = units_hundredths(bytes, unit);
  bool is_exact = (unsigned __int128)shown * unit == (unsigned __int128)bytes * 100;
  int decimals = !is_exact || shown % 10 ? 2 : shown % 100 ? 1 : 0;
  unsigned fraction = (unsigned)(shown % 100) / (decimals == 1 ? 10 : 1);
  if (decimals)
    snprintf(buffer, buffer_bytes, "%u.%0*u %s", (unsigned)(shown / 100), decimals, fraction, names[step]);
  else
    snprintf(buffer, buffer_bytes, "%u %s", (unsigned)(shown / 100), names[step]);
  return buffer;
}
