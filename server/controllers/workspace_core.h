/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The state machine of a workspace: decides the next step for the object. Pure.
 *
 *      phase          next phase     when
 *      (none)         Scheduling     at once
 *      Scheduling     Initializing   at once; sets status.initializers, which is never extended
 *                                    later: HFD_WS_INITIALIZER, then the names in
 *                                    spec.initializers, then those that are registered now
 *      Initializing   Ready          the list is empty: each initializer removes its name when it
 *                                    is done. workspace_initializer.c removes
 *                                    HFD_WS_INITIALIZER when the namespace ws-<name> exists
 *      any            (deleted)      the workspace is marked for deletion: the namespace
 *                                    that it owns is deleted, and when that is gone, the
 *                                    finalizer is removed
 *
 * Invariant: the workspace has the finalizer before anything is created for it. The server adds it
 * to every new workspace. If a workspace does not have it, adding it is the first step.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_WS_FINALIZER        "tenancy.holdfast.dev/workspace"
#define HFD_WS_INITIALIZER      "system:namespace" /* the entry of workspace_initializer.c */
#define HFD_WS_INITIALIZERS     "status.initializers"
#define HFD_WS_MAX_INITIALIZERS 64 /* per workspace; further ones are ignored */

enum hfd_workspace_step {
        HFD_WS_NOTHING,
        HFD_WS_ADD_FINALIZER,
        HFD_WS_SCHEDULE,
        HFD_WS_INITIALIZE,
        HFD_WS_CREATE_NAMESPACE,
        HFD_WS_READY,
        HFD_WS_DELETE_NAMESPACE,
};
/* Decides the next step. HFD_WS_NOTHING: nothing is left to do, or another initializer or the
 * garbage collector must act first. */
enum hfd_workspace_step hfd_workspace_next(const struct hf__json *workspace);

/* The step HFD_WS_INITIALIZE: sets the list and the phase Initializing. registered: n names. 0,
 * -ENOMEM. */
int hfd_workspace_initialize(struct hf__json *workspace, const char *const *registered, size_t n);
/* Completes HFD_WS_CREATE_NAMESPACE: removes HFD_WS_INITIALIZER from the list, and sets the phase
 * Ready if the list is then empty. 0, -ENOMEM. */
int hfd_workspace_namespace_created(struct hf__json *workspace);
/* 0, -ENOMEM. */
int hfd_workspace_set_phase(struct hf__json *workspace, const char *phase);
