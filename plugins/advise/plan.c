/* SPDX-License-Identifier: MIT */
/* plan.c: see plan.h. */
#include "plan.h"
#include "../../core/base/text.h"
#include "../common/memory_hint.h"

#include <stdio.h>
#include <string.h>

static void plan_validate_place(const struct hipmm_validation *validation, const char *option, const char *text)
{
  int device;
  if (strcmp(text, "cpu") != 0 && strcmp(text, "device") != 0 && !text_parse_ordinal(text, &device))
    validation->error(validation, option,
                      "\"%.50s\" is not a place; write \"device\", \"cpu\", or a device's number such as \"0\"", text);
}

void plan_validate(const struct hipmm_validation *validation, const struct plan_options *options)
{
  if (options->preferred_location) plan_validate_place(validation, "preferred_location", options->preferred_location);
  for (size_t i = 0; i < options->accessed_by.count; i++) {
    char option[40]; /* with the index, as a JSON pointer */
    snprintf(option, sizeof option, "accessed_by/%zu", i);
    plan_validate_place(validation, option, options->accessed_by.items[i]);
  }
  if (!options->read_mostly && !options->coarse_grain && !options->preferred_location && !options->accessed_by.count)
    validation->warn(validation, NULL,
                     "sets no advice; set read_mostly, preferred_location, accessed_by or coarse_grain");
}

static enum hipmm_status plan_check_device(const struct hipmm_services *services, const char *option, int device,
                                           bool is_on)
{
  int count = 0, code = services->hip->GetDeviceCount(&count);
  if (code) return services->refuse_hip(services, "hipGetDeviceCount", code, 0);
  if (device >= count)
    return services->fail(services, HIPMM_E_CONFIG, option, "there is no device %d; there are %d, numbered from 0",
                          device, count);
  bool can = true;
  enum hipmm_status status = is_on ? memory_hint_device_can(services, device, &can) : HIPMM_OK;
  if (!status && !can)
    return services->fail(services, HIPMM_E_NOT_SUPPORTED, option,
                          "device %d cannot access managed memory concurrently with other processors "
                          "(hipDeviceAttributeConcurrentManagedAccess is 0); leave it out",
                          device);
  return status;
}

/* The text is a place: plan_validate() has refused all others. */
static enum hipmm_status plan_read_place(const struct hipmm_services *services, const char *option, const char *text,
                                         bool is_on, int *device_out)
{
  int device = services->device;
  if (!strcmp(text, "cpu"))
    device = HIPMM_HIP_CPU_DEVICE;
  else if (text_parse_ordinal(text, &device)) {
    enum hipmm_status status = plan_check_device(services, option, device, is_on);
    if (status) return status;
  }
  *device_out = device;
  return HIPMM_OK;
}

static void plan_add(struct plan *plan, int advice, int device)
{
  plan->steps[plan->count++] = (struct plan_step){advice, device};
}

static enum hipmm_status plan_add_place(const struct hipmm_services *services, struct plan *plan, int advice,
                                        const char *option, const char *text, bool is_on)
{
  int device;
  enum hipmm_status status = plan_read_place(services, option, text, is_on, &device);
  if (!status) plan_add(plan, advice, device);
  return status;
}

static enum hipmm_status plan_fill(const struct hipmm_services *services, const struct plan_options *options,
                                   bool is_on, struct plan *plan)
{
  enum hipmm_status status = HIPMM_OK;
  if (options->coarse_grain) plan_add(plan, HIPMM_HIP_ADVISE_COARSE_GRAIN, services->device);
  if (options->read_mostly) plan_add(plan, HIPMM_HIP_ADVISE_READ_MOSTLY, services->device);
  if (options->preferred_location)
    status = plan_add_place(services, plan, HIPMM_HIP_ADVISE_PREFERRED_LOCATION, "preferred_location",
                            options->preferred_location, is_on);
  for (size_t i = 0; !status && i < options->accessed_by.count; i++) {
    char option[40]; /* with the index, as a JSON pointer */
    snprintf(option, sizeof option, "accessed_by/%zu", i);
    status = plan_add_place(services, plan, HIPMM_HIP_ADVISE_ACCESSED_BY, option, options->accessed_by.items[i], is_on);
  }
  return status;
}

enum hipmm_status plan_make(const struct hipmm_services *services, const struct plan_options *options, bool is_on,
                            struct plan **plan_out)
{
  size_t most = 3 + options->accessed_by.count, bytes = sizeof(struct plan) + most * sizeof(struct plan_step);
  struct plan *plan = services->host_allocate(services, bytes);
  if (!plan) return services->fail(services, HIPMM_E_OUT_OF_MEMORY, NULL, "no host memory for the resource itself");
  plan->bytes = bytes;
  enum hipmm_status status = plan_fill(services, options, is_on, plan);
  if (status)
    plan_free(services, plan);
  else
    *plan_out = plan;
  return status;
}

static bool plan_has_step(const struct plan *plan, struct plan_step step)
{
  for (size_t i = 0; i < plan->count; i++)
    if (plan->steps[i].advice == step.advice && plan->steps[i].device == step.device) return true;
  return false;
}

static void plan_add_all(struct plan *plan, const struct plan *other)
{
  for (size_t i = 0; i < other->count; i++)
    if (!plan_has_step(plan, other->steps[i])) plan->steps[plan->count++] = other->steps[i];
}

struct plan *plan_join(const struct hipmm_services *services, const struct plan *first, const struct plan *second)
{
  size_t bytes = sizeof(struct plan) + (first->count + second->count + 1) * sizeof(struct plan_step);
  struct plan *plan = services->host_allocate(services, bytes);
  if (!plan) return NULL;
  plan->bytes = bytes;
  plan_add_all(plan, first);
  plan_add_all(plan, second);
  return plan;
}

void plan_free(const struct hipmm_services *services, struct plan *plan)
{
  services->host_free(services, plan, plan->bytes);
}
