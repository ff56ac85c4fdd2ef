/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rules of authorization that no object can change.
 *
 * Invariant: they depend on the request and its user alone, and on no stored object. So no mistake
 * in a role can lock the administrator out, or make a probe of the server's health fail.
 */
#include "server/auth/fixed_rules.h"

#include <assert.h>
#include <string.h>

/* Whether everybody may read the path: health and version, because probes have no credentials. A
 * single check (/livez/ping) needs a right, as in Kubernetes. */
static bool is_public_path(const char *path) {
        static const char *const paths[] = {"/healthz", "/livez", "/readyz"};
        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                if (strcmp(path, paths[i]) == 0)
                        return true;
        return strcmp(path, "/version") == 0 || strcmp(path, "/version/") == 0;
}

bool hfd_fixed_rules_allow(const struct hfd_subject *subject,
                           const struct hfd_attributes *attributes) {
        assert(attributes->verb && attributes->path);
        if (hfd_subject_in_group(subject, HFD_GROUP_MASTERS))
                return true;
        bool reads = strcmp(attributes->verb, "get") == 0 || strcmp(attributes->verb, "head") == 0;
        return !attributes->is_resource && reads && is_public_path(attributes->path);
}
