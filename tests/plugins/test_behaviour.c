/* SPDX-License-Identifier: MIT */
/* The table of behaviours (behaviour.h) for the types whose own tests do not run it: sources of device memory,
 * sub-allocators, and adaptors. */
#include "../support/behaviour.h"

#define THREADS "'scheduler': 'threads'"
#define STEPPED "'scheduler': 'stepped', 'seed': 5"

static const struct behaviour_stack stacks[] = {
    {"device", THREADS, "'stack': ['device']", false},
    {"async", STEPPED, "'stack': ['async']", false},
    {"async_view", THREADS, "'stack': ['async_view']", false},
    {"pool, mapped", STEPPED, "'stack': [{'type': 'pool', 'growth': 'mapped'}, 'device']", true},
    {"pool, segments", THREADS, "'stack': [{'type': 'pool', 'growth': 'segments'}, 'device']", true},
    {"pool, on_free", STEPPED, "'stack': [{'type': 'pool', 'growth': 'mapped', 'record': 'on_free'}, 'device']", true},
    {"arena", STEPPED, "'stack': ['arena', 'device']", true},
    {"arena, on_free", THREADS, "'stack': [{'type': 'arena', 'record': 'on_free'}, 'device']", true},
    {"binning", STEPPED,
     "'stack': [{'type': 'binning', 'min_size_exponent': 9, 'max_size_exponent': 20}, 'pool', 'device']", true},
    {"monotonic", STEPPED, "'stack': ['monotonic', 'device']", true},
    {"statistics", THREADS, "'stack': ['statistics', 'pool', 'device']", true},
    {"logging", STEPPED, "'stack': [{'type': 'logging', 'file': '/dev/null'}, 'arena', 'device']", true},
    {"thread_safe", THREADS, "'stack': ['thread_safe', 'monotonic', 'device']", true},
    {"fallback", STEPPED,
     "'resources': {'top': {'type': 'fallback', 'upstream': ['narrow', 'pool']}, 'narrow': {'type': 'limiting', "
     "'limit': "
     "'1MiB', 'upstream': 'arena'}, 'arena': {'type': 'arena', 'upstream': 'memory'}, 'memory': {'type': 'device'}, "
     "'pool': {'type': 'pool', 'upstream': 'memory'}}",
     true},
};

enum { N_STACKS = sizeof stacks / sizeof *stacks };

int main(void)
{
  return behaviour_run("behaviours", NULL, 0, stacks, N_STACKS);
}
