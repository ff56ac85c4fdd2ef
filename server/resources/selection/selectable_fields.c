/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fields that Kubernetes supports in selectors, and their values (selectable_fields.h).
 *
 * Invariant: every field that hfd_selectable_field accepts is copied by hfd_selectable_copy. A
 * field that is left out there would look empty in every object.
 */
#include "server/resources/selection/selectable_fields.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
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

/* How the value of a field is made from the object. */
enum form {
        TEXT,
        BOOLEAN, /* absent = false */
        NUMBER,  /* absent = 0 */
        POD_IP,  /* the first one of status.podIPs */
        NOTHING, /* the name is accepted, and no object has a value */
};

struct field {
        const char *name;
        enum form form;
        const char *path; /* NULL = the name */
};

/* A kind whose selectors may name more than name and namespace. */
struct kind {
        const char *group, *plural;
        struct field fields[12];
};

static const struct kind kinds[] = {
        {"", "secrets", {{.name = "type"}}},
        {"", "namespaces", {{.name = "status.phase"}}},
        {"", "nodes", {{.name = "spec.unschedulable", .form = BOOLEAN}}},
        {"",
         "pods",
         {{.name = "spec.nodeName"},
          {.name = "spec.host", .path = "spec.nodeName"}, /* what old clients send */
          {.name = "spec.restartPolicy"},
          {.name = "spec.schedulerName"},
          {.name = "spec.serviceAccountName"},
          {.name = "spec.hostNetwork", .form = BOOLEAN},
          {.name = "status.phase"},
          {.name = "status.podIP", .form = POD_IP},
          {.name = "status.podIPs", .form = NOTHING},
          {.name = "status.nominatedNodeName"}}},
        {"", "replicationcontrollers", {{.name = "status.replicas", .form = NUMBER}}},
        {"", "services", {{.name = "spec.clusterIP"}, {.name = "spec.type"}}},
        {"batch",
         "jobs",
         {{.name = "status.successful", .form = NUMBER, .path = "status.succeeded"}}},
        {"certificates.k8s.io", "certificatesigningrequests", {{.name = "spec.signerName"}}},
};

/* NULL = selectors of this kind may name only name and namespace. */
static const struct kind *find_kind(const struct hfd_resource *resource) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(kinds[i].plural, resource->plural) == 0 &&
                    strcmp(kinds[i].group, resource->group) == 0)
                        return &kinds[i];
        return NULL;
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
        if (strcmp(key, "metadata.name") == 0)
                return key;
        if (strcmp(key, "metadata.namespace") == 0)
                return resource->namespaced ? key : NULL;
        if (resource->custom)
                return hfd_custom_is_selectable(resource->custom, key) ? key : NULL;
        if (is_event(resource))
                return find_event_field(resource, key);
        const struct kind *kind = find_kind(resource);
        for (const struct field *field = kind ? kind->fields : NULL; field && field->name; field++)
                if (strcmp(field->name, key) == 0)
                        return key;
        return NULL;
}

/* Custom resources, and the kinds that would be custom ones in Kubernetes, share one message. */
void hfd_selectable_refuse(const struct hfd_resource *resource, const char *key, char *reason,
                           size_t max_reason) {
        if (strcmp(resource->group, "batch") == 0 && strcmp(resource->plural, "jobs") == 0)
                (void)snprintf(reason, max_reason, "field label \"%s\" not supported for Job", key);
        else if (resource->no_strategic_patch || is_event(resource) || find_kind(resource))
                (void)snprintf(reason, max_reason, "field label not supported: %s", key);
        else
                (void)snprintf(reason, max_reason,
                               "\"%s\" is not a known field selector: only \"metadata.name\", "
                               "\"metadata.namespace\"",
                               key);
}

/* ---- values ---- */

/* Copies a member of whole into selectable, if it exists. 0 or -ENOMEM. */
static int copy_member(struct hf__json *selectable, const struct hf__json *whole, const char *key) {
        const struct hf__json *part = hf__json_get(whole, key);

        if (!part)
                return 0;
        struct hf__json *copy = hf__json_dup(part);
        return copy ? hf__json_set(selectable, key, copy) : -ENOMEM;
}

/* Events have many fields in few members, and their two versions share them. */
static int copy_event(const struct hf__json *whole, struct hf__json *selectable) {
        static const char *const members[] = {"involvedObject", "reason", "type",
                                              "reportingComponent", "source"};
        int r = 0;

        for (size_t i = 0; r == 0 && i < sizeof members / sizeof members[0]; i++)
                r = copy_member(selectable, whole, members[i]);
        return r;
}

static const char *pod_ip(const struct hf__json *pod) {
        const struct hf__json *first = hf__json_first(hf__json_path(pod, "status.podIPs"));

        return first ? hf__json_string(first, "ip") : hf__json_string(pod, "status.podIP");
}

/* 0 or -ENOMEM. */
static int copy_field(const struct field *field, const struct hf__json *whole,
                      struct hf__json *selectable) {
        const char *path = field->path ? field->path : field->name, *text = NULL;
        int64_t n = 0;
        char number[24];

        switch (field->form) {
        case TEXT: text = hf__json_string(whole, path); break;
        case BOOLEAN: text = hf__json_bool(whole, path, false) ? "true" : "false"; break;
        case POD_IP: text = pod_ip(whole); break;
        case NUMBER:
                (void)hf__json_integer(hf__json_path(whole, path), &n);
                (void)snprintf(number, sizeof number, "%lld", (long long)n);
                text = number;
                break;
        case NOTHING: break;
        }
        return text ? hf__json_set_string(selectable, field->name, text) : 0;
}

int hfd_selectable_copy(const struct hfd_resource *resource, const struct hf__json *whole,
                        struct hf__json *selectable) {
        int r = 0;

        if (resource->custom)
                return hfd_custom_selectable(resource->custom->kind, whole, selectable);
        if (is_event(resource))
                return copy_event(whole, selectable);
        const struct kind *kind = find_kind(resource);
        for (const struct field *field = kind ? kind->fields : NULL; r == 0 && field && field->name;
             field++)
                r = copy_field(field, whole, selectable);
        return r;
}
