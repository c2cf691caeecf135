/* SPDX-License-Identifier: MIT */
/* interpose.h: this program's own versions of functions of libc, so that a test can make the nth call fail: host
 * memory (malloc and its family, mmap, pthread_create) and files (open, write, rename, …). The program, the plugins
 * and the libraries below them all call these. Calls of the dynamic loader, which ends the process without memory,
 * and of the software device, whose failures are failed HIP calls, are neither counted nor made to fail. */
#ifndef HIPMM_TESTS_FAULT_INTERPOSE_H
#define HIPMM_TESTS_FAULT_INTERPOSE_H

#include <stdbool.h>
#include <stdint.h>

enum interpose_kind {
  INTERPOSE_MEMORY, /* calls of the thread that began */
  INTERPOSE_FILES   /* calls of every thread: logs have writers */
};

/* Instead of an errno of a file: the call reads or writes half of what it is asked to; with FILLED, the next call
 * finds no space. */
enum { INTERPOSE_SHORT = -1, INTERPOSE_FILLED = -2 };

/* Finds the libraries that are left out; after they were loaded. */
void interpose_prepare(void);

/* From now on calls of this kind are counted, and the `nth` of them fails with `code` (an errno); 0: none. */
void interpose_begin(enum interpose_kind kind, uint64_t nth, int code);

/* The same; all calls after the nth fail too. */
void interpose_begin_lasting(enum interpose_kind kind, uint64_t nth, int code);

/* Ends what interpose_begin() began. The number of calls since the begin. */
uint64_t interpose_end(void);

/* Whether a call has failed since the begin; and the name of its function. */
bool interpose_has_failed(void);
const char *interpose_failed_call(void);

/* What the process has and has not given back. */
struct interpose_balance {
  int64_t blocks, mapped_bytes;
  int files;
};
struct interpose_balance interpose_balance(void);

/* Prints where the call that failed last was made. */
void interpose_print_place(void);

#endif
