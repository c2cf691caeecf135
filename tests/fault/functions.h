/* SPDX-License-Identifier: MIT */
/* functions.h: the scenarios that call every public function, by subject, and what they share. Used by test_functions.c, which
 * has the fixture. */
#ifndef HIPMM_TESTS_FAULT_FUNCTIONS_H
#define HIPMM_TESTS_FAULT_FUNCTIONS_H

#include "sweep.h"

#include <hipmm/hipmm.h>

enum { BYTES = 5000, BYSTANDERS = 3 };

extern const char graph[]; /* of the fixture, as JSON */

/* Between begin() and end(): */
extern hipmm_stream_t stream; /* of device 0, retained */
extern struct hipmm_resource *resource;
extern unsigned char *bystanders[BYSTANDERS]; /* live blocks that no function is to touch */

/* For the whole program: a file with the graph, and one for the log. */
extern char *graph_file, *log_file;

/* Begins and ends of scenarios. */
void begin_without_a_stack(const void *argument);
void begin(const void *argument);
void end(const void *argument);

/* Notes what is not so. */
void expect(bool is_so, const char *what);

/* Whether each byte has the value. */
bool holds(const unsigned char *data, size_t bytes, unsigned char value);

extern const struct sweep_scenario resource_scenarios[], container_scenarios[], process_scenarios[];
extern const size_t n_resource_scenarios, n_container_scenarios, n_process_scenarios;

#endif
