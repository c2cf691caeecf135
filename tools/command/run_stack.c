/* SPDX-License-Identifier: MIT */
/* run_stack.c: the graph that `hipmm run --stack TYPE,… --set NAME.OPTION=VALUE --limit SIZE` describes, as JSON text. Names are
 * those of hipmm's messages: the type, and "type.2" for the second resource of a type. Whether types, options and values are
 * right is checked when the graph is read. */
#include "run.h"

#include "../../core/base/text.h"
#include "../../core/graph/graph.h"
#include <stdlib.h>
#include <string.h>

enum { RUN_STACK_NAME_BYTES = 256 };

/* The words as [{"type": …}, …]; NULL without host memory. */
static json_t *run_stack_list(const char *types)
{
  json_t *list = json_array();
  for (const char *at = types; list; at++) {
    size_t length = strcspn(at, ",");
    if (json_array_append_new(list, json_pack("{s:o}", "type", json_stringn(at, length)))) break;
    at += length;
    if (!*at) return list;
  }
  json_decref(list);
  return NULL;
}

/* The object of the element with this name; NULL: none. Names the nearest in `near`. */
static json_t *run_stack_find(const json_t *list, const char *name, char *near_out)
{
  size_t i, j;
  json_t *element, *other, *found = NULL;
  struct text_near near = text_near(name);
  static char names[100][RUN_STACK_NAME_BYTES]; /* a stack has at most 100 resources */
  json_array_foreach((json_t *)(uintptr_t)list, i, element)
  {
    const char *type = json_string_value(json_object_get(element, "type"));
    int n = 1;
    if (i == sizeof names / sizeof *names) break;
    json_array_foreach((json_t *)(uintptr_t)list, j, other) if (j < i) n +=
        !strcmp(type, json_string_value(json_object_get(other, "type")));
    snprintf(names[i], sizeof names[i], n > 1 ? "%s.%d" : "%s", type, n);
    text_near_try(&near, names[i]);
    if (!found && !strcmp(names[i], name)) found = element;
  }
  snprintf(near_out, RUN_STACK_NAME_BYTES, "%s", near.name ? near.name : "");
  return found;
}

/* JSON, or text where JSON would have a string. */
static json_t *run_stack_value(const char *text)
{
  json_t *value = json_loads(text, JSON_DECODE_ANY, NULL);
  return value ? value : json_string(text);
}

static bool run_stack_set(const json_t *list, const char *setting)
{
  char name[RUN_STACK_NAME_BYTES], near[RUN_STACK_NAME_BYTES], hint[TEXT_HINT_BYTES];
  const char *equals = strchr(setting, '='), *dot = equals ? memrchr(setting, '.', (size_t)(equals - setting)) : NULL;
  if (!dot || dot == setting || dot + 1 == equals || dot - setting >= (ptrdiff_t)sizeof name) {
    say("run: --set %s: is not NAME.OPTION=VALUE, such as pool.maximum_size=8GiB", setting);
    return false;
  }
  snprintf(name, sizeof name, "%.*s", (int)(dot - setting), setting);
  json_t *object = run_stack_find(list, name, near), *value = run_stack_value(equals + 1);
  char *option = strndup(dot + 1, (size_t)(equals - dot - 1)); /* older jansson than 2.14 has no json_object_setn() */
  bool is_set = object && value && option && !json_object_set(object, option, value);
  if (!object)
    say("run: --set %s: no resource of the stack is called \"%s\"%s", setting, name,
        text_hint(*near ? near : NULL, hint, sizeof hint));
  else if (!is_set)
    say("run: --set %s: is not valid UTF-8", setting);
  json_decref(value);
  free(option);
  return is_set;
}

bool run_stack_choose(const struct run_stack *stack, struct source *source, const char *config)
{
  bool is_good = true;
  const char *other = config ? "--config" : NULL, *needing = stack->options[0] ? "--set"
                                                             : stack->limit    ? "--limit"
                                                                               : NULL;
  if (!stack->types && needing)
    say("run: %s needs --stack; in a graph file, write %s there", needing,
        stack->options[0] ? "the options" : "\"limit_physical\"");
  if (stack->types && other) say("run: --stack and %s exclude each other", other);
  if (stack->types ? other != NULL : needing != NULL) return false;
  if (!stack->types) {
    source_choose(source, config);
    return true;
  }
  json_t *list = run_stack_list(stack->types), *graph = list ? json_pack("{s:O}", "stack", list) : NULL;
  if (!graph) say("run: --stack: is not valid UTF-8, or there is no host memory for it");
  for (size_t i = 0; graph && is_good && stack->options[i]; i++) is_good = run_stack_set(list, stack->options[i]);
  if (graph && stack->limit) json_object_set_new(graph, "limit_physical", run_stack_value(stack->limit));
  source->file = "--stack";
  source->text = source->owned = graph && is_good ? json_dumps(graph, JSON_COMPACT) : NULL;
  json_decref(list);
  json_decref(graph);
  return source->text != NULL;
}
