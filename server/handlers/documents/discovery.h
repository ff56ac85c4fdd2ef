/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Discovery: describes which groups, versions and resources are served
 * (https://kubernetes.io/docs/concepts/overview/kubernetes-api/#discovery-api). The documents are
 * generated from the rows (resources) that are served. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "server/resources/resource.h"

struct hf__strbuf;
struct hfd_custom_table;
struct hfd_served_rows;

/*
 * Returns the JSON document at path: /api, /api/v1, /apis, /apis/GROUP or /apis/GROUP/VERSION.
 * Slashes at the end are ignored. *ret_code is 200. NULL: *ret_code is 404 (there is no document at
 * path) or 500 (out of memory). table NULL = without custom resources; otherwise with
 * those that table serves now. Thread: any; takes only the lock of table.
 */
struct hf__buf *hfd_discovery(struct hfd_custom_table *table, const char *path, int *ret_code);
/*
 * Whether a HEAD of path is answered as a GET. As in Kubernetes, this is so for /apis, for
 * /apis/GROUP, and for /apis/GROUP/VERSION if the version has only custom resources. The other
 * documents have GET only. True also for a path below /apis that has no document, which is then a
 * 404. Slashes at the end, and table: as for hfd_discovery.
 */
bool hfd_discovery_takes_head(struct hfd_custom_table *table, const char *path);

/* ---- common parts of the plain documents and of aggregated discovery ---- */

/* Appends the versions of a group, whose first row is number i, with commas between them. put
 * appends one version, whose first row is number i. */
void hfd_discovery_put_versions(struct hf__strbuf *s, const struct hfd_served_rows *rows, size_t i,
                                void (*put)(struct hf__strbuf *s,
                                            const struct hfd_served_rows *rows, size_t i));
/* Appends the members for the short names and the categories of a resource, each after a comma. */
void hfd_discovery_put_names(struct hf__strbuf *s, const struct hfd_resource *row);
/* The verbs of a resource, as a JSON array. */
const char *hfd_discovery_verbs(const struct hfd_resource *row);
struct hfd_discovery_subresource {
        const char *name;
        const char *verbs;                /* a JSON array */
        const struct hfd_resource *other; /* its kind; NULL = the kind of the resource */
};
/* The resource's subresource number i, in alphabetical order. False: it has not so many. */
bool hfd_discovery_subresource(const struct hfd_resource *row, size_t i,
                               struct hfd_discovery_subresource *ret_sub);
/* Whether the subresource has a kind of another group or version than the resource. Only then does
 * discovery name them: it does not for pods/binding. Aggregated discovery also names them for each
 * subresource of a custom resource. */
bool hfd_discovery_is_foreign(const struct hfd_resource *row,
                              const struct hfd_discovery_subresource *sub);
