/* SPDX-License-Identifier: MIT */
/* device_wait.h: waits for a device before memory goes back for good. Called by the destroy of sources and
 * sub-allocators; the device is current. */
#ifndef HIPMM_PLUGINS_COMMON_DEVICE_WAIT_H
#define HIPMM_PLUGINS_COMMON_DEVICE_WAIT_H

#include <hipmm/plugin.h>

/* Waits before memory is released unconditionally. Waits once more after a failure: no later call could. A broken device
 * releases its memory too. */
static inline void device_wait_at_end(const struct hipmm_services *services)
{
  if (services->hip->DeviceSynchronize() && services->hip->DeviceSynchronize()) services->hip->GetLastError();
}

#endif
