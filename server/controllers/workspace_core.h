/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The life cycle of a workspace: decides the next step for its object. Pure.
 *
 *      phase          next phase     when
 *      (none)         Scheduling     at once
 *      Scheduling     Initializing   at once; status.initializers is set, once and for all: our
 *                                    own, then those of spec.initializers, then those that are
 *                                    registered at this moment
 *      Initializing   Ready          the list is empty. Each initializer removes its own name when
 *                                    it is done; ours is done when the namespace ws-<name> exists
 *      any            (deleted)      the workspace is marked for deletion: its namespace is
 *                                    deleted, and when that is gone, the finalizer is removed
 *
 * Invariant: the workspace has the finalizer before anything is created for it. The server adds it
 * to every new workspace. A workspace without it (stored by other means) gets it as the first step.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_WS_FINALIZER        "tenancy.holdfast.dev/workspace"
#define HFD_WS_INITIALIZER      "system:namespace" /* our own */
#define HFD_WS_INITIALIZERS     "status.initializers"
#define HFD_WS_MAX_INITIALIZERS 64 /* per workspace; further ones are ignored */

enum hfd_ws_step {
        HFD_WS_NOTHING,
        HFD_WS_ADD_FINALIZER,
        HFD_WS_SCHEDULE,
        HFD_WS_INITIALIZE,
        HFD_WS_MAKE_NAMESPACE,
        HFD_WS_READY,
        HFD_WS_END_NAMESPACE,
};
/* Decides the next step. HFD_WS_NOTHING: the workspace is Ready, or another program must act
 * first. */
enum hfd_ws_step hfd_ws_next(const struct hf__json *workspace);

/* Does HFD_WS_INITIALIZE: sets the list and the phase Initializing. registered: n names. 0,
 * -ENOMEM. */
int hfd_ws_initialize(struct hf__json *workspace, const char *const *registered, size_t n);
/* Completes HFD_WS_MAKE_NAMESPACE: removes our own name from the list, and sets the phase Ready if
 * the list is empty now. 0, -ENOMEM. */
int hfd_ws_namespace_made(struct hf__json *workspace);
/* 0, -ENOMEM. */
int hfd_ws_set_phase(struct hf__json *workspace, const char *phase);
