/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The decisions of the controller api-services. Labels, reasons and texts are those of
 * kube-apiserver, which clients read.
 *
 * Invariants: a function finds nothing to change in an object that it has just changed; otherwise
 * the controller would write for ever. The spec of an APIService without the label automanaged
 * stays, because a user has made that one.
 */
#include "server/controllers/api_services/api_service_core.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"

#define AVAILABLE "Available"
#define MANAGED   "kube-aggregator.kubernetes.io/automanaged"
/* The values of that label. "onstart": the APIService exists from the start of the server on.
 * "true": it exists as long as a definition serves its group version. */
#define ON_START "onstart"
#define CUSTOM   "true"
/* Low, so that a client that finds a kind in several groups takes a built-in one. */
#define CUSTOM_GROUP_PRIORITY   1000
#define CUSTOM_VERSION_PRIORITY 100

void hfd_api_service_name(const struct hfd_api_version *version,
                          char name[HFD_API_SERVICE_NAME_MAX]) {
        (void)snprintf(name, HFD_API_SERVICE_NAME_MAX, "%s.%s", version->version, version->group);
}

bool hfd_api_service_custom_version(const char *name, char space[HFD_API_SERVICE_NAME_MAX],
                                    struct hfd_api_version *ret_version) {
        size_t n_version = strcspn(name, ".");

        if (n_version == 0 || strlen(name) >= HFD_API_SERVICE_NAME_MAX ||
            !strchr(name + n_version + (name[n_version] == '.'), '.'))
                return false; /* the group of a definition has a dot */
        memcpy(space, name, strlen(name) + 1);
        space[n_version] = '\0';
        *ret_version = (struct hfd_api_version){.group = space + n_version + 1,
                                                .version = space,
                                                .group_priority = CUSTOM_GROUP_PRIORITY,
                                                .version_priority = CUSTOM_VERSION_PRIORITY,
                                                .is_custom = true};
        return true;
}

/* NULL = out of memory. */
static struct hf__json *make_spec(const struct hfd_api_version *version) {
        struct hf__json *spec = hf__json_object();
        int r = *version->group ? hf__json_add_string(spec, "group", version->group) : 0;

        if (r == 0)
                r = hf__json_add_string(spec, "version", version->version);
        if (r == 0)
                r = hf__json_set_i64(spec, "groupPriorityMinimum", version->group_priority);
        if (r == 0)
                r = hf__json_set_i64(spec, "versionPriority", version->version_priority);
        return r == 0 ? spec : hf__json_free(spec);
}

struct hf__json *hfd_api_service_make(const struct hfd_api_version *version) {
        HF__CLEANUP(hf__json_cleanup)
        struct hf__json *service = hf__json_object(), *labels = hf__json_object();
        char name[HFD_API_SERVICE_NAME_MAX];
        int r = hf__json_add_string(labels, MANAGED, version->is_custom ? CUSTOM : ON_START);

        hfd_api_service_name(version, name);
        if (r != 0 || !service)
                return NULL;
        r = hf__json_set(service, "metadata.labels", HF__TAKE(labels));
        if (r == 0)
                r = hf__json_set_string(service, "apiVersion", "apiregistration.k8s.io/v1");
        if (r == 0)
                r = hf__json_set_string(service, "kind", "APIService");
        if (r == 0)
                r = hf__json_set_string(service, "metadata.name", name);
        if (r == 0)
                r = hf__json_add(service, "spec", make_spec(version));
        return r == 0 ? HF__TAKE(service) : NULL;
}

int hfd_api_service_restore(struct hf__json *service, const struct hfd_api_version *version,
                            bool *ret_changed) {
        const struct hf__json *labels = hf__json_path(service, "metadata.labels");
        struct hf__json *spec;

        *ret_changed = false;
        if (!hf__json_get(labels, MANAGED))
                return 0;
        spec = make_spec(version);
        if (!spec)
                return -ENOMEM;
        *ret_changed = !hf__json_equal(spec, hf__json_get(service, "spec"));
        if (*ret_changed)
                return hf__json_put(service, "spec", spec);
        hf__json_free(spec);
        return 0;
}

bool hfd_api_service_is_custom(const struct hf__json *service) {
        const char *value =
                hf__json_text(hf__json_get(hf__json_path(service, "metadata.labels"), MANAGED));

        return value && strcmp(value, CUSTOM) == 0;
}

/* ---- the condition ---- */

struct condition {
        const char *status, *reason, *message;
};

static bool has_condition(const struct hf__json *condition, const struct condition *wanted) {
        return hf__json_has_text(condition, "status", wanted->status) &&
               hf__json_has_text(condition, "reason", wanted->reason) &&
               hf__json_has_text(condition, "message", wanted->message);
}

/* lastTransitionTime changes only when the status does. */
static int write_condition(struct hf__json *condition, const struct condition *wanted,
                           const char *now) {
        int r = 0;

        if (!hf__json_has_text(condition, "status", wanted->status))
                r = hf__json_put_string(condition, "lastTransitionTime", now);
        if (r == 0)
                r = hf__json_put_string(condition, "type", AVAILABLE);
        if (r == 0)
                r = hf__json_put_string(condition, "status", wanted->status);
        if (r == 0)
                r = hf__json_put_string(condition, "reason", wanted->reason);
        return r == 0 ? hf__json_put_string(condition, "message", wanted->message) : r;
}

int hfd_api_service_set_available(struct hf__json *service, const char *now, bool *ret_changed) {
        const struct hf__json *named = hf__json_path(service, "spec.service");
        const char *ns = hf__json_string(named, "namespace"),
                   *name = hf__json_string(named, "name");
        struct condition wanted = {"True", "Local", "Local APIServices are always available"};
        struct hf__json *condition;
        char message[600];

        if (named) {
                (void)snprintf(message, sizeof message,
                               "service/%.253s in \"%.253s\" is not present", name ? name : "",
                               ns ? ns : "");
                wanted = (struct condition){"False", "ServiceNotFound", message};
        }
        *ret_changed = false;
        int r = hf__json_find_or_append(service, "status.conditions", "type", AVAILABLE,
                                        &condition);
        if (r != 0 || has_condition(condition, &wanted))
                return r;
        *ret_changed = true;
        return write_condition(condition, &wanted, now);
}
