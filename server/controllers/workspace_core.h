/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The life of a workspace, as the next step for its object. Pure.
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
 * Invariant: the finalizer is there before anything is made for the workspace. The server puts it
 * into every new workspace; one without it (stored by other means) gets it first.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_WS_FINALIZER        "tenancy.holdfast.dev/workspace"
#define HFD_WS_INITIALIZER      "system:namespace" /* our own */
#define HFD_WS_INITIALIZERS     "status.initializers"
#define HFD_WS_MAX_INITIALIZERS 64 /* of one workspace; further ones are left out */

enum hfd_ws_step {
        HFD_WS_NOTHING,
        HFD_WS_ADD_FINALIZER,
        HFD_WS_SCHEDULE,
        HFD_WS_INITIALIZE,
        HFD_WS_MAKE_NAMESPACE,
        HFD_WS_READY,
        HFD_WS_END_NAMESPACE,
};
/* What to do next. HFD_WS_NOTHING: it is Ready, or others have to act first. */
enum hfd_ws_step hfd_ws_next(const struct hf__json *workspace);

/* HFD_WS_INITIALIZE: sets the list and the phase Initializing. registered: n names. 0, -ENOMEM. */
int hfd_ws_initialize(struct hf__json *workspace, const char *const *registered, size_t n);
/* The end of HFD_WS_MAKE_NAMESPACE: removes our own name from the list, and if that was the last
 * one, sets the phase Ready. 0, -ENOMEM. */
int hfd_ws_namespace_made(struct hf__json *workspace);
/* 0, -ENOMEM. */
int hfd_ws_set_phase(struct hf__json *workspace, const char *phase);
