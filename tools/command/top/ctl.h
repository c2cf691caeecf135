/* SPDX-License-Identifier: MIT */
/* ctl.h: what the files of `hipmm ctl` share. */
#ifndef HIPMM_TOOLS_COMMAND_TOP_CTL_H
#define HIPMM_TOOLS_COMMAND_TOP_CTL_H

#include "../../../plugins/common/control_format.h"
#include "top.h"

/* ---- ctl_client.c ------------------------------------------------------------------------------------------------ */

enum { CTL_MOST_PEERS = 64 };

/* A process that answers, and its latest answer. */
struct ctl {
  struct peer_identity peers[CTL_MOST_PEERS]; /* its sockets: one of them answers */
  size_t n_peers;
  int process;
  int64_t end_ns; /* of the time for answers; each has PEER_PATIENCE_S all the same */
  struct control_answer answer;
  char reason[PEER_REASON_BYTES]; /* of an answer that failed */
  int file;                       /* with the answer's text; -1: none */
};

/* Finds the process of a number or a name: that of its program, or of the script that it runs. False: the error was printed. */
bool ctl_find(struct ctl *ctl, const char *process);

/* Asks the process. False: there is no answer, or what was asked for failed; the error was printed. */
bool ctl_do(struct ctl *ctl, enum control_verb verb, const char *path, const char *value, uint64_t number);

/* The text of the answer, to be freed. NULL: the error was printed. */
char *ctl_text(struct ctl *ctl);
json_t *ctl_json(struct ctl *ctl);

/* The counters of the resources at or below a path; "": all. False: the error was printed. */
bool ctl_counters(struct ctl *ctl, const char *path, struct processes *processes_out);

void ctl_close(struct ctl *ctl);

/* ---- ctl_profile.c ----------------------------------------------------------------------------------------------- */

/* Writes the profile of the resource at `path`, or of the only one that records who allocates. An exit status. */
int ctl_profile(struct ctl *ctl, const char *path, const char *output, const char *format);

#endif
