/* SPDX-License-Identifier: MIT */
/* heap_fixture.h: a heap over the fake runtime, for the programs that test it. Each step checks that the heap is valid. */
#ifndef HIPMM_TESTS_UNIT_POOL_HEAP_FIXTURE_H
#define HIPMM_TESTS_UNIT_POOL_HEAP_FIXTURE_H

#include "../../../plugins/heap/heap.h"
#include "../../support/support.h"
#include "fake.h"

enum { KIB = 1024 };

/* Where the first region starts: a multiple of any alignment. */
#define START 0x300000000000ull

extern struct heap heap;

/* Teardown; also between heaps. Fails if anything was lost. */
int close_heap(void **state);

void open_heap(enum record record);

/* Streams become known in order, so that id STREAM_FIRST + i is stream i. */
void enter_streams(unsigned n_streams);

/* One region, ready, and streams. */
void open_with(enum record record, uint64_t bytes, unsigned n_streams);

struct request request_for(uint64_t bytes, uint64_t alignment, unsigned stream);
uint32_t allocate_block(uint64_t bytes, unsigned stream);
void free_block(uint32_t id, unsigned stream);
uint64_t start_of(uint32_t id);

/* Nothing is live, and the largest free block is this large. */
void assert_whole(uint64_t bytes);

#endif
