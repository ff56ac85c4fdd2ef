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

/* Whether the path tells the server's health. A single check (/livez/ping) does not count: it needs
 * a right, as in Kubernetes. */
static bool is_health_path(const char *path) {
        static const char *const paths[] = {"/healthz", "/livez", "/readyz"};

        for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
                if (strcmp(path, paths[i]) == 0)
                        return true;
        return false;
}

static bool is_version_path(const char *path) {
        return strcmp(path, "/version") == 0 || strcmp(path, "/version/") == 0;
}

/* Everybody may read health and version, because probes have no credentials. Everybody also has the
 * right to request health as another user (impersonate-on), as in Kubernetes. The sender still
 * needs the right to impersonate that user. */
static bool is_public(const char *verb, const char *path) {
        static const char on[] = "impersonate-on:";

        if (strcmp(verb, "get") == 0 || strcmp(verb, "head") == 0)
                return is_health_path(path) || is_version_path(path);
        return strncmp(verb, on, strlen(on)) == 0 && is_health_path(path);
}

bool hfd_fixed_rules_allow(const struct hfd_subject *subject,
                           const struct hfd_attributes *attributes) {
        assert(attributes->verb && attributes->path);
        if (hfd_subject_in_group(subject, HFD_GROUP_MASTERS))
                return true;
        return !attributes->is_resource && is_public(attributes->verb, attributes->path);
}
