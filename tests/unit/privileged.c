/* SPDX-License-Identifier: MIT */
/* privileged.c: what privileged.sh runs set-user-id: tells whether it has raised rights, what it sees of the
 * environment, and what comes of the graph that is its argument. Built with the tests, run only by that script. */
#include "../../core/base/environment.h"
#include "../../core/base/log.h"
#include "../../core/base/trust.h"

#include <stdio.h>

int main(int argc, char **argv)
{
  static const char *const variables[] = {"HIPMM_CONFIG", "HIPMM_RUNTIME", "HIPMM_SOFTWARE", "HIPMM_PLUGIN_PATH",
                                          "HIPMM_LOG"};
  char file[4096];
  printf("privileged: %s\n", environment_is_privileged() ? "yes" : "no");
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *value = environment_get(variables[i]);
    printf("%s: %s\n", variables[i], value ? value : "not seen");
  }
  const char *config = trust_find_config(file, sizeof file);
  printf("config: %s\n", config ? config : "none");
  log_line(HIPMM_LOG_INFO, NULL, "this is only said when HIPMM_LOG is heard");
  for (int i = 1; i < argc; i++) {
    void *memory;
    enum hipmm_status status = hipmm_init_from_string(argv[i]);
    if (!status) status = hipmm_allocate(NULL, 1000, NULL, &memory);
    if (!status) status = hipmm_deallocate(NULL, memory, 1000, NULL);
    printf("graph: %d %s\n", status, status ? hipmm_last_error_message() : "");
    hipmm_finalize();
  }
  return 0;
}
