/* SPDX-License-Identifier: MIT */
/* Tests of core/runtime/runtime_library.c and hip.c: which runtime is chosen, and the message if none can be used. A
 * process uses one runtime for its life, so every case runs in a process of its own: this program again, with a graph
 * as its argument. */
#include "../../core/runtime/hip.h"
#include "../support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The process ---- */

/* Initialises with the graph and prints "STATUS RUNTIME DEVICES: MESSAGE"; then with the next one. Success leaves the
 * thread's message as it was. */
static int begin_with(int n, char **graphs)
{
  for (int i = 0; i < n; i++) {
    int devices = 0;
    char before[2048];
    snprintf(before, sizeof before, "%s", hipmm_last_error_message());
    enum hipmm_status status = hipmm_init_from_string(graphs[i]);
    if (!status) status = hipmm_device_count(&devices);
    const char *runtime = hipmm_runtime();
    printf("%d %s %d: %s\n", status, runtime ? runtime : "none", devices,
           strcmp(hipmm_last_error_message(), before) ? hipmm_last_error_message() : "");
    if (!status) hipmm_finalize();
  }
  return 0;
}

/* ---- Libraries ---- */

/* A folder with the AMD libraries of the case and with libraries for paths to runtimes; a folder of plugins without
 * runtimes, "@-plugins"; and one without nvidia, "@-two". */
static char *folder, *no_plugins, *two_plugins;

static void put(const char *from, const char *name)
{
  char *to = path_in(folder, name);
  if (!copy_file(from, to)) fail_msg("%s cannot be copied to %s", from, to);
  free(to);
}

static int make_folders(void **state)
{
  (void)state;
  const char *top = getenv("top_builddir");
  size_t bytes;
  if (mkdir(no_plugins, 0777) || mkdir(two_plugins, 0777)) return -1;
  char *no_device = path_in(top ? top : ".", "tests/bad/.libs/no_device.so");
  char *text = path_in(folder, "text.so"), *nvidia = path_in(no_plugins, "nvidia.so");
  char *software = path_in(no_plugins, "software.so"), *device = path_in(no_plugins, "device.so");
  static const char words[] = "This is a text, and longer than the 64 bytes that the header of an ELF file takes up.\n";
  put(no_device, "no_device.so");
  put(plugin_file("software"), "with_devices.so");
  put(plugin_file("device"), "no_hip.so");
  char *whole = read_file(plugin_file("software"), &bytes), *cut = path_in(folder, "cut.so");
  char *pipe = path_in(folder, "pipe.so");
  if (!whole || !write_file(cut, whole, bytes / 4) || mkfifo(pipe, 0600)) return -1;
  free(whole);
  free(cut);
  free(pipe);
  if (!write_file(text, words, sizeof words - 1) || !copy_file(plugin_file("device"), device)) return -1;
  if (!copy_file(text, nvidia) || !copy_file(text, software)) return -1;
  free(device);
  free(software);
  device = path_in(two_plugins, "device.so");
  software = path_in(two_plugins, "software.so");
  if (!copy_file(plugin_file("device"), device) || !copy_file(plugin_file("software"), software)) return -1;
  free(no_device);
  free(text);
  free(nvidia);
  free(software);
  free(device);
  return 0;
}

static int remove_folders(void **state)
{
  (void)state;
  remove_folder(folder);
  remove_folder(no_plugins);
  remove_folder(two_plugins);
  return 0;
}

/* ---- Cases ---- */

/* "@" in graphs, variables and expectations stands for the folder. */
struct runtime_case {
  const char *name;
  const char *amd;   /* what the folder has as libamdhip64.so.8, .7, .6 and .5 */
  const char *amd_5; /* what it has as .5 instead */
  const char *graph, *then;
  const char *variables[3];
  const char *out, *error;
};

#define WARNING                                                                                     \
  "hipmm: warning: no GPU found, using the software device (HIPMM_RUNTIME=software silences this; " \
  "HIPMM_LOG=info says why)\n"
#define NO_AMD                                                                                         \
  "runtime amd: libamdhip64.so.8, .7, .6 and .5 cannot be loaded; install ROCm's HIP runtime, or add " \
  "its folder to LD_LIBRARY_PATH"

static const struct runtime_case cases[] = {
    {.name = "auto without AMD's library falls to software with a warning",
     .amd = "text.so",
     .graph = "{}",
     .out = "0 software 1: \n",
     .error = WARNING},
    {.name = "auto with AMD's library but no device falls to software with a warning",
     .amd = "no_device.so",
     .graph = "{\"runtime\": \"auto\"}",
     .out = "0 software 1: \n",
     .error = WARNING},
    {.name = "auto takes AMD's library when it has a device, and says nothing",
     .amd = "with_devices.so",
     .graph = "{}",
     .out = "0 amd 1: \n",
     .error = ""},
    {.name = "a library that the program uses already comes first",
     .amd = "no_device.so",
     .amd_5 = "with_devices.so",
     .graph = "{}",
     /* AddressSanitizer wants to be the first library otherwise. */
     .variables = {"LD_PRELOAD=@/libamdhip64.so.5", "ASAN_OPTIONS=verify_asan_link_order=0"},
     .out = "0 amd 1: \n",
     .error = ""},
    {.name = "a library of AMD's that cannot be used is worth a warning",
     .amd = "text.so",
     .graph = "{}",
     .variables = {"HIPMM_PLUGIN_PATH=@-two"},
     .out = "0 software 1: \n",
     .error = WARNING},
    {.name = "auto says why not, when asked",
     .amd = "no_device.so",
     .graph = "{}",
     .variables = {"HIPMM_LOG=info"},
     .out = "0 software 1: \n",
     .error = "hipmm: info: auto: runtime amd: no device (hipGetDeviceCount: hipErrorNoDevice)\n"},
    {.name = "software that is asked for by name gives no warning",
     .amd = "no_device.so",
     .graph = "{\"runtime\": \"software\"}",
     .out = "0 software 1: \n",
     .error = ""},
    {.name = "software takes its options from the graph",
     .graph = "{\"runtime\": {\"type\": \"software\", \"devices\": 3}}",
     .out = "0 software 3: \n",
     .error = ""},
    {.name = "HIPMM_SOFTWARE overrides the graph's options",
     .graph = "{\"runtime\": {\"type\": \"software\", \"devices\": 3}}",
     .variables = {"HIPMM_SOFTWARE=devices=2,memory=1GiB"},
     .out = "0 software 2: \n",
     .error = ""},
    {.name = "HIPMM_SOFTWARE holds when software is fallen to",
     .amd = "text.so",
     .graph = "{}",
     .variables = {"HIPMM_SOFTWARE=devices=4"},
     .out = "0 software 4: \n",
     .error = WARNING},
    {.name = "HIPMM_RUNTIME overrides the graph",
     .amd = "no_device.so",
     .graph = "{\"runtime\": \"amd\"}",
     .variables = {"HIPMM_RUNTIME=software"},
     .out = "0 software 1: \n",
     .error = ""},
    {.name = "an empty HIPMM_RUNTIME is none",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_RUNTIME="},
     .out = "0 software 1: \n",
     .error = ""},
    {.name = "amd without its library says what to install",
     .amd = "text.so",
     .graph = "{\"runtime\": \"amd\"}",
     .out = "-40 none 0: " NO_AMD "\n",
     .error = ""},
    {.name = "amd without a device says so",
     .amd = "no_device.so",
     .graph = "{\"runtime\": \"amd\"}",
     .out = "-40 none 0: runtime amd: no device (hipGetDeviceCount: hipErrorNoDevice)\n",
     .error = ""},
    {.name = "a library's path is a runtime",
     .graph = "{\"runtime\": \"@/with_devices.so\"}",
     .out = "0 @/with_devices.so 1: \n",
     .error = ""},
    {.name = "a library that is no HIP is refused, and what it lacks is named",
     .graph = "{\"runtime\": \"@/no_hip.so\"}",
     .out = "-41 none 0: runtime @/no_hip.so: it does not export hipGetDeviceCount, which hipmm needs\n",
     .error = ""},
    {.name = "a runtime that does not tell its version is refused, since structs depend on it",
     .graph = "{\"runtime\": {\"type\": \"software\", \"fail\": [\"hipRuntimeGetVersion:1\"]}}",
     .out = "-42 none 0: runtime software: hipRuntimeGetVersion failed: hipErrorUnknown\n",
     .error = ""},
    {.name = "a file that is no library is refused",
     .graph = "{\"runtime\": \"@/text.so\"}",
     .out = "-40 none 0: @/text.so: invalid ELF header\n",
     .error = ""},
    {.name = "a pipe is refused, and nobody waits for it",
     .graph = "{\"runtime\": \"@/pipe.so\"}",
     .out = "-20 none 0: @/pipe.so: not a regular file\n",
     .error = ""},
    {.name = "a library that is cut off is refused before the loader reads beyond its end",
     .graph = "{}",
     .variables = {"HIPMM_RUNTIME=@/cut.so"},
     .out = "-20 none 0: HIPMM_RUNTIME: @/cut.so: the file is cut off: ",
     .error = ""},
    {.name = "a missing file is refused",
     .graph = "{}",
     .variables = {"HIPMM_RUNTIME=@/nothing.so"},
     .out = "-40 none 0: HIPMM_RUNTIME: @/nothing.so: cannot open shared object file: No such file or directory\n",
     .error = ""},
    {.name = "a resource type is no runtime",
     .graph = "{}",
     .variables = {"HIPMM_RUNTIME=device"},
     .out = "-12 none 0: HIPMM_RUNTIME: runtime \"device\": ",
     .error = ""},
    {.name = "an unknown word is no runtime",
     .graph = "{}",
     .variables = {"HIPMM_RUNTIME=nonsense"},
     .out = "-20 none 0: HIPMM_RUNTIME: unknown runtime \"nonsense\"; write \"auto\", \"amd\", \"nvidia\", "
            "\"software\" or a library's path\n",
     .error = ""},
    {.name = "a word that is nearly a runtime is told which",
     .graph = "{}",
     .variables = {"HIPMM_RUNTIME=softwar"},
     .out = "-20 none 0: HIPMM_RUNTIME: unknown runtime \"softwar\"; did you mean \"software\"?\n",
     .error = ""},
    {.name = "without any runtime, every reason is told",
     .amd = "text.so",
     .graph = "{}",
     .variables = {"HIPMM_PLUGIN_PATH=@-plugins"},
     .out = "-40 none 0: no runtime has a device: " NO_AMD "; @-plugins/nvidia.so: invalid ELF header",
     .error = ""},
    {.name = "a second runtime in a process is refused",
     .graph = "{\"runtime\": \"software\"}",
     .then = "{\"runtime\": \"@/with_devices.so\"}",
     .out = "0 software 1: \n"
            "-4 software 0: runtime @/with_devices.so: this process already uses software, and a process can use only "
            "one\n",
     .error = ""},
    {.name = "auto takes the runtime that is in use already, with other options",
     .graph = "{\"runtime\": {\"type\": \"software\", \"devices\": 2}}",
     .then = "{}",
     .out = "0 software 2: \n0 software 1: \n",
     .error = ""},
    {.name = "a runtime that lost its devices is refused",
     .graph = "{\"runtime\": \"software\"}",
     .then = "{\"runtime\": {\"type\": \"software\", \"fail\": [\"hipGetDeviceCount:1\"]}}",
     .out = "0 software 1: \n-42 software 0: hipGetDeviceCount failed: hipErrorUnknown\n",
     .error = ""},
    {.name = "after a failure another runtime may be taken",
     .amd = "no_device.so",
     .graph = "{\"runtime\": \"amd\"}",
     .then = "{\"runtime\": \"software\"}",
     .out = "-40 none 0: runtime amd: no device (hipGetDeviceCount: hipErrorNoDevice)\n0 software 1: \n",
     .error = ""},
    {.name = "HIPMM_SOFTWARE: a name that is none",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_SOFTWARE=devics=2"},
     .out = "-12 none 0: HIPMM_SOFTWARE/devics: unknown option \"devics\" of software; did you mean "
            "\"devices\"?\n",
     .error = ""},
    {.name = "HIPMM_SOFTWARE: no value",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_SOFTWARE=devices"},
     .out = "-12 none 0: HIPMM_SOFTWARE: ",
     .error = ""},
    {.name = "HIPMM_SOFTWARE: a value out of range",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_SOFTWARE=devices=0"},
     .out = "-12 none 0: HIPMM_SOFTWARE/devices: ",
     .error = ""},
    {.name = "HIPMM_SOFTWARE: a size that is none",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_SOFTWARE=memory=lots"},
     .out = "-12 none 0: HIPMM_SOFTWARE/memory: \"lots\" is not a size",
     .error = ""},
    {.name = "HIPMM_SOFTWARE: a failure of a function that is none",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_SOFTWARE=fail=hipNothing:1"},
     .out = "-12 none 0: HIPMM_SOFTWARE/fail: \"hipNothing:1\" is not a failure on schedule; ",
     .error = ""},
    {.name = "HIPMM_SOFTWARE: a granularity that is no power of two",
     .graph = "{\"runtime\": \"software\"}",
     .variables = {"HIPMM_SOFTWARE=granularity=12KiB"},
     .out = "-12 none 0: HIPMM_SOFTWARE/granularity: 12288 bytes is not a power of two; ",
     .error = ""},
    {.name = "the graph's own errors in the runtime are at their place",
     .graph = "{\"runtime\": {\"type\": \"software\", \"devices\": \"two\"}}",
     .out = "-12 none 0: <string>:1:34: /runtime/devices: ",
     .error = ""},
};

/* A copy with "@" replaced, to be freed; NULL of NULL. */
static char *expand(const char *text)
{
  char *copy = NULL;
  size_t bytes;
  if (!text) return NULL;
  FILE *stream = open_memstream(&copy, &bytes);
  for (; *text; text++) {
    if (*text == '@')
      fputs(folder, stream);
    else
      fputc(*text, stream);
  }
  fclose(stream);
  return copy;
}

static void set_library(const char *library, const char *name)
{
  char *from = path_in(folder, library);
  put(from, name);
  free(from);
}

/* All of it when the expectation ends in a line's end or is empty, else its beginning. */
static void assert_said(const char *got, const char *expected)
{
  size_t length = strlen(expected);
  if (!length || expected[length - 1] == '\n' ? !strcmp(got, expected) : !strncmp(got, expected, length)) return;
  fail_msg("\"%s\" is not \"%s\"", got, expected);
}

static void takes_a_runtime(void **state)
{
  const struct runtime_case *row = *state;
  char *graph = expand(row->graph), *then = expand(row->then), *out = expand(row->out), *path;
  char *variables[3] = {expand(row->variables[0]), expand(row->variables[1])};
  assert_true(asprintf(&path, "LD_LIBRARY_PATH=%s", folder) > 0);
  const char *amd = row->amd ? row->amd : "no_device.so";
  set_library(amd, "libamdhip64.so.8");
  set_library(amd, "libamdhip64.so.7");
  set_library(amd, "libamdhip64.so.6");
  set_library(row->amd_5 ? row->amd_5 : amd, "libamdhip64.so.5");
  set_library("text.so", "libcuda.so.1"); /* this machine's driver may have devices */
  const char *const arguments[] = {"begin", graph, then, NULL};
  const char *const environment[] = {path, variables[0], variables[1], NULL};
  struct outcome outcome = run_again(arguments, environment);
  assert_said(outcome.out, out);
  if (strstr(row->error, "info"))
    assert_contains(outcome.error, row->error);
  else
    assert_said(outcome.error, row->error);
  assert_int_equal(outcome.status, 0);
  for (int i = 0; i < 2; i++) free(variables[i]);
  free(graph);
  free(then);
  free(out);
  free(path);
}

int main(int argc, char **argv)
{
  if (argc > 2 && !strcmp(argv[1], "begin")) return begin_with(argc - 2, argv + 2);
  struct CMUnitTest tests[sizeof cases / sizeof *cases];
  size_t n = sizeof cases / sizeof *cases;
  folder = new_folder();
  if (asprintf(&no_plugins, "%s-plugins", folder) < 0 || asprintf(&two_plugins, "%s-two", folder) < 0) return 1;
  for (size_t i = 0; i < n; i++)
    tests[i] = (struct CMUnitTest){
        .name = cases[i].name, .test_func = takes_a_runtime, .initial_state = (void *)(uintptr_t)&cases[i]};
  return _cmocka_run_group_tests("runtime", tests, n, make_folders, remove_folders);
}
