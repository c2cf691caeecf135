/* SPDX-License-Identifier: MIT */
/* tag.h: what the calling thread allocates for, as the program says it with hipmm_tag_push(). */
#ifndef HIPMM_CORE_BASE_TAG_H
#define HIPMM_CORE_BASE_TAG_H

#include <hipmm/plugin.h>

/* services->tags and services->tags_used. */
const char *tag_lines(const struct hipmm_services *services);
extern uint32_t tag_is_used;

#endif
