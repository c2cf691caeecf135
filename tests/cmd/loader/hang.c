/* SPDX-License-Identifier: MIT */
/* hang.c: a runtime that does not come back from being loaded, as where a driver hangs. */
#include <unistd.h>

__attribute__((constructor)) static void hang_for_ever(void)
{
  for (;;) pause();
}
