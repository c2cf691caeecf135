/* SPDX-License-Identifier: MIT */
/* limits.h: how much device memory a program can have, with what the graph allows. */
#ifndef HIPMM_PRELOAD_LIMITS_H
#define HIPMM_PRELOAD_LIMITS_H

#include "devices.h"

/* Corrects what the runtime says is free and what there is: memory that the stack holds idle is free to the program,
 * and no more can be had than the limits that stand in the way of every allocation let through. */
void limits_apply(const struct served_device *served, size_t *free_bytes, size_t *total_bytes);

#endif
