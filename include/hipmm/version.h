/* SPDX-License-Identifier: MIT */
/* hipmm/version.h: the version of these headers. hipmm_version_number() and hipmm_version() tell the version of the library
 * in use, which may be another one: see doc/abi.md. */
#ifndef HIPMM_VERSION_H
#define HIPMM_VERSION_H

/* configure compares these numbers with the version in configure.ac. MAJOR is also the number of the library's soname. */
#define HIPMM_VERSION_MAJOR 0
#define HIPMM_VERSION_MINOR 1
#define HIPMM_VERSION_PATCH 0

/* As one number, for comparisons. */
#define HIPMM_VERSION (HIPMM_VERSION_MAJOR * 10000 + HIPMM_VERSION_MINOR * 100 + HIPMM_VERSION_PATCH)

#endif
