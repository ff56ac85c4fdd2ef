/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads from a row which subresources it has, and makes the names of a resource in paths and
 * messages.
 *
 * Invariant: group and version of each row are short enough for HFD_API_VERSION_MAX.
 */
#include "server/resources/resource.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

static const struct {
        const char *name;
        enum hfd_subresource subresource;
} subresources[] = {{"", HFD_SUB_NONE},
                    {"status", HFD_SUB_STATUS},
                    {"finalize", HFD_SUB_FINALIZE},
                    {"approval", HFD_SUB_APPROVAL},
                    {"token", HFD_SUB_TOKEN},
                    {"scale", HFD_SUB_SCALE},
                    {"binding", HFD_SUB_BINDING},
                    {"eviction", HFD_SUB_EVICTION},
                    {"ephemeralcontainers", HFD_SUB_EPHEMERAL_CONTAINERS},
                    {"resize", HFD_SUB_RESIZE}};

#define N_SUBRESOURCES (sizeof subresources / sizeof subresources[0])

bool hfd_resource_subresource(const struct hfd_resource *resource, const char *name,
                              enum hfd_subresource *ret_subresource) {
        for (size_t i = 0; i < N_SUBRESOURCES; i++)
                if (strcmp(subresources[i].name, name) == 0) {
                        /* HFD_SUB_NONE is 0, so the test below accepts it for every row. */
                        unsigned bit = (unsigned)subresources[i].subresource;
                        *ret_subresource = subresources[i].subresource;
                        return (resource->subresources & bit) == bit;
                }
        return false;
}

const char *hfd_subresource_name(enum hfd_subresource subresource) {
        for (size_t i = 0; i < N_SUBRESOURCES; i++)
                if (subresources[i].subresource == subresource)
                        return subresources[i].name;
        return "";
}

const struct hfd_part_rules *hfd_resource_part_rules(const struct hfd_resource *resource,
                                                     enum hfd_subresource subresource) {
        const struct hfd_part_rules *rules = resource->parts;

        return rules && (rules->of & (unsigned)subresource) != 0 ? rules : NULL;
}

bool hfd_is_system_namespace(const char *name) {
        return strcmp(name, "default") == 0 || strcmp(name, "kube-system") == 0 ||
               strcmp(name, "kube-public") == 0 || strcmp(name, "kube-node-lease") == 0;
}

void hfd_resource_api_version(const struct hfd_resource *resource, char text[HFD_API_VERSION_MAX]) {
        size_t n = hf__join(text, HFD_API_VERSION_MAX, resource->group, *resource->group ? "/" : "",
                            resource->version, NULL);

        assert(n > 0); /* 0 = too long: the code that has made the row is wrong */
        (void)n;
}

void hfd_resource_qualified(const struct hfd_resource *resource, char text[HFD_QUALIFIED_MAX]) {
        (void)snprintf(text, HFD_QUALIFIED_MAX, "%s%s%s", resource->plural,
                       *resource->group ? "." : "", resource->group);
}
