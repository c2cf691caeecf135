/* SPDX-License-Identifier: MIT */
/* checks_file.c: checks of a plugin without a device: whether it loads, its imports, and whether its descriptor is
 * possible. */
#include "../../../core/option/option.h"
#include "../../../core/plugin/plugin.h"
#include "kit.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- The file -------------------------------------------------------------------------------------------------- */

static void checks_file_load(void)
{
  kit_plugin();
}

static void checks_file_import(void *closure, const char *name, bool is_library)
{
  (void)closure;
  if (is_library && !strncmp(name, "libhipmm.so", 11))
    kit_fail("it is linked with %s; leave -lhipmm out of the link", name);
  if (!is_library && !strncmp(name, "hipmm_", 6)) kit_fail("it imports %s", name);
}

static void checks_file_imports(void)
{
  elf_file_visit_imports(kit->file, checks_file_import, NULL);
}

/* ---- Option tables --------------------------------------------------------------------------------------------- */

/* Lower-case words with "_" between them, as all keys of a graph. */
static bool checks_file_is_key(const char *name)
{
  if (!islower((unsigned char)*name)) return false;
  for (const char *c = name; *c; c++)
    if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c) && *c != '_') return false;
  return true;
}

/* Reads `text` as the option's value, or the default if `text` is NULL, by the row alone. */
static void checks_file_try_value(const struct hipmm_option *row, const char *what, const char *text)
{
  struct hipmm_option alone = *row;
  struct diagnostics diagnostics = {.source = "the descriptor"};
  struct option_context context = {.diagnostics = &diagnostics, .path = "", .owner = kit->type};
  json_t *object = json_object();
  _Alignas(max_align_t) char field[sizeof(struct hipmm_list)] = {0};
  alone.offset = 0;
  alone.at_least = NULL;
  alone.flags &= ~(uint32_t)HIPMM_OPTION_REQUIRED;
  if (row->type == HIPMM_OPTION_OBJECT || row->type == HIPMM_OPTION_RESOURCE) return;
  if (text) option_set_text(&alone, 1, row->name, text, object);
  if (!option_fill(&alone, 1, object, &context, field))
    kit_fail("option %s: its %s is not a value of it: %s", row->name, what, diagnostics.first->message);
  option_free(&alone, 1, field);
  json_decref(object);
  diagnostics_clear(&diagnostics);
}

static size_t checks_file_field_bytes(uint32_t type)
{
  return type == HIPMM_OPTION_BOOL || type == HIPMM_OPTION_ENUM ? sizeof(uint32_t)
         : type == HIPMM_OPTION_STRINGS                         ? sizeof(struct hipmm_strings)
         : type == HIPMM_OPTION_LIST                            ? sizeof(struct hipmm_list)
                                                                : sizeof(uint64_t);
}

/* Rows that fill the same bytes of the option struct: usually an offset was forgotten, or copied. */
static void checks_file_check_place(const struct hipmm_option *rows, uint32_t index)
{
  const struct hipmm_option *row = &rows[index];
  size_t bytes = checks_file_field_bytes(row->type), boundary = bytes < sizeof(uint64_t) ? bytes : sizeof(uint64_t);
  if (row->offset % boundary)
    kit_fail("option %s: offset %zu is not that of a field of its type", row->name, row->offset);
  for (uint32_t i = 0; i < index; i++)
    if (rows[i].offset < row->offset + bytes && row->offset < rows[i].offset + checks_file_field_bytes(rows[i].type))
      kit_fail("options %s and %s fill the same bytes of the option struct", rows[i].name, row->name);
}

static void checks_file_check_rows(const struct hipmm_option *rows, uint32_t n, bool are_fields)
{
  for (uint32_t i = 0; i < n; i++) {
    const struct hipmm_option *row = &rows[i], *other = NULL;
    if (!checks_file_is_key(row->name))
      kit_fail("option \"%s\" is not written in lower-case letters, digits and \"_\"", row->name);
    if (!are_fields && (!strcmp(row->name, "type") || !strcmp(row->name, "upstream")))
      kit_fail("an option is called \"%s\", which is a key of every resource", row->name);
    if (row->initial && row->flags & HIPMM_OPTION_REQUIRED)
      kit_fail("option %s must be given, and has a default all the same", row->name);
    checks_file_try_value(row, "default", NULL);
    if (row->minimum) checks_file_try_value(row, "minimum", row->minimum);
    if (row->maximum) checks_file_try_value(row, "maximum", row->maximum);
    if (row->at_least) other = option_find(rows, n, row->at_least);
    if (row->at_least && (!other || other->type != HIPMM_OPTION_BYTES || row->type != HIPMM_OPTION_BYTES))
      kit_fail("option %s: at_least names %s, which is not an option of type BYTES", row->name, row->at_least);
    checks_file_check_place(rows, i);
    if (row->type == HIPMM_OPTION_LIST) checks_file_check_rows(row->fields, row->n_fields, true);
  }
}

/* ---- The rest of the descriptor -------------------------------------------------------------------------------- */

static void checks_file_check_features(const struct hipmm_feature *rows, uint32_t n, const char *kind)
{
  for (uint32_t i = 0; i < n; i++) {
    if (!checks_file_is_key(rows[i].name))
      kit_fail("%s \"%s\" is not written in lower-case letters, digits and \"_\"", kind, rows[i].name);
    for (uint32_t j = 0; j < i; j++)
      if (!strcmp(rows[i].name, rows[j].name)) kit_fail("%s %s is there twice", kind, rows[i].name);
  }
}

static void checks_file_descriptor(void)
{
  const struct hipmm_plugin *plugin = kit_plugin();
  bool is_leaf = plugin->role == HIPMM_ROLE_SOURCE || plugin->role == HIPMM_ROLE_RUNTIME;
  if (is_leaf && plugin->max_upstreams) kit_fail("it is a source, and takes upstreams");
  if (!is_leaf && !plugin->max_upstreams) kit_fail("it takes no upstream, and is not a source");
  if (plugin->flags & ~(uint32_t)DESCRIPTOR_FLAGS)
    kit_fail("flags 0x%x are unknown", plugin->flags & ~(uint32_t)DESCRIPTOR_FLAGS);
  if (!*plugin->version) kit_fail("its version is empty");
  if (!*plugin->doc) kit_fail("its doc is empty");
  checks_file_check_rows(plugin->options, plugin->n_options, false);
  checks_file_check_features(plugin->values, plugin->n_values, "value");
  checks_file_check_features(plugin->actions, plugin->n_actions, "action");
}

const struct kit_check kit_checks_file[] = {
    {"load", "the file is a whole shared object that exports a descriptor of its type",
     "link with -shared -fPIC -Wl,-z,defs, call the file TYPE.so, begin the descriptor with HIPMM_PLUGIN_HEAD, and "
     "export it as TYPE_LTX_hipmm_plugin",
     checks_file_load},
    {"imports", "it imports nothing of libhipmm",
     "use the functions in struct hipmm_services, and the inline functions of hipmm/plugin.h", checks_file_imports},
    {"descriptor", "options have names of their own, defaults that parse and bounds that hold",
     "correct the tables of the descriptor; hipmm/plugin.h describes each field", checks_file_descriptor},
    {.name = NULL},
};
