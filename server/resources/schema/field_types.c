/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types of the fields that neither meta.c nor a strategy checks. Typed clients fail to decode a
 * whole list if one object in it has a wrong type. So one object with a string instead of a number
 * would make its kind unreadable for them.
 *
 * A path leads from the object to the field: `a.b` is a member, `a[]` is each element of an array,
 * `a{}` is each member of a map. An absent or null field passes every check.
 */
#include "server/resources/schema/field_types.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/time_format.h"

#define KEY_MAX 40 /* bytes of the longest key in a path, with the NUL */

enum type { TEXT, BOOL, INT32, INT64, BYTES, TIME, MICROTIME, OBJECT };

/* The names of the Go types in messages, in the order of enum type. */
static const char *const type_names[] = {"string",  "bool",    "int32",        "int64",
                                         "[]uint8", "v1.Time", "v1.MicroTime", "object"};

static const struct field {
        const char *kind; /* NULL = every kind */
        const char *path;
        enum type type;
} fields[] = {
        {NULL, "metadata.selfLink", TEXT},
        {NULL, "metadata.generation", INT64},
        {NULL, "metadata.deletionGracePeriodSeconds", INT64},
        {NULL, "metadata.ownerReferences[].controller", BOOL},
        {NULL, "metadata.ownerReferences[].blockOwnerDeletion", BOOL},
        {NULL, "metadata.managedFields[].manager", TEXT},
        {NULL, "metadata.managedFields[].operation", TEXT},
        {NULL, "metadata.managedFields[].apiVersion", TEXT},
        {NULL, "metadata.managedFields[].time", TIME},
        {NULL, "metadata.managedFields[].fieldsType", TEXT},
        {NULL, "metadata.managedFields[].fieldsV1", OBJECT},
        {NULL, "metadata.managedFields[].subresource", TEXT},
        {"ConfigMap", "immutable", BOOL},
        {"ConfigMap", "binaryData{}", BYTES},
        {"Secret", "immutable", BOOL},
        {"ServiceAccount", "secrets[].kind", TEXT},
        {"ServiceAccount", "secrets[].namespace", TEXT},
        {"ServiceAccount", "secrets[].name", TEXT},
        {"ServiceAccount", "secrets[].uid", TEXT},
        {"ServiceAccount", "secrets[].apiVersion", TEXT},
        {"ServiceAccount", "secrets[].resourceVersion", TEXT},
        {"ServiceAccount", "secrets[].fieldPath", TEXT},
        {"ServiceAccount", "imagePullSecrets[].name", TEXT},
        {"ClusterRole", "aggregationRule.clusterRoleSelectors[].matchLabels{}", TEXT},
        {"Namespace", "status.phase", TEXT},
        {"Namespace", "status.conditions[].type", TEXT},
        {"Namespace", "status.conditions[].status", TEXT},
        {"Namespace", "status.conditions[].lastTransitionTime", TIME},
        {"Namespace", "status.conditions[].reason", TEXT},
        {"Namespace", "status.conditions[].message", TEXT},
        {"Event", "involvedObject{}", TEXT},
        {"Event", "related{}", TEXT},
        {"Event", "reason", TEXT},
        {"Event", "message", TEXT},
        {"Event", "source.component", TEXT},
        {"Event", "source.host", TEXT},
        {"Event", "firstTimestamp", TIME},
        {"Event", "lastTimestamp", TIME},
        {"Event", "count", INT32},
        {"Event", "type", TEXT},
        {"Event", "eventTime", MICROTIME},
        {"Event", "series.count", INT32},
        {"Event", "series.lastObservedTime", MICROTIME},
        {"Event", "action", TEXT},
        {"Event", "reportingComponent", TEXT},
        {"Event", "reportingInstance", TEXT},
        {"Workspace", "spec.initializers[]", TEXT},
        {"Workspace", "status.phase", TEXT},
        {"Workspace", "status.initializers[]", TEXT},
};

static bool is_int32(const struct hf__json *value) {
        int64_t number;

        return hf__json_integer(value, &number) && number >= INT32_MIN && number <= INT32_MAX;
}

/* A Time may have a fraction of a second of any length. Clients ignore it. */
static bool is_time(const char *text) {
        const char *point = strchr(text, '.');
        size_t n_digits = point ? strspn(point + 1, "0123456789") : 0;
        char whole[40];
        int64_t time;

        if (n_digits == 0)
                return hf__time_parse(text, &time) == 0;
        int n = snprintf(whole, sizeof whole, "%.*s%s", (int)(point - text), text,
                         point + 1 + n_digits);
        return n > 0 && (size_t)n < sizeof whole && hf__time_parse(whole, &time) == 0;
}

/* A MicroTime has exactly six digits after the decimal point. */
static bool is_micro_time(const char *text) {
        int64_t time;

        return hf__microtime_parse(text, &time) == 0;
}

static bool has_type(const struct hf__json *value, enum type type) {
        const char *text = hf__json_is_string(value) ? hf__json_text(value) : "";
        int64_t number;
        size_t n;

        switch (type) {
        case TEXT: return hf__json_is_string(value);
        case BOOL: return hf__json_is_bool(value);
        case INT32: return is_int32(value);
        case INT64: return hf__json_integer(value, &number);
        case BYTES: return hf__json_is_string(value) && hf__base64_check(text, &n);
        case TIME: return is_time(text);
        case MICROTIME: return is_micro_time(text);
        case OBJECT: return hf__json_is_object(value);
        }
        return false;
}

static bool check_path(const struct hf__json *at, const char *path, enum type type);

/* path begins with "[]" or "{}". Checks the rest of it for each element or member of `at`. */
static bool check_members(const struct hf__json *at, const char *path, enum type type) {
        bool fits = *path == '[' ? hf__json_is_array(at) : hf__json_is_object(at);

        if (!fits)
                return false;
        path += path[2] == '.' ? 3 : 2;
        for (const struct hf__json *m = hf__json_first(at); m; m = hf__json_next(m))
                if (!check_path(m, path, type))
                        return false;
        return true;
}

/*
 * Whether all values at path below `at` have the type. The recursion is as deep as the path in the
 * table, so a client cannot choose its depth.
 */
static bool check_path(const struct hf__json *at, const char *path, enum type type) {
        char key[KEY_MAX];
        size_t n = strcspn(path, ".[{");

        if (!at || hf__json_is_null(at))
                return true;
        if (!*path)
                return has_type(at, type);
        if (*path == '[' || *path == '{')
                return check_members(at, path, type);
        if (!hf__json_is_object(at))
                return false;
        assert(n < sizeof key);
        memcpy(key, path, n);
        key[n] = '\0';
        path += path[n] == '.' ? n + 1 : n;
        return check_path(hf__json_get(at, key), path, type);
}

bool hfd_field_types_check(const struct hfd_resource *resource, const struct hf__json *object,
                           char *reason, size_t max_reason) {
        for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
                const struct field *field = &fields[i];
                if ((field->kind && strcmp(field->kind, resource->kind) != 0) ||
                    check_path(object, field->path, field->type))
                        continue;
                (void)snprintf(reason, max_reason,
                               "json: cannot unmarshal into Go struct field %s.%s of type %s",
                               resource->kind, field->path, type_names[field->type]);
                return false;
        }
        return true;
}
