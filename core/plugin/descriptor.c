/* SPDX-License-Identifier: MIT */
/* descriptor.c: checks a plugin's descriptor and copies it. Called by plugin_load.c for each file that it loads. Never
 * calls a function of the plugin, nor reads memory that is in no loaded object. */
#include "../base/error.h"
#include "../base/text.h"
#include "../option/option.h"
#include "../option/registry.h"
#include "loaded_object.h"
#include "plugin.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Bits of required_features that this hipmm knows. */
static const uint64_t known_features = 0;

/* A larger option struct is an error of the descriptor. */
enum { MOST_OPTION_BYTES = 1 << 20 };

/* A descriptor that is being copied. */
struct adoption {
  const char *file; /* for messages */
  struct loaded loaded;
};

/* ---- Defaults of optional ops ---- */

static enum hipmm_status descriptor_trim_nothing(void *self, size_t keep_bytes)
{
  (void)self, (void)keep_bytes;
  return HIPMM_OK;
}

bool descriptor_trims(const struct hipmm_plugin *descriptor)
{
  return descriptor->ops->trim != descriptor_trim_nothing;
}

static enum hipmm_status descriptor_query_nothing(void *self, size_t index, int64_t *value_out)
{
  (void)self, (void)index, (void)value_out;
  return error_set(HIPMM_E_NOT_SUPPORTED, "this resource offers no values");
}

static enum hipmm_status descriptor_perform_nothing(void *self, size_t index, int64_t *values_out)
{
  (void)self, (void)index, (void)values_out;
  return error_set(HIPMM_E_NOT_SUPPORTED, "this resource offers no actions");
}

static enum hipmm_status descriptor_reconfigure_nothing(void *self, const char *option, const void *options)
{
  (void)self, (void)options;
  return error_set(HIPMM_E_NOT_SUPPORTED, "%s cannot be set while the resource is in use", option);
}

static enum hipmm_status descriptor_visit_nothing(void *self,
                                                  void (*see)(void *closure, const struct hipmm_extent *extent),
                                                  void *closure)
{
  (void)self, (void)see, (void)closure;
  return HIPMM_OK;
}

static void descriptor_ignore_stream(void *self, hipmm_stream_t stream)
{
  (void)self, (void)stream;
}

static int descriptor_cover_nothing(void *self, const void *ptr)
{
  (void)self, (void)ptr;
  return 0;
}

static void descriptor_destroy_nothing(void *self)
{
  (void)self;
}

static enum hipmm_status descriptor_adopt_ops(struct adoption *adoption, const struct hipmm_ops *theirs,
                                              const struct hipmm_ops **ops_out)
{
  const char *file = adoption->file;
  size_t loaded = loaded_bytes(&adoption->loaded, theirs);
  if (loaded < sizeof theirs->struct_size || loaded < theirs->struct_size)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its ops are not in the plugin, or their struct_size is wrong", file);
  size_t required = offsetof(struct hipmm_ops, deallocate) + sizeof theirs->deallocate;
  if (theirs->struct_size < required || !theirs->allocate || !theirs->deallocate)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its ops lack allocate or deallocate, or their struct_size", file);
  struct hipmm_ops *ops = calloc(1, sizeof *ops);
  if (!ops) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  memcpy(ops, theirs, theirs->struct_size < sizeof *ops ? theirs->struct_size : sizeof *ops);
  if (!ops->trim) ops->trim = descriptor_trim_nothing;
  if (!ops->query) ops->query = descriptor_query_nothing;
  if (!ops->perform) ops->perform = descriptor_perform_nothing;
  if (!ops->stream_retire) ops->stream_retire = descriptor_ignore_stream;
  if (!ops->stream_retain) ops->stream_retain = descriptor_ignore_stream;
  if (!ops->reconfigure) ops->reconfigure = descriptor_reconfigure_nothing;
  if (!ops->visit) ops->visit = descriptor_visit_nothing;
  if (!ops->covers) ops->covers = descriptor_cover_nothing;
  *ops_out = ops; /* find may stay NULL: the core then asks below */
  return HIPMM_OK;
}

/* ---- Tables ---- */

/* A table must be data of a loaded object: reading rows beyond it would end the process. */
static enum hipmm_status descriptor_check_table(struct adoption *adoption, const char *what, const void *rows,
                                                uint32_t n, size_t row_bytes)
{
  if (!n || loaded_bytes(&adoption->loaded, rows) / n >= row_bytes) return HIPMM_OK;
  return error_set(HIPMM_E_PLUGIN_ABI,
                   "%s: its %s, said to have %u rows of %zu bytes, is larger than the memory that "
                   "is loaded there; tables are constants, and their rows are counted with sizeof",
                   adoption->file, what, n, row_bytes);
}

/* Copies `n` rows of `their_bytes` each into rows of `our_bytes`; fields that they lack are zero. NULL without
 * memory. */
static void *descriptor_adopt_rows(const void *theirs, uint32_t n, size_t their_bytes, size_t our_bytes)
{
  char *rows = calloc(n ? n : 1, our_bytes);
  for (uint32_t i = 0; rows && i < n; i++)
    memcpy(rows + i * our_bytes, (const char *)theirs + i * their_bytes,
           their_bytes < our_bytes ? their_bytes : our_bytes);
  return rows;
}

/* Of the texts of descriptors: they go to terminals, and into JSON. */
#define TEXT_RULE "a constant text, one line of UTF-8 without control characters and invisible marks"

/* Whether a required text obeys the rule, and whether an optional one does, or is NULL. */
static bool descriptor_has_text(struct adoption *adoption, const char *text)
{
  return text && loaded_has_text(&adoption->loaded, text) && text_is_plain(text);
}

static bool descriptor_may_have_text(struct adoption *adoption, const char *text)
{
  return !text || descriptor_has_text(adoption, text);
}

static bool descriptor_choices_are_sound(struct adoption *adoption, const struct hipmm_option *row)
{
  size_t n = 0;
  if (!row->choices) return row->type != HIPMM_OPTION_ENUM;
  if (!loaded_has_texts(&adoption->loaded, row->choices, &n)) return false;
  return n > 0 || (row->type != HIPMM_OPTION_ENUM && row->type != HIPMM_OPTION_BYTES);
}

static bool descriptor_choices_are_plain(struct adoption *adoption, const struct hipmm_option *row)
{
  size_t n = 0;
  if (!row->choices || !loaded_has_texts(&adoption->loaded, row->choices, &n)) return true;
  for (size_t i = 0; i < n; i++)
    if (!text_is_plain(row->choices[i])) return false;
  return true;
}

/* Whether the default is a text of the program's, such as a separator: then it may be "\t". It is escaped where it is shown. */
static bool descriptor_has_any_text(const struct hipmm_option *row)
{
  return row->type == HIPMM_OPTION_STRING || row->type == HIPMM_OPTION_STRINGS;
}

static bool descriptor_may_have_default(struct adoption *adoption, const struct hipmm_option *row)
{
  if (!descriptor_has_any_text(row)) return descriptor_may_have_text(adoption, row->initial);
  return !row->initial || (loaded_has_text(&adoption->loaded, row->initial) && text_is_utf8(row->initial));
}

/* The first text of a row that is not as plugin.h says; NULL: none. */
static const char *descriptor_bad_text(struct adoption *adoption, const struct hipmm_option *row)
{
  return !descriptor_has_text(adoption, row->name)            ? "name"
         : !descriptor_has_text(adoption, row->doc)           ? "doc"
         : !descriptor_may_have_text(adoption, row->unit)     ? "unit"
         : !descriptor_may_have_default(adoption, row)        ? "initial"
         : !descriptor_may_have_text(adoption, row->minimum)  ? "minimum"
         : !descriptor_may_have_text(adoption, row->maximum)  ? "maximum"
         : !descriptor_may_have_text(adoption, row->at_least) ? "at_least"
         : !descriptor_may_have_text(adoption, row->variable) ? "variable"
         : !descriptor_choices_are_plain(adoption, row)       ? "choices"
                                                              : NULL;
}

/* `is_field`: the row describes a field of a list's objects; a list can only be set as a whole. */
static bool descriptor_row_is_sound(struct adoption *adoption, const struct hipmm_option *row, size_t struct_bytes,
                                    bool is_field)
{
  if (row->type < HIPMM_OPTION_BOOL || row->type > HIPMM_OPTION_OBJECT || descriptor_bad_text(adoption, row) ||
      !descriptor_choices_are_sound(adoption, row))
    return false;
  if (row->type == HIPMM_OPTION_OBJECT && !registry_kind_exists(row->unit)) return false;
  if (row->flags & HIPMM_OPTION_RELOADABLE && is_field) return false;
  return row->offset <= struct_bytes && option_field_bytes(row->type) <= struct_bytes - row->offset;
}

static enum hipmm_status descriptor_refuse_row(struct adoption *adoption, const struct hipmm_option *row,
                                               uint32_t index)
{
  const char *name = descriptor_has_text(adoption, row->name) ? row->name : "no name";
  const char *text = descriptor_bad_text(adoption, row);
  bool is_any = text && !strcmp(text, "initial") && descriptor_has_any_text(row);
  if (!text)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: row %u of its option table (%s) is broken", adoption->file, index, name);
  return error_set(HIPMM_E_PLUGIN_ABI, "%s: row %u of its option table (%s) is broken: `%s` must be %s", adoption->file,
                   index, name, text, is_any ? "a constant text in UTF-8" : TEXT_RULE);
}

/* Whether a row before row `end` has the same name. */
static bool descriptor_is_repeated(const struct hipmm_option *rows, uint32_t end)
{
  for (uint32_t i = 0; i < end; i++)
    if (!strcmp(rows[i].name, rows[end].name)) return true;
  return false;
}

static void descriptor_free_options(const struct hipmm_option *rows, uint32_t n)
{
  for (uint32_t i = 0; rows && i < n; i++)
    if (rows[i].type == HIPMM_OPTION_LIST) descriptor_free_options(rows[i].fields, rows[i].n_fields);
  free((void *)(uintptr_t)rows);
}

/* `depth` limits a table that contains itself. */
static enum hipmm_status descriptor_adopt_options(struct adoption *adoption, const struct hipmm_option *theirs,
                                                  uint32_t n, size_t row_bytes, size_t struct_bytes, int depth,
                                                  const struct hipmm_option **options_out)
{
  const char *file = adoption->file;
  if (depth > 4 || (n && (!theirs || row_bytes < offsetof(struct hipmm_option, minimum))))
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its option table is missing, its rows too short, or its lists too deep",
                     file);
  enum hipmm_status refused = descriptor_check_table(adoption, "option table", theirs, n, row_bytes);
  if (refused) return refused;
  struct hipmm_option *rows = descriptor_adopt_rows(theirs, n, row_bytes, sizeof *rows);
  if (!rows) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (uint32_t i = 0; i < n; i++) {
    enum hipmm_status status = HIPMM_OK;
    if (!descriptor_row_is_sound(adoption, &rows[i], struct_bytes, depth > 0))
      status = descriptor_refuse_row(adoption, &rows[i], i);
    else if (descriptor_is_repeated(rows, i))
      status = error_set(HIPMM_E_PLUGIN_ABI, "%s: its option table has %s twice", file, rows[i].name);
    else if (rows[i].type == HIPMM_OPTION_LIST)
      status = descriptor_adopt_options(adoption, rows[i].fields, rows[i].n_fields, row_bytes, rows[i].field_bytes,
                                        depth + 1, &rows[i].fields);
    if (!status) continue;
    descriptor_free_options(rows, i);
    return status;
  }
  *options_out = rows;
  return HIPMM_OK;
}

/* HIPMM_E_PLUGIN_ABI if a text is not as plugin.h says. */
static enum hipmm_status descriptor_check_feature(struct adoption *adoption, const struct hipmm_feature *row,
                                                  uint32_t index)
{
  bool has_name = descriptor_has_text(adoption, row->name);
  const char *text = !has_name                                        ? "name"
                     : !descriptor_may_have_text(adoption, row->unit) ? "unit"
                     : !descriptor_has_text(adoption, row->doc)       ? "doc"
                                                                      : NULL;
  if (!text) return HIPMM_OK;
  return error_set(HIPMM_E_PLUGIN_ABI, "%s: its table of values or actions is broken: `%s` of row %u (%s) must be %s",
                   adoption->file, text, index, has_name ? row->name : "no name", TEXT_RULE);
}

static enum hipmm_status descriptor_adopt_features(struct adoption *adoption, const struct hipmm_feature *theirs,
                                                   uint32_t n, size_t row_bytes,
                                                   const struct hipmm_feature **features_out)
{
  if (n && (!theirs || row_bytes < sizeof *theirs))
    return error_set(HIPMM_E_PLUGIN_ABI,
                     "%s: its table of values or actions is broken: it is missing, or its rows too short",
                     adoption->file);
  enum hipmm_status status = descriptor_check_table(adoption, "table of values or actions", theirs, n, row_bytes);
  if (status) return status;
  struct hipmm_feature *rows = descriptor_adopt_rows(theirs, n, row_bytes, sizeof *rows);
  if (!rows) return error_set(HIPMM_E_OUT_OF_MEMORY, "out of host memory");
  for (uint32_t i = 0; !status && i < n; i++) status = descriptor_check_feature(adoption, &rows[i], i);
  if (status)
    free(rows);
  else
    *features_out = rows;
  return status;
}

/* ---- The whole ---- */

static enum hipmm_status descriptor_check_head(struct adoption *adoption, const struct hipmm_plugin *foreign)
{
  const char *file = adoption->file;
  size_t loaded = loaded_bytes(&adoption->loaded, foreign);
  if (loaded < offsetof(struct hipmm_plugin, type))
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its descriptor is not a constant of the plugin", file);
  if (foreign->abi_version != HIPMM_PLUGIN_ABI)
    return error_set(HIPMM_E_PLUGIN_ABI,
                     "%s: speaks plugin ABI %u, this hipmm speaks %d; rebuild it against this "
                     "hipmm's <hipmm/plugin.h>",
                     file, foreign->abi_version, HIPMM_PLUGIN_ABI);
  size_t required = offsetof(struct hipmm_plugin, destroy) + sizeof foreign->destroy;
  if (foreign->struct_size < required)
    return error_set(HIPMM_E_PLUGIN_ABI,
                     "%s: its descriptor says it is %u bytes long, ABI %d has %zu; begin it with "
                     "HIPMM_PLUGIN_HEAD",
                     file, foreign->struct_size, HIPMM_PLUGIN_ABI, required);
  if (foreign->struct_size > loaded)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its descriptor says it is %u bytes long, but only %zu are loaded there",
                     file, foreign->struct_size, loaded);
  return HIPMM_OK;
}

static enum hipmm_status descriptor_check_body(struct adoption *adoption, const struct hipmm_plugin *plugin,
                                               const char *type)
{
  const char *file = adoption->file;
  if (plugin->required_features & ~known_features)
    return error_set(HIPMM_E_PLUGIN_ABI,
                     "%s: requires features 0x%llx that this hipmm does not have; use a newer hipmm", file,
                     (unsigned long long)(plugin->required_features & ~known_features));
  if (!descriptor_has_text(adoption, plugin->type) || !descriptor_has_text(adoption, plugin->version) ||
      !descriptor_has_text(adoption, plugin->doc))
    return error_set(HIPMM_E_PLUGIN_ABI,
                     "%s: its descriptor lacks type, version or doc, or one of them is not a line of UTF-8", file);
  if (strcmp(plugin->type, type))
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: describes \"%s\"; the file must be called %s.so", file, plugin->type,
                     plugin->type);
  if (plugin->role < HIPMM_ROLE_SOURCE || plugin->role > HIPMM_ROLE_RUNTIME)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: role %u is unknown", file, plugin->role);
  if (!plugin->create || (plugin->role != HIPMM_ROLE_RUNTIME && (!plugin->ops || !plugin->destroy)))
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its descriptor lacks ops, create or destroy", file);
  if (plugin->min_upstreams > plugin->max_upstreams)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: min_upstreams %u is above max_upstreams %u", file, plugin->min_upstreams,
                     plugin->max_upstreams);
  if (plugin->options_bytes > MOST_OPTION_BYTES)
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its option struct has %zu bytes, more than the largest size of %d", file,
                     plugin->options_bytes, MOST_OPTION_BYTES);
  return HIPMM_OK;
}

/* Options that name resources are fixed when the resource is created, unless the plugin can do with further ones. */
static enum hipmm_status descriptor_check_reloadable(const struct hipmm_plugin *plugin, const char *file)
{
  bool reconfigures = plugin->ops && plugin->ops->reconfigure != descriptor_reconfigure_nothing;
  for (uint32_t i = 0; i < plugin->n_options; i++) {
    const struct hipmm_option *row = &plugin->options[i];
    bool may_name = row->flags & HIPMM_OPTION_ADDS_RESOURCES || !option_has_type(row, HIPMM_OPTION_RESOURCE);
    if (!(row->flags & HIPMM_OPTION_RELOADABLE) || (reconfigures && may_name)) continue;
    return error_set(HIPMM_E_PLUGIN_ABI, "%s: its option %s is reloadable, but %s", file, row->name,
                     reconfigures ? "names resources" : "its ops lack reconfigure");
  }
  return HIPMM_OK;
}

static enum hipmm_status descriptor_adopt_tables(struct adoption *adoption, const struct hipmm_plugin *theirs,
                                                 struct hipmm_plugin *ours)
{
  size_t row_bytes = theirs->feature_bytes;
  enum hipmm_status status = descriptor_adopt_options(adoption, theirs->options, theirs->n_options,
                                                      theirs->option_bytes, theirs->options_bytes, 0, &ours->options);
  if (!status) status = descriptor_adopt_features(adoption, theirs->values, theirs->n_values, row_bytes, &ours->values);
  if (!status)
    status = descriptor_adopt_features(adoption, theirs->actions, theirs->n_actions, row_bytes, &ours->actions);
  if (!status && theirs->role != HIPMM_ROLE_RUNTIME) status = descriptor_adopt_ops(adoption, theirs->ops, &ours->ops);
  if (!status) status = descriptor_check_reloadable(ours, adoption->file);
  return status;
}

enum hipmm_status descriptor_adopt(const void *foreign, const char *file, const char *type,
                                   struct hipmm_plugin *descriptor_out)
{
  struct adoption adoption = {.file = file};
  enum hipmm_status status = descriptor_check_head(&adoption, foreign);
  if (status) return status;
  struct hipmm_plugin theirs = {0};
  uint32_t their_bytes = ((const struct hipmm_plugin *)foreign)->struct_size;
  memcpy(&theirs, foreign, their_bytes < sizeof theirs ? their_bytes : sizeof theirs);
  status = descriptor_check_body(&adoption, &theirs, type);
  if (status) return status;
  struct hipmm_plugin ours = theirs;
  ours.options = NULL;
  ours.values = ours.actions = NULL;
  ours.ops = NULL;
  if (!ours.destroy) ours.destroy = descriptor_destroy_nothing;
  status = descriptor_adopt_tables(&adoption, &theirs, &ours);
  if (!status)
    *descriptor_out = ours;
  else
    descriptor_release(&ours);
  return status;
}

uint32_t descriptor_row(const struct hipmm_feature *rows, uint32_t n, const char *name)
{
  uint32_t row = 0;
  while (row < n && strcmp(rows[row].name, name)) row++;
  return row;
}

void descriptor_release(const struct hipmm_plugin *descriptor)
{
  descriptor_free_options(descriptor->options, descriptor->n_options);
  free((void *)(uintptr_t)descriptor->values);
  free((void *)(uintptr_t)descriptor->actions);
  free((void *)(uintptr_t)descriptor->ops);
}
