/* SPDX-License-Identifier: MIT */
/* other_abi.c: a plugin of a hipmm that is to come. Nothing after the first four bytes means what it means today. */
#include <hipmm/plugin.h>

HIPMM_EXPORT extern const uint32_t other_abi_LTX_hipmm_plugin[4];

const uint32_t other_abi_LTX_hipmm_plugin[4] = {HIPMM_PLUGIN_ABI + 1, 0xffffffff, 0xffffffff, 0xffffffff};
