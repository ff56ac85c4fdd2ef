/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of resources and the operations on them, for OpenAPI. kubectl finds a kind by the
 * operations of its paths. By the parameters of PATCH it learns that the server supports dry runs,
 * and validates fields itself.
 */
#include "server/handlers/openapi/paths.h"

#include <string.h>

#include "base/strbuf.h"

static const struct hfd_openapi_operation operations[] = {
        {"get", "list", false, true},
        {"post", "post", true, true},
        {"delete", "deletecollection", true, true},
        {"get", "get", false, false},
        {"put", "put", true, false},
        {"patch", "patch", true, false},
        {"delete", "delete", true, false},
};

const char *const hfd_openapi_write_parameters[] = {"dryRun", "fieldManager", "fieldValidation",
                                                    NULL};

const struct hfd_openapi_operation *hfd_openapi_operations(size_t *ret_n) {
        *ret_n = sizeof operations / sizeof operations[0];
        return operations;
}

bool hfd_openapi_has_operation(const struct hfd_resource *resource,
                               const struct hfd_openapi_operation *operation) {
        bool deletes = operation->method[0] == 'd';

        if (resource->is_report)
                return strcmp(operation->method, "get") == 0;
        if (resource->is_review)
                return strcmp(operation->method, "post") == 0;

        return !(resource->no_delete_collection && deletes && operation->of_collection);
}

void hfd_openapi_put_prefix(struct hf__strbuf *s, const struct hfd_resource *resource) {
        hf__strbuf_printf(s, *resource->group ? "apis/%s/%s" : "api%s/%s", resource->group,
                          resource->version);
}

void hfd_openapi_put_path(struct hf__strbuf *s, const struct hfd_resource *resource,
                          bool of_collection) {
        hf__strbuf_putc(s, '/');
        hfd_openapi_put_prefix(s, resource);
        hf__strbuf_printf(s, "%s/%s%s", resource->namespaced ? "/namespaces/{namespace}" : "",
                          resource->plural, of_collection ? "" : "/{name}");
}
