/* SPDX-License-Identifier: MIT */
/* rmm/version_config.hpp of RMM 26: the file serves both releases. */
#include <hipmm/compat/rmm/version_config.hpp>
