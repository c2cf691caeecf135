/* SPDX-License-Identifier: MIT */
/* rmm/version_config.hpp: the release of RMM whose interface these headers have. */
#ifndef HIPMM_COMPAT_RMM_VERSION_CONFIG_HPP
#define HIPMM_COMPAT_RMM_VERSION_CONFIG_HPP

#include <hipmm/compat/detail/generation.hpp>

#if HIPMM_COMPAT_RMM == 26
#define RMM_VERSION_MAJOR 26
#define RMM_VERSION_MINOR 10
#define RMM_VERSION       "26.10.0"
#else
#define RMM_VERSION_MAJOR 23
#define RMM_VERSION_MINOR 12
#define RMM_VERSION       "23.12.0"
#endif
#define RMM_VERSION_PATCH 0

/* A release as one number, for comparisons. */
#define HIPMM_COMPAT_RELEASE(major, minor, patch) ((major)*10000 + (minor)*100 + (patch))
#define HIPMM_COMPAT_THIS_RELEASE                 HIPMM_COMPAT_RELEASE(RMM_VERSION_MAJOR, RMM_VERSION_MINOR, RMM_VERSION_PATCH)
#define RMM_VERSION_GT(major, minor, patch)       (HIPMM_COMPAT_THIS_RELEASE > HIPMM_COMPAT_RELEASE(major, minor, patch))
#define RMM_VERSION_LT(major, minor, patch)       (HIPMM_COMPAT_THIS_RELEASE < HIPMM_COMPAT_RELEASE(major, minor, patch))
#define RMM_VERSION_EQ(major, minor, patch)       (HIPMM_COMPAT_THIS_RELEASE == HIPMM_COMPAT_RELEASE(major, minor, patch))

#endif
