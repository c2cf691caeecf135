/* SPDX-License-Identifier: MIT */
/* builtin.c: plugins that are linked in. Configure decides which (--enable-builtin-plugins), and writes HIPMM_BUILTIN_PLUGINS
 * into config.h. Called by plugin_path.c and plugin_load.c. */
#include "config.h"
#include "plugin.h"

#include <string.h>

#ifndef HIPMM_BUILTIN_PLUGINS
#define HIPMM_BUILTIN_PLUGINS(plugin)
#endif

#define BUILTIN_DECLARE(type) extern const struct hipmm_plugin type##_LTX_hipmm_plugin;
#define BUILTIN_LIST(type)    &type##_LTX_hipmm_plugin,

HIPMM_BUILTIN_PLUGINS(BUILTIN_DECLARE)

static const struct hipmm_plugin *const builtin_configured[] = {HIPMM_BUILTIN_PLUGINS(BUILTIN_LIST) NULL};

enum { MOST_ADDED = 4 };

static const struct hipmm_plugin *builtin_added[MOST_ADDED + 1];

void builtin_add(const struct hipmm_plugin *descriptor)
{
  size_t n = 0;
  while (n < MOST_ADDED && builtin_added[n]) n++;
  builtin_added[n == MOST_ADDED ? n - 1 : n] = descriptor;
}

/* Those of configure, then those that were added. */
static const struct hipmm_plugin *builtin_at(size_t index)
{
  const struct hipmm_plugin *const *row = builtin_configured;
  for (; *row && index; row++) index--;
  return *row ? *row : index < MOST_ADDED ? builtin_added[index] : NULL;
}

const char *builtin_type(size_t index)
{
  const struct hipmm_plugin *plugin = builtin_at(index);
  return plugin ? plugin->type : NULL;
}

const struct hipmm_plugin *builtin_find(const char *type)
{
  for (size_t i = 0; builtin_at(i); i++)
    if (!strcmp(builtin_at(i)->type, type)) return builtin_at(i);
  return NULL;
}
