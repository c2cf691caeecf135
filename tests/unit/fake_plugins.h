/* SPDX-License-Identifier: MIT */
/* fake_plugins.h: stands in for the plugin loader where tests are about graphs: types with the option tables that their
 * messages need, and none of the shared objects. A program that links it must not link core/plugin/plugin_load.c. */
#ifndef HIPMM_TESTS_UNIT_FAKE_PLUGINS_H
#define HIPMM_TESTS_UNIT_FAKE_PLUGINS_H

#include "../../core/plugin/plugin.h"

/* The folders of the last call; for tests of "plugin_path". */
extern struct plugin_path fake_plugins_path;

/* How often a plugin was asked for, and how many of the next times fail. */
extern unsigned fake_plugins_searches, fake_plugins_failures;

#endif
