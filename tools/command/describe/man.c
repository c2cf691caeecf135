/* SPDX-License-Identifier: MIT */
/* man.c: a plugin's descriptor as a subsection of a manual page, in the man macros. All of it comes from the
 * descriptor's tables; hipmm.json(5) is made of these. Text never reaches roff unescaped. */
#include "describe.h"

#include "../../../core/option/option.h"
#include "../cmd.h"
#include <string.h>

/* Writes a character that is not ASCII by its number, and returns how many bytes it took. */
static size_t describe_man_wide(const unsigned char *c)
{
  size_t more = *c >= 0xf8 || *c < 0xc0 ? 0 : *c >= 0xf0 ? 3 : *c >= 0xe0 ? 2 : 1;
  unsigned code = *c & (0x3fu >> more);
  for (size_t i = 1; i <= more; i++) {
    if ((c[i] & 0xc0) != 0x80) more = 0;
    code = code << 6 | (c[i] & 0x3f);
  }
  if (more && code >= 0xa0)
    printf("\\[u%04X]", code);
  else
    putchar('?');
  return more + 1;
}

static void describe_man_ascii(unsigned char c)
{
  static const struct {
    unsigned char c;
    const char *escape;
  } escapes[] = {{'\\', "\\(rs"}, {'-', "\\-"},   {'\'', "\\(aq"}, {'`', "\\(ga"},
                 {'^', "\\(ha"},  {'~', "\\(ti"}, {'"', "\\(dq"},  {'.', "\\&."}};
  for (size_t i = 0; i < sizeof escapes / sizeof *escapes; i++)
    if (escapes[i].c == c) {
      fputs(escapes[i].escape, stdout);
      return;
    }
  putchar(c < 0x20 || c == 0x7f ? ' ' : c);
}

static void describe_man_text(const char *text)
{
  for (const unsigned char *c = (const unsigned char *)text; *c;) {
    if (*c & 0x80) {
      c += describe_man_wide(c);
    } else {
      describe_man_ascii(*c++);
    }
  }
}

/* The table's sentences have no full stop. */
static void describe_man_sentence(const char *text)
{
  describe_man_text(text ? text : "");
  puts(text && *text ? "." : "\\&");
}

static void describe_man_name(const char *parent, const char *name)
{
  fputs(".TP\n\\fB", stdout);
  if (parent) describe_man_text(parent);
  if (parent) fputs("[].", stdout);
  describe_man_text(name);
  fputs("\\fR", stdout);
}

/* "(bytes or %, default 0, at least initial_size)" */
static void describe_man_option_head(const struct hipmm_option *row, const char *parent)
{
  char allowed[DESCRIBE_CELL_BYTES], quoted[DESCRIBE_CELL_BYTES];
  const char *type = option_type_name(row->type), *initial = describe_default(row, quoted);
  describe_allowed(row, allowed);
  describe_man_name(parent, row->name);
  printf(" (%s%s", type, row->flags & HIPMM_OPTION_PERCENT ? " or %" : "");
  if (row->unit && strcmp(row->unit, type)) {
    fputs(", ", stdout);
    describe_man_text(row->unit);
  }
  if (row->flags & HIPMM_OPTION_REQUIRED) fputs("; required", stdout);
  if (initial) {
    fputs("; default ", stdout);
    describe_man_text(initial);
  }
  if (*allowed) {
    fputs("; ", stdout);
    describe_man_text(allowed);
  }
  puts(")");
}

static void describe_man_options(const struct hipmm_option *options, uint32_t n, const char *parent)
{
  for (uint32_t i = 0; i < n; i++) {
    describe_man_option_head(&options[i], parent);
    describe_man_sentence(options[i].doc);
    if (options[i].n_fields > 0 && !parent)
      describe_man_options(options[i].fields, options[i].n_fields, options[i].name);
  }
}

static void describe_man_features(const char *heading, const struct hipmm_feature *features, uint32_t n)
{
  if (n > 0) printf(".PP\n%s\n.PD 0\n", heading);
  for (uint32_t i = 0; i < n; i++) {
    describe_man_name(NULL, features[i].name);
    if (features[i].unit) {
      fputs(" (", stdout);
      describe_man_text(features[i].unit);
      putchar(')');
    }
    putchar('\n');
    describe_man_sentence(features[i].doc);
  }
  if (n > 0) puts(".PD");
}

void describe_man_plugin(const struct plugin *plugin)
{
  const struct hipmm_plugin *descriptor = &plugin->descriptor;
  fputs(".SS ", stdout);
  describe_man_text(descriptor->type);
  fputs("\nType: ", stdout);
  describe_man_text(role_name(descriptor->role));
  if (descriptor->role != HIPMM_ROLE_RUNTIME) {
    fputs(", ", stdout);
    describe_print_upstreams(descriptor);
  }
  puts(".\n.br");
  describe_man_sentence(descriptor->doc);
  puts(descriptor->n_options > 0 ? ".PP\nOptions:" : ".PP\nTakes no options.");
  describe_man_options(descriptor->options, descriptor->n_options, NULL);
  describe_man_features("Values, for hipmm_resource_query():", descriptor->values, descriptor->n_values);
  describe_man_features("Actions, for hipmm_resource_perform():", descriptor->actions, descriptor->n_actions);
}
