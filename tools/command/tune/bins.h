/* SPDX-License-Identifier: MIT */
/* bins.h: the bins for the requests of some logs: the sizes that waste least. Called by space.c. */
#ifndef HIPMM_TOOLS_COMMAND_TUNE_BINS_H
#define HIPMM_TOOLS_COMMAND_TUNE_BINS_H

#include "space.h"

/* The bins for all requests up to `limit` bytes, at most `most` of them. None if there is no such request. False: out of
 * memory. */
bool bins_find(const struct trace *traces, size_t n_traces, uint64_t limit, size_t most, struct space_bins *out);

#endif
