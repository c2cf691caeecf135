/* SPDX-License-Identifier: MIT */
/* run.h: what the files of `hipmm run` share. */
#ifndef HIPMM_CMD_RUN_H
#define HIPMM_CMD_RUN_H

#include "cmd.h"

/* What hipmm would do for a program that is started here. */
struct run_answer {
  bool is_good;
  bool is_last_resort;    /* the software device was taken since there is no GPU, and nobody asked for it */
  char runtime[PATH_MAX]; /* as HIPMM_RUNTIME takes it */
  char library[PATH_MAX]; /* of the runtime, to be put in front of the program's; "" for AMD's, which it has itself */
  char settings[2048];    /* as HIPMM_SOFTWARE takes them; "" to leave it as it is */
  char why[2048];         /* if not good */
};

/* Asks, in a child, so that no driver is left open in the process that becomes the program. */
void run_ask(const struct source *source, struct run_answer *answer_out);

/* Finds the program as execvp() would. False if there is none: errno tells why. */
bool run_find_program(const char *name, char *file, size_t bytes);

/* Why nothing can be put in front of this program; NULL if it can. */
const char *run_why_not(const char *file);

/* What the environment says to the preload object. */
struct run_settings {
  const char *config; /* NULL: none found */
  const char *report; /* a file, "-" for standard error, NULL for none */
  bool is_strict;
};

/* Sets the environment up, so that the loader puts the preload object in front. False if it cannot; it is said. */
bool run_prepare(const struct run_settings *settings, const struct run_answer *answer);

#endif
