/* SPDX-License-Identifier: Apache-2.0 */
/* The fields that Kubernetes supports in selectors (selectable_fields.h). */
#include "server/resources/selection/selectable_fields.h"

#include <stdio.h>
#include <string.h>

#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_selectable.h"
#include "server/resources/forms/conversion.h"

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

static bool is_event(const struct hfd_resource *resource) {
        const struct hfd_resource *stored = hfd_resource_stored(resource);

        return !*stored->group && strcmp(stored->plural, "events") == 0;
}

static bool is_certificate_request(const struct hfd_resource *resource) {
        return strcmp(resource->plural, "certificatesigningrequests") == 0;
}

bool hfd_has_own_selectable_fields(const struct hfd_resource *resource) {
        return is_event(resource) || is_certificate_request(resource) ||
               (!*resource->group && (strcmp(resource->plural, "secrets") == 0 ||
                                      strcmp(resource->plural, "namespaces") == 0));
}

/* Finds the field of Events that this version calls key. Returns its name in the stored form; NULL
 * = selectors may not name such a field. */
static const char *find_event_field(const struct hfd_resource *resource, const char *key) {
        char name[80];

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

const char *hfd_selectable_field(const struct hfd_resource *resource, const char *key) {
        bool known;

        if (strcmp(key, "metadata.name") == 0)
                return key;
        if (strcmp(key, "metadata.namespace") == 0)
                return resource->namespaced ? key : NULL;
        if (is_event(resource))
                return find_event_field(resource, key);
        if (is_certificate_request(resource))
                return strcmp(key, "spec.signerName") == 0 ? key : NULL;
        if (resource->custom)
                return hfd_custom_is_selectable(resource->custom, key) ? key : NULL;
        if (*resource->group)
                return NULL;
        known = (strcmp(resource->plural, "secrets") == 0 && strcmp(key, "type") == 0) ||
                (strcmp(resource->plural, "namespaces") == 0 && strcmp(key, "status.phase") == 0);
        return known ? key : NULL;
}
