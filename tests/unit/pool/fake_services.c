/* SPDX-License-Identifier: MIT */
/* fake_services.c: services that count what they lend. */
#include "fake.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

static const char *first_mistake;
static int64_t host_bytes;
static int entered;
static unsigned fail_host_allocation;

void fake_note_mistake(const char *mistake)
{
  if (!first_mistake) first_mistake = mistake;
}

static enum hipmm_status fail(const struct hipmm_services *services, enum hipmm_status status, const char *option,
                              const char *format, ...)
{
  (void)services, (void)option, (void)format;
  return status;
}

static enum hipmm_status refuse(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                                uint64_t first, uint64_t second, uint64_t third)
{
  (void)services, (void)text, (void)first, (void)second, (void)third;
  return status;
}

static enum hipmm_status explain(const struct hipmm_services *services, enum hipmm_status status, const char *text,
                                 uint64_t first, uint64_t second, uint64_t third, uint64_t fourth)
{
  (void)services, (void)text, (void)first, (void)second, (void)third, (void)fourth;
  return status;
}

static enum hipmm_status refuse_hip(const struct hipmm_services *services, const char *call, int code, size_t bytes)
{
  (void)call, (void)bytes;
  services->hip->GetLastError();
  return code == HIPMM_HIP_ERROR_OUT_OF_MEMORY ? HIPMM_E_OUT_OF_MEMORY : HIPMM_E_HIP;
}

static void say_nothing(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
{
  (void)services, (void)level, (void)format;
}

/* Committed on touch, as the core's is: the pool asks for far more than it uses. */
static void *host_allocate(const struct hipmm_services *services, size_t bytes)
{
  (void)services;
  if (fail_host_allocation && !--fail_host_allocation) return NULL;
  void *ptr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (ptr == MAP_FAILED) return NULL;
  host_bytes += (int64_t)bytes;
  return ptr;
}

static void host_free(const struct hipmm_services *services, void *ptr, size_t bytes)
{
  (void)services;
  if (!ptr) return;
  if (munmap(ptr, bytes)) fake_note_mistake("host memory is freed with another size");
  host_bytes -= (int64_t)bytes;
}

static int enter_device(const struct hipmm_services *services)
{
  (void)services;
  return 100 + entered++;
}

static void leave_device(const struct hipmm_services *services, int previous)
{
  (void)services;
  if (previous != 100 + --entered) fake_note_mistake("a device is left that was not entered");
}

static enum hipmm_reclaim_level go_all_the_way(const struct hipmm_services *services, enum hipmm_status status)
{
  (void)services, (void)status;
  return HIPMM_RECLAIM_ALL;
}

static enum hipmm_status may_wait(const struct hipmm_services *services)
{
  (void)services;
  return HIPMM_OK;
}

static void place_anywhere(const struct hipmm_services *services, const void *ptr, int64_t bytes)
{
  (void)services, (void)ptr, (void)bytes;
}

static const struct hipmm_services services = {.struct_size = sizeof services,
                                               .name = "fake",
                                               .hip = &fake_hip,
                                               .fail = fail,
                                               .refuse = refuse,
                                               .explain = explain,
                                               .refuse_hip = refuse_hip,
                                               .log = say_nothing,
                                               .host_allocate = host_allocate,
                                               .host_free = host_free,
                                               .enter_device = enter_device,
                                               .leave_device = leave_device,
                                               .reclaim_level = go_all_the_way,
                                               .check_wait = may_wait,
                                               .place = place_anywhere};

void fake_fail_host_allocation(unsigned nth)
{
  fail_host_allocation = nth;
}

const struct hipmm_services *fake_begin(void)
{
  first_mistake = NULL;
  host_bytes = 0;
  entered = 0;
  fail_host_allocation = 0;
  fake_hip_begin();
  fake_upstream_begin();
  return &services;
}

int fake_end(void)
{
  if (host_bytes) fake_note_mistake("host memory is lost");
  if (entered) fake_note_mistake("the device is still entered");
  fake_hip_end();
  fake_upstream_end();
  if (first_mistake) fprintf(stderr, "%s\n", first_mistake);
  return first_mistake ? -1 : 0;
}

int64_t fake_query(const struct hipmm_plugin *plugin, void *resource, const char *name)
{
  int64_t value = -1;
  for (uint32_t i = 0; i < plugin->n_values; i++)
    if (!strcmp(plugin->values[i].name, name) && plugin->ops->query(resource, i, &value))
      fake_note_mistake("a value cannot be told");
  return value;
}
