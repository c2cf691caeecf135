/* SPDX-License-Identifier: MIT */
/* The first use of hipmm in a process, in a child for each step: plugins are looked for and loaded, the runtime is
 * opened, threads get their keys. Each allocation of host memory and each call on a file in that fails once; the
 * same call then succeeds. HIPMM_TEST_FAULTS and HIPMM_TEST_SEED: as in sweep.h. */
#include "../support/support.h"
#include "interpose.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char graph[] =
    "{\"runtime\": \"software\", \"resources\": {\"memory\": {\"type\": \"device\"}, "
    "\"pool\": {\"type\": \"pool\", \"upstream\": \"memory\"}, "
    "\"bins\": {\"type\": \"binning\", \"upstream\": \"pool\", \"bins\": [{\"size\": \"64KiB\"}]}, "
    "\"top\": {\"type\": \"tracking\", \"upstream\": \"bins\"}}, \"devices\": {\"default\": \"top\"}}";

struct step {
  enum interpose_kind kind;
  uint64_t nth; /* 0: none */
  int code;
};

/* A call that fails says why, and does not fail twice. 0: as it must be. */
static int try_twice(const char *call, enum hipmm_status status, enum hipmm_status (*again)(void))
{
  if (!status) return 0;
  enum hipmm_status usual = HIPMM_E_OUT_OF_MEMORY;
  const char *message = hipmm_last_error_message();
  if (!interpose_has_failed() || status != usual || !strstr(message, "host memory")) {
    fprintf(stderr, "%s (%s): %s: %s\n", call, interpose_failed_call(), hipmm_status_string(status), message);
    return 1;
  }
  if (!again()) return 0;
  fprintf(stderr, "%s, tried again: %s\n", call, hipmm_last_error_message());
  return 1;
}

static enum hipmm_status initialise(void)
{
  return hipmm_init_from_string(graph);
}

static struct hipmm_resource *resource;

static enum hipmm_status build(void)
{
  return hipmm_resource_get_for_device(0, &resource);
}

static void *block;

static enum hipmm_status allocate(void)
{
  return hipmm_allocate(resource, 100000, NULL, &block);
}

/* In the child. Prints the number of steps. */
static int use_first(const void *argument)
{
  const struct step *step = argument;
  interpose_begin(step->kind, step->nth, step->code);
  int failures = try_twice("hipmm_init_from_string", initialise(), initialise);
  if (!failures) failures = try_twice("hipmm_resource_get_for_device", build(), build);
  if (!failures) failures = try_twice("hipmm_allocate", allocate(), allocate);
  if (!failures && hipmm_deallocate(resource, block, 100000, NULL)) failures++;
  printf("%llu", (unsigned long long)interpose_end());
  if (failures) return 1;
  hipmm_resource_release(resource);
  return hipmm_finalize() || live_on_all_devices();
}

static void sweep(struct step step)
{
  uint64_t seed = number_from_environment("HIPMM_TEST_SEED", 0),
           most = number_from_environment("HIPMM_TEST_FAULTS", 80);
  struct outcome clean = run_forked(use_first, &step);
  uint64_t count = strtoull(clean.out, NULL, 10), stride = (count + most - 1) / most;
  assert_int_equal(clean.status, 0);
  assert_true(count);
  unsigned failures = 0;
  for (step.nth = 1 + seed % stride; step.nth <= count; step.nth += stride) {
    struct outcome outcome = run_forked(use_first, &step);
    if (!outcome.status) continue;
    print_error("step %llu of %llu: status %d: %s\n", (unsigned long long)step.nth, (unsigned long long)count,
                outcome.status, outcome.error);
    failures++;
  }
  assert_int_equal(failures, 0);
}

static void lacks_memory_once(void **state)
{
  (void)state;
  sweep((struct step){.kind = INTERPOSE_MEMORY, .code = ENOMEM});
}

static void is_interrupted_once(void **state)
{
  (void)state;
  sweep((struct step){.kind = INTERPOSE_FILES, .code = EINTR});
}

static void reads_less_than_asked_for_once(void **state)
{
  (void)state;
  sweep((struct step){.kind = INTERPOSE_FILES, .code = INTERPOSE_SHORT});
}

/* The software device is left out, and so has to be there. */
static bool load_software(void)
{
  char file[4096];
  snprintf(file, sizeof file, "%s/plugins/runtimes/software/.libs/software.so", getenv("top_builddir"));
  bool is_loaded = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  interpose_prepare();
  return is_loaded;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(lacks_memory_once),
      cmocka_unit_test(is_interrupted_once),
      cmocka_unit_test(reads_less_than_asked_for_once),
  };
  log_to_file("error");
  if (!load_software()) {
    printf("1..0 # SKIP the software device is not a library of its own\n");
    return 0;
  }
  return cmocka_run_group_tests_name("first use", tests, NULL, NULL);
}
