/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a row says of its subresources, and the names of a resource in paths and messages.
 *
 * Invariant: group and version of each row are short enough for HFD_API_VERSION_MAX.
 */
#include "server/resources/resource.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

bool hfd_resource_subresource(const struct hfd_resource *resource, const char *name,
                              enum hfd_subresource *ret_subresource) {
        static const struct {
                const char *name;
                enum hfd_subresource subresource;
        } all[] = {{"", HFD_SUB_NONE},
                   {"status", HFD_SUB_STATUS},
                   {"finalize", HFD_SUB_FINALIZE},
                   {"approval", HFD_SUB_APPROVAL},
                   {"token", HFD_SUB_TOKEN},
                   {"scale", HFD_SUB_SCALE},
                   {"binding", HFD_SUB_BINDING},
                   {"eviction", HFD_SUB_EVICTION}};

        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strcmp(all[i].name, name) == 0) {
                        /* HFD_SUB_NONE is 0, so the test below accepts it for every row. */
                        unsigned bit = (unsigned)all[i].subresource;
                        *ret_subresource = all[i].subresource;
                        return (resource->subresources & bit) == bit;
                }
        return false;
}

bool hfd_is_system_namespace(const char *name) {
        return strcmp(name, "default") == 0 || strcmp(name, "kube-system") == 0 ||
               strcmp(name, "kube-public") == 0 || strcmp(name, "kube-node-lease") == 0;
}

void hfd_resource_api_version(const struct hfd_resource *resource, char text[HFD_API_VERSION_MAX]) {
        size_t n = hf__join(text, HFD_API_VERSION_MAX, resource->group, *resource->group ? "/" : "",
                            resource->version, NULL);

        assert(n > 0); /* 0 = too long: a row of the table is wrong */
        (void)n;
}

void hfd_resource_qualified(const struct hfd_resource *resource, char text[HFD_QUALIFIED_MAX]) {
        (void)snprintf(text, HFD_QUALIFIED_MAX, "%s%s%s", resource->plural,
                       *resource->group ? "." : "", resource->group);
}
