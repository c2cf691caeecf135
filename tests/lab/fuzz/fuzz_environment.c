/* SPDX-License-Identifier: MIT */
/* fuzz_environment.c: environment strings. An input is lines "NAME=VALUE"; names that hipmm does not read are passed over. */
#include "../../../core/base/environment.h"
#include "../../../core/base/rank.h"
#include "../../../core/base/trust.h"
#include "../../../core/graph/graph.h"
#include "../../../core/plugin/plugin.h"
#include "../../../plugins/runtimes/software/state.h"
#include "fuzz.h"

#include <limits.h>

static const char *const names[] = {"HIPMM_CONFIG",
                                    "HIPMM_PLUGIN_PATH",
                                    "HIPMM_RUNTIME",
                                    "HIPMM_SOFTWARE",
                                    "HIPMM_RANK",
                                    "HIPMM_LOCAL_RANK",
                                    "OMPI_COMM_WORLD_RANK",
                                    "OMPI_COMM_WORLD_LOCAL_RANK",
                                    "OMPI_COMM_WORLD_SIZE",
                                    "SLURM_PROCID",
                                    "SLURM_LOCALID",
                                    "SLURM_NTASKS",
                                    "FLUX_TASK_RANK",
                                    "PALS_RANKID",
                                    "RANK",
                                    "LOCAL_RANK",
                                    "WORLD_SIZE"};

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  return 0;
}

static void visit_folder(void *closure, const char *folder)
{
  (void)closure;
  FUZZ_REQUIRE(*folder);
}

static void read_environment(void)
{
  char file[PATH_MAX], wrong[256];
  struct diagnostics diagnostics = {.source = "fuzz"};
  struct graph *graph = NULL;
  struct software_config config;
  const char *settings = getenv("HIPMM_SOFTWARE");
  (void)trust_find_config(file, sizeof file);
  FUZZ_REQUIRE(rank_in_job() >= -1 && rank_on_host() >= -1 && rank_count() >= -1);
  plugin_visit_folders(NULL, visit_folder, NULL);
  enum hipmm_status status = graph_built_in(&diagnostics, &graph);
  FUZZ_REQUIRE(!status == (graph != NULL));
  if (graph) graph_release(graph);
  diagnostics_clear(&diagnostics);
  if (settings) (void)software_options_read(settings, &config, wrong, sizeof wrong);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  struct fuzz_input input = {data, data + bytes};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) unsetenv(names[i]);
  while (input.at < input.end) {
    char *line = fuzz_take_line(&input), *equals = strchr(line, '=');
    if (equals) *equals = '\0';
    for (size_t i = 0; equals && i < sizeof names / sizeof *names; i++)
      if (strcmp(names[i], line) == 0) setenv(line, equals + 1, 1);
    free(line);
  }
  read_environment();
  return 0;
}
