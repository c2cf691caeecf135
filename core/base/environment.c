/* SPDX-License-Identifier: MIT */
/* environment.c: the process's environment and rights. Every variable is looked up here, so that a privileged process ignores
 * all of them. */
#include "environment.h"

#include <stdlib.h>
#include <sys/auxv.h>

bool environment_is_privileged(void)
{
  return getauxval(AT_SECURE) != 0;
}

const char *environment_get(const char *name)
{
  return secure_getenv(name);
}
