/* SPDX-License-Identifier: MIT */
/* lines.c: see lines.h. */
#include "lines.h"
#include "../../core/base/units.h"
#include "cmd.h"

enum { LINES_LABEL = 18, LINES_FIGURE = 15 };

const char *lines_number(uint64_t number, char text[LINES_NUMBER_BYTES])
{
  char digits[24];
  int n = snprintf(digits, sizeof digits, "%llu", (unsigned long long)number);
  size_t at = 0;
  for (int i = 0; i < n; i++) {
    if (i > 0 && (n - i) % 3 == 0) text[at++] = ',';
    text[at++] = digits[i];
  }
  text[at] = '\0';
  return text;
}

void lines_print_label(const char *label)
{
  printf("  ");
  print_padded(STYLE_OFF, label, LINES_LABEL);
}

static void lines_print_line(const struct line *line, const json_t *value)
{
  char figure[64], number[LINES_NUMBER_BYTES], bytes[LINES_NUMBER_BYTES + sizeof " bytes"] = "";
  uint64_t count = (uint64_t)json_integer_value(value);
  enum style kind = line->kind != LINE_FAILURES ? STYLE_NAME : count ? STYLE_BAD : STYLE_GOOD;
  switch (line->kind) {
  case LINE_RATIO: snprintf(figure, sizeof figure, "%.3f", json_number_value(value)); break;
  case LINE_NS: snprintf(figure, sizeof figure, "%.1f ns", json_number_value(value)); break;
  case LINE_BYTES:
    units_format_bytes(count, figure, sizeof figure);
    snprintf(bytes, sizeof bytes, "%s bytes", lines_number(count, number));
    break;
  default: lines_number(count, figure);
  }
  lines_print_label(line->label);
  printf("%s%*s%s", style(kind), LINES_FIGURE, figure, style(STYLE_OFF));
  printf("%s%s", *bytes ? "  " : "", bytes);
  printf("%s%s\n", line->remark ? "  " : "", line->remark ? line->remark : "");
}

void lines_print(const json_t *result, const struct line *lines, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    const json_t *value = json_object_get(result, lines[i].key);
    bool is_left_out = !json_is_number(value) || (lines[i].kind == LINE_ODDITY && !json_integer_value(value));
    if (!is_left_out) lines_print_line(&lines[i], value);
  }
}
