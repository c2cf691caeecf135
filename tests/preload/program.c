/* SPDX-License-Identifier: MIT */
/* program.c: a HIP program that knows nothing of hipmm, for `hipmm run`. Its first argument names a scenario; it prints
 * "good" if everything was as a HIP program may expect. The program checks values; the scripts check reports. */
#include "program.h"

static const struct scenario scenarios[] = {
    {"nothing", scenario_nothing},
    {"memory", scenario_memory},
    {"arguments", scenario_arguments},
    {"reuse", scenario_reuse},
    {"ordered", scenario_ordered},
    {"streams", scenario_streams},
    {"shortage", scenario_shortage},
    {"shortage_of_runtime", scenario_shortage_of_runtime},
    {"repeats", scenario_repeats},
    {"past", scenario_past},
    {"wrong", scenario_wrong},
    {"info", scenario_info},
    {"info_released", scenario_info_released},
    {"ranges", scenario_ranges},
    {"host", scenario_host},
    {"kinds", scenario_kinds},
    {"share", scenario_share},
    {"share_parts", scenario_share_parts},
    {"share_mapped", scenario_share_mapped},
    {"share_closed", scenario_share_closed},
    {"share_reopened", scenario_share_reopened},
    {"share_ended", scenario_share_ended},
    {"pools", scenario_pools},
    {"reset", scenario_reset},
    {"devices", scenario_devices},
    {"package_devices", scenario_package_devices},
    {"threads", scenario_threads},
    {"fork", scenario_fork},
    {"early_fork", scenario_early_fork},
    {"leak", scenario_leak},
    {"races_after_free", scenario_races_after_free},
    {"races_in_use", scenario_races_in_use},
    {"races_unordered", scenario_races_unordered},
    {"races_early", scenario_races_early},
    {"races_exit", scenario_races_exit},
    {"races_fork", scenario_races_fork},
    {"races_past_end", scenario_races_past_end},
    {"races_free_twice", scenario_races_free_twice},
    {"races_free_first_twice", scenario_races_free_first_twice},
    {"races_free_async_twice", scenario_races_free_async_twice},
    {"races_none", scenario_races_none},
    {"first", scenario_first},
    {"unready", scenario_unready},
    {"deferred", scenario_deferred},
    {"nested", scenario_nested},
    {"peers", scenario_peers},
    {"peers_given", scenario_peers_given},
    {"peers_early", scenario_peers_early},
    {"peers_reset", scenario_peers_reset},
    {"host_flags", scenario_host_flags},
    {"pool_streams", scenario_pool_streams},
    {"pool_usage", scenario_pool_usage},
    {"pool_locations", scenario_pool_locations},
    {"pool_reserved", scenario_pool_reserved},
    {"pool_access", scenario_pool_access},
    {"pool_limits", scenario_pool_limits},
    {"pool_reuse", scenario_pool_reuse},
    {"pool_trim", scenario_pool_trim},
    {"proc_address", scenario_proc_address},
    {"opened", scenario_opened},
    {"attributes", scenario_attributes},
    {"package", scenario_package},
    {"registered", scenario_registered},
    {"reserved", scenario_reserved},
    {"end_exit_now", scenario_end_exit_now},
    {"end_quick", scenario_end_quick},
    {"end_abort", scenario_end_abort},
    {"end_fault", scenario_end_fault},
    {"end_terminate", scenario_end_terminate},
    {"end_own_early", scenario_end_own_early},
    {"end_own_late", scenario_end_own_late},
    {"end_ignored", scenario_end_ignored},
    {"report_now", scenario_report_now},
    {"report_own", scenario_report_own},
    {"end_children", scenario_end_children},
    {"end_asked_late", scenario_end_asked_late},
    {"end_limited", scenario_end_limited},
    {"end_unread", scenario_end_unread},
    {"end_late_free", scenario_end_late_free},
    {"end_damage", scenario_end_damage},
};

void check_code(const char *file, int line, const char *call, hipError_t code, hipError_t wanted)
{
  if (code == wanted) return;
  complain(file, line, "%s is %d (%s) and not %d", call, (int)code, hipGetErrorName(code), (int)wanted);
}

bool all_are(const unsigned char *bytes, size_t count, int value)
{
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != (unsigned char)value) return false;
  return true;
}

int main(int argc, char **argv)
{
  return scenario_main(scenarios, sizeof scenarios / sizeof *scenarios, argc, argv);
}
