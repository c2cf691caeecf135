/* SPDX-License-Identifier: MIT */
/* error.c: reads an error code by its name or number, for options.c. */
#include "../../common/hip_error.h"
#include "internal.h"
#include <errno.h>
#include <stdlib.h>

static bool error_parse_name(const char *name, hipError_t *error_out)
{
  const struct hip_error *error = hip_error_find_name(name);
  if (error) *error_out = (hipError_t)error->code;
  return error != NULL;
}

bool software_error_parse(const char *text, hipError_t *error_out)
{
  if (*text < '0' || *text > '9') return error_parse_name(text, error_out);
  char *end;
  errno = 0;
  unsigned long code = strtoul(text, &end, 10);
  if (errno || *end || code == 0 || code > 9999) return false;
  *error_out = (hipError_t)code;
  return true;
}
