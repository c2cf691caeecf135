/* SPDX-License-Identifier: MIT */
/* Tests of core/base/text.c and core/base/units.c: near names, quotations, pointers, sizes. */
#include "../../core/base/text.h"
#include "../../core/base/units.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const words[] = {"initial_size", "maximum_size", "growth", "pool", "type", "a"};

static const char *near(const char *word)
{
  return text_nearest(word, words, sizeof words / sizeof *words);
}

static void finds_what_was_meant(void **state)
{
  (void)state;
  assert_string_equal(near("inital_size"), "initial_size");
  assert_string_equal(near("maximum_sise"), "maximum_size");
  assert_string_equal(near("maxmum_size"), "maximum_size");
  assert_string_equal(near("pol"), "pool");
  assert_string_equal(near("opol"), "pool");
  assert_string_equal(near("POOL"), "pool");
  assert_string_equal(near("growth"), "growth");
  assert_string_equal(near("max_size"), "maximum_size");
  assert_string_equal(near("Max-Size"), "maximum_size");
  assert_string_equal(near("init_size"), "initial_size");
  assert_string_equal(near("initialize_size"), "initial_size");
}

static void leaves_far_words_alone(void **state)
{
  (void)state;
  assert_null(near("zebra"));
  assert_null(near("po"));
  assert_null(near("ty"));
  assert_null(near("b"));
  assert_null(near("m_size"));
  assert_null(near("max_sum"));
  assert_null(near("max_size_of"));
  assert_null(near(""));
  assert_null(text_nearest("pool", NULL, 0));
}

static void prefers_the_nearest(void **state)
{
  static const char *const candidates[] = {"abcdxx", "abcdex", "abcdef"};
  (void)state;
  assert_string_equal(text_nearest("abcdef", candidates, 3), "abcdef");
  assert_string_equal(text_nearest("abcdeg", candidates, 3), "abcdex");
}

static void survives_words_of_any_length(void **state)
{
  (void)state;
  char *word = malloc(1 << 20);
  assert_non_null(word);
  memset(word, 'p', (1 << 20) - 1);
  word[(1 << 20) - 1] = '\0';
  assert_null(near(word));
  const char *long_candidate[] = {word};
  assert_null(text_nearest("p", long_candidate, 1));
  word[100] = '\0';
  const char *same[] = {word};
  assert_ptr_equal(text_nearest(word, same, 1), word);
  free(word);
}

static void hints_at_what_is_near(void **state)
{
  char buffer[TEXT_HINT_BYTES], longest[200] = "";
  (void)state;
  assert_string_equal(text_hint("pool", buffer, sizeof buffer), "; did you mean \"pool\"?");
  assert_string_equal(text_hint(NULL, buffer, sizeof buffer), "");
  memset(longest, 'p', sizeof longest - 1);
  text_hint(longest, buffer, sizeof buffer);
  assert_string_equal(buffer + strlen(buffer) - 3, "p\"?"); /* cut, and whole at its end */
}

static void assert_quoted(const char *text, const char *expected)
{
  char buffer[TEXT_QUOTE_BYTES];
  assert_string_equal(text_quote(text, buffer, sizeof buffer), expected);
}

static void quotes_without_control_characters(void **state)
{
  (void)state;
  assert_quoted("pool", "\"pool\"");
  assert_quoted("", "\"\"");
  assert_quoted("a\"b\\c", "\"a\\\"b\\\\c\"");
  assert_quoted("red\033[31m", "\"red\\u001b[31m\"");
  assert_quoted("two\nlines", "\"two\\nlines\"");
  assert_quoted("größe → 5", "\"größe → 5\"");
  assert_quoted("c1 \xc2\x9b", "\"c1 \\u009b\"");
  assert_quoted("c1 \x9b"
                "31m",
                "\"c1 \\x9b31m\""); /* a single byte, which older terminals interpret */
  assert_quoted("\xe2\x82\xac \xe2\x82 \xe9", "\"\xe2\x82\xac \xe2\\x82 \xe9\""); /* cut off; Latin-1 */
  assert_quoted("\xe0\x82\x9b", "\"\xe0\\x82\\x9b\""); /* U+009B in a form that is too long */
}

static void assert_plain(const char *text, const char *expected)
{
  char copy[64];
  strcpy(copy, text);
  assert_int_equal(text_make_plain(copy), strlen(expected));
  assert_string_equal(copy, expected);
}

static void puts_marks_for_control_characters(void **state)
{
  (void)state;
  assert_plain("", "");
  assert_plain("größe → 5 €", "größe → 5 €");
  assert_plain("a\033[2J\n\tb\177", "a?[2J??b?");
  assert_plain("a\xc2\x9b"
               "2Jb\xc2\x80\xc2\x9f\xc2\xa0",
               "a?2Jb??\xc2\xa0");
  assert_plain("a\x9b"
               "2Jb\x80\x9f\xa0",
               "a?2Jb??\xa0");
  assert_plain("\xc2", "\xc2");
  assert_plain("\xe2\x82", "\xe2?");
}

static void cuts_quotations_between_characters(void **state)
{
  (void)state;
  char buffer[12];
  assert_string_equal(text_quote("äöüäöü", buffer, sizeof buffer), "\"äöü…\"");
  assert_true(strlen(buffer) < sizeof buffer);
  char text[101], whole[TEXT_QUOTE_BYTES];
  memset(text, 'n', 100);
  text[100] = '\0';
  assert_int_equal(strlen(text_quote(text, whole, sizeof whole)), 102);
}

/* What has no room for a quotation stays as it is. */
static void quotes_into_no_room(void **state)
{
  (void)state;
  char buffer[8], before[8];
  memset(buffer, 'x', sizeof buffer);
  memcpy(before, buffer, sizeof buffer);
  for (size_t bytes = 0; bytes <= 5; bytes++) {
    assert_string_equal(text_quote("pool", buffer, bytes), "\"…\"");
    assert_memory_equal(buffer, before, sizeof buffer);
  }
  assert_string_equal(text_quote("pool", buffer, 6), "\"…\"");
}

static void escapes_pointers(void **state)
{
  (void)state;
  char *pointer = text_pointer("/resources", "a/b~c");
  assert_string_equal(pointer, "/resources/a~1b~0c");
  free(pointer);
  pointer = text_pointer("", "");
  assert_string_equal(pointer, "/");
  free(pointer);
}

static void assert_shown(uint64_t bytes, const char *expected)
{
  char buffer[32];
  assert_string_equal(units_format_bytes(bytes, buffer, sizeof buffer), expected);
}

static void shows_sizes(void **state)
{
  (void)state;
  assert_shown(0, "0 bytes");
  assert_shown(1, "1 byte");
  assert_shown(1023, "1023 bytes");
  assert_shown(1024, "1 KiB");
  assert_shown(1536, "1.5 KiB");
  assert_shown(1280, "1.25 KiB");
  assert_shown(1025, "1.00 KiB");
  assert_shown(512ull << 20, "512 MiB");
  assert_shown((1ull << 20) - 1, "1.00 MiB");
  assert_shown(2000000000, "1.86 GiB");
  assert_shown(1ull << 60, "1 EiB");
  assert_shown(UINT64_MAX, "16.00 EiB");
}

static void assert_bytes(const char *text, uint64_t expected)
{
  uint64_t bytes = 0;
  assert_true(units_parse_bytes(text, &bytes));
  assert_true(bytes == expected);
}

static void reads_sizes(void **state)
{
  (void)state;
  assert_bytes("0", 0);
  assert_bytes("4096", 4096);
  assert_bytes("17B", 17);
  assert_bytes("512MiB", 512ull << 20);
  assert_bytes("512 mib", 512ull << 20);
  assert_bytes("2GB", 2000000000);
  assert_bytes("1.5\tGB", 1500000000);
  assert_bytes("1.KiB", 1024);
  assert_bytes("0.0005KiB", 0);
  assert_bytes("2.5PiB", 5ull << 49);
  assert_bytes("7.9999999999999999999999 kb", 7999);
  assert_bytes("0.50000000000000000000000000000000MiB", 512 << 10); /* more digits than a number holds */
  assert_bytes("18446744073709551615", UINT64_MAX);
}

static void assert_not_bytes(const char *text, int code)
{
  uint64_t bytes = 42;
  errno = 0;
  assert_false(units_parse_bytes(text, &bytes));
  assert_int_equal(errno, code);
  assert_true(bytes == 42);
}

static void refuses_what_is_no_size(void **state)
{
  static const char *const texts[] = {"",    " ",     "16k",    "1 gigs", "GB",   "-1",    "+1",
                                      " 1",  "1,5GB", "1.5.GB", "0x10",   ".5GB", "1e9",   "1EiB",
                                      "inf", "nan",   "5 0MB",  "50%",    "1GBs", "1 G B", "１KB"};
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_not_bytes(texts[i], EINVAL);
  assert_bytes("1 ", 1);
  assert_not_bytes("18446744073709551616", ERANGE);
  assert_not_bytes("99999999999999999999999", ERANGE);
  assert_not_bytes("16384PiB", ERANGE);
  assert_bytes("16383PiB", 16383ull << 50);
}

static void reads_percentages(void **state)
{
  bool is_of_total;
  double percent = -1;
  (void)state;
  assert_true(units_parse_percent("45% of total", &percent, &is_of_total) && percent == 45 && is_of_total);
  assert_false(units_parse_percent("45 of total", &percent, &is_of_total));
  assert_false(units_parse_percent("45% of totals", &percent, &is_of_total));
  assert_true(units_parse_percent("50%", &percent, &is_of_total) && percent == 50 && !is_of_total);
  assert_true(units_parse_percent("12.5 %", &percent, &is_of_total) && percent == 12.5);
  assert_true(units_parse_percent("0%", &percent, &is_of_total) && percent == 0);
  assert_true(units_parse_percent("1000%", &percent, &is_of_total) && percent == 1000);
  percent = 42;
  assert_false(units_parse_percent("50", &percent, &is_of_total));
  assert_false(units_parse_percent("%", &percent, &is_of_total));
  assert_false(units_parse_percent("-5%", &percent, &is_of_total));
  assert_false(units_parse_percent("50%%", &percent, &is_of_total));
  assert_false(units_parse_percent("50% ", &percent, &is_of_total));
  assert_false(units_parse_percent("99999999999999999999%", &percent, &is_of_total));
  assert_true(percent == 42);
}

static void assert_duration(const char *text, int64_t expected)
{
  int64_t ns = -1;
  assert_true(units_parse_duration(text, &ns));
  assert_true(ns == expected);
}

static void reads_durations(void **state)
{
  (void)state;
  assert_duration("10ms", 10000000);
  assert_duration("1.5 s", 1500000000);
  assert_duration("7ns", 7);
  assert_duration("2us", 2000);
  assert_duration("3min", 180000000000);
  assert_duration("0.5h", 1800000000000);
  assert_duration("9223372036854775807ns", INT64_MAX);
}

static void refuses_what_is_no_duration(void **state)
{
  static const char *const texts[] = {"", "10", "ms", "10 parsecs", "-1s", "10MS", "1h30", "1d"};
  int64_t ns = 42;
  (void)state;
  for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) assert_false(units_parse_duration(texts[i], &ns));
  errno = 0;
  assert_false(units_parse_duration("9223372036854775808ns", &ns));
  assert_int_equal(errno, ERANGE);
  assert_false(units_parse_duration("99999999h", &ns));
  assert_true(ns == 42);
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"finds the name that was meant", finds_what_was_meant, NULL, NULL, NULL},
      {"leaves far words alone", leaves_far_words_alone, NULL, NULL, NULL},
      {"prefers the nearest of several names", prefers_the_nearest, NULL, NULL, NULL},
      {"survives words of any length", survives_words_of_any_length, NULL, NULL, NULL},
      {"hints at what is near", hints_at_what_is_near, NULL, NULL, NULL},
      {"quotes without control characters", quotes_without_control_characters, NULL, NULL, NULL},
      {"puts marks for control characters", puts_marks_for_control_characters, NULL, NULL, NULL},
      {"cuts quotations between characters", cuts_quotations_between_characters, NULL, NULL, NULL},
      {"quotes into no room", quotes_into_no_room, NULL, NULL, NULL},
      {"escapes keys in JSON pointers", escapes_pointers, NULL, NULL, NULL},
      {"shows sizes in words", shows_sizes, NULL, NULL, NULL},
      {"reads sizes", reads_sizes, NULL, NULL, NULL},
      {"refuses what is no size", refuses_what_is_no_size, NULL, NULL, NULL},
      {"reads percentages", reads_percentages, NULL, NULL, NULL},
      {"reads durations", reads_durations, NULL, NULL, NULL},
      {"refuses what is no duration", refuses_what_is_no_duration, NULL, NULL, NULL},
  };
  return cmocka_run_group_tests_name("text", tests, NULL, NULL);
}
