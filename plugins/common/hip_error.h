/* SPDX-License-Identifier: MIT */
/* hip_error.h: the names and meanings of HIP's error codes, for the runtimes. The codes are numbers, which HIP does not
 * change: plugins/common includes no header of HIP. */
#ifndef HIPMM_PLUGINS_COMMON_HIP_ERROR_H
#define HIPMM_PLUGINS_COMMON_HIP_ERROR_H

struct hip_error {
  int code;
  const char *name, *text;
};

/* The row of a code, or of a name; NULL if there is none. The names that HIP kept for codes which it renamed are not looked
 * for: no runtime here returns them. */
const struct hip_error *hip_error_find(int code);
const struct hip_error *hip_error_find_name(const char *name);

/* A code without a row has a name and a text, too. */
const char *hip_error_name(int code);
const char *hip_error_text(int code);

#endif
