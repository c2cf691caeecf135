/* SPDX-License-Identifier: MIT */
/* hipmm/control.h: what `hipmm ctl` asks the program itself to do. hipmm cannot suspend memory from outside, since only the
 * program knows when no work uses it. So `hipmm ctl PROCESS suspend` tells the program that somebody wants it; the program
 * suspends its resources at its next safe point, and replies.
 *
 * A process is controlled if a graph that was named, not only found, says "control": true, or with HIPMM_CONTROL=1 in its
 * environment. Both functions work before hipmm_init() and without control too; nobody asks then. They are thread-safe. */
#ifndef HIPMM_CONTROL_H
#define HIPMM_CONTROL_H

#include <hipmm/hipmm.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default) /* the library itself is compiled with hidden symbols */
#endif

/* From now on `request` is called with `arg` when somebody asks for `action`, which is "suspend" or "resume"; it takes the place
 * of an earlier function. NULL: the program does not do it any more. A request that has no reply yet fails. When this
 * returns, the earlier function is not running, unless it is what calls this. The names are copied; `arg` stays the caller's.
 *
 * `request` runs on a thread of hipmm, one call at a time. It says to the program what is wanted, for example by a flag, and
 * returns soon: hipmm_finalize() waits for it. In it, of all functions of hipmm only hipmm_control_reply(),
 * hipmm_control_register() and the functions of errors may be called; others fail with HIPMM_E_STATE. It is not called again
 * before the request has ended: by the reply, by hipmm_control_register(), or by the last hipmm_finalize().
 *
 * HIPMM_E_ARGUMENT: there is no such action. HIPMM_E_STATE: in a fork's child. */
enum hipmm_status hipmm_control_register(const char *action, void (*request)(void *arg), void *arg);

/* Says that the program has done what was asked for (HIPMM_OK), or why it has not: a failed status, with the message of the
 * calling thread's last error if that has this status. Any thread may reply. HIPMM_E_STATE: nobody has asked, or the request
 * has ended already. */
enum hipmm_status hipmm_control_reply(const char *action, enum hipmm_status result);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif
#endif
