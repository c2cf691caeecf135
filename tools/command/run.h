/* SPDX-License-Identifier: MIT */
/* run.h: what the files of `hipmm run` share. */
#ifndef HIPMM_TOOLS_COMMAND_RUN_H
#define HIPMM_TOOLS_COMMAND_RUN_H

#include "cmd.h"

/* What hipmm would do for a program that is started in this folder and environment. */
struct run_answer {
  bool is_good;
  bool
      is_last_resort; /* the software device, since there is no GPU, though neither the graph nor the environment names it */
  char runtime[PATH_MAX]; /* as HIPMM_RUNTIME takes it */
  char library[PATH_MAX]; /* of the runtime, to be preloaded; "" for AMD's, which the program itself is linked to */
  char settings[2048];    /* for HIPMM_SOFTWARE; "": the variable stays as it is */
  char report[PATH_MAX];  /* the report that the graph names; "": none */
  int device;             /* the one that the graph and a launcher choose for this process; -1: all */
  char why[2048];         /* if not good */
};

/* Asks hipmm in a child process: no driver may stay open in this process, which becomes the program. */
void run_ask(const struct source *source, struct run_answer *answer_out);

/* What the environment tells the preload object. */
struct run_settings {
  const char *config; /* a file's name, or a graph's text; NULL: none found */
  bool is_found;      /* nobody named it */
  char *const *words; /* of the program's command line, up to NULL */
  const char *report; /* the pattern of a file's name, "-" for standard error, NULL for none */
  bool is_json;       /* the report */
  bool is_strict;
  bool checks_streams;
  bool is_without_python; /* no hook for PyTorch, CuPy and Numba */
  bool is_without_driver; /* calls of NVIDIA's driver are not served */
};

/* The graph of --stack, --set and --limit. */
struct run_stack {
  const char *types, *limit; /* NULL: not given */
  const char *options[ARGUMENTS_MOST_VALUES + 1];
};

/* Chooses that graph, or without --stack what source_choose() does. False, after a message, if that is wrong. */
bool run_stack_choose(const struct run_stack *stack, struct source *source, const char *config);

/* For --check-streams, where no graph is found: one with a pool, in which memory that is freed or handed on too early shows.
 * False, after a message, if the installation lacks it. */
bool run_find_pool(struct source *source);

/* Sets the environment so that the loader preloads the object. False, after a message, if that fails. */
bool run_prepare(const struct run_settings *settings, const struct run_answer *answer);

/* `hipmm run --merge`: prints the reports in the files of these names, or patterns of names, as one table or one JSON
 * object. Returns the exit status. */
int run_merge(char **patterns, size_t n_patterns, bool is_json);

/* The table, from the object. */
void run_merge_print(const json_t *result);

#endif
