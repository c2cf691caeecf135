/* SPDX-License-Identifier: MIT */
/* hipmm/compat/detail/generation.hpp: which RMM the program was written for. HIPMM_COMPAT_RMM is 23 (RMM 23.12, the default)
 * or 26. In 23.12 resources are objects that the program owns, derived from one class, in <rmm/mr/device/…>; in 26 they are
 * values, in <rmm/mr/…>, for which the include folder is …/hipmm/compat/rmm26. What both have is in one file. */
#ifndef HIPMM_COMPAT_DETAIL_GENERATION_HPP
#define HIPMM_COMPAT_DETAIL_GENERATION_HPP

#ifndef HIPMM_COMPAT_RMM
#define HIPMM_COMPAT_RMM 23
#endif

#if HIPMM_COMPAT_RMM != 23 && HIPMM_COMPAT_RMM != 26
#error "HIPMM_COMPAT_RMM is 23, for programs of RMM 23.12, or 26, for programs of RMM 26"
#include <HIPMM_COMPAT_RMM> /* here and in the other headers: a missing file ends the compilation without more errors */
#endif

#if defined(RMM_VERSION_MAJOR) && !defined(HIPMM_COMPAT_RMM_VERSION_CONFIG_HPP)
#error \
    "RMM's own headers were included before hipmm's of the same names; remove one of the two from the include folders"
#include <HIPMM_COMPAT_RMM>
#endif

/* Classes that differ between the two have other names for the linker, so that a program may be linked from files of both. */
#if HIPMM_COMPAT_RMM == 26
#define HIPMM_COMPAT_TAG [[gnu::abi_tag("rmm26")]]
#else
#define HIPMM_COMPAT_TAG
#endif

#endif
