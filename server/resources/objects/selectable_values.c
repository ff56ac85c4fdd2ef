/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The selectable fields of the built-in kinds, and their values (selectable_values.h).
 *
 * Invariant: hfd_selectable_copy copies the value of every field that a selector may name, except
 * name and namespace, and fields that have no value in any object (NOTHING). A field that it left
 * out would seem empty in every object.
 */
#include "server/resources/objects/selectable_values.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_selectable.h"
#include "server/resources/resource.h"

/* How the value of a field is made from the object. */
enum form {
        TEXT,
        BOOLEAN, /* absent = false */
        NUMBER,  /* absent = 0 */
        POD_IP,  /* the first one of status.podIPs; without one, status.podIP */
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
        struct field fields[12]; /* they end at a name that is NULL */
        const char *trigger;     /* one of them; NULL = none */
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
          {.name = "status.nominatedNodeName"}},
         .trigger = "spec.nodeName"}, /* for the kubelets */
        {"", "replicationcontrollers", {{.name = "status.replicas", .form = NUMBER}}},
        {"", "services", {{.name = "spec.clusterIP"}, {.name = "spec.type"}}},
        {"batch",
         "jobs",
         {{.name = "status.successful", .form = NUMBER, .path = "status.succeeded"}}},
        {"certificates.k8s.io", "certificatesigningrequests", {{.name = "spec.signerName"}}},
};

/* NULL = the table does not have the kind: selectors may name only name and namespace, unless it is
 * Event or a custom kind. */
static const struct kind *find_kind(const struct hfd_resource *resource) {
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(kinds[i].plural, resource->plural) == 0 &&
                    strcmp(kinds[i].group, resource->group) == 0)
                        return &kinds[i];
        return NULL;
}

bool hfd_selectable_is_event(const struct hfd_resource *resource) {
        return strcmp(resource->plural, "events") == 0 &&
               (!*resource->group || strcmp(resource->group, "events.k8s.io") == 0);
}

bool hfd_selectable_has_own(const struct hfd_resource *resource) {
        return hfd_selectable_is_event(resource) || find_kind(resource);
}

bool hfd_selectable_has_value(const struct hfd_resource *resource, const char *name) {
        const struct kind *kind = find_kind(resource);

        for (const struct field *field = kind ? kind->fields : NULL; field && field->name; field++)
                if (strcmp(field->name, name) == 0)
                        return true;
        return false;
}

const char *hfd_selectable_trigger(const struct hfd_resource *resource) {
        const struct kind *kind = resource->custom ? NULL : find_kind(resource);

        return kind ? kind->trigger : NULL;
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

/* Copies whole members: Events have many fields in few members. Events of both versions are stored
 * in one form, that of the core group, so the members have these names in both. */
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
        if (hfd_selectable_is_event(resource))
                return copy_event(whole, selectable);
        const struct kind *kind = find_kind(resource);
        for (const struct field *field = kind ? kind->fields : NULL; r == 0 && field && field->name;
             field++)
                r = copy_field(field, whole, selectable);
        return r;
}
