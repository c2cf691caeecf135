/* SPDX-License-Identifier: MIT */
/* configure.c: the state of the whole device, the configuration in force, and starting afresh. Called by software.c
 * for the graph's options, and by tests. It never changes anything while memory is still allocated, save when a test
 * asks to reset everything. */
#include "internal.h"
#include <stdio.h>
#include <stdlib.h>

const struct software_config software_defaults = {.devices = 1,
                                                  .memory_bytes = (size_t)16 << 30,
                                                  .host_memory_bytes = (size_t)64 << 30,
                                                  .scheduler = SOFTWARE_THREADS,
                                                  .virtual_memory = true,
                                                  .memory_pools = true,
                                                  .managed_memory = true,
                                                  .peer_group = SOFTWARE_MAX_DEVICES,
                                                  .granularity_bytes = (size_t)2 << 20};

struct software_state software = {.lock = PTHREAD_MUTEX_INITIALIZER,
                                  .progress = PTHREAD_COND_INITIALIZER,
                                  .n_devices = 1,
                                  .host_heap = {.device = -1}};

/* What is wrong with HIPMM_SOFTWARE. */
static char configure_wrong[160];
static atomic_bool configure_is_wrong, configure_said;

static void configure_from_environment(void)
{
  const char *text = secure_getenv("HIPMM_SOFTWARE");
  if (!text) return;
  bool is_read = software_read_environment(text, &software.config, configure_wrong, sizeof configure_wrong);
  atomic_store(&configure_is_wrong, !is_read);
  atomic_store(&software.n_devices, software.config.devices);
  software_stepped_seed(software.config.seed);
}

/* A program that asked for another device than the initial one must not be given that in silence. */
bool software_is_misconfigured(void)
{
  if (!atomic_load_explicit(&configure_is_wrong, memory_order_relaxed)) return false;
  if (!atomic_exchange(&configure_said, true))
    fprintf(stderr,
            "hipmm software device: HIPMM_SOFTWARE: \"%s\" is not a setting with a valid value, so all calls fail; see "
            "`hipmm describe software`\n",
            configure_wrong);
  return true;
}

void software_initialise(void)
{
  software.config = software_defaults;
  configure_from_environment();
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++) {
    software.devices[device].heap.device = device;
    software_settings_reset(device);
  }
}

static void configure_drop(struct software_allocation *allocation)
{
  if (allocation->kind == SOFTWARE_POOLED) {
    software_pool_free(allocation);
  } else {
    software_pool_forget(allocation);
    software_allocation_destroy(allocation);
  }
}

/* Drops the allocations of a device, -1 for all. Goes by address, since to drop one may let go of the lock. */
static void configure_drop_allocations(int device)
{
  const struct address_tree_node *node;
  for (uintptr_t at = 0; (node = address_tree_at_least(software.allocations, at, 0));) {
    struct software_allocation *allocation = (struct software_allocation *)node;
    at = node->major + 1;
    if (device < 0 || allocation->device == device) configure_drop(allocation);
  }
}

static void configure_clear_device(int device)
{
  software_pools_reset(device);
  software_heap_close(&software.devices[device].heap);
  software.devices[device].faults = 0;
  software.devices[device].fault = hipSuccess;
  for (int peer = 0; peer < SOFTWARE_MAX_DEVICES; peer++)
    software.devices[device].peers[peer] = software.devices[peer].peers[device] = false;
  software_settings_reset(device);
}

void software_reset_device(int device)
{
  software_wait_device(device, software.sequence);
  software_streams_reset(device);
  software_events_reset(device);
  configure_drop_allocations(device);
  software_virtual_reset(device);
  configure_clear_device(device);
}

static void configure_reset(void)
{
  software_wait_device(-1, software.sequence);
  software_streams_reset(-1);
  software_events_reset(-1);
  configure_drop_allocations(-1);
  software_virtual_reset(-1);
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++) configure_clear_device(device);
  software_heap_close(&software.host_heap);
}

static bool configure_is_idle(void)
{
  for (int device = 0; device < SOFTWARE_MAX_DEVICES; device++)
    if (software.devices[device].live_count > 0) return false;
  return !software_virtual_has_reservations();
}

static bool configure_is_same(const struct software_config *one, const struct software_config *other)
{
  return one->devices == other->devices && one->memory_bytes == other->memory_bytes &&
         one->host_memory_bytes == other->host_memory_bytes && one->scheduler == other->scheduler &&
         one->seed == other->seed && one->virtual_memory == other->virtual_memory &&
         one->memory_pools == other->memory_pools && one->managed_memory == other->managed_memory &&
         one->pageable_memory_access == other->pageable_memory_access && one->closed == other->closed &&
         one->peer_group == other->peer_group && one->granularity_bytes == other->granularity_bytes;
}

/* The configuration in force may be asked for again at any time: memory that is still allocated stays. */
bool software_configure(const struct software_config *config)
{
  software_prepare();
  pthread_mutex_lock(&software.lock);
  bool is_idle = configure_is_idle(), is_same = configure_is_same(config, &software.config);
  if (is_idle) {
    configure_reset();
    software.config = *config;
    atomic_store(&software.n_devices, config->devices);
    atomic_store(&configure_is_wrong, false);
    software_stepped_seed(config->seed);
  }
  pthread_mutex_unlock(&software.lock);
  return is_idle || is_same;
}

void hipmm_software_reset(void)
{
  software_prepare();
  pthread_mutex_lock(&software.lock);
  configure_reset();
  software_stepped_seed(software.config.seed);
  pthread_mutex_unlock(&software.lock);
  hipmm_software_fail_none();
  hipmm_software_reset_calls();
}
