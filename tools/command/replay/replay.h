/* SPDX-License-Identifier: MIT */
/* replay.h: what the files of `hipmm replay` share. */
#ifndef HIPMM_TOOLS_COMMAND_REPLAY_REPLAY_H
#define HIPMM_TOOLS_COMMAND_REPLAY_REPLAY_H

#include "../cmd.h"
#include "../play/player.h"

struct replay {
  const char *trace_file;
  struct source source;
  long device, passes;
  bool json;
  struct trace trace;
  uint64_t card_bytes; /* of --card; 0: not given */
};

struct replay_result {
  uint64_t failures, live_at_end, peak_requested_bytes;
  size_t peak_reserved_bytes;
  double first_ns, warm_ns; /* 0: not measured */
  uint32_t failure_line;
  const char *failure_reason;
};

/* ---- print.c --------------------------------------------------------------------------------------------------- */

int replay_print(const struct replay *replay, const struct replay_result *result, int status);

/* The two lines that say what is played, and through what. */
void replay_print_head(const struct replay *replay, const char *runtime);

/* ---- fit_print.c ----------------------------------------------------------------------------------------------- */

/* Finds the least budget of the log, and prints it. Returns the exit status. */
int fit_run(const struct replay *replay);

#endif
