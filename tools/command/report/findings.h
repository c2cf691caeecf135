/* SPDX-License-Identifier: MIT */
/* findings.h: sentences with the main findings of a log: where the peak is, and why. Called by summary.c. */
#ifndef HIPMM_TOOLS_COMMAND_REPORT_FINDINGS_H
#define HIPMM_TOOLS_COMMAND_REPORT_FINDINGS_H

#include "../trace/blocks.h"
#include "pages.h"
#include <jansson.h>

/* An array of sentences. `live` has the live bytes after each event, of which there is at least one. */
json_t *findings_tell(const struct blocks *blocks, const uint64_t *live, uint32_t peak,
                      const struct pages_result *pages);

#endif
