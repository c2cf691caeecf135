/* SPDX-License-Identifier: MIT */
/* rmm/rmm_api.h of RMM 0.12. */
#ifndef RMM_RMM_API_H
#define RMM_RMM_API_H
#include <hipmm/compat/rmm_api.h>
#endif
