/* SPDX-License-Identifier: MIT */
/* own_symbol.h: the functions of a runtime or a driver that hipmm itself calls. Under `hipmm run`, dlsym() gives a program
 * the functions that hipmm puts in front of them (tools/preload/exports.c); hipmm's own calls must never be served. Plugins
 * include this header too. */
#ifndef HIPMM_CORE_BASE_OWN_SYMBOL_H
#define HIPMM_CORE_BASE_OWN_SYMBOL_H

#include <dlfcn.h>
#include <string.h>

/* As dlsym(), which the preload object of `hipmm run` exports a second time under the name hipmm_run_symbol, without its
 * hooks. */
static inline void *own_symbol(void *library, const char *name)
{
  void *(*look_up)(void *, const char *) = dlsym;
  void *unhooked = dlsym(RTLD_DEFAULT, "hipmm_run_symbol");
  if (unhooked) memcpy(&look_up, &unhooked, sizeof unhooked);
  return look_up(library, name);
}

#endif
