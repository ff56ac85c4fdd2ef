/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A decoder driven by tables: the field numbers are those of the generated.proto files of
 * k8s.io/api and apimachinery. As in JSON, what is empty is left out, except where the field's
 * absence means something else.
 */
#include "server/handlers/protobuf_body.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"

enum kind {
        END,
        TEXT,
        TEXT_OR_EMPTY,
        INT,
        BOOL,
        MESSAGE,
        MESSAGES,
        TEXTS,
        MAP,
        MAP_BYTES,
        TIME,
        MICROTIME
};

struct field {
        unsigned number;
        enum kind kind;
        const char *name;
        const struct field *fields; /* of a message */
};

static const struct field owner[] = {{1, TEXT, "kind"},
                                     {3, TEXT, "name"},
                                     {4, TEXT, "uid"},
                                     {5, TEXT, "apiVersion"},
                                     {6, BOOL, "controller"},
                                     {7, BOOL, "blockOwnerDeletion"},
                                     {0}};
static const struct field meta[] = {{1, TEXT, "name"},
                                    {2, TEXT, "generateName"},
                                    {3, TEXT, "namespace"},
                                    {5, TEXT, "uid"},
                                    {6, TEXT, "resourceVersion"},
                                    {8, TIME, "creationTimestamp"},
                                    {9, TIME, "deletionTimestamp"},
                                    {10, INT, "deletionGracePeriodSeconds"},
                                    {11, MAP, "labels"},
                                    {12, MAP, "annotations"},
                                    {13, MESSAGES, "ownerReferences", owner},
                                    {14, TEXTS, "finalizers"},
                                    {0}};
static const struct field namespace_spec[] = {{1, TEXTS, "finalizers"}, {0}};
static const struct field condition[] = {{1, TEXT, "type"},
                                         {2, TEXT, "status"},
                                         {4, TIME, "lastTransitionTime"},
                                         {5, TEXT, "reason"},
                                         {6, TEXT, "message"},
                                         {0}};
static const struct field namespace_status[] = {{1, TEXT, "phase"},
                                                {2, MESSAGES, "conditions", condition},
                                                {0}};
static const struct field lease_spec[] = {{1, TEXT_OR_EMPTY, "holderIdentity"},
                                          {2, INT, "leaseDurationSeconds"},
                                          {3, MICROTIME, "acquireTime"},
                                          {4, MICROTIME, "renewTime"},
                                          {5, INT, "leaseTransitions"},
                                          {6, TEXT, "strategy"},
                                          {7, TEXT, "preferredHolder"},
                                          {0}};
static const struct field candidate_spec[] = {{1, TEXT, "leaseName"},
                                              {2, MICROTIME, "pingTime"},
                                              {3, MICROTIME, "renewTime"},
                                              {4, TEXT, "binaryVersion"},
                                              {5, TEXT, "emulationVersion"},
                                              {6, TEXT, "strategy"},
                                              {0}};
static const struct field reference[] = {{1, TEXT, "kind"},       {2, TEXT, "namespace"},
                                         {3, TEXT, "name"},       {4, TEXT, "uid"},
                                         {5, TEXT, "apiVersion"}, {6, TEXT, "resourceVersion"},
                                         {7, TEXT, "fieldPath"},  {0}};
static const struct field source[] = {{1, TEXT, "component"}, {2, TEXT, "host"}, {0}};
static const struct field preconditions[] = {{1, TEXT, "uid"}, {2, TEXT, "resourceVersion"}, {0}};

static const struct field namespaces[] = {{1, MESSAGE, "metadata", meta},
                                          {2, MESSAGE, "spec", namespace_spec},
                                          {3, MESSAGE, "status", namespace_status},
                                          {0}};
static const struct field configmaps[] = {{1, MESSAGE, "metadata", meta},
                                          {2, MAP, "data"},
                                          {3, MAP_BYTES, "binaryData"},
                                          {4, BOOL, "immutable"},
                                          {0}};
static const struct field leases[] = {{1, MESSAGE, "metadata", meta},
                                      {2, MESSAGE, "spec", lease_spec},
                                      {0}};
static const struct field candidates[] = {{1, MESSAGE, "metadata", meta},
                                          {2, MESSAGE, "spec", candidate_spec},
                                          {0}};
static const struct field events[] = {{1, MESSAGE, "metadata", meta},
                                      {2, MESSAGE, "involvedObject", reference},
                                      {3, TEXT, "reason"},
                                      {4, TEXT, "message"},
                                      {5, MESSAGE, "source", source},
                                      {6, TIME, "firstTimestamp"},
                                      {7, TIME, "lastTimestamp"},
                                      {8, INT, "count"},
                                      {9, TEXT, "type"},
                                      {10, MICROTIME, "eventTime"},
                                      {12, TEXT, "action"},
                                      {13, MESSAGE, "related", reference},
                                      {14, TEXT, "reportingComponent"},
                                      {15, TEXT, "reportingInstance"},
                                      {0}};
static const struct field secrets[] = {{1, MESSAGE, "metadata", meta},
                                       {2, MAP_BYTES, "data"},
                                       {3, TEXT, "type"},
                                       {4, MAP, "stringData"},
                                       {5, BOOL, "immutable"},
                                       {0}};
static const struct field local_reference[] = {{1, TEXT, "name"}, {0}};
static const struct field service_accounts[] = {{1, MESSAGE, "metadata", meta},
                                                {2, MESSAGES, "secrets", reference},
                                                {3, MESSAGES, "imagePullSecrets", local_reference},
                                                {4, BOOL, "automountServiceAccountToken"},
                                                {0}};
static const struct field rule[] = {{1, TEXTS, "verbs"},           {2, TEXTS, "apiGroups"},
                                    {3, TEXTS, "resources"},       {4, TEXTS, "resourceNames"},
                                    {5, TEXTS, "nonResourceURLs"}, {0}};
static const struct field selector_term[] = {{1, TEXT, "key"},
                                             {2, TEXT, "operator"},
                                             {3, TEXTS, "values"},
                                             {0}};
static const struct field label_selector[] = {{1, MAP, "matchLabels"},
                                              {2, MESSAGES, "matchExpressions", selector_term},
                                              {0}};
static const struct field aggregation[] = {{1, MESSAGES, "clusterRoleSelectors", label_selector},
                                           {0}};
static const struct field roles[] = {{1, MESSAGE, "metadata", meta},
                                     {2, MESSAGES, "rules", rule},
                                     {0}};
static const struct field cluster_roles[] = {{1, MESSAGE, "metadata", meta},
                                             {2, MESSAGES, "rules", rule},
                                             {3, MESSAGE, "aggregationRule", aggregation},
                                             {0}};
static const struct field subject[] = {{1, TEXT, "kind"},
                                       {2, TEXT, "apiGroup"},
                                       {3, TEXT, "name"},
                                       {4, TEXT, "namespace"},
                                       {0}};
static const struct field role_ref[] = {{1, TEXT, "apiGroup"},
                                        {2, TEXT, "kind"},
                                        {3, TEXT, "name"},
                                        {0}};
static const struct field bindings[] = {{1, MESSAGE, "metadata", meta},
                                        {2, MESSAGES, "subjects", subject},
                                        {3, MESSAGE, "roleRef", role_ref},
                                        {0}};
static const struct field delete_fields[] = {{1, INT, "gracePeriodSeconds"},
                                             {2, MESSAGE, "preconditions", preconditions},
                                             {3, BOOL, "orphanDependents"},
                                             {4, TEXT, "propagationPolicy"},
                                             {5, TEXTS, "dryRun"},
                                             {0}};

struct slice {
        const unsigned char *at, *end;
};

/* One field as it lies on the wire: number, and a varint or bytes. */
struct wire {
        unsigned number;
        bool bytes;
        uint64_t value;
        struct slice data;
};

static bool varint(struct slice *in, uint64_t *ret_value) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64 && in->at < in->end; shift += 7) {
                unsigned char byte = *in->at++;
                value |= (uint64_t)(byte & 127) << shift;
                if (!(byte & 128)) {
                        *ret_value = value;
                        return true;
                }
        }
        return false;
}

static bool next_field(struct slice *in, struct wire *ret_wire) {
        uint64_t key, n;

        if (!varint(in, &key) || key >> 3 > 1u << 20)
                return false;
        *ret_wire = (struct wire){.number = (unsigned)(key >> 3)};
        if ((key & 7) == 0)
                return varint(in, &ret_wire->value);
        if ((key & 7) != 2 || !varint(in, &n) || n > (uint64_t)(in->end - in->at))
                return false;
        ret_wire->bytes = true;
        ret_wire->data = (struct slice){in->at, in->at + n};
        in->at += n;
        return true;
}

/* A copy with a NUL behind; NULL: out of memory. A NUL within is refused by the caller. */
static char *text_of(const struct slice *data) {
        return strndup((const char *)data->at, (size_t)(data->end - data->at));
}

static bool has_nul(const struct slice *data) {
        return data->end > data->at && memchr(data->at, 0, (size_t)(data->end - data->at));
}

/* {1: seconds, 2: nanoseconds}; an empty message is no time at all. */
static int put_time(struct hf__json *object, const struct field *f, struct slice in) {
        char text[HF__MICROTIME_MAX];
        int64_t seconds = 0, nanos = 0;
        struct wire wire;

        if (in.at == in.end)
                return 0;
        while (in.at < in.end) {
                if (!next_field(&in, &wire) || wire.bytes)
                        return HF_E_INVALID;
                if (wire.number == 1)
                        seconds = (int64_t)wire.value;
                else if (wire.number == 2)
                        nanos = (int64_t)wire.value;
        }
        if (seconds < 0 || seconds > INT64_C(253402300799) || nanos < 0 || nanos > 999999999)
                return HF_E_INVALID;
        if (f->kind == TIME)
                hf__time_format(seconds, text);
        else
                hf__microtime_format(seconds * 1000000 + nanos / 1000, text);
        return hf__json_set_string(object, f->name, text);
}

static int put_base64(struct hf__json *object, const char *key, const struct slice *data) {
        struct hf__strbuf s = {0};

        hf__base64_encode(&s, data->at, (size_t)(data->end - data->at));
        int r = s.error ? s.error : hf__json_add_string(object, key, s.data ? s.data : "");
        hf__strbuf_done(&s);
        return r;
}

static struct hf__json *member(struct hf__json *object, const char *name,
                               struct hf__json *(*make)(void)) {
        struct hf__json *there = hf__json_get(object, name);

        if (there)
                return there;
        return hf__json_set(object, name, make()) ? NULL : hf__json_get(object, name);
}

/*
 * One entry of a map: {1: key, 2: value}. It is not looked for among the others, of which a body
 * has room for many; a key that is there twice is refused later, as in JSON.
 */
static int put_entry(struct hf__json *object, const struct field *f, struct slice in) {
        struct slice key = {0}, value = {0};
        struct hf__json *map = member(object, f->name, hf__json_object);
        struct wire wire;

        while (in.at < in.end) {
                if (!next_field(&in, &wire) || !wire.bytes)
                        return HF_E_INVALID;
                if (wire.number == 1)
                        key = wire.data;
                else if (wire.number == 2)
                        value = wire.data;
        }
        if (has_nul(&key) || (f->kind == MAP && has_nul(&value)))
                return HF_E_INVALID;
        char *key_text = key.at ? text_of(&key) : strdup(""),
             *value_text = value.at && f->kind == MAP ? text_of(&value) : strdup("");
        int r = map && key_text && value_text ? 0 : -ENOMEM;
        if (r == 0)
                r = f->kind == MAP ? hf__json_add_string(map, key_text, value_text)
                                   : put_base64(map, key_text, &value);
        free(key_text);
        free(value_text);
        return r;
}

static int decode(struct hf__json *object, const struct field *fields, struct slice in);

static int put_message(struct hf__json *object, const struct field *f, struct slice in) {
        struct hf__json *message = hf__json_object();
        int r = message ? decode(message, f->fields, in) : -ENOMEM;

        if (r == 0 && !hf__json_count(message) && f->kind == MESSAGE) {
                hf__json_free(message);
                return 0;
        }
        if (r != 0) {
                hf__json_free(message);
                return r;
        }
        if (f->kind == MESSAGE)
                return hf__json_set(object, f->name, message);
        struct hf__json *list = member(object, f->name, hf__json_array);
        if (list)
                return hf__json_append(list, message);
        hf__json_free(message);
        return -ENOMEM;
}

static int put_text(struct hf__json *object, const struct field *f, const struct slice *data) {
        if (has_nul(data))
                return HF_E_INVALID;
        char *text = text_of(data);
        struct hf__json *list = f->kind == TEXTS ? member(object, f->name, hf__json_array) : NULL;
        int r = text ? 0 : -ENOMEM;

        if (r == 0 && f->kind == TEXTS)
                r = list ? hf__json_append_string(list, text) : -ENOMEM;
        else if (r == 0 && (*text || f->kind == TEXT_OR_EMPTY))
                r = hf__json_set_string(object, f->name, text);
        free(text);
        return r;
}

static int put_field(struct hf__json *object, const struct field *f, const struct wire *wire) {
        bool number = f->kind == INT || f->kind == BOOL;

        if (number == wire->bytes)
                return HF_E_INVALID;
        switch (f->kind) {
        case TEXT:
        case TEXT_OR_EMPTY:
        case TEXTS: return put_text(object, f, &wire->data);
        case INT: return hf__json_set_i64(object, f->name, (int64_t)wire->value);
        case BOOL: return hf__json_set_bool(object, f->name, wire->value != 0);
        case MESSAGE:
        case MESSAGES: return put_message(object, f, wire->data);
        case MAP:
        case MAP_BYTES: return put_entry(object, f, wire->data);
        case TIME:
        case MICROTIME: return put_time(object, f, wire->data);
        case END: break;
        }
        return 0;
}

/* The depth is that of the tables. */
static int decode(struct hf__json *object, const struct field *fields, struct slice in) {
        struct wire wire;
        int r = 0;

        while (r == 0 && in.at < in.end) {
                if (!next_field(&in, &wire))
                        return HF_E_INVALID;
                for (const struct field *f = fields; f->kind != END && r == 0; f++)
                        if (f->number == wire.number) {
                                r = put_field(object, f, &wire);
                                break;
                        }
        }
        return r;
}

static const struct field *fields_of(const struct hfd_resource *resource) {
        static const struct {
                const char *plural;
                const struct field *fields;
        } tables[] = {{"namespaces", namespaces},
                      {"configmaps", configmaps},
                      {"leases", leases},
                      {"leasecandidates", candidates},
                      {"events", events},
                      {"secrets", secrets},
                      {"serviceaccounts", service_accounts},
                      {"roles", roles},
                      {"clusterroles", cluster_roles},
                      {"rolebindings", bindings},
                      {"clusterrolebindings", bindings}};

        for (size_t i = 0; i < sizeof tables / sizeof tables[0]; i++)
                if (strcmp(tables[i].plural, resource->plural) == 0)
                        return tables[i].fields;
        return NULL;
}

bool hfd_protobuf_known(const struct hfd_resource *resource) { return fields_of(resource) != NULL; }

bool hfd_is_protobuf(const char *content_type) {
        return content_type &&
               strncasecmp(content_type, "application/vnd.kubernetes.protobuf", 35) == 0;
}

int hfd_protobuf_to_json(const struct hfd_resource *resource, bool delete_options, const void *body,
                         size_t n_body, struct hf__json **ret_json) {
        static const struct field type_meta[] = {{1, TEXT, "apiVersion"}, {2, TEXT, "kind"}, {0}};
        const struct field *fields = delete_options ? delete_fields : fields_of(resource);
        struct slice in, raw = {0};
        struct wire wire;
        int r = 0;

        if (!fields || n_body < 4 || memcmp(body, "k8s\0", 4) != 0)
                return HF_E_INVALID;
        in = (struct slice){(const unsigned char *)body + 4, (const unsigned char *)body + n_body};
        struct hf__json *object = hf__json_object();
        if (!object)
                return -ENOMEM;
        while (r == 0 && in.at < in.end) {
                if (!next_field(&in, &wire) || !wire.bytes)
                        r = HF_E_INVALID;
                else if (wire.number == 1)
                        r = decode(object, type_meta, wire.data);
                else if (wire.number == 2)
                        raw = wire.data;
        }
        if (r == 0 && raw.at)
                r = decode(object, fields, raw);
        if (r != 0) {
                hf__json_free(object);
                return r;
        }
        *ret_json = object;
        return 0;
}
