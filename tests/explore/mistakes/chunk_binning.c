/* SPDX-License-Identifier: MIT */
/* chunk_binning.c: a binning as it was: of a block that begins where a chunk of its bin begins, a free without a
 * size gives the whole chunk back to the resource below, which gives it out over the live blocks of the chunk. */
#include "../../../plugins/binning/bins.h"

static bool chunk_is_below(const struct bins *bins, const void *ptr)
{
  struct hipmm_block block;
  return !bins->services->find_below(bins->services, ptr, &block);
}

#define bins_with_start(table, ptr) (chunk_is_below(&binning->bins, ptr) ? NULL : bins_with_start(table, ptr))
#include "../../../plugins/binning/binning.c"
