/* SPDX-License-Identifier: MIT */
/* operation.c: operations and markers, before and after their time in a queue. Called by every function that submits an
 * operation or waits for one. */
#include "internal.h"
#include <stdlib.h>
#include <time.h>

struct software_operation *software_operation_new(enum software_operation_kind kind, enum software_call call)
{
  struct software_operation *operation = calloc(1, sizeof *operation);
  if (!operation) return NULL;
  operation->kind = kind;
  operation->call = call;
  return operation;
}

void software_operation_free(struct software_operation *operation)
{
  software_span_close(&operation->to);
  software_span_close(&operation->from);
  software_marker_unreference(operation->marker);
  if (operation->kind == SOFTWARE_HOST) software_watch_host_end(operation);
  if (operation->allocation) software_allocation_unreference(operation->allocation);
  free(operation->staged);
  free(operation);
}

/* ---- Markers --------------------------------------------------------------------------------------------------- */

struct software_marker *software_marker_new(void)
{
  struct software_marker *marker = calloc(1, sizeof *marker);
  return marker ? software_marker_reference(marker) : NULL;
}

struct software_marker *software_marker_reference(struct software_marker *marker)
{
  marker->references++;
  return marker;
}

void software_marker_unreference(struct software_marker *marker)
{
  if (!marker || --marker->references > 0) return;
  software_watch_marker_end(marker);
  software_order_unreference(marker->order);
  free(marker);
}

void software_marker_finish(struct software_marker *marker)
{
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  marker->time_ms = (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
  marker->done = true;
  software_ready_wake(marker);
}
