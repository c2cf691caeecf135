/* SPDX-License-Identifier: MIT */
/* runtime.c: the helpers of runtime.h. */
#include "runtime.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fake_cuda *fake;
void (*set_current)(CUcontext context);
CUcontext (*current)(void);
enum hipmm_status failed_status;
char failed_option[64], failed_text[1024], logged_text[1024];

const char *fake_path(const char *name)
{
  static char path[4096];
  const char *build = getenv("top_builddir");
  snprintf(path, sizeof path, "%s/tests/runtimes/nvidia/.libs/%s.so", build ? build : ".", name);
  return path;
}

void open_fake(const char *name)
{
  void *library = dlopen(fake_path(name), RTLD_NOW | RTLD_LOCAL);
  if (!library) fail_msg("%s", dlerror());
  struct fake_cuda *(*find)(void);
  void *symbol = dlsym(library, "fake_cuda");
  memcpy(&find, &symbol, sizeof symbol);
  symbol = dlsym(library, "fake_cuda_set_current");
  memcpy(&set_current, &symbol, sizeof symbol);
  symbol = dlsym(library, "fake_cuda_current");
  memcpy(&current, &symbol, sizeof symbol);
  fake = find();
}

static enum hipmm_status service_fail(const struct hipmm_services *services, enum hipmm_status status,
                                      const char *option, const char *format, ...)
{
  (void)services;
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(failed_text, sizeof failed_text, format, arguments);
  va_end(arguments);
  snprintf(failed_option, sizeof failed_option, "%s", option ? option : "");
  failed_status = status;
  return status;
}

static void service_log(const struct hipmm_services *services, enum hipmm_log_level level, const char *format, ...)
{
  (void)services;
  (void)level;
  va_list arguments;
  va_start(arguments, format);
  size_t used = strlen(logged_text);
  vsnprintf(logged_text + used, sizeof logged_text - used, format, arguments);
  va_end(arguments);
}

enum hipmm_status create_runtime(const char *library)
{
  static const struct hipmm_services services = {
      .struct_size = sizeof services, .name = "nvidia", .device = -1, .fail = service_fail, .log = service_log};
  struct {
    const char *library;
  } options = {library};
  void *self = NULL;
  assert_int_equal(nvidia_LTX_hipmm_plugin.options_bytes, sizeof options);
  failed_status = HIPMM_OK;
  *failed_option = *failed_text = *logged_text = '\0';
  return nvidia_LTX_hipmm_plugin.create(&services, &options, NULL, 0, &self);
}

int start_runtime(void **state)
{
  (void)state;
  open_fake("fake_cuda");
  enum hipmm_status status = create_runtime(fake_path("fake_cuda"));
  if (status) print_error("%s\n", failed_text);
  return status;
}

int start_test(void **state)
{
  (void)state;
  set_current(POINTER(FAKE_CONTEXT(0)));
  fake->fails = NULL;
  fake->calls = 0;
  memset(&fake->last, 0, sizeof fake->last);
  hipGetLastError();
  return 0;
}

void check_called(const char *name, const uint64_t *arguments, const char *file, int line)
{
  if (fake->calls != 1 || strcmp(fake->last.name, name) != 0) {
    print_error("%u calls of the driver, the last to %s instead of once to %s\n", fake->calls,
                fake->last.name ? fake->last.name : "nothing", name);
    _fail(file, line);
  }
  for (int i = 0; i < FAKE_ARGUMENTS; i++) {
    if (fake->last.arguments[i] == arguments[i]) continue;
    print_error("argument %d of %s is %#llx instead of %#llx\n", i, name, (unsigned long long)fake->last.arguments[i],
                (unsigned long long)arguments[i]);
    _fail(file, line);
  }
  fake->calls = 0;
}
