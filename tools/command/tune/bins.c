/* SPDX-License-Identifier: MIT */
/* bins.c: see tune.h. A bin serves all requests that are larger than the bin before it, and each takes a whole block. So the
 * sizes are cut into runs, each with its largest as the bin, such that the sum of what is wasted over all requests is least:
 * the best cut of the first j sizes into k runs is the best of i < j into k - 1, and a run from i on. */
#include "tune.h"

#include <hipmm/plugin.h>
#include <stdlib.h>
#include <string.h>

/* Sizes above 32 units are rounded up to one of 16 between two powers of two: few enough to try all cuts. */
enum { BINS_UNIT = HIPMM_ALIGNMENT, BINS_EXACT_UNITS = 32, BINS_STEPS = 16, BINS_MOST_SIZES = 1024 };

struct bins_histogram {
  uint64_t units[BINS_MOST_SIZES], counts[BINS_MOST_SIZES];
  size_t n;
  double share;
};

static uint64_t bins_round(uint64_t bytes)
{
  uint64_t units = (bytes + BINS_UNIT - 1) / BINS_UNIT;
  if (units <= BINS_EXACT_UNITS) return units ? units : 1;
  uint64_t step = (UINT64_C(1) << (63 - __builtin_clzll(units - 1))) / BINS_STEPS;
  return (units + step - 1) / step * step;
}

static int bins_compare(const void *one, const void *other)
{
  const uint64_t *a = one, *b = other;
  return *a < *b ? -1 : *a > *b;
}

/* The sizes of all requests up to the limit, in rising order. Returns how many. */
static size_t bins_collect(const struct trace *traces, size_t n_traces, uint64_t limit, uint64_t *sizes)
{
  size_t n = 0;
  for (size_t i = 0; i < n_traces; i++)
    for (size_t k = 0; k < traces[i].n_events; k++)
      if (!traces[i].events[k].is_free && traces[i].events[k].bytes <= limit)
        sizes[n++] = bins_round(traces[i].events[k].bytes);
  qsort(sizes, n, sizeof *sizes, bins_compare);
  return n;
}

static bool bins_count(const struct trace *traces, size_t n_traces, uint64_t limit, struct bins_histogram *histogram)
{
  uint64_t requests = 0;
  for (size_t i = 0; i < n_traces; i++) requests += traces[i].allocations;
  uint64_t *sizes = calloc(requests + 1, sizeof *sizes);
  if (!sizes) return false;
  size_t n = bins_collect(traces, n_traces, limit, sizes);
  *histogram = (struct bins_histogram){.share = requests ? (double)n / (double)requests : 0};
  for (size_t i = 0; i < n; i++) {
    bool is_new = !histogram->n || histogram->units[histogram->n - 1] != sizes[i];
    if (is_new && histogram->n == BINS_MOST_SIZES) break; /* beyond any limit that is used */
    if (is_new) histogram->units[histogram->n++] = sizes[i];
    histogram->counts[histogram->n - 1]++;
  }
  free(sizes);
  return true;
}

/* ---- The best cut ---------------------------------------------------------------------------------------------- */

struct bins_cut {
  double waste[SPACE_MOST_BINS + 1][BINS_MOST_SIZES + 1];  /* the least, of the first j sizes in k runs */
  uint16_t from[SPACE_MOST_BINS + 1][BINS_MOST_SIZES + 1]; /* where the last of these runs begins */
};

/* The best last run of the first `end` sizes in k runs. */
static void bins_cut_last(const struct bins_histogram *histogram, struct bins_cut *cut, size_t k, size_t end)
{
  double waste = 0, largest = (double)histogram->units[end - 1];
  cut->waste[k][end] = -1;
  for (size_t from = end; from-- > 0;) {
    waste += (largest - (double)histogram->units[from]) * (double)histogram->counts[from];
    if (cut->waste[k - 1][from] < 0) continue; /* there is no such cut */
    double sum = cut->waste[k - 1][from] + waste;
    if (cut->waste[k][end] >= 0 && cut->waste[k][end] <= sum) continue;
    cut->waste[k][end] = sum;
    cut->from[k][end] = (uint16_t)from;
  }
}

static void bins_cut_all(const struct bins_histogram *histogram, struct bins_cut *cut, size_t runs)
{
  for (size_t end = 1; end <= histogram->n; end++) cut->waste[0][end] = -1;
  for (size_t k = 1; k <= runs; k++) {
    cut->waste[k][0] = -1;
    for (size_t end = 1; end <= histogram->n; end++) bins_cut_last(histogram, cut, k, end);
  }
}

bool bins_find(const struct trace *traces, size_t n_traces, uint64_t limit, size_t most, struct space_bins *out)
{
  struct bins_histogram *histogram = malloc(sizeof *histogram);
  struct bins_cut *cut = calloc(1, sizeof *cut);
  bool good = histogram && cut && bins_count(traces, n_traces, limit, histogram);
  *out = (struct space_bins){.n = 0};
  if (good && histogram->n) {
    out->n = histogram->n < most ? histogram->n : most;
    out->share = histogram->share;
    bins_cut_all(histogram, cut, out->n);
    size_t end = histogram->n;
    for (size_t k = out->n; k > 0; k--) {
      out->sizes[k - 1] = histogram->units[end - 1] * BINS_UNIT;
      end = cut->from[k][end];
    }
  }
  free(histogram);
  free(cut);
  return good;
}
