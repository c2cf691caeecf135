/* SPDX-License-Identifier: MIT */
/* control.h: what `hipmm ctl` can do in this process. tools/control listens for it: an object that is loaded only where control
 * is allowed. */
#ifndef HIPMM_CORE_INSPECT_CONTROL_H
#define HIPMM_CORE_INSPECT_CONTROL_H

#include <hipmm/hipmm.h>

#include <stdbool.h>
#include <stdint.h>

struct live_file;

/* Within a change (lifecycle.h), after the table of devices was opened, and before it is closed. Without the object or its
 * socket a warning says why, and nobody is answered. */
void control_begin(void);
void control_end(void);

enum { CONTROL_REASON_BYTES = 512 };

/* What has become of a request for an action. */
struct control_reply {
  bool is_there;
  enum hipmm_status result;
  char reason[CONTROL_REASON_BYTES]; /* of a failure */
};

/* What the object gets. A path is that of a resource, a device or a stack; "" for all. */
struct control_calls {
  size_t struct_size;
  enum hipmm_status (*list)(const char *prefix, char **json_out);
  enum hipmm_status (*get)(const char *path, char **json_out);
  enum hipmm_status (*set)(const char *path, const char *value); /* numbers, switches and words alone */
  enum hipmm_status (*snapshot)(char **json_out);
  /* The report of the resource at `path` or of the stack's top; without `report_out` the action, and without both a trim. */
  enum hipmm_status (*use)(const char *path, const char *action, size_t keep_bytes, char **report_out);
  enum hipmm_status (*ask)(const char *action, uint64_t *number_out); /* joins a request that has no reply yet */
  enum hipmm_status (*reply_to)(const char *action, uint64_t number, struct control_reply *reply_out);
  void (*read_counters)(struct live_file *file); /* of zeros */
  const char *(*error_message)(void);
  void (*string_free)(char *text);
};

/* What the object exports. Answers requests from now on; `calls` lasts, and is of the object's own release, since it may change
 * with each. False with a reason of at most CONTROL_REASON_BYTES. */
typedef bool control_serve_function(const struct control_calls *calls, int version, char *reason);
typedef void control_stop_function(void);
#define CONTROL_SERVE "hipmm_control_serve"
#define CONTROL_STOP  "hipmm_control_stop"

#endif
