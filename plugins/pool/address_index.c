/* SPDX-License-Identifier: MIT */
/* address_index.c: the lists of the cells, linked through `next` and `previous` of the blocks, and the tree. */
#include "address_index.h"

#include <string.h>

/* ---- Measures ---- */

static uint32_t address_index_clamp(uint64_t units)
{
  return units < UINT32_MAX ? (uint32_t)units : UINT32_MAX;
}

/* The bytes at the block's start that share a granule with other blocks; all bytes, if it holds no whole granule. */
static uint64_t address_index_busy_bytes(const struct blocks *blocks, const struct block *block)
{
  uint64_t granule = blocks->granule_bytes, whole = (block->start + granule - 1) & ~(granule - 1);
  return whole + granule > block->start + block->bytes ? block->bytes : whole - block->start;
}

static uint64_t address_index_units_in(const struct blocks *blocks, const struct block *block, enum measure measure)
{
  return (measure == MEASURE_BUSY ? address_index_busy_bytes(blocks, block) : block->bytes) >> UNIT_BITS;
}

static uint32_t address_index_larger_of(uint32_t a, uint32_t b)
{
  return a > b ? a : b;
}

/* ---- The tree ---- */

static uint32_t address_index_most_in(const struct address_node *node, enum measure measure)
{
  uint32_t result = 0;
  for (unsigned i = 0; i < FAN; i++) result = address_index_larger_of(result, node->most[i][measure]);
  return result;
}

static bool address_index_exceeds(const uint32_t units[MEASURES], const uint32_t most[MEASURES])
{
  return units[MEASURE_BUSY] > most[MEASURE_BUSY] || units[MEASURE_WHOLE] > most[MEASURE_WHOLE];
}

/* Sets a cell's largest blocks. The nodes above learn of a larger block at once, and of its loss when a search finds less
 * than they know. */
static void address_index_set_most(struct address_index *index, uint32_t cell, const uint32_t units[MEASURES])
{
  uint32_t *most = index->levels[0][cell >> FAN_BITS].most[cell % FAN];
  bool is_more = address_index_exceeds(units, most);
  for (unsigned measure = 0; measure < MEASURES; measure++) most[measure] = units[measure];
  for (uint32_t level = 1, child = cell >> FAN_BITS; is_more && level < index->n_levels; level++, child >>= FAN_BITS) {
    most = index->levels[level][child >> FAN_BITS].most[child % FAN];
    is_more = address_index_exceeds(units, most);
    for (unsigned measure = 0; measure < MEASURES; measure++)
      most[measure] = address_index_larger_of(most[measure], units[measure]);
  }
}

/* A search has found less in the whole node than the node above knows. */
static void address_index_correct(const struct address_index *index, uint32_t level, uint32_t node,
                                  enum measure measure)
{
  if (level + 1 == index->n_levels) return;
  index->levels[level + 1][node >> FAN_BITS].most[node % FAN][measure] =
      address_index_most_in(&index->levels[level][node], measure);
}

/* The first child from `from` on with at least `units`; FAN if there is none. */
static uint32_t address_index_first_child(const struct address_node *node, enum measure measure, uint32_t from,
                                          uint32_t units)
{
  while (from < FAN && node->most[from][measure] < units) from++;
  return from;
}

/* The last child before `end` with at least `units`; FAN if there is none. */
static uint32_t address_index_last_child(const struct address_node *node, enum measure measure, uint32_t end,
                                         uint32_t units)
{
  while (end && node->most[end - 1][measure] < units) end--;
  return end ? end - 1 : FAN;
}

/* The first cell from `cell` on with at least `units`; n_cells if there is none. */
static uint32_t address_index_cell_from(const struct address_index *index, enum measure measure, uint32_t cell,
                                        uint32_t units)
{
  if (cell >= index->n_cells) return index->n_cells;
  /* Among all cells the search starts at the top. */
  uint32_t level = cell ? 0 : index->n_levels - 1, node = cell >> FAN_BITS, from = cell % FAN;
  for (;;) {
    uint32_t found = address_index_first_child(&index->levels[level][node], measure, from, units);
    if (found < FAN) {
      node = node << FAN_BITS | found;
      if (!level--) return node;
      from = 0;
      continue;
    }
    if (!from) address_index_correct(index, level, node, measure);
    if (++level == index->n_levels) return index->n_cells;
    from = node % FAN + 1;
    node >>= FAN_BITS;
  }
}

/* The last cell before `cell` with at least `units`; n_cells if there is none. */
static uint32_t address_index_cell_before(const struct address_index *index, enum measure measure, uint32_t cell,
                                          uint32_t units)
{
  if (!cell) return index->n_cells;
  uint32_t level = 0, node = (cell - 1) >> FAN_BITS, end = (cell - 1) % FAN + 1;
  for (;;) {
    uint32_t found = address_index_last_child(&index->levels[level][node], measure, end, units);
    if (found < FAN) {
      node = node << FAN_BITS | found;
      if (!level--) return node;
      end = FAN;
      continue;
    }
    if (end == FAN) address_index_correct(index, level, node, measure);
    if (++level == index->n_levels) return index->n_cells;
    end = node % FAN;
    node >>= FAN_BITS;
  }
}

/* ---- Life ---- */

static uint32_t address_index_nodes_on(uint32_t n_below)
{
  return (n_below + FAN - 1) / FAN;
}

static size_t address_index_table_bytes(uint32_t n_cells)
{
  size_t nodes = 0;
  if (!n_cells) return 0;
  for (uint32_t n = address_index_nodes_on(n_cells);; n = address_index_nodes_on(n)) {
    nodes += n;
    if (n == 1) break;
  }
  return nodes * sizeof(struct address_node) + n_cells * sizeof(uint32_t);
}

/* Lays out the levels in `table`, and the heads behind them. */
static struct address_index address_index_lay_out(void *table, uint32_t n_cells)
{
  struct address_index index = {.n_cells = n_cells};
  struct address_node *nodes = table;
  uint32_t n = n_cells;
  do {
    n = address_index_nodes_on(n);
    index.levels[index.n_levels++] = nodes;
    nodes += n;
  } while (n > 1);
  index.heads = (uint32_t *)(void *)nodes;
  return index;
}

/* Copies what `small` knows of its cells, which are the first cells of the new index. */
static void address_index_copy(struct address_index *index, const struct address_index *small)
{
  uint32_t n = small->n_cells;
  memcpy(index->heads, small->heads, n * sizeof *small->heads);
  for (uint32_t level = 0; level < small->n_levels; level++) {
    n = address_index_nodes_on(n);
    memcpy(index->levels[level], small->levels[level], n * sizeof *small->levels[level]);
  }
  for (uint32_t level = small->n_levels; level < index->n_levels; level++)
    for (unsigned measure = 0; measure < MEASURES; measure++)
      index->levels[level]->most[0][measure] = address_index_most_in(index->levels[level - 1], measure);
}

bool address_index_cover(struct address_index *index, const struct blocks *blocks)
{
  if (index->n_cells == blocks->n_cells) return true;
  void *table = blocks->services->host_allocate(blocks->services, address_index_table_bytes(blocks->n_cells));
  if (!table) return false;
  struct address_index large = address_index_lay_out(table, blocks->n_cells);
  if (index->n_cells) address_index_copy(&large, index);
  address_index_close(index, blocks);
  *index = large;
  return true;
}

void address_index_close(struct address_index *index, const struct blocks *blocks)
{
  blocks->services->host_free(blocks->services, index->levels[0], address_index_table_bytes(index->n_cells));
}

uint64_t address_index_metadata_bytes(const struct address_index *index)
{
  uint64_t table = address_index_table_bytes(index->n_cells);
  return host_pages_resident(index->levels[0], table, table);
}

/* ---- Blocks ---- */

static void address_index_refresh(struct address_index *index, const struct blocks *blocks, uint32_t cell)
{
  uint32_t most[MEASURES] = {0};
  for (uint32_t id = index->heads[cell]; id; id = block_of(blocks, id)->next)
    for (unsigned measure = 0; measure < MEASURES; measure++)
      most[measure] = address_index_larger_of(
          most[measure], address_index_clamp(address_index_units_in(blocks, block_of(blocks, id), measure)));
  address_index_set_most(index, cell, most);
}

/* Puts the block, whose bounds are set, in its cell's list. */
static uint32_t address_index_link(struct address_index *index, struct blocks *blocks, uint32_t id)
{
  struct block *block = block_of(blocks, id);
  uint32_t cell = block_cell(blocks, block->start), previous = BLOCK_NONE, next = index->heads[cell];
  while (next && block_of(blocks, next)->start < block->start) {
    previous = next;
    next = block_of(blocks, next)->next;
  }
  block->previous = previous;
  block->next = next;
  if (next) block_of(blocks, next)->previous = id;
  *(previous ? &block_of(blocks, previous)->next : &index->heads[cell]) = id;
  return cell;
}

static uint32_t address_index_unlink(struct address_index *index, struct blocks *blocks, uint32_t id)
{
  const struct block *block = block_of(blocks, id);
  uint32_t cell = block_cell(blocks, block->start);
  if (block->next) block_of(blocks, block->next)->previous = block->previous;
  *(block->previous ? &block_of(blocks, block->previous)->next : &index->heads[cell]) = block->next;
  return cell;
}

void address_index_add(struct address_index *index, struct blocks *blocks, uint32_t id)
{
  address_index_refresh(index, blocks, address_index_link(index, blocks, id));
}

void address_index_remove(struct address_index *index, struct blocks *blocks, uint32_t id)
{
  address_index_refresh(index, blocks, address_index_unlink(index, blocks, id));
}

void address_index_move(struct address_index *index, struct blocks *blocks, uint32_t id, uint64_t start, uint64_t bytes)
{
  uint32_t cell = block_cell(blocks, block_of(blocks, id)->start), to = block_cell(blocks, start);
  if (to == cell) {
    block_set_bounds(blocks, id, start, bytes);
  } else {
    address_index_unlink(index, blocks, id);
    block_set_bounds(blocks, id, start, bytes);
    address_index_refresh(
        index, blocks,
        address_index_link(index, blocks, id)); /* first, so that the nodes above both cells need not sink and rise */
  }
  address_index_refresh(index, blocks, cell);
}

uint32_t address_index_fit(const struct address_index *index, const struct blocks *blocks, enum measure measure,
                           uint64_t units)
{
  uint32_t cell = 0;
  while ((cell = address_index_cell_from(index, measure, cell, address_index_clamp(units))) < index->n_cells) {
    for (uint32_t id = index->heads[cell]; id; id = block_of(blocks, id)->next)
      if (address_index_units_in(blocks, block_of(blocks, id), measure) >= units) return id;
    cell++; /* UINT32_MAX stands for more than one size */
  }
  return BLOCK_NONE;
}

uint32_t address_index_below(const struct address_index *index, const struct blocks *blocks, uint32_t id,
                             uint64_t units)
{
  uint32_t cell = index->n_cells, found = BLOCK_NONE;
  if (id) cell = block_cell(blocks, block_of(blocks, id)->start);
  while (id && (id = block_of(blocks, id)->previous))
    if (block_of(blocks, id)->bytes >> UNIT_BITS >= units) return id;
  while (!found &&
         (cell = address_index_cell_before(index, MEASURE_WHOLE, cell, address_index_clamp(units))) < index->n_cells)
    for (id = index->heads[cell]; id; id = block_of(blocks, id)->next)
      if (block_of(blocks, id)->bytes >> UNIT_BITS >= units) found = id;
  return found;
}

uint32_t address_index_at(const struct address_index *index, const struct blocks *blocks, uint64_t address)
{
  uint32_t cell = block_cell(blocks, address), found = BLOCK_NONE;
  for (uint32_t id = index->heads[cell]; id && block_of(blocks, id)->start <= address; id = block_of(blocks, id)->next)
    found = id;
  if (found || (cell = address_index_cell_before(index, MEASURE_WHOLE, cell, 1)) == index->n_cells) return found;
  for (uint32_t id = index->heads[cell]; id; id = block_of(blocks, id)->next) found = id;
  return found;
}
