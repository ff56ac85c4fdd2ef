/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The paths of a resource and the operations on them, for OpenAPI documents. Pure. Thread: any.
 */
#include "server/resources/resource.h"

struct hf__strbuf;

struct hfd_openapi_operation {
        const char *method; /* of HTTP, in lower case */
        const char *action; /* x-kubernetes-action; also begins the operation's id */
        bool writes;        /* it has dryRun, fieldManager and fieldValidation */
        bool of_collection; /* the path has no name */
};

/* All operations on a resource; static. */
const struct hfd_openapi_operation *hfd_openapi_operations(size_t *ret_n);
/* Whether the resource has the operation. */
bool hfd_openapi_has_operation(const struct hfd_resource *resource,
                               const struct hfd_openapi_operation *operation);
/* Appends "/api/v1/namespaces/{namespace}/configmaps/{name}". */
void hfd_openapi_put_path(struct hf__strbuf *s, const struct hfd_resource *resource,
                          bool of_collection);
/* "api/v1" or "apis/GROUP/VERSION" */
void hfd_openapi_put_prefix(struct hf__strbuf *s, const struct hfd_resource *resource);
/* The names of the query parameters of a write, which clients look for; ends with NULL. */
extern const char *const hfd_openapi_write_parameters[];
