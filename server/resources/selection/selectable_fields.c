/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that Kubernetes supports in selectors (selectable_fields.h).
 *
 * Invariant: every field that is accepted here is in the object's path (name and namespace) or is
 * copied from the object (objects/selectable_values.c, custom/custom_selectable.c). Otherwise it
 * would seem empty in every object. The one exception is status.podIPs of Pods, which seems empty
 * in Kubernetes, too.
 */
#include "server/resources/selection/selectable_fields.h"

#include <stdio.h>
#include <string.h>

#include "base/quote.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_selectable.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/objects/selectable_values.h"

/* The fields of Events that selectors may name, with their names in the stored form. */
static const char *const event_fields[] = {"involvedObject.kind",
                                           "involvedObject.namespace",
                                           "involvedObject.name",
                                           "involvedObject.uid",
                                           "involvedObject.apiVersion",
                                           "involvedObject.resourceVersion",
                                           "involvedObject.fieldPath",
                                           "reason",
                                           "type",
                                           HFD_FIELD_SOURCE,
                                           "reportingComponent"};

/* Finds the field of Events that this version calls key. Returns its name in the stored form; NULL
 * = selectors may not name such a field. */
static const char *find_event_field(const struct hfd_resource *resource, const char *key) {
        char name[80]; /* every name of event_fields, in either version, is shorter */

        for (size_t i = 0; i < sizeof event_fields / sizeof event_fields[0]; i++) {
                /* HFD_FIELD_SOURCE is not the member `source`, so it has the same name in both
                 * versions. */
                if (strcmp(event_fields[i], HFD_FIELD_SOURCE) == 0)
                        (void)snprintf(name, sizeof name, "%s", HFD_FIELD_SOURCE);
                else
                        hfd_conversion_field(resource, event_fields[i], name, sizeof name);
                if (strcmp(key, name) == 0)
                        return event_fields[i];
        }
        return NULL;
}

/* Custom kinds, and Workspaces, which would be a custom kind in Kubernetes. Exactly these refuse
 * strategic merge patches. */
static bool is_custom(const struct hfd_resource *resource) { return resource->no_strategic_patch; }

/* By its default rule Kubernetes accepts metadata.namespace for cluster-scoped kinds, too; its
 * value is empty. Custom kinds, and kinds with fields of their own, have stricter rules. */
static bool supports_namespace(const struct hfd_resource *resource) {
        return resource->namespaced || (!is_custom(resource) && !hfd_selectable_has_own(resource));
}

const char *hfd_selectable_field(const struct hfd_resource *resource, const char *key) {
        if (strcmp(key, "metadata.name") == 0)
                return key;
        if (strcmp(key, "metadata.namespace") == 0)
                return supports_namespace(resource) ? key : NULL;
        if (resource->custom)
                return hfd_custom_is_selectable(resource->custom, key) ? key : NULL;
        if (hfd_selectable_is_event(resource))
                return find_event_field(resource, key);
        return hfd_selectable_has_value(resource, key) ? key : NULL;
}

/* Custom kinds, and built-in kinds with fields of their own, share one message; Jobs have another.
 */
void hfd_selectable_refuse(const struct hfd_resource *resource, const char *key, char *reason,
                           size_t max_reason) {
        char quoted[400];

        hf__quote_bytes(key, strlen(key), quoted, sizeof quoted);
        if (strcmp(resource->group, "batch") == 0 && strcmp(resource->plural, "jobs") == 0)
                (void)snprintf(reason, max_reason, "field label %s not supported for Job", quoted);
        else if (is_custom(resource) || hfd_selectable_has_own(resource))
                (void)snprintf(reason, max_reason, "field label not supported: %s", key);
        else
                (void)snprintf(reason, max_reason,
                               "%s is not a known field selector: only \"metadata.name\", "
                               "\"metadata.namespace\"",
                               quoted);
}
