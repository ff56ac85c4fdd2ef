/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The life of a workspace, as decisions about its object. Pure.
 *
 *      (none)       -> Scheduling    seen and taken on
 *      Scheduling   -> Initializing  status.initializers is set, once and for all: our own, those
 * of spec.initializers, and those that are registered at this moment Initializing each initializer
 * takes its own name off the list when it is done; ours is done when the namespace ws-<name> exists
 *      Initializing -> Ready         the list is empty
 *      any, marked for deletion      its namespace is deleted and gone, then the finalizer is taken
 * off
 *
 * The finalizer is there before anything is made for the workspace: the server puts it into every
 * new one.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__json;

#define HFD_WS_FINALIZER        "tenancy.holdfast.dev/workspace"
#define HFD_WS_INITIALIZER      "system:namespace" /* ours */
#define HFD_WS_INITIALIZERS     "status.initializers"
#define HFD_WS_MAX_INITIALIZERS 64 /* of one workspace; further ones are not put on the list */

enum hfd_ws_step {
        HFD_WS_NOTHING,
        HFD_WS_ADD_FINALIZER,
        HFD_WS_SCHEDULE,
        HFD_WS_INITIALIZE,
        HFD_WS_MAKE_NAMESPACE,
        HFD_WS_READY,
        HFD_WS_END_NAMESPACE,
};
enum hfd_ws_step hfd_ws_next(const struct hf__json *workspace);

/* Sets the list and the phase of Initializing. registered: n names, borrowed. 0, -ENOMEM. */
int hfd_ws_initialize(struct hf__json *workspace, const char *const *registered, size_t n);
/* Takes our own name off; the workspace is Ready with it when that was the last. 0, -ENOMEM. */
int hfd_ws_namespace_made(struct hf__json *workspace);
int hfd_ws_set_phase(struct hf__json *workspace, const char *phase);
