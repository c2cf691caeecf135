/* SPDX-License-Identifier: MIT */
/* software.h: the functions by which a test steers the software device (plugins/runtimes/software/software.h), and what
 * it counts. */
#ifndef HIPMM_TOOLS_COMMAND_PLUGIN_SOFTWARE_H
#define HIPMM_TOOLS_COMMAND_PLUGIN_SOFTWARE_H

#include <hipmm/plugin.h>
#include <stdbool.h>

/* Its functions of plugins/runtimes/software/software.h, without the prefix. */
struct software {
  uint64_t (*calls)(const char *name);
  const char *(*call)(size_t index, uint64_t *count_out);
  void (*reset_calls)(void);
  bool (*schedule)(const char *name, uint64_t nth, int code);
  void (*fail_none)(void);
  void (*reset)(void);
  bool (*live)(int device, uint64_t *count_out, uint64_t *bytes_out);
  uint64_t (*faults)(int device);
  uint64_t (*pending)(void);
  uint64_t (*step)(uint64_t limit);
  const char *(*race)(size_t index, const char **kind_out);
  void (*choose)(uint64_t (*choose)(void *arg, uint64_t limit), void *arg);
};

/* Loads the plugin `software` if need be. Ends the program with a message if there is none. */
const struct software *software(void);

/* Blocks and handles on all devices that were not given back; and faults: work that ran on memory that was gone. */
uint64_t software_live(void);
uint64_t software_faults(void);

#endif
