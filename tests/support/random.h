/* SPDX-License-Identifier: MIT */
/* random.h: the tests draw their numbers as the conformance kit does. */
#ifndef HIPMM_TESTS_SUPPORT_RANDOM_H
#define HIPMM_TESTS_SUPPORT_RANDOM_H

#include "../../core/cmd/plugin/random.h"

#endif
