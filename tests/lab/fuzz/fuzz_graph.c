/* SPDX-License-Identifier: MIT */
/* fuzz_graph.c: the text of hipmm.json: read, checked, shown. */
#include "../../../core/graph/graph.h"
#include "fuzz.h"

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
  (void)argc, (void)argv;
  unsetenv("HIPMM_RUNTIME");
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
  struct diagnostics diagnostics = {.source = "fuzz.json"};
  struct graph *graph = NULL, *again = NULL;
  char line[512];
  char *text = malloc(bytes + 1);
  if (!text) return 0;
  if (bytes) memcpy(text, data, bytes);
  text[bytes] = '\0';
  enum hipmm_status status = graph_check("fuzz.json", text, &diagnostics, &graph);
  FUZZ_REQUIRE(!status == (graph != NULL));
  FUZZ_REQUIRE(!status || status == diagnostics_status(&diagnostics));
  for (const struct diagnostic *diagnostic = diagnostics.first; diagnostic; diagnostic = diagnostic->next)
    FUZZ_REQUIRE(*diagnostics_line(&diagnostics, diagnostic, line, sizeof line));
  diagnostics_clear(&diagnostics);
  if (graph) {
    struct diagnostics others = {.source = "fuzz.json"};
    FUZZ_REQUIRE(!graph_check("fuzz.json", text, &others, &again) && graph_is_same(graph, again));
    for (size_t i = 0; i < graph->n_nodes; i++) FUZZ_REQUIRE(graph_find(graph, graph->nodes[i].name) == (int)i);
    diagnostics_clear(&others);
    graph_release(again);
    graph_release(graph);
  }
  free(text);
  return 0;
}
