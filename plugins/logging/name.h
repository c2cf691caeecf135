/* SPDX-License-Identifier: MIT */
/* name.h: the name of a log file, from what the user wrote. */
#ifndef HIPMM_LOGGING_NAME_H
#define HIPMM_LOGGING_NAME_H

#include <hipmm/plugin.h>

enum { NAME_BYTES = 4096 };

/* Reports each percent sign that has no meaning. name_expand() gets only patterns without an error. */
void name_validate(const struct hipmm_validation *validation, const char *pattern);

/* Replaces %p by the process's id, %d by the device, %r by the process's rank in its job, %% by a percent sign.
 * `name_out` has NAME_BYTES. */
enum hipmm_status name_expand(const struct hipmm_services *services, const char *pattern, char *name_out);

/* Inserts ".dev" and the device before the extension, in place: "a/rmm.log" becomes "a/rmm.dev1.log". 0 if it does not
 * fit. */
int name_add_device(char *name, int device);

#endif
