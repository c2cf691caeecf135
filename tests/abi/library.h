/* SPDX-License-Identifier: MIT */
/* library.h: what a library of the tests exports, as `library`. */
#ifndef HIPMM_TESTS_ABI_LIBRARY_H
#define HIPMM_TESTS_ABI_LIBRARY_H

#include <hipmm/hipmm.h>

enum { LIBRARY_BYTES = 5000 };

struct library {
  const char *name;
  enum hipmm_status (*open)(int has_own_graph);
  enum hipmm_status (*use)(void);     /* allocates a block, and */
  enum hipmm_status (*end_use)(void); /* frees it, if it still has the contents */
  enum hipmm_status (*close)(void);
  struct hipmm_resource *(*resource)(void); /* of its own stack; NULL: none */
};

#endif
