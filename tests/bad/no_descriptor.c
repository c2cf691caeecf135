/* SPDX-License-Identifier: MIT */
/* no_descriptor.c: a shared object that is no plugin: what it exports has another name. */
#include <hipmm/plugin.h>

HIPMM_EXPORT extern const struct hipmm_plugin another_descriptor;

const struct hipmm_plugin another_descriptor = {HIPMM_PLUGIN_HEAD, .type = "no_descriptor", .version = "1", .doc = "x"};
