/* SPDX-License-Identifier: MIT */
/* work.h: pools of every kind, and work on streams that notices when anybody else writes to its block: the proof of
 * order between streams, under the stepped scheduler above all. */
#ifndef HIPMM_TESTS_UNIT_POOL_WORK_H
#define HIPMM_TESTS_UNIT_POOL_WORK_H

#include "../../support/fixture.h"

#define LEGACY     ((hipmm_stream_t)1)
#define PER_THREAD ((hipmm_stream_t)2)

enum { KIB = 1024 };

/* Indices of what the options "growth" and "record" may say. */
enum { MAPPED, SEGMENTS, GROWTHS };
enum { AUTO, LAZY, ON_FREE, RECORDS };

/* A pool over device memory, with more options: `, 'maximum_size': '4MiB'`. */
void start(const char *runtime_options, int growth, int record, const char *options);

/* Takes it down and looks whether anything was lost; for tests that start several. */
void finish(void);

/* Has the stream fill the block, and later look whether it is as it was. */
void use(void *ptr, size_t bytes, hipmm_stream_t stream);

/* Allocates, uses and frees without waiting for anything. */
void *use_and_free(size_t bytes, hipmm_stream_t stream);

/* Waits for the device. No look has found anything else. */
void assert_undisturbed(void);

#endif
