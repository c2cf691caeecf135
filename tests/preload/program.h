/* SPDX-License-Identifier: MIT */
/* program.h: what the parts of the HIP program share. */
#ifndef HIPMM_TESTS_PRELOAD_PROGRAM_H
#define HIPMM_TESTS_PRELOAD_PROGRAM_H

/* Programs still call functions that HIP has renamed. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"

#include "scenario.h"

#include <hip/hip_runtime_api.h>
#include <stdbool.h>
#include <stdio.h>

void check_code(const char *file, int line, const char *call, hipError_t code, hipError_t wanted);

#define EXPECT(wanted, call) check_code(__FILE__, __LINE__, #call, (call), (wanted))
#define GOOD(call)           EXPECT(hipSuccess, call)

bool all_are(const unsigned char *bytes, size_t count, int value);

void scenario_nothing(void);
void scenario_memory(void);
void scenario_arguments(void);
void scenario_reuse(void);
void scenario_ordered(void);
void scenario_streams(void);
void scenario_shortage(void);
void scenario_shortage_of_runtime(void);
void scenario_repeats(void);
void scenario_past(void);
void scenario_wrong(void);
void scenario_info(void);
void scenario_info_released(void);
void scenario_ranges(void);
void scenario_host(void);
void scenario_kinds(void);
void scenario_share(void);
void scenario_share_parts(void);
void scenario_share_mapped(void);
void scenario_share_closed(void);
void scenario_share_reopened(void);
void scenario_share_ended(void);
void scenario_pool_reserved(void);
void scenario_pools(void);
void scenario_reset(void);
void scenario_devices(void);
void scenario_peers(void);
void scenario_peers_given(void);
void scenario_peers_early(void);
void scenario_peers_reset(void);
void scenario_threads(void);
void scenario_fork(void);
void scenario_early_fork(void);
void scenario_leak(void);
void scenario_races_after_free(void);
void scenario_races_in_use(void);
void scenario_races_unordered(void);
void scenario_races_early(void);
void scenario_races_exit(void);
void scenario_races_fork(void);
void scenario_races_past_end(void);
void scenario_races_free_twice(void);
void scenario_races_free_first_twice(void);
void scenario_races_free_async_twice(void);
void scenario_races_none(void);
void scenario_first(void);
void scenario_unready(void);
void scenario_deferred(void);
void scenario_nested(void);
void scenario_host_flags(void);
void scenario_pool_streams(void);
void scenario_pool_usage(void);
void scenario_pool_locations(void);
void scenario_pool_access(void);
void scenario_pool_limits(void);
void scenario_pool_reuse(void);
void scenario_pool_trim(void);
void scenario_proc_address(void);
void scenario_opened(void);
void scenario_attributes(void);
void scenario_package(void);
void scenario_package_devices(void);
void scenario_registered(void);
void scenario_reserved(void);
void scenario_end_exit_now(void);
void scenario_end_quick(void);
void scenario_end_abort(void);
void scenario_end_fault(void);
void scenario_end_terminate(void);
void scenario_end_own_early(void);
void scenario_end_own_late(void);
void scenario_end_ignored(void);
void scenario_report_now(void);
void scenario_report_own(void);
void scenario_end_children(void);
void scenario_end_asked_late(void);
void scenario_end_limited(void);
void scenario_end_unread(void);
void scenario_end_late_free(void);
void scenario_end_damage(void);

#endif
