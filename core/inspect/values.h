/* SPDX-License-Identifier: MIT */
/* values.h: what lives, as JSON; between state.c and snapshot.c. */
#ifndef HIPMM_CORE_INSPECT_VALUES_H
#define HIPMM_CORE_INSPECT_VALUES_H

#include "../stack/stack.h"
#include <jansson.h>

/* A text of ours from a JSON value, which is taken over; NULL is out of memory. The caller frees it with
 * hipmm_string_free(). */
enum hipmm_status values_text(json_t *value, char **text_out);

/* A value of an instance: a number, or null where it could not be had. */
json_t *values_value(const struct instance *instance, size_t row);

/* An option in force: {"value", "default", "reloadable"}. */
json_t *values_option(const struct instance *instance, const struct hipmm_option *row);

/* A string that is certainly valid UTF-8. */
json_t *values_string(const char *text);

#endif
