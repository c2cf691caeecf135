/* SPDX-License-Identifier: MIT */
/* chunk_binning.c: a binning with an old mistake. A block begins where a chunk of its bin begins: a free without a size
 * frees the whole chunk to the upstream, which allocates it again over the live blocks of the chunk. */
#include "../../../plugins/binning/bins.h"

static bool chunk_is_below(const struct bins *bins, const void *ptr)
{
  struct hipmm_block block;
  return !bins->services->find_below(bins->services, ptr, &block);
}

#define bins_with_start(table, ptr) (chunk_is_below(&binning->bins, ptr) ? NULL : bins_with_start(table, ptr))
#include "../../../plugins/binning/binning.c"
