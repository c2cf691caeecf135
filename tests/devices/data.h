/* SPDX-License-Identifier: MIT */
/* data.h: stacks over whatever runtime HIPMM_RUNTIME names, and data in their memory, for tests that must not look into
 * it from the host. Without HIPMM_RUNTIME it is the software device. */
#ifndef HIPMM_TESTS_GPU_DATA_H
#define HIPMM_TESTS_GPU_DATA_H

#include "../support/support.h"

/* Starts hipmm with two software devices of 256 MiB, or what there is. `stack` is JSON with ' for ". */
void data_start(const char *stack);

/* A test of `stack`, and one of each of the stacks that every program here goes through. */
#define DATA_ROW(text, test, teardown, stack)                 \
  {                                                           \
    text, test, NULL, teardown, (void *)(uintptr_t)(stack "") \
  }
#define DATA_ROWS(test, teardown)                                                                         \
  DATA_ROW("mapped: " #test, test, teardown, "[{'type': 'pool', 'growth': 'mapped'}, 'device']"),         \
      DATA_ROW("segments: " #test, test, teardown, "[{'type': 'pool', 'growth': 'segments'}, 'device']"), \
      DATA_ROW("device: " #test, test, teardown, "['device']")

/* Of the tests: finalizes; on the software device nothing may be left. */
int data_teardown(void **state);

const struct hipmm_hip *data_hip(void);

/* Bytes that the current device has left. */
size_t data_free_bytes(void);

/* Has the stream fill the block. */
void data_fill(void *ptr, unsigned char value, size_t bytes, hipmm_stream_t stream);

/* Waits for the device; whether the block's beginning, middle and end hold nothing but `value`. */
bool data_holds(const void *ptr, unsigned char value, size_t bytes);

#endif
