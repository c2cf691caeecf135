/* SPDX-License-Identifier: MIT */
/* test_configure.c: the descriptor, its options coming into force, what is refused, and resetting. */
#include "device.h"
#include <stdio.h>

extern const struct hipmm_plugin software_LTX_hipmm_plugin;

/* The struct that the core fills by the option table, with the offsets of the table. */
union options {
  char bytes[512];
  uint64_t aligned;
};

static char failure[512], failed_option[32];

__attribute__((format(printf, 4, 5))) static enum hipmm_status keep_failure(const struct hipmm_services *services,
                                                                            enum hipmm_status status,
                                                                            const char *option, const char *format, ...)
{
  va_list arguments;
  (void)services;
  va_start(arguments, format);
  vsnprintf(failure, sizeof failure, format, arguments);
  va_end(arguments);
  snprintf(failed_option, sizeof failed_option, "%s", option ? option : "");
  return status;
}

static const struct hipmm_option *find_option(const char *name)
{
  for (uint32_t i = 0; i < software_LTX_hipmm_plugin.n_options; i++)
    if (strcmp(software_LTX_hipmm_plugin.options[i].name, name) == 0) return &software_LTX_hipmm_plugin.options[i];
  fail_msg("no option %s", name);
  return NULL;
}

static void put(union options *options, const char *name, const void *value, size_t bytes)
{
  memcpy(options->bytes + find_option(name)->offset, value, bytes);
}

static union options usual_options(void)
{
  union options options = {{0}};
  put(&options, "devices", &(int64_t){3}, 8);
  put(&options, "memory", &(uint64_t){32 * MIB + 5}, 8);
  put(&options, "host_memory", &(uint64_t){16 * MIB + 5}, 8);
  put(&options, "scheduler", &(uint32_t){1}, 4);
  put(&options, "seed", &(int64_t){9}, 8);
  put(&options, "virtual_memory", &(uint32_t){1}, 4);
  put(&options, "managed_memory", &(uint32_t){1}, 4);
  put(&options, "granularity", &(uint64_t){65536}, 8);
  return options;
}

static void keep_error(const struct hipmm_validation *validation, const char *option, const char *format, ...)
{
  va_list arguments;
  (void)validation;
  va_start(arguments, format);
  vsnprintf(failure, sizeof failure, format, arguments);
  va_end(arguments);
  snprintf(failed_option, sizeof failed_option, "%s", option);
}

/* As the core does: creates what is valid. */
static enum hipmm_status create(const union options *options)
{
  void *self = NULL;
  const struct hipmm_validation validation = {.struct_size = sizeof validation, .error = keep_error};
  struct hipmm_services services = {.struct_size = sizeof services, .device = -1, .fail = keep_failure};
  failure[0] = failed_option[0] = '\0';
  software_LTX_hipmm_plugin.validate(&validation, options);
  if (failure[0]) return HIPMM_E_CONFIG;
  enum hipmm_status status = software_LTX_hipmm_plugin.create(&services, options, NULL, 0, &self);
  assert_true((status == HIPMM_OK) == (self != NULL));
  return status;
}

static void the_descriptor_is_that_of_a_runtime(void **state)
{
  (void)state;
  const struct hipmm_plugin *plugin = &software_LTX_hipmm_plugin;
  assert_int_equal(plugin->abi_version, HIPMM_PLUGIN_ABI);
  assert_int_equal(plugin->role, HIPMM_ROLE_RUNTIME);
  assert_string_equal(plugin->type, "software");
  assert_null(plugin->ops);
  assert_null(plugin->destroy);
  assert_true(plugin->options_bytes <= sizeof(union options));
  for (uint32_t i = 0; i < plugin->n_options; i++) {
    const struct hipmm_option *option = &plugin->options[i];
    assert_true(option->offset < plugin->options_bytes);
    assert_non_null(option->doc);
    assert_true(option->initial || option->type == HIPMM_OPTION_STRINGS);
  }
}

static void options_come_into_force(void **state)
{
  (void)state;
  union options options = usual_options();
  size_t bytes, granularity;
  int count;
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 2}};
  assert_int_equal(create(&options), HIPMM_OK);
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 3);
  assert_ok(hipDeviceTotalMem(&bytes, 2));
  assert_int_equal(bytes, 32 * MIB);
  assert_ok(hipMemGetAllocationGranularity(&granularity, &properties, hipMemAllocationGranularityMinimum));
  assert_int_equal(granularity, 65536);
  assert_int_equal(software.config.host_memory_bytes, 16 * MIB);
  assert_int_equal(software.config.scheduler, SOFTWARE_STEPPED);
  assert_int_equal(software.config.seed, 9);
  assert_false(software.config.memory_pools);
}

static void failures_on_schedule_come_into_force(void **state)
{
  (void)state;
  union options options = usual_options();
  const char *const items[] = {"hipMalloc:2", "hipFree:1:hipErrorNotReady", "hipEventCreate:1:700"};
  put(&options, "fail", &(struct hipmm_strings){3, items}, sizeof(struct hipmm_strings));
  void *memory, *refused;
  hipEvent_t event;
  assert_int_equal(create(&options), HIPMM_OK);
  assert_ok(hipMalloc(&memory, 10));
  assert_hip(hipMalloc(&refused, 10), hipErrorOutOfMemory);
  assert_hip(hipFree(memory), hipErrorNotReady);
  assert_ok(hipFree(memory));
  assert_hip(hipEventCreate(&event), hipErrorIllegalAddress);
}

static void failures_that_make_no_sense_are_refused(void **state)
{
  (void)state;
  const char *const wrong[] = {"",
                               "hipMalloc",
                               "hipMalloc:",
                               "hipMalloc:0",
                               "hipMalloc:-1",
                               "hipMalloc:x",
                               "hipMalloc:3x",
                               "hipMalloc:99999999999999999999999",
                               "malloc:3",
                               "hipMalloc:3:",
                               "hipMalloc:3:hipErrorNo",
                               "hipMalloc:3:0",
                               ":3",
                               "hipAVeryLongNameThatNoFunctionOfHipHasOrWillEverHaveBecauseItIsTooLong:3"};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    union options options = usual_options();
    const char *const items[] = {"hipFree:1", wrong[i]};
    char quoted[128];
    put(&options, "fail", &(struct hipmm_strings){2, items}, sizeof(struct hipmm_strings));
    assert_int_equal(create(&options), HIPMM_E_CONFIG);
    assert_string_equal(failed_option, "fail");
    snprintf(quoted, sizeof quoted, "\"%s\" is not", wrong[i]);
    assert_non_null(strstr(failure, quoted));
    assert_ok(hipFree(NULL)); /* the sound one before it was not kept */
  }
}

static void an_uneven_granularity_is_refused(void **state)
{
  (void)state;
  union options options = usual_options();
  put(&options, "granularity", &(uint64_t){3 * 4096}, 8);
  assert_int_equal(create(&options), HIPMM_E_CONFIG);
  assert_string_equal(failed_option, "granularity");
  assert_non_null(strstr(failure, "12288"));
}

static void settings_are_read_as_text(void **state)
{
  (void)state;
  struct software_config config;
  char wrong[64];
  assert_true(software_options_read("devices=3,memory=1.5GiB,scheduler=stepped,seed=-7,host_access=false,"
                                    "granularity=4096,fail=hipMalloc:1;hipFree:2:hipErrorUnknown",
                                    &config, wrong, sizeof wrong));
  assert_int_equal(config.devices, 3);
  assert_int_equal(config.memory_bytes, (size_t)3 << 29);
  assert_int_equal(config.scheduler, SOFTWARE_STEPPED);
  assert_int_equal(config.seed, (uint64_t)-7);
  assert_true(config.no_host_access);
  assert_int_equal(config.granularity_bytes, 4096);
  assert_true(config.memory_pools);
  void *memory;
  assert_int_equal(hipMalloc(&memory, 100), hipErrorOutOfMemory);
  assert_ok(hipFree(NULL));
  assert_int_equal(hipFree(NULL), hipErrorUnknown);
  assert_true(software_options_read("", &config, wrong, sizeof wrong));
  assert_int_equal(config.devices, software_defaults.devices);
  assert_int_equal(config.memory_bytes, software_defaults.memory_bytes);
  assert_int_equal(config.granularity_bytes, software_defaults.granularity_bytes);
}

static void wrong_settings_are_named(void **state)
{
  (void)state;
  static const struct {
    const char *text, *wrong;
  } rows[] = {{"devices", "devices"},
              {"memory=1GiB,=2", "=2"},
              {"seed=1,,", ""},
              {"devises=2", "devises=2"},
              {"devices=0", "devices=0"},
              {"devices=65", "devices=65"},
              {"devices=2x", "devices=2x"},
              {"devices=", "devices="},
              {"devices=99999999999999999999", "devices=99999999999999999999"},
              {"memory=50%", "memory=50%"},
              {"memory=1KiB", "memory=1KiB"},
              {"memory=1EiB", "memory=1EiB"},
              {"scheduler=later", "scheduler=later"},
              {"memory_pools=yes", "memory_pools=yes"},
              {"granularity=12KiB", "granularity is no power of two"},
              {"fail=hipMalloc", "fail=hipMalloc"},
              {"fail=hipMalloc:1;hipNothing:1", "fail=hipNothing:1"}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    struct software_config config = {.devices = -1};
    char wrong[64];
    if (software_options_read(rows[i].text, &config, wrong, sizeof wrong)) fail_msg("\"%s\" is read", rows[i].text);
    assert_int_equal(config.devices, -1);
    assert_string_equal(wrong, rows[i].wrong);
  }
  hipmm_software_fail_none();
}

static void reserved_addresses_forbid_another_configuration(void **state)
{
  (void)state;
  union options options = usual_options();
  void *start;
  assert_ok(hipMemAddressReserve(&start, 4 * MIB, 0, NULL, 0));
  assert_int_equal(create(&options), HIPMM_E_STATE);
  assert_ok(hipMemAddressFree(start, 4 * MIB));
  assert_int_equal(create(&options), HIPMM_OK);
}

static void live_memory_forbids_another_configuration(void **state)
{
  (void)state;
  union options options = usual_options();
  char *memory = allocate(100);
  int count;
  assert_int_equal(create(&options), HIPMM_E_STATE);
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 2);
  assert_ok(hipFree(memory));
  assert_int_equal(create(&options), HIPMM_OK);
  assert_ok(hipGetDeviceCount(&count));
  assert_int_equal(count, 3);
}

/* The first graph of `hipmm run` configures the device that the program has used already. */
static void the_same_configuration_keeps_what_the_program_has(void **state)
{
  (void)state;
  union options options = usual_options();
  hipGraph_t graph;
  hipGraphNode_t node;
  hipStream_t stream;
  hipEvent_t event;
  assert_int_equal(create(&options), HIPMM_OK);
  assert_ok(hipGraphCreate(&graph, 0));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipStreamCreate(&stream));
  assert_int_equal(create(&options), HIPMM_OK);
  assert_ok(hipGraphAddEmptyNode(&node, graph, NULL, 0));
  assert_ok(hipEventRecord(event, stream));
  assert_ok(hipEventSynchronize(event));
  assert_ok(hipEventDestroy(event));
  assert_ok(hipStreamDestroy(stream));
  assert_ok(hipGraphDestroy(graph));
}

static void a_current_device_that_is_gone_gives_way_to_the_first(void **state)
{
  (void)state;
  struct software_config config = small_config(SOFTWARE_THREADS);
  int device;
  assert_ok(hipSetDevice(1));
  config.devices = 1;
  assert_true(software_configure(&config));
  assert_ok(hipGetDevice(&device));
  assert_int_equal(device, 0);
  assert_ok(hipFree(allocate(10)));
}

static void a_reset_drops_everything(void **state)
{
  (void)state;
  hipStream_t stream;
  hipEvent_t event;
  void *pooled, *managed, *start;
  uint64_t count;
  size_t free_bytes, total_bytes;
  hipMemGenericAllocationHandle_t handle;
  hipMemAllocationProp properties = {.type = hipMemAllocationTypePinned, .location = {hipMemLocationTypeDevice, 0}};
  char *memory = allocate(MIB);
  assert_ok(hipStreamCreate(&stream));
  assert_ok(hipEventCreate(&event));
  assert_ok(hipMallocAsync(&pooled, MIB, stream));
  assert_ok(hipMallocManaged(&managed, MIB, hipMemAttachGlobal));
  assert_ok(hipMemAddressReserve(&start, 2 * MIB, 0, NULL, 0));
  assert_ok(hipMemCreate(&handle, 2 * MIB, &properties, 0));
  assert_ok(hipMemMap(start, 2 * MIB, 0, handle, 0));
  assert_ok(hipMemsetAsync(memory, 1, MIB, stream));
  assert_true(hipmm_software_fail("hipMalloc", 1, 0));
  hipmm_software_reset();
  assert_int_equal(hipmm_software_calls("hipStreamCreate"), 0);
  assert_int_equal(hipmm_software_pending(), 0);
  assert_true(hipmm_software_live(0, &count, NULL));
  assert_int_equal(count, 0);
  assert_ok(hipMemGetInfo(&free_bytes, &total_bytes));
  assert_int_equal(free_bytes, total_bytes);
  assert_hip(hipStreamDestroy(stream), hipErrorInvalidHandle);
  assert_hip(hipEventDestroy(event), hipErrorInvalidHandle);
  assert_hip(hipMemRelease(handle), hipErrorInvalidValue);
  assert_hip(hipFree(managed), hipErrorInvalidValue);
  assert_hip(hipMemAddressFree(start, 2 * MIB), hipErrorInvalidValue);
  assert_ok(hipFree(allocate(10)));
}

int main(void)
{
  static const struct CMUnitTest tests[] = {
      {"the descriptor is that of a runtime", the_descriptor_is_that_of_a_runtime, start_threads, finish, NULL},
      {"options come into force", options_come_into_force, start_threads, finish, NULL},
      {"failures on schedule come into force", failures_on_schedule_come_into_force, start_threads, finish, NULL},
      {"failures that make no sense are refused", failures_that_make_no_sense_are_refused, start_threads, finish, NULL},
      {"an uneven granularity is refused", an_uneven_granularity_is_refused, start_threads, finish, NULL},
      {"settings are read as text", settings_are_read_as_text, start_threads, finish, NULL},
      {"wrong settings are named", wrong_settings_are_named, start_threads, finish, NULL},
      {"reserved addresses forbid another configuration", reserved_addresses_forbid_another_configuration,
       start_threads, finish, NULL},
      {"live memory forbids another configuration", live_memory_forbids_another_configuration, start_threads, finish,
       NULL},
      {"the same configuration keeps what the program has", the_same_configuration_keeps_what_the_program_has,
       start_threads, finish, NULL},
      {"a current device that is gone gives way to the first", a_current_device_that_is_gone_gives_way_to_the_first,
       start_threads, finish, NULL},
      {"a reset drops everything (threads)", a_reset_drops_everything, start_threads, finish, NULL},
      {"a reset drops everything (stepped)", a_reset_drops_everything, start_stepped, finish, NULL},
  };
  return cmocka_run_group_tests_name("software: configuration", tests, NULL, NULL);
}
