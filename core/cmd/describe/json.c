/* SPDX-License-Identifier: MIT */
/* json.c: a plugin's descriptor as JSON, for programs that make forms and reference pages of it. */
#include "describe.h"

#include "../../option/option.h"
#include "../cmd.h"

static json_t *describe_json_words(const char *const *words)
{
  json_t *list = words ? json_array() : json_null();
  for (; words && *words; words++) json_array_append_new(list, json_string(*words));
  return list;
}

static json_t *describe_json_options(const struct hipmm_option *options, uint32_t n);

static json_t *describe_json_option(const struct hipmm_option *row)
{
  json_t *option =
      json_pack("{s:s, s:s, s:s?, s:s?, s:s?, s:s?, s:s?, s:s?, s:o, s:b, s:b, s:b}", "name", row->name, "type",
                option_type_name(row->type), "default", row->initial, "unit", row->unit, "doc", row->doc, "minimum",
                row->minimum, "maximum", row->maximum, "at_least", row->at_least, "choices",
                describe_json_words(row->choices), "required", (row->flags & HIPMM_OPTION_REQUIRED) != 0, "percent",
                (row->flags & HIPMM_OPTION_PERCENT) != 0, "reloadable", (row->flags & HIPMM_OPTION_RELOADABLE) != 0);
  if (row->n_fields > 0) json_object_set_new(option, "fields", describe_json_options(row->fields, row->n_fields));
  return option;
}

static json_t *describe_json_options(const struct hipmm_option *options, uint32_t n)
{
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++) json_array_append_new(list, describe_json_option(&options[i]));
  return list;
}

static json_t *describe_json_features(const struct hipmm_feature *features, uint32_t n)
{
  json_t *list = json_array();
  for (uint32_t i = 0; i < n; i++)
    json_array_append_new(list, json_pack("{s:s, s:s?, s:s?}", "name", features[i].name, "unit", features[i].unit,
                                          "doc", features[i].doc));
  return list;
}

json_t *describe_json_plugin(const struct plugin *plugin)
{
  const struct hipmm_plugin *descriptor = &plugin->descriptor;
  return json_pack("{s:s, s:s, s:o, s:s, s:s, s:{s:I, s:I}, s:o, s:o, s:o}", "type", descriptor->type, "version",
                   descriptor->version, "file", output_json_string(plugin->file), "role", role_name(descriptor->role),
                   "doc", descriptor->doc, "upstreams", "min", (json_int_t)descriptor->min_upstreams, "max",
                   (json_int_t)descriptor->max_upstreams, "options",
                   describe_json_options(descriptor->options, descriptor->n_options), "values",
                   describe_json_features(descriptor->values, descriptor->n_values), "actions",
                   describe_json_features(descriptor->actions, descriptor->n_actions));
}
