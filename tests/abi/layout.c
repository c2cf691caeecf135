/* SPDX-License-Identifier: MIT */
/* layout.c: written by `make abi-baseline`: the layout of every public struct on machines with 64-bit pointers. It is compiled
 * with the tests; there is nothing to run. A line that fails means that programs or plugins which were built before would
 * break: put the member where it was, and new members at the end of a struct that may grow (doc/abi.md). */
#include <hipmm/buffer.h>
#include <hipmm/control.h>
#include <hipmm/hipmm.h>
#include <hipmm/inspect.h>
#include <hipmm/memory.h>
#include <hipmm/plugin.h>
#include <hipmm/reserve.h>
#include <hipmm/serve.h>
#include <hipmm/share.h>
#include <hipmm/span.h>
#include <hipmm/spill.h>
#include <hipmm/stream.h>
#include <hipmm/torch.h>
#include <hipmm/vector.h>
#include <hipmm/version.h>

#if defined(__LP64__)

/* A struct that never grows has its size for ever; one that may grow has at least its present one. */
#define NEVER_GROWS(type, bytes) _Static_assert(sizeof(struct type) == (bytes), #type " never grows")
#define MAY_GROW(type, bytes)    _Static_assert(sizeof(struct type) >= (bytes), #type " may not shrink")
#define AT(type, member, bytes)  _Static_assert(offsetof(struct type, member) == (bytes), #type "." #member " has moved")
#define ENUM(type)               _Static_assert(sizeof(enum type) == 4, "enum " #type " has 32 bits")

MAY_GROW(hipmm_allocator, 32);
AT(hipmm_allocator, struct_size, 0);
AT(hipmm_allocator, allocate, 8);
AT(hipmm_allocator, deallocate, 16);
AT(hipmm_allocator, arg, 24);

NEVER_GROWS(hipmm_block, 16);
AT(hipmm_block, ptr, 0);
AT(hipmm_block, bytes, 8);

NEVER_GROWS(hipmm_chunk, 24);
AT(hipmm_chunk, handle, 0);
AT(hipmm_chunk, ptr, 8);
AT(hipmm_chunk, bytes, 16);

ENUM(hipmm_content);

MAY_GROW(hipmm_error, 3224);
AT(hipmm_error, struct_size, 0);
AT(hipmm_error, status, 8);
AT(hipmm_error, hip_code, 12);
AT(hipmm_error, line, 16);
AT(hipmm_error, column, 20);
AT(hipmm_error, file, 24);
AT(hipmm_error, path, 536);
AT(hipmm_error, resource, 1048);
AT(hipmm_error, message, 1176);

MAY_GROW(hipmm_event, 72);
AT(hipmm_event, struct_size, 0);
AT(hipmm_event, kind, 8);
AT(hipmm_event, device, 12);
AT(hipmm_event, resource, 16);
AT(hipmm_event, ptr, 24);
AT(hipmm_event, bytes, 32);
AT(hipmm_event, held_bytes, 40);
AT(hipmm_event, stream, 48);
AT(hipmm_event, idle_ns, 56);
AT(hipmm_event, rank, 64);

NEVER_GROWS(hipmm_extent, 32);
AT(hipmm_extent, ptr, 0);
AT(hipmm_extent, bytes, 8);
AT(hipmm_extent, state, 16);
AT(hipmm_extent, flags, 20);
AT(hipmm_extent, stream, 24);

MAY_GROW(hipmm_failure_handler, 24);
AT(hipmm_failure_handler, struct_size, 0);
AT(hipmm_failure_handler, callback, 8);
AT(hipmm_failure_handler, arg, 16);

MAY_GROW(hipmm_feature, 24);
AT(hipmm_feature, name, 0);
AT(hipmm_feature, unit, 8);
AT(hipmm_feature, doc, 16);

MAY_GROW(hipmm_hip, 608);
AT(hipmm_hip, struct_size, 0);
AT(hipmm_hip, GetDeviceCount, 8);
AT(hipmm_hip, GetDevice, 16);
AT(hipmm_hip, SetDevice, 24);
AT(hipmm_hip, DeviceGetAttribute, 32);
AT(hipmm_hip, DeviceGetName, 40);
AT(hipmm_hip, DeviceSynchronize, 48);
AT(hipmm_hip, MemGetInfo, 56);
AT(hipmm_hip, RuntimeGetVersion, 64);
AT(hipmm_hip, GetLastError, 72);
AT(hipmm_hip, GetErrorName, 80);
AT(hipmm_hip, GetErrorString, 88);
AT(hipmm_hip, Malloc, 96);
AT(hipmm_hip, Free, 104);
AT(hipmm_hip, MallocManaged, 112);
AT(hipmm_hip, HostMalloc, 120);
AT(hipmm_hip, HostFree, 128);
AT(hipmm_hip, MemAdvise, 136);
AT(hipmm_hip, MemPrefetchAsync, 144);
AT(hipmm_hip, Memcpy, 152);
AT(hipmm_hip, MemcpyAsync, 160);
AT(hipmm_hip, MemsetAsync, 168);
AT(hipmm_hip, LaunchHostFunc, 176);
AT(hipmm_hip, StreamCreateWithFlags, 184);
AT(hipmm_hip, StreamDestroy, 192);
AT(hipmm_hip, StreamSynchronize, 200);
AT(hipmm_hip, StreamQuery, 208);
AT(hipmm_hip, StreamWaitEvent, 216);
AT(hipmm_hip, StreamGetId, 224);
AT(hipmm_hip, EventCreateWithFlags, 232);
AT(hipmm_hip, EventDestroy, 240);
AT(hipmm_hip, EventRecord, 248);
AT(hipmm_hip, EventQuery, 256);
AT(hipmm_hip, EventSynchronize, 264);
AT(hipmm_hip, MallocAsync, 272);
AT(hipmm_hip, FreeAsync, 280);
AT(hipmm_hip, MallocFromPoolAsync, 288);
AT(hipmm_hip, MemPoolCreate, 296);
AT(hipmm_hip, MemPoolDestroy, 304);
AT(hipmm_hip, MemPoolSetAttribute, 312);
AT(hipmm_hip, MemPoolGetAttribute, 320);
AT(hipmm_hip, MemPoolTrimTo, 328);
AT(hipmm_hip, DeviceGetDefaultMemPool, 336);
AT(hipmm_hip, MemGetAllocationGranularity, 344);
AT(hipmm_hip, MemAddressReserve, 352);
AT(hipmm_hip, MemAddressFree, 360);
AT(hipmm_hip, MemCreate, 368);
AT(hipmm_hip, MemRelease, 376);
AT(hipmm_hip, MemMap, 384);
AT(hipmm_hip, MemUnmap, 392);
AT(hipmm_hip, MemSetAccess, 400);
AT(hipmm_hip, DeviceGetMemPool, 408);
AT(hipmm_hip, DeviceSetMemPool, 416);
AT(hipmm_hip, MemPoolSetAccess, 424);
AT(hipmm_hip, MemPoolGetAccess, 432);
AT(hipmm_hip, MemPoolCreateManaged, 440);
AT(hipmm_hip, MemPoolExport, 448);
AT(hipmm_hip, MemPoolImport, 456);
AT(hipmm_hip, MemPoolExportPointer, 464);
AT(hipmm_hip, MemPoolImportPointer, 472);
AT(hipmm_hip, MemcpyPeerAsync, 480);
AT(hipmm_hip, StreamGetDevice, 488);
AT(hipmm_hip, DriverGetVersion, 496);
AT(hipmm_hip, DeviceCanAccessPeer, 504);
AT(hipmm_hip, DeviceEnablePeerAccess, 512);
AT(hipmm_hip, runtime, 520);
AT(hipmm_hip, StreamIsCapturing, 528);
AT(hipmm_hip, MemGetAddressRange, 536);
AT(hipmm_hip, StreamCreateWithPriority, 544);
AT(hipmm_hip, DeviceGetStreamPriorityRange, 552);
AT(hipmm_hip, MemCreateShared, 560);
AT(hipmm_hip, MemExport, 568);
AT(hipmm_hip, MemImport, 576);
AT(hipmm_hip, HostRegister, 584);
AT(hipmm_hip, HostUnregister, 592);
AT(hipmm_hip, DeviceGetUuid, 600);
AT(hipmm_hip, MemPoolCreateHost, 608);
AT(hipmm_hip, MemSetAccessRead, 616);

MAY_GROW(hipmm_hooks, 32);
AT(hipmm_hooks, struct_size, 0);
AT(hipmm_hooks, kinds, 8);
AT(hipmm_hooks, callback, 16);
AT(hipmm_hooks, arg, 24);

MAY_GROW(hipmm_host_allocator, 32);
AT(hipmm_host_allocator, struct_size, 0);
AT(hipmm_host_allocator, allocate, 8);
AT(hipmm_host_allocator, deallocate, 16);
AT(hipmm_host_allocator, arg, 24);

NEVER_GROWS(hipmm_list, 16);
AT(hipmm_list, count, 0);
AT(hipmm_list, items, 8);

MAY_GROW(hipmm_location, 32);
AT(hipmm_location, struct_size, 0);
AT(hipmm_location, usable_bytes, 8);
AT(hipmm_location, stream, 16);
AT(hipmm_location, has_stream, 24);
AT(hipmm_location, unused, 28);

ENUM(hipmm_log_level);

MAY_GROW(hipmm_mapping, 112);
AT(hipmm_mapping, struct_size, 0);
AT(hipmm_mapping, granularity, 8);
AT(hipmm_mapping, reserve, 16);
AT(hipmm_mapping, unreserve, 24);
AT(hipmm_mapping, create, 32);
AT(hipmm_mapping, destroy, 40);
AT(hipmm_mapping, map, 48);
AT(hipmm_mapping, unmap, 56);
AT(hipmm_mapping, may_alias, 64);
AT(hipmm_mapping, discouraged_reason, 72);
AT(hipmm_mapping, export_chunk, 80);
AT(hipmm_mapping, may_export, 88);
AT(hipmm_mapping, most_chunks, 96);
AT(hipmm_mapping, create_shared, 104);

MAY_GROW(hipmm_memory, 48);
AT(hipmm_memory, struct_size, 0);
AT(hipmm_memory, ptr, 8);
AT(hipmm_memory, bytes, 16);
AT(hipmm_memory, capacity_bytes, 24);
AT(hipmm_memory, resource, 32);
AT(hipmm_memory, stream, 40);

MAY_GROW(hipmm_mempool, 16);
AT(hipmm_mempool, struct_size, 0);
AT(hipmm_mempool, handle, 8);

NEVER_GROWS(hipmm_object, 16);
AT(hipmm_object, option, 0);
AT(hipmm_object, object, 8);

MAY_GROW(hipmm_ops, 200);
AT(hipmm_ops, struct_size, 0);
AT(hipmm_ops, allocate, 8);
AT(hipmm_ops, deallocate, 16);
AT(hipmm_ops, trim, 24);
AT(hipmm_ops, query, 32);
AT(hipmm_ops, perform, 40);
AT(hipmm_ops, find, 48);
AT(hipmm_ops, stream_retire, 56);
AT(hipmm_ops, stream_retain, 64);
AT(hipmm_ops, mapping, 72);
AT(hipmm_ops, reconfigure, 80);
AT(hipmm_ops, visit, 88);
AT(hipmm_ops, sharing, 96);
AT(hipmm_ops, report, 104);
AT(hipmm_ops, covers, 112);
AT(hipmm_ops, grant_access, 120);
AT(hipmm_ops, locate, 128);
AT(hipmm_ops, visit_chunks, 136);
AT(hipmm_ops, process_end, 144);
AT(hipmm_ops, suspend, 152);
AT(hipmm_ops, resume, 160);
AT(hipmm_ops, try_allocate, 168);
AT(hipmm_ops, try_deallocate, 176);
AT(hipmm_ops, reserving, 184);
AT(hipmm_ops, spans, 192);
AT(hipmm_ops, moving, 200);

MAY_GROW(hipmm_option, 104);
AT(hipmm_option, name, 0);
AT(hipmm_option, type, 8);
AT(hipmm_option, flags, 12);
AT(hipmm_option, offset, 16);
AT(hipmm_option, initial, 24);
AT(hipmm_option, unit, 32);
AT(hipmm_option, doc, 40);
AT(hipmm_option, minimum, 48);
AT(hipmm_option, maximum, 56);
AT(hipmm_option, at_least, 64);
AT(hipmm_option, choices, 72);
AT(hipmm_option, fields, 80);
AT(hipmm_option, n_fields, 88);
AT(hipmm_option, field_bytes, 92);
AT(hipmm_option, variable, 96);

MAY_GROW(hipmm_option_state, 72);
AT(hipmm_option_state, struct_size, 0);
AT(hipmm_option_state, name, 8);
AT(hipmm_option_state, type, 16);
AT(hipmm_option_state, unit, 24);
AT(hipmm_option_state, doc, 32);
AT(hipmm_option_state, text, 40);
AT(hipmm_option_state, integer, 48);
AT(hipmm_option_state, ratio, 56);
AT(hipmm_option_state, is_default, 64);
AT(hipmm_option_state, is_reloadable, 68);

MAY_GROW(hipmm_plugin, 144);
AT(hipmm_plugin, abi_version, 0);
AT(hipmm_plugin, struct_size, 4);
AT(hipmm_plugin, option_bytes, 8);
AT(hipmm_plugin, feature_bytes, 12);
AT(hipmm_plugin, type, 16);
AT(hipmm_plugin, version, 24);
AT(hipmm_plugin, doc, 32);
AT(hipmm_plugin, role, 40);
AT(hipmm_plugin, flags, 44);
AT(hipmm_plugin, required_features, 48);
AT(hipmm_plugin, min_upstreams, 56);
AT(hipmm_plugin, max_upstreams, 60);
AT(hipmm_plugin, options, 64);
AT(hipmm_plugin, n_options, 72);
AT(hipmm_plugin, unused, 76);
AT(hipmm_plugin, options_bytes, 80);
AT(hipmm_plugin, values, 88);
AT(hipmm_plugin, actions, 96);
AT(hipmm_plugin, n_values, 104);
AT(hipmm_plugin, n_actions, 108);
AT(hipmm_plugin, ops, 112);
AT(hipmm_plugin, create, 120);
AT(hipmm_plugin, destroy, 128);
AT(hipmm_plugin, validate, 136);

MAY_GROW(hipmm_pointer, 80);
AT(hipmm_pointer, struct_size, 0);
AT(hipmm_pointer, resource, 8);
AT(hipmm_pointer, device, 16);
AT(hipmm_pointer, flags, 20);
AT(hipmm_pointer, ptr, 24);
AT(hipmm_pointer, bytes, 32);
AT(hipmm_pointer, usable_bytes, 40);
AT(hipmm_pointer, base, 48);
AT(hipmm_pointer, base_bytes, 56);
AT(hipmm_pointer, offset, 64);
AT(hipmm_pointer, stream, 72);

ENUM(hipmm_process_end);

NEVER_GROWS(hipmm_question, 16);
AT(hipmm_question, ask, 0);
AT(hipmm_question, tried, 8);

MAY_GROW(hipmm_recipe, 96);
AT(hipmm_recipe, struct_size, 0);
AT(hipmm_recipe, type, 8);
AT(hipmm_recipe, name, 16);
AT(hipmm_recipe, options, 24);
AT(hipmm_recipe, settings, 32);
AT(hipmm_recipe, n_settings, 40);
AT(hipmm_recipe, upstreams, 48);
AT(hipmm_recipe, n_upstreams, 56);
AT(hipmm_recipe, named_resources, 64);
AT(hipmm_recipe, n_named_resources, 72);
AT(hipmm_recipe, objects, 80);
AT(hipmm_recipe, n_objects, 88);

ENUM(hipmm_reclaim_level);

MAY_GROW(hipmm_region, 24);
AT(hipmm_region, struct_size, 0);
AT(hipmm_region, ptr, 8);
AT(hipmm_region, bytes, 16);

MAY_GROW(hipmm_request, 48);
AT(hipmm_request, struct_size, 0);
AT(hipmm_request, resource, 8);
AT(hipmm_request, bytes, 16);
AT(hipmm_request, alignment, 24);
AT(hipmm_request, stream, 32);
AT(hipmm_request, flags, 40);
AT(hipmm_request, unused, 44);

NEVER_GROWS(hipmm_reserve_request, 48);
AT(hipmm_reserve_request, struct_size, 0);
AT(hipmm_reserve_request, resource, 8);
AT(hipmm_reserve_request, bytes, 16);
AT(hipmm_reserve_request, timeout_ns, 24);
AT(hipmm_reserve_request, priority, 32);
AT(hipmm_reserve_request, name, 40);

NEVER_GROWS(hipmm_moving, 40);
AT(hipmm_moving, struct_size, 0);
AT(hipmm_moving, create, 8);
AT(hipmm_moving, destroy, 16);
AT(hipmm_moving, pin, 24);
AT(hipmm_moving, unpin, 32);

NEVER_GROWS(hipmm_reserving, 32);
AT(hipmm_reserving, struct_size, 0);
AT(hipmm_reserving, reserve, 8);
AT(hipmm_reserving, resize, 16);
AT(hipmm_reserving, release, 24);

NEVER_GROWS(hipmm_resource, 16);
AT(hipmm_resource, ops, 0);
AT(hipmm_resource, self, 8);

MAY_GROW(hipmm_services, 264);
AT(hipmm_services, struct_size, 0);
AT(hipmm_services, name, 8);
AT(hipmm_services, device, 16);
AT(hipmm_services, hip, 24);
AT(hipmm_services, fail, 32);
AT(hipmm_services, refuse, 40);
AT(hipmm_services, refuse_hip, 48);
AT(hipmm_services, log, 56);
AT(hipmm_services, host_allocate, 64);
AT(hipmm_services, host_free, 72);
AT(hipmm_services, enter_device, 80);
AT(hipmm_services, leave_device, 88);
AT(hipmm_services, track, 96);
AT(hipmm_services, untrack, 104);
AT(hipmm_services, lookup, 112);
AT(hipmm_services, untrack_any, 120);
AT(hipmm_services, count_held, 128);
AT(hipmm_services, find_below, 136);
AT(hipmm_services, explain, 144);
AT(hipmm_services, find_in, 152);
AT(hipmm_services, may_cut_up, 160);
AT(hipmm_services, is_kept_below, 168);
AT(hipmm_services, copies_are_ordered, 176);
AT(hipmm_services, devices_are_announced, 180);
AT(hipmm_services, watch_held, 184);
AT(hipmm_services, unwatch_held, 192);
AT(hipmm_services, reclaim_level, 200);
AT(hipmm_services, enter_program, 208);
AT(hipmm_services, leave_program, 216);
AT(hipmm_services, ask_program, 224);
AT(hipmm_services, check_wait, 232);
AT(hipmm_services, call_site, 240);
AT(hipmm_services, tags, 248);
AT(hipmm_services, tags_used, 256);

NEVER_GROWS(hipmm_setting, 16);
AT(hipmm_setting, name, 0);
AT(hipmm_setting, value, 8);

MAY_GROW(hipmm_serve_get_message, 64);
AT(hipmm_serve_get_message, struct_size, 0);
AT(hipmm_serve_get_message, name, 8);
AT(hipmm_serve_get_message, index, 16);
AT(hipmm_serve_get_message, ptr, 24);
AT(hipmm_serve_get_message, bytes, 32);
AT(hipmm_serve_get_message, description, 40);
AT(hipmm_serve_get_message, description_bytes, 48);
AT(hipmm_serve_get_message, n_names, 56);

MAY_GROW(hipmm_serve_put_message, 56);
AT(hipmm_serve_put_message, struct_size, 0);
AT(hipmm_serve_put_message, name, 8);
AT(hipmm_serve_put_message, ptr, 16);
AT(hipmm_serve_put_message, offset, 24);
AT(hipmm_serve_put_message, bytes, 32);
AT(hipmm_serve_put_message, description, 40);
AT(hipmm_serve_put_message, description_bytes, 48);

NEVER_GROWS(hipmm_share_block, 24);
AT(hipmm_share_block, bytes, 0);
AT(hipmm_share_block, offset, 8);
AT(hipmm_share_block, n_parts, 16);

NEVER_GROWS(hipmm_share_part, 16);
AT(hipmm_share_part, bytes, 0);
AT(hipmm_share_part, fd, 8);
AT(hipmm_share_part, unused, 12);

NEVER_GROWS(hipmm_share_pointer, 80);
AT(hipmm_share_pointer, magic, 0);
AT(hipmm_share_pointer, version, 4);
AT(hipmm_share_pointer, struct_size, 6);
AT(hipmm_share_pointer, bytes, 8);
AT(hipmm_share_pointer, data, 16);

MAY_GROW(hipmm_sharing, 48);
AT(hipmm_sharing, struct_size, 0);
AT(hipmm_sharing, export_fd, 8);
AT(hipmm_sharing, export_pointer, 16);
AT(hipmm_sharing, import_pointer, 24);
AT(hipmm_sharing, import_block, 32);
AT(hipmm_sharing, allocate, 40);

NEVER_GROWS(hipmm_spans, 48);
AT(hipmm_spans, struct_size, 0);
AT(hipmm_spans, create, 8);
AT(hipmm_spans, commit, 16);
AT(hipmm_spans, decommit, 24);
AT(hipmm_spans, destroy, 32);
AT(hipmm_spans, find, 40);

NEVER_GROWS(hipmm_statistics, 48);
AT(hipmm_statistics, current_bytes, 0);
AT(hipmm_statistics, current_count, 8);
AT(hipmm_statistics, peak_bytes, 16);
AT(hipmm_statistics, peak_count, 24);
AT(hipmm_statistics, total_bytes, 32);
AT(hipmm_statistics, total_count, 40);

ENUM(hipmm_status);

NEVER_GROWS(hipmm_strings, 16);
AT(hipmm_strings, count, 0);
AT(hipmm_strings, items, 8);

NEVER_GROWS(hipmm_torch_pool, 16);
AT(hipmm_torch_pool, first, 0);
AT(hipmm_torch_pool, second, 8);

MAY_GROW(hipmm_validation, 72);
AT(hipmm_validation, struct_size, 0);
AT(hipmm_validation, error, 8);
AT(hipmm_validation, warn, 16);
AT(hipmm_validation, is_unknown, 24);
AT(hipmm_validation, upstream, 32);
AT(hipmm_validation, is_device_memory, 40);
AT(hipmm_validation, bytes_of, 48);
AT(hipmm_validation, same_as, 56);
AT(hipmm_validation, has_device_memory, 64);

MAY_GROW(hipmm_value, 48);
AT(hipmm_value, struct_size, 0);
AT(hipmm_value, name, 8);
AT(hipmm_value, unit, 16);
AT(hipmm_value, doc, 24);
AT(hipmm_value, value, 32);
AT(hipmm_value, is_known, 40);
AT(hipmm_value, unused, 44);

NEVER_GROWS(hipmm_vector, 16);
AT(hipmm_vector, buffer, 0);
AT(hipmm_vector, element_bytes, 8);

#endif
