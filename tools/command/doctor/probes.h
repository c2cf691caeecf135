/* SPDX-License-Identifier: MIT */
/* probes.h: what `hipmm doctor` tries on a device: each probe does what programs and hipmm rely on, with data that is
 * checked, and leaves nothing behind. Called by doctor.c, each in a process of its own. */
#ifndef HIPMM_TOOLS_COMMAND_DOCTOR_PROBES_H
#define HIPMM_TOOLS_COMMAND_DOCTOR_PROBES_H

#include <hipmm/plugin.h>

#include <stdbool.h>

enum probe_verdict {
  PROBE_GOOD,
  PROBE_BAD,
  PROBE_ABSENT /* the runtime or device lacks what is tried */
};

enum { PROBE_FOUND_BYTES = 256 };

struct probe_context {
  const struct hipmm_hip *hip;
  int device;                    /* current */
  char found[PROBE_FOUND_BYTES]; /* what was seen, where it is not good */
};

struct probe {
  const char *name;
  const char *question; /* of what is good when the answer is yes */
  enum probe_verdict (*run)(struct probe_context *context);
  const char *reports; /* public reports of such a defect */
  const char *remedy;  /* what hipmm does about it, and what the user may do */
};

/* Ended by a row without a name. */
extern const struct probe probes[];

/* ---- probe_tools.c ---- */

/* Writes what was seen. Returns PROBE_BAD. */
enum probe_verdict probe_bad(struct probe_context *context, const char *format, ...) HIPMM_PRINTF(2, 3);

/* A call of HIP that must succeed: false writes what was seen. */
bool probe_call(struct probe_context *context, const char *name, int code);

/* Keeps the stream busy for some milliseconds, without the device. False: as probe_call(). */
bool probe_delay(struct probe_context *context, hipmm_stream_t stream, unsigned *milliseconds);

/* Whether all bytes are `value`; if not, writes how many of them are not. Waits for the default stream. */
bool probe_holds(struct probe_context *context, const char *what, const void *ptr, size_t bytes, int value);

/* Bytes that are free on the device. */
size_t probe_free_bytes(const struct probe_context *context);

/* ---- The probes ---- */

enum probe_verdict probe_pool_order(struct probe_context *context);
enum probe_verdict probe_pool_data(struct probe_context *context);
enum probe_verdict probe_pool_threshold(struct probe_context *context);
enum probe_verdict probe_pool_failure(struct probe_context *context);
enum probe_verdict probe_mapping_data(struct probe_context *context);
enum probe_verdict probe_mapping_alias(struct probe_context *context);
enum probe_verdict probe_mapping_access(struct probe_context *context);
enum probe_verdict probe_mapping_release(struct probe_context *context);
enum probe_verdict probe_mapping_files(struct probe_context *context);
enum probe_verdict probe_mapping_peers(struct probe_context *context);
enum probe_verdict probe_mapping_wait(struct probe_context *context);
enum probe_verdict probe_event_order(struct probe_context *context);
enum probe_verdict probe_event_query(struct probe_context *context);
enum probe_verdict probe_free_bytes_told(struct probe_context *context);

#endif
