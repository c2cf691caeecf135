/* SPDX-License-Identifier: MIT */
/* functions.h: a row for each public function. */
#ifndef HIPMM_TESTS_ABI_FUNCTIONS_H
#define HIPMM_TESTS_ABI_FUNCTIONS_H

#include <stddef.h>

enum returns { RETURNS_STATUS, RETURNS_NOTHING, RETURNS_POINTER, RETURNS_NUMBER, RETURNS_SIZE };
enum needs {
  NEEDS_NOTHING,       /* beyond its arguments */
  NEEDS_RUNTIME,       /* also after hipmm_finalize() */
  NEEDS_INITIALISATION /* HIPMM_E_STATE before hipmm_init() and after hipmm_finalize() */
};

struct function {
  const char *name;
  enum returns returns;
  enum needs needs;
  const char *arguments;
};

extern const struct function functions[];
extern const size_t n_functions;

#endif
