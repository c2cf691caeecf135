/* SPDX-License-Identifier: MIT */
/* convert.h: the formats that `hipmm convert` writes. */
#ifndef HIPMM_TOOLS_COMMAND_CONVERT_CONVERT_H
#define HIPMM_TOOLS_COMMAND_CONVERT_CONVERT_H

#include "../trace/logs.h"

#include <stdio.h>

/* A file that is written. Functions return false on a failed write, with errno. */
struct convert_output {
  bool (*begin)(struct convert_output *output);
  /* `rows` has the row's stack. */
  bool (*row)(struct convert_output *output, const struct trace_row *row, const struct trace_rows *rows);
  bool (*end)(struct convert_output *output);
  bool has_devices; /* the format keeps the memory of several devices apart */
  FILE *file;
  const struct trace_logs *logs;    /* whose rows are written */
  bool has_head, has_tags;          /* of csv_output.c: the columns' names are written, with that of tags */
  struct record_output *record;     /* of record_output.c */
  struct snapshot_output *snapshot; /* of snapshot_output.c */
  struct chrome_output *chrome;     /* of chrome_output.c */
  struct pprof_output *pprof;       /* of pprof_output.c */
};

/* RMM's CSV: to standard output too. */
extern const struct convert_output convert_csv;

/* The binary record of base/record_format.h. */
extern const struct convert_output convert_record;

/* A pickle as PyTorch's torch.cuda.memory._dump_snapshot() writes it, for one device. */
extern const struct convert_output convert_snapshot;

/* Chrome's trace events, which Perfetto shows: blocks over time. */
extern const struct convert_output convert_chrome;

/* A profile of pprof: who allocated the memory. */
extern const struct convert_output convert_pprof;

#endif
