/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The paths of resources and the operations on them, for OpenAPI. kubectl finds a kind by the
 * operations of its paths. By the parameters of PATCH it learns that the server supports dry runs
 * and the validation of fields.
 *
 * Invariant: an operation names the content types that the server accepts and sends, and no others
 * (negotiation.h). No two operations on built-in kinds have the same id in a document, because
 * clients are generated from them. Unusual names of custom kinds may lead to equal ids.
 */
#include "server/handlers/openapi/paths.h"

#include <ctype.h>
#include <string.h>

#include "base/strbuf.h"
#include "server/handlers/documents/discovery.h"
#include "server/handlers/openapi/definitions.h"
#include "server/handlers/protobuf_body.h"
#include "server/resources/objects/protobuf_response.h"
#include "server/schema/bodies.h"
#include "server/schema/common.h"

enum body { NO_BODY, OBJECT, OPTIONS, PATCH };
enum result { ONE, LIST, STATUS }; /* the content of a successful response */

/* Flags of an operation: which parameters it has, and which codes beyond 200 and 401. */
enum {
        READS_MANY = 1, /* the parameters of a list */
        WATCHES = 2,
        DELETES = 4,
        DRY_RUN = 8,
        NAMES_MANAGER = 16,
        FORCES = 32,
        CREATED = 64,
        ACCEPTED = 128
};

struct operation {
        const char *method; /* of HTTP, in lower case */
        const char *action; /* x-kubernetes-action */
        const char *verb;   /* with which the operation's id begins */
        enum body body;
        enum result result;
        unsigned flags;
};

/* The order in a document; that of a subresource is in put_part_path. The first three are at the
 * resource's path without a name. As in Kubernetes a PUT and a PATCH may create the object: 201. */
enum { LIST_ALL, CREATE, DELETE_ALL, GET_ONE, REPLACE, CHANGE, DELETE_ONE, N_OPERATIONS };
static const struct operation operations[] = {
        [LIST_ALL] = {"get", "list", "list", NO_BODY, LIST, READS_MANY | WATCHES},
        [CREATE] = {"post", "post", "create", OBJECT, ONE,
                    DRY_RUN | NAMES_MANAGER | CREATED | ACCEPTED},
        [DELETE_ALL] = {"delete", "deletecollection", "delete", OPTIONS, STATUS,
                        READS_MANY | DELETES | DRY_RUN},
        [GET_ONE] = {"get", "get", "read", NO_BODY, ONE, 0},
        [REPLACE] = {"put", "put", "replace", OBJECT, ONE, DRY_RUN | NAMES_MANAGER | CREATED},
        [CHANGE] = {"patch", "patch", "patch", PATCH, ONE,
                    DRY_RUN | NAMES_MANAGER | FORCES | CREATED},
        [DELETE_ONE] = {"delete", "delete", "delete", OPTIONS, STATUS,
                        DELETES | DRY_RUN | ACCEPTED},
};

static const struct {
        const char *name, *type;
        unsigned of; /* operations with one of these flags have the parameter */
} parameters[] = {
        {"allowWatchBookmarks", "boolean", WATCHES},
        {"continue", "string", READS_MANY},
        {"dryRun", "string", DRY_RUN},
        {"fieldManager", "string", NAMES_MANAGER},
        {"fieldSelector", "string", READS_MANY},
        {"fieldValidation", "string", NAMES_MANAGER},
        {"force", "boolean", FORCES},
        {"gracePeriodSeconds", "integer", DELETES},
        {"labelSelector", "string", READS_MANY},
        {"limit", "integer", READS_MANY},
        {"orphanDependents", "boolean", DELETES},
        {"propagationPolicy", "string", DELETES},
        {"resourceVersion", "string", READS_MANY},
        {"resourceVersionMatch", "string", READS_MANY},
        {"sendInitialEvents", "boolean", READS_MANY},
        {"timeoutSeconds", "integer", READS_MANY},
        {"watch", "boolean", WATCHES},
};

/* A path that is being written. part: its subresource; NULL = it is the path of the resource
 * itself. */
struct place {
        struct hf__strbuf *s;
        bool v2;
        const struct hfd_resource *resource;
        const struct hfd_discovery_subresource *part;
        bool everywhere; /* the path of the objects of all namespaces */
};

/* The kind of the bodies, which may be another one for a subresource. */
static const struct hfd_resource *kind_of(const struct place *place) {
        return place->part && place->part->other ? place->part->other : place->resource;
}

/* ---- content ---- */

/* The content types of a body of this kind or, for NO_BODY, of a response that is no watch. *ret_n:
 * how many there are. The last types of a list are those that not every kind has, so a smaller
 * *ret_n leaves them out. YAML is read but never sent. */
static const char *const *media_types(const struct place *place, enum body body, size_t *ret_n) {
        static const char *const responses[] = {"application/json", HFD_PROTOBUF_TYPE},
                                 *const bodies[] = {"application/json", "application/yaml",
                                                    HFD_PROTOBUF_TYPE},
                                 *const patches[] = {"application/json-patch+json",
                                                     "application/merge-patch+json",
                                                     "application/apply-patch+yaml",
                                                     "application/strategic-merge-patch+json"};

        if (body == PATCH) {
                *ret_n = 4 - kind_of(place)->no_strategic_patch;
                return patches;
        }
        *ret_n = (body == NO_BODY ? 2 : 3) - !hfd_protobuf_has_form(kind_of(place));
        return body == NO_BODY ? responses : bodies;
}

/* Appends {"$ref": ...} to the definition of a body. */
static void put_reference(const struct place *place, const char *definition) {
        hf__strbuf_printf(place->s, "{\"$ref\":\"#/%s/%s\"}",
                          place->v2 ? "definitions" : "components/schemas", definition);
}

static void put_result(const struct place *place, enum result result) {
        struct hf__strbuf name = {0};

        if (result == STATUS)
                hf__strbuf_puts(&name, hfd_schema_status.definition);
        else
                hfd_openapi_put_definition_name(&name, kind_of(place), result == LIST);
        put_reference(place, name.data ? name.data : "");
        if (name.error != 0)
                place->s->error = name.error;
        hf__strbuf_done(&name);
}

static void put_body_schema(const struct place *place, enum body body) {
        if (body == OBJECT)
                put_reference(place, kind_of(place)->schema->definition);
        else
                put_reference(place, body == PATCH ? hfd_schema_patch.definition
                                                   : hfd_schema_delete_options.definition);
}

/* ---- v3 ---- */

/* The client may leave out DeleteOptions; every other body is required. */
static void put_request_body(const struct place *place, enum body body) {
        size_t n;
        const char *const *types = media_types(place, body, &n);

        hf__strbuf_puts(place->s, "\"requestBody\":{\"content\":{");
        for (size_t i = 0; i < n; i++) {
                hf__strbuf_printf(place->s, "%s\"%s\":{\"schema\":", i > 0 ? "," : "", types[i]);
                put_body_schema(place, body);
                hf__strbuf_putc(place->s, '}');
        }
        hf__strbuf_puts(place->s, body == OPTIONS ? "}}," : "},\"required\":true},");
}

static void put_content(const struct place *place, const struct operation *operation) {
        size_t n;
        const char *const *types = media_types(place, NO_BODY, &n);

        hf__strbuf_puts(place->s, "\"content\":{");
        for (size_t i = 0; i < n; i++) {
                hf__strbuf_printf(place->s, "%s\"%s\":{\"schema\":", i > 0 ? "," : "", types[i]);
                put_result(place, operation->result);
                hf__strbuf_putc(place->s, '}');
                if ((operation->flags & WATCHES) == 0 || place->resource->is_report)
                        continue;
                hf__strbuf_printf(place->s, ",\"%s;stream=watch\":{\"schema\":", types[i]);
                put_reference(place, hfd_schema_watch_event.definition);
                hf__strbuf_putc(place->s, '}');
        }
        hf__strbuf_puts(place->s, "},");
}

/* ---- v2 ---- */

static void put_types(const struct place *place, const char *key, enum body body) {
        size_t n;
        const char *const *types = media_types(place, body, &n);

        hf__strbuf_printf(place->s, "\"%s\":[", key);
        for (size_t i = 0; i < n; i++)
                hf__strbuf_printf(place->s, "%s\"%s\"", i > 0 ? "," : "", types[i]);
        hf__strbuf_puts(place->s, "],");
}

static void put_body_parameter(const struct place *place, enum body body) {
        hf__strbuf_puts(place->s, "{\"name\":\"body\",\"in\":\"body\",\"schema\":");
        put_body_schema(place, body);
        hf__strbuf_puts(place->s, body == OPTIONS ? "}" : ",\"required\":true}");
}

/* ---- operations ---- */

static void put_parameter(const struct place *place, const char *name, const char *in,
                          const char *type) {
        hf__strbuf_printf(place->s, "{\"name\":\"%s\",\"in\":\"%s\",%s", name, in,
                          strcmp(in, "path") == 0 ? "\"required\":true," : "");
        hf__strbuf_printf(place->s,
                          place->v2 ? "\"type\":\"%s\"}" : "\"schema\":{\"type\":\"%s\"}}", type);
}

/* Appends the parameters of an operation. An empty list is left out: clients that parse a document
 * and write it again drop empty lists, and compare the two. */
static void put_parameters(const struct place *place, const struct operation *operation) {
        const char *separator = "\"parameters\":[";
        bool with_body = place->v2 && operation->body != NO_BODY;
        unsigned flags = operation->flags;

        if (place->resource->is_report)
                flags &= ~(unsigned)WATCHES;
        for (size_t i = 0; i < sizeof parameters / sizeof parameters[0]; i++) {
                if ((parameters[i].of & flags) == 0)
                        continue;
                hf__strbuf_puts(place->s, separator);
                put_parameter(place, parameters[i].name, "query", parameters[i].type);
                separator = ",";
        }
        if (with_body) {
                hf__strbuf_puts(place->s, separator);
                put_body_parameter(place, operation->body);
        }
        if (with_body || *separator == ',')
                hf__strbuf_puts(place->s, "],");
}

static void put_responses(const struct place *place, const struct operation *operation) {
        static const struct {
                unsigned flag;
                const char *code, *description;
        } codes[] = {{0, "200", "OK"}, {CREATED, "201", "Created"}, {ACCEPTED, "202", "Accepted"}};

        hf__strbuf_puts(place->s, "\"responses\":{");
        for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
                if (codes[i].flag != 0 && (operation->flags & codes[i].flag) == 0)
                        continue;
                hf__strbuf_printf(place->s, "\"%s\":{", codes[i].code);
                if (place->v2) {
                        hf__strbuf_puts(place->s, "\"schema\":");
                        put_result(place, operation->result);
                        hf__strbuf_putc(place->s, ',');
                } else {
                        put_content(place, operation);
                }
                hf__strbuf_printf(place->s, "\"description\":\"%s\"},", codes[i].description);
        }
        hf__strbuf_puts(place->s, "\"401\":{\"description\":\"Unauthorized\"}},");
}

/* Appends the n bytes of text as one word of an id: only letters and digits remain, without a digit
 * that begins the text. A letter that begins the text, or follows a character that is left out, is
 * a capital. */
static void put_word(struct hf__strbuf *s, const char *text, size_t n) {
        bool capital = true;

        for (size_t i = 0; i < n; i++) {
                unsigned char c = (unsigned char)text[i];
                bool kept = isalpha(c) || (i > 0 && isdigit(c));
                if (kept)
                        hf__strbuf_putc(s, capital ? (char)toupper(c) : (char)c);
                capital = !kept;
        }
}

/* Appends the id that Kubernetes gives to the operation, such as listCoreV1NamespacedConfigMap.
 * Code generators make the names of functions from it. */
static void put_id(const struct place *place, const struct operation *operation) {
        static const char suffix[] = ".k8s.io";
        const struct hfd_resource *resource = place->resource;
        const char *group = *resource->group ? resource->group : "core";
        size_t n = strlen(group), n_suffix = sizeof suffix - 1;
        struct hf__strbuf *s = place->s;

        if (n > n_suffix && strcmp(group + n - n_suffix, suffix) == 0)
                n -= n_suffix;
        hf__strbuf_puts(s, operation->verb);
        put_word(s, group, n);
        put_word(s, resource->version, strlen(resource->version));
        hf__strbuf_puts(s, operation == &operations[DELETE_ALL] ? "Collection" : "");
        hf__strbuf_puts(s, resource->namespaced && !place->everywhere ? "Namespaced" : "");
        put_word(s, resource->kind, strlen(resource->kind));
        if (place->part)
                put_word(s, place->part->name, strlen(place->part->name));
        hf__strbuf_puts(s, place->everywhere ? "ForAllNamespaces" : "");
}

static void put_operation(const struct place *place, const struct operation *operation) {
        const struct hfd_resource *kind = kind_of(place);
        struct hf__strbuf *s = place->s;

        hf__strbuf_printf(s, "\"%s\":{\"operationId\":\"", operation->method);
        put_id(place, operation);
        hf__strbuf_puts(s, "\",");
        if (place->v2 && operation->body != NO_BODY)
                put_types(place, "consumes", operation->body);
        if (place->v2)
                put_types(place, "produces", NO_BODY);
        put_parameters(place, operation);
        if (!place->v2 && operation->body != NO_BODY)
                put_request_body(place, operation->body);
        put_responses(place, operation);
        hf__strbuf_printf(s,
                          "\"x-kubernetes-action\":\"%s\",\"x-kubernetes-group-version-kind\":"
                          "{\"group\":\"%s\",\"kind\":\"%s\",\"version\":\"%s\"}},",
                          operation->action, kind->group, kind->kind, kind->version);
}

/* ---- paths ---- */

void hfd_openapi_put_prefix(struct hf__strbuf *s, const struct hfd_resource *resource) {
        hf__strbuf_printf(s, *resource->group ? "apis/%s/%s" : "api%s/%s", resource->group,
                          resource->version);
}

/* Appends `"/api/v1/namespaces/{namespace}/configmaps/{name}":{"parameters":[...],`. */
static void begin_path(const struct place *place, bool with_name) {
        const struct hfd_resource *resource = place->resource;
        bool namespaced = resource->namespaced && !place->everywhere;
        struct hf__strbuf *s = place->s;

        hf__strbuf_puts(s, "\"/");
        hfd_openapi_put_prefix(s, resource);
        hf__strbuf_printf(s, "%s/%s%s%s%s\":{", namespaced ? "/namespaces/{namespace}" : "",
                          resource->plural, with_name ? "/{name}" : "", place->part ? "/" : "",
                          place->part ? place->part->name : "");
        if (!namespaced && !with_name)
                return;
        hf__strbuf_puts(s, "\"parameters\":[");
        if (namespaced)
                put_parameter(place, "namespace", "path", "string");
        if (namespaced && with_name)
                hf__strbuf_putc(s, ',');
        if (with_name)
                put_parameter(place, "name", "path", "string");
        hf__strbuf_puts(s, "],");
}

/* Each member has ended with a comma: the last one must go. */
static void end_path(const struct place *place) {
        struct hf__strbuf *s = place->s;

        if (s->error == 0 && s->n > 0 && s->data[s->n - 1] == ',')
                s->data[--s->n] = '\0';
        hf__strbuf_puts(s, "},");
}

/* The counterpart of hfd_discovery_verbs: discovery and OpenAPI must promise the same. */
static bool has_operation(const struct hfd_resource *resource, size_t i) {
        if (resource->is_report)
                return i == LIST_ALL || i == GET_ONE;
        if (resource->is_review)
                return i == CREATE;
        return i != DELETE_ALL || !resource->no_delete_collection;
}

/* Appends the path with the operations from first to before last, unless it has none. */
static void put_path(const struct place *place, size_t first, size_t last) {
        if (first == GET_ONE && place->resource->is_review && !place->resource->is_report)
                return;
        begin_path(place, first == GET_ONE);
        for (size_t i = first; i < last; i++)
                if (has_operation(place->resource, i))
                        put_operation(place, &operations[i]);
        end_path(place);
}

static void put_part_path(const struct place *place) {
        static const struct {
                const char *verb;
                size_t operation;
        } all[] = {{"\"get\"", GET_ONE},
                   {"\"update\"", REPLACE},
                   {"\"create\"", CREATE},
                   {"\"patch\"", CHANGE}};

        begin_path(place, true);
        for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
                if (strstr(place->part->verbs, all[i].verb))
                        put_operation(place, &operations[all[i].operation]);
        end_path(place);
}

void hfd_openapi_put_paths(struct hf__strbuf *s, bool v2, const struct hfd_resource *resource) {
        struct place place = {s, v2, resource, NULL, false};
        struct hfd_discovery_subresource part;

        /* Objects of all namespaces can be listed, but an object can only be created in one. */
        place.everywhere = resource->namespaced && has_operation(resource, LIST_ALL);
        if (place.everywhere)
                put_path(&place, LIST_ALL, CREATE);
        place.everywhere = false;
        put_path(&place, LIST_ALL, GET_ONE);
        put_path(&place, GET_ONE, N_OPERATIONS);
        place.part = &part;
        for (size_t k = 0; hfd_discovery_subresource(resource, k, &part); k++)
                put_part_path(&place);
}
