/* SPDX-License-Identifier: MIT */
/* control_format.h: what `hipmm ctl` and tools/control send each other (peer_socket.h): requests and answers of the kind
 * PEER_CONTROL. */
#ifndef HIPMM_PLUGINS_COMMON_CONTROL_FORMAT_H
#define HIPMM_PLUGINS_COMMON_CONTROL_FORMAT_H

#include "peer_socket.h"

/* A verb keeps its number. */
enum control_verb {
  CONTROL_COUNTERS = 1, /* the text is a struct live_file */
  CONTROL_SNAPSHOT,     /* hipmm_snapshot() */
  CONTROL_LIST,         /* hipmm_list(path) */
  CONTROL_GET,          /* hipmm_get(path) */
  CONTROL_SET,          /* hipmm_set(path, value) */
  CONTROL_TRIM,         /* the resource at `path`, or all; keeps `number` bytes */
  CONTROL_FLUSH,        /* the log that the resource writes */
  CONTROL_REPORT,       /* hipmm_resource_report() */
  CONTROL_ASK,          /* asks the program for the action `path`; the answer's number is the request's */
  CONTROL_REPLY,        /* of the program to the request `number` for the action `path` */
  CONTROL_VERBS
};

/* Followed by the path and the value, each ended by a 0. */
struct control_request {
  uint32_t verb, unused;
  uint64_t number;
};

/* Followed by the reason of a failure, ended by the message's end. A text is in a file that comes with the answer. */
struct control_answer {
  int32_t status;   /* enum hipmm_status */
  uint32_t is_done; /* of CONTROL_REPLY: the program has replied, and the status is its own */
  uint64_t number, text_bytes;
};

#endif
