/* SPDX-License-Identifier: MIT */
/* failures.h: functions of libc that the device calls fail, for the tests test_exhausted*.c, which are linked with --wrap. */
#ifndef HIPMM_TESTS_RUNTIMES_SOFTWARE_FAILURES_H
#define HIPMM_TESTS_RUNTIMES_SOFTWARE_FAILURES_H

#include "device.h"

extern _Thread_local int until_failure; /* calls of this thread; 0: none fails */
extern void *wanted_address;            /* of the next mapping; NULL: any */

/* Makes each step of the call fail in turn, until the call succeeds: without a step that fails, or although one does. Returns
 * how often it has failed. */
#define FAIL_EACH_STEP(call)                                         \
  ({                                                                 \
    int n_failed_ = 0;                                               \
    hipError_t error_;                                               \
    while (until_failure = n_failed_ + 1, error_ = (call), error_) { \
      assert_int_equal(until_failure, 0);                            \
      assert_hip(error_, hipErrorOutOfMemory);                       \
      n_failed_++;                                                   \
    }                                                                \
    until_failure = 0;                                               \
    n_failed_;                                                       \
  })

/* The same, and each success that has a failed step behind it is undone: up to a call without one, which stays. */
#define FAIL_ALL_STEPS(call, undo)                         \
  ({                                                       \
    int n_failed_ = 0;                                     \
    for (int step_ = 1;; step_++) {                        \
      until_failure = step_;                               \
      hipError_t error_ = (call);                          \
      bool has_failed_ = until_failure == 0;               \
      until_failure = 0;                                   \
      if (error_) assert_true(has_failed_);                \
      if (error_) assert_hip(error_, hipErrorOutOfMemory); \
      if (!error_ && !has_failed_) break;                  \
      if (!error_) assert_ok(undo);                        \
      n_failed_ += error_ != hipSuccess;                   \
    }                                                      \
    n_failed_;                                             \
  })

/* While the process can have no other file, `call` fails with `error`. */
#define FAIL_WITHOUT_FILES(call, error)                      \
  do {                                                       \
    struct rlimit before_;                                   \
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before_), 0); \
    struct rlimit none_ = {0, before_.rlim_max};             \
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none_), 0);   \
    hipError_t error_ = (call);                              \
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before_), 0); \
    assert_hip(error_, error);                               \
  } while (0)

#define BOTH(test)                                         \
  {#test " (threads)", test, start_threads, finish, NULL}, \
  {                                                        \
#test " (stepped)", test, start_stepped, finish, NULL  \
  }

/* Streams that earlier tests used have their thread. */
hipStream_t create_stream_without_thread(unsigned flags);

#endif
