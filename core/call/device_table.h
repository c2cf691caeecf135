/* SPDX-License-Identifier: MIT */
/* device_table.h: the per-device table: each device's stack and its current resource. */
#ifndef HIPMM_CORE_CALL_DEVICE_TABLE_H
#define HIPMM_CORE_CALL_DEVICE_TABLE_H

#include "../base/lifecycle.h"
#include "../stack/stack.h"

/* Grows each time that the table is opened or closed: code that remembers something about a device can tell whether it is
 * about the present stack. Odd while the table is open; never 0. */
extern atomic_uint device_table_generation;

/* Opens the table over a graph, whose reference it takes over, and closes the table. The caller serialises the two. No
 * other call is under way during close: the functions below are called between lifecycle_enter() and lifecycle_leave(),
 * except device_table_check(), device_table_count(), device_table_current() and device_table_enter(). */
void device_table_open(struct graph *graph);
void device_table_close(void);

/* The current resource of a device, building its stack if need be, for any user or for this one. Borrowed: it lives until
 * lifecycle_leave(), also if another takes its place meanwhile. */
enum hipmm_status device_table_resource(int device, struct hipmm_resource **resource_out);
enum hipmm_status device_table_resource_for(int device, enum stack_user user, struct hipmm_resource **resource_out);
enum hipmm_status device_table_current_resource(struct hipmm_resource **resource_out);

/* The same without building anything: NULL while the device has no stack. */
struct hipmm_resource *device_table_resource_if_built(int device);

/* Keeps a resource until the table is closed, for a caller that got it as the current one and remembers it. */
void device_table_keep(const struct hipmm_resource *resource);

/* For a call on a resource that the program gives. NULL stands for the current resource of the current device: it is
 * written to *resource, and *thread_out has entered a call (lifecycle.h), so that the resource lasts until
 * lifecycle_leave_thread(). Otherwise *thread_out is NULL. enter_call builds the stack if need be; enter_free builds
 * none: HIPMM_E_POINTER if the device has no stack. */
enum hipmm_status device_table_enter_call(struct hipmm_resource **resource, struct caller_thread **thread_out);
enum hipmm_status device_table_enter_free(struct hipmm_resource **resource, struct caller_thread **thread_out);

/* The device's stack, built if need be, or only if it is there already (NULL when not). Borrowed likewise. */
enum hipmm_status device_table_stack(int device, struct stack **stack_out);
struct stack *device_table_stack_if_built(int device);

/* Calls `build`, unless another thread builds the same: then waits, and calls it. Both may find that it is built.
 * HIPMM_E_STATE for the thread that builds it, and for a thread that would have to wait in a function of the program
 * within an allocation or within a building. */
enum hipmm_status device_table_build_alone(struct building *building, enum hipmm_status (*build)(void *closure),
                                           void *closure);

/* stack_build() of a whole graph for a stack that is not the table's: asks other resources if the device has no memory
 * left for it (reclaim.h). */
enum hipmm_status device_table_build_beside(struct graph *graph, int device, const struct external *external,
                                            struct stack **stack_out);

/* Makes a resource current. NULL: the top of the device's stack, or the top that it will have. The stack is built only if
 * the caller asks for the previous resource, to which the caller then owns a reference. */
enum hipmm_status device_table_set_resource(int device, struct hipmm_resource *resource,
                                            struct hipmm_resource **previous_out);

/* The graph in use, with a reference, if `device` exists. Without a reference, for a change: NULL while the table is
 * closed. */
enum hipmm_status device_table_graph(int device, struct graph **graph_out);
const struct graph *device_table_graph_in_use(void);

enum hipmm_status device_table_current(int *device_out);

/* The number of devices; and HIPMM_E_NO_DEVICE if there is no such device. */
int device_table_count(void);
enum hipmm_status device_table_check(int device);

/* Makes a device current, or says why that cannot be; hip_leave_device() makes `previous` current again. */
enum hipmm_status device_table_enter(int device, int *previous_out);

/* ---- by_name.c ---- */

/* stack_extend(), unless the resource of the node is there. Of several threads one builds, and the others wait. */
enum hipmm_status by_name_build(struct stack *stack, int node);

#endif
