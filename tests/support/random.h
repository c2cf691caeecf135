/* SPDX-License-Identifier: MIT */
/* random.h: the tests draw their numbers as the conformance kit does. */
#ifndef HIPMM_TESTS_SUPPORT_RANDOM_H
#define HIPMM_TESTS_SUPPORT_RANDOM_H

#include "../../tools/command/plugin/random.h"

#endif
