/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Steps: one per manifest, in the order in which they are applied. Immutable once they are loaded;
 * then any thread may read them.
 */
#include <stdbool.h>
#include <stddef.h>

#include "bootstrap/content.h"
#include "bootstrap/manifest_kinds.h"

struct hf__step {
        /* owned; identifies the object, independently of its content: "ConfigMap/default/a",
         * "ClusterRole.rbac.authorization.k8s.io/view" */
        char *id;
        const struct hf__manifest_kind *kind; /* borrowed from the kinds */
        char *ns, *name;                      /* owned; ns NULL = cluster scope */
        char *content;                        /* owned; JSON without server-managed fields */
        size_t n_content;                     /* bytes; a NUL follows */
        hf__hash hash;                        /* hash of the content */
        /* owned; for messages: "phase-0/10-admin.json: document 1, line 1" */
        char *source;
        bool any_order; /* its place in the order does not matter */
};

struct hf__steps {
        struct hf__step *list; /* owned */
        size_t n;
};

/* Appends a step. 0: *step is zeroed, and its contents belong to steps. -ENOMEM, HF_E_TOO_LARGE
 * (too many steps): *step is unchanged. */
int hf__steps_append(struct hf__steps *steps, struct hf__step *step);
/* 0, or HF_E_INVALID: a step is in `earlier` too, or twice in steps; the message names both. */
int hf__steps_check_unique(const struct hf__steps *earlier, const struct hf__steps *steps,
                           struct hf_status *reterr_status);
/* Both free the contents and accept a zeroed struct. */
void hf__step_done(struct hf__step *step);
void hf__steps_done(struct hf__steps *steps);
