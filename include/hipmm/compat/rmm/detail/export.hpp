/* SPDX-License-Identifier: MIT */
/* rmm/detail/export.hpp of RMM since 24.12: visible and hidden symbols, and RMM's namespace. */
#ifndef HIPMM_COMPAT_RMM_DETAIL_EXPORT_HPP
#define HIPMM_COMPAT_RMM_DETAIL_EXPORT_HPP

#include "../version_config.hpp"

#define RMM_EXPORT    __attribute__((visibility("default")))
#define RMM_HIDDEN    __attribute__((visibility("hidden")))
#define RMM_NAMESPACE rmm

#define RMM_NAMESPACE_BEGIN \
  namespace rmm             \
  {
#define RMM_NAMESPACE_END }

#endif
