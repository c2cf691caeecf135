/* SPDX-License-Identifier: MIT */
/* mapping.c: the tables of reservations and of mappings in them, by address. Called by spans, by queries, and by
 * virtual.c, which changes the tables. */
#include "virtual.h"

struct software_reservation *software_reservation_at(uintptr_t address)
{
  return (struct software_reservation *)key_tree_holding(software.reservations, address);
}

struct software_mapping *software_mapping_at(uintptr_t address)
{
  return (struct software_mapping *)key_tree_holding(software.mappings, address);
}

bool software_virtual_is_reserved(uintptr_t start)
{
  return software_reservation_at(start);
}

bool software_virtual_allows(uintptr_t start, size_t bytes, bool is_write, int device, uint64_t sequence)
{
  uint8_t needed = is_write ? hipMemAccessFlagsProtReadWrite : hipMemAccessFlagsProtRead;
  const struct software_reservation *reservation = software_reservation_at(start);
  if (!reservation || bytes > reservation->by_address.minor - (start - reservation->by_address.major)) return false;
  for (uintptr_t at = start; at < start + bytes;) {
    const struct software_mapping *mapping = software_mapping_at(at);
    if (!mapping || mapping->sequence >= sequence || (mapping->access[device] & needed) != needed) return false;
    at = mapping->by_address.major + mapping->by_address.minor;
  }
  return true;
}

void software_virtual_pin(uintptr_t start, int change)
{
  struct software_reservation *reservation = software_reservation_at(start);
  if (reservation) reservation->busy += (unsigned)change;
}

struct software_heap *software_physical_heap(const struct software_physical *physical)
{
  return physical->is_host ? &software.host_heap : &software.devices[physical->device].heap;
}

int software_physical_file(const struct software_physical *physical)
{
  bool has_own = physical->file.fd > 0;
  return software_file_descriptor(has_own ? &physical->file : &software_physical_heap(physical)->file);
}

bool software_virtual_locate(uintptr_t address, struct software_file_range *range_out)
{
  const struct software_mapping *mapping = software_mapping_at(address);
  if (!mapping) return false;
  size_t before = address - mapping->by_address.major;
  *range_out = (struct software_file_range){software_physical_file(mapping->physical),
                                            mapping->physical->offset + before, mapping->by_address.minor - before};
  return true;
}

bool software_virtual_device(const void *pointer, int *device_out, bool *is_host_out)
{
  const struct software_mapping *mapping = software_mapping_at((uintptr_t)pointer);
  if (mapping) *device_out = mapping->physical->device;
  if (mapping) *is_host_out = mapping->physical->is_host;
  return mapping;
}
