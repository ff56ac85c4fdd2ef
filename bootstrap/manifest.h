/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Manifests become steps: one per object, in order, each with an id that names the object whatever
 * its content, the content in its normal form (what the server keeps for itself is taken out), and
 * the content's hash.
 */
#include "bootstrap/content.h"

struct hf__kind {
        char *api_version, *kind, *plural; /* owned */
        char *group, *version;             /* owned; of api_version */
        bool namespaced;
};

struct hf__step {
        char *id; /* owned; "ConfigMap/default/a", "ClusterRole.rbac.authorization.k8s.io/view" */
        const struct hf__kind *kind; /* borrowed from the kinds */
        char *ns, *name;             /* owned; ns NULL = cluster scope */
        char *content;               /* owned; JSON, NUL-terminated */
        size_t n_content;
        hf__hash hash;
        char *source; /* owned; "phase-0/10-admin.json", "/etc/holdfast/a.yaml: document 2, line 14"
                       */
};

struct hf__steps {
        struct hf__step *list; /* owned */
        size_t n;
};

struct hf__kinds {
        struct hf__kind *list; /* owned; not moved once steps were made */
        size_t n;
};

int hf__kinds_copy(const struct hf_bootstrap_kind *kinds, size_t n, struct hf__kinds *ret_kinds);
void hf__kinds_done(struct hf__kinds *kinds); /* accepts a zeroed one */
void hf__steps_done(struct hf__steps *steps); /* likewise */

/*
 * Each appends; on failure what was appended before stays. HF_E_INVALID, HF_E_TOO_LARGE, -errno,
 * with a line that names the source, and the document, line or field.
 */
int hf__steps_add_text(struct hf__steps *steps, const struct hf__kinds *kinds, const char *source,
                       const char *text, size_t n, struct hf_status *reterr_status);
int hf__steps_add_directory(struct hf__steps *steps, const struct hf__kinds *kinds,
                            const char *path, struct hf_status *reterr_status);
/* HF_E_INVALID: the step is in earlier, or twice in steps; the line names both places. */
int hf__steps_check_unique(const struct hf__steps *earlier, const struct hf__steps *steps,
                           struct hf_status *reterr_status);
