/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Responds to requests for groups that an APIService assigns to a service, which this server does
 * not call: they get 503 in place of 404.
 *
 * Invariant: only requests for resources that would get 404, and those for documents below
 * /apis/GROUP, reach the look-up in the cache, so it delays no other request. A group version that
 * this server serves is never refused.
 */
#include "server/handlers/rest/remote_group.h"

#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/handlers/rest/rest_request.h"
#include "server/resources/custom/served_rows.h"
#include "server/resources/rows/resource_table.h"

/* Whether an APIService of this name names a service. */
static bool is_remote(struct hfd_cacher *cacher, const char *name) {
        const struct hfd_resource *services =
                hfd_resource_find("apiregistration.k8s.io", "v1", "apiservices");
        struct hfd_object *object = hfd_cacher_get(cacher, services, name);
        struct hf__json *json = object ? hfd_object_parse(object) : NULL;
        bool remote = hf__json_path(json, "spec.service") != NULL;

        hf__json_free(json);
        hfd_object_unref(object);
        return remote;
}

/* Whether this server serves the group version. True if memory runs out: then nothing is refused.
 */
static bool is_served(struct hfd_cacher *cacher, const char *group, const char *version) {
        struct hfd_served_rows *rows = hfd_served_rows_new(hfd_cacher_table(cacher));
        bool served = !rows || hfd_served_find_version(rows, group, version) < rows->n;

        hfd_served_rows_free(rows);
        return served;
}

void hfd_remote_group_refuse(struct hfd_cacher *cacher, const char *group, const char *version,
                             struct hfd_response *response) {
        char name[HF_NAME_MAX + 1];
        int n = snprintf(name, sizeof name, "%s.%s", version, group);

        if (n < 0 || (size_t)n >= sizeof name || !is_remote(cacher, name) ||
            is_served(cacher, group, version))
                return;
        hfd_response_done(response);
        *response = (struct hfd_response){0};
        hfd_response_status(response, HF_E_UNAVAILABLE, 503, "ServiceUnavailable",
                            "service unavailable", NULL);
}

bool hfd_remote_group_handle(struct hfd_registry *registry, struct hfd_http_request *http_request) {
        static const char apis[] = "/apis/";
        const char *path = hfd_http_request_path(http_request);
        struct hfd_response response = {0};
        char group[HF_NAME_MAX + 1];

        if (strncmp(path, apis, sizeof apis - 1) != 0)
                return false;
        path += sizeof apis - 1;
        size_t n = strcspn(path, "/");
        if (path[n] == '\0' || n >= sizeof group)
                return false;
        memcpy(group, path, n);
        group[n] = '\0';
        char version[HF_NAME_MAX + 1];
        n = (size_t)snprintf(version, sizeof version, "%s", path + n + 1);
        if (n > 0 && n < sizeof version && version[n - 1] == '/')
                version[n - 1] = '\0';
        hfd_remote_group_refuse(registry->cacher, group, version, &response);
        if (response.code == 0)
                return false;
        hfd_rest_respond(http_request, NULL, &response, NULL);
        hfd_response_done(&response);
        hfd_http_request_unref(http_request);
        return true;
}
