/* SPDX-License-Identifier: MIT */
/* inputs.h: the files that a command reads. It may overwrite none of them: neither with the file that the user names
 * for the result, nor with files that a graph's resources write, nor with the debug log. */
#ifndef HIPMM_TOOLS_COMMAND_INPUTS_H
#define HIPMM_TOOLS_COMMAND_INPUTS_H

#include "cmd.h"

struct inputs {
  const char *command; /* as messages begin */
  char *const *files;  /* "-": standard input */
  size_t n;
};

/* Whether a result can be written to that file; NULL: standard output, as when the shell has redirected it. False: it is an
 * input; the error was printed. A terminal or a pipe can be both. */
bool inputs_check_output(const struct inputs *inputs, const char *name);

/* For a command that builds the stack of `device`: whether that leaves all inputs as they are. False: the graph, or a variable
 * of the environment, names one of them as a file that is written, or would rename it; the error was printed. True for a
 * graph with errors, of which no stack is built. */
bool inputs_check_graph(const struct inputs *inputs, const struct source *source, int device);

/* The same for a command that makes the graphs itself: what the environment names. */
bool inputs_check_log(const struct inputs *inputs);

#endif
