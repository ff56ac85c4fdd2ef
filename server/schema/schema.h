/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A structural schema describes the values of a kind: which fields an object has, and the type of
 * each. All code that must know the fields of a built-in kind reads the schema: decoding of JSON
 * and protobuf, pruning of unknown fields, strategic merge patches, server-side apply, OpenAPI and
 * `kubectl explain`. So these never disagree.
 *
 * The schemas of built-in kinds are static tables. Nearly all are in the file of their kind
 * (server/resources/strategies, server/resources/workloads/schemas); parts that many kinds share
 * are in common.h, those of pods in strategies/pod/pod_schema.h. A schema may also be built at run
 * time, for a custom resource, but pruning and most of OpenAPI then follow its
 * CustomResourceDefinition directly. A schema is immutable; pointers between schemas are borrowed.
 * A schema may contain itself, but only below a STRUCT with a definition. Pure. Thread: any.
 */
#include <stdbool.h>
#include <stddef.h>

enum hfd_schema_type {
        HFD_SCHEMA_ANY,    /* every JSON value; nothing below it is checked or pruned */
        HFD_SCHEMA_STRUCT, /* an object with the fields of the table `fields` */
        HFD_SCHEMA_MAP,    /* an object with any keys; `items` is the schema of the values */
        HFD_SCHEMA_LIST,   /* an array; `items` is the schema of the elements */
        HFD_SCHEMA_TEXT,
        HFD_SCHEMA_BOOLEAN,
        HFD_SCHEMA_INT32,
        HFD_SCHEMA_INT64,
        HFD_SCHEMA_NUMBER,
        HFD_SCHEMA_BYTES,         /* a string: base64 */
        HFD_SCHEMA_TIME,          /* a string: RFC 3339, stored with whole seconds in UTC */
        HFD_SCHEMA_MICRO_TIME,    /* the same with exactly six digits after the point */
        HFD_SCHEMA_INT_OR_STRING, /* a whole number, in built-in kinds an int32, or a string */
        HFD_SCHEMA_QUANTITY,      /* a string such as "100m" (values/quantity.h); or a number */
        HFD_SCHEMA_EITHER /* an object with the schema `items`, or a value of the type `other` */
};

/* How server-side apply identifies the elements of a list (x-kubernetes-list-type). */
enum hfd_schema_list_type {
        HFD_LIST_ATOMIC, /* the list is owned as a whole */
        HFD_LIST_SET,    /* scalars; each is its own key */
        HFD_LIST_MAP     /* objects, identified by the fields in list_keys */
};

/* Flags of a field. */
enum {
        /* OpenAPI lists the field as required. The decoder accepts an object without the field; the
         * validation of the kind refuses that object, unless the zero of the field is valid. An
         * empty list or map stays (decode.h). An object in which nothing is set has the field's
         * zero (zero.h), unless the field has HFD_FIELD_POINTER, or is a time or BYTES. */
        HFD_FIELD_REQUIRED = 1,
        /* A strategic merge patch merges the list element by element: objects by the field
         * merge_key, scalars by value. Without this flag a patch replaces the list. */
        HFD_FIELD_MERGE = 2,
        /* In protobuf the zero value of the field differs from an absent field, because the field
         * is a pointer in Kubernetes' Go. Lists, maps and BYTES do not need this flag. */
        HFD_FIELD_POINTER = 4,
        /* Some members of the object, or of an element if the field has HFD_FIELD_MERGE, exclude
         * each other, so a patch names the members that stay ($retainKeys). */
        HFD_FIELD_RETAIN_KEYS = 8,
        /* An empty list stays, although the field is not required: Go's type has no omitempty, or
         * the validation refuses an empty list. */
        HFD_FIELD_KEEPS_EMPTY = 16,
        /* A strategic merge patch replaces the object, and does not merge it. */
        HFD_FIELD_REPLACE = 32,
        /* The field has key_value. Only fields of custom kinds have it. */
        HFD_FIELD_KEY_VALUE = 64
};

struct hf__json;
struct hfd_schema;

struct hfd_schema_field {
        const char *name;
        const struct hfd_schema *schema;
        const char *description; /* for `kubectl explain`; NULL = none */
        union {
                const char *merge_key; /* with HFD_FIELD_MERGE; NULL = a list of scalars */
                /*
                 * Without HFD_FIELD_MERGE, if the field is a key of a list (HFD_LIST_MAP): the
                 * value that the key has in an element that omits it. key_default: a text; NULL =
                 * none. A container's port without a protocol has "TCP". key_value, with
                 * HFD_FIELD_KEY_VALUE: any value, never NULL.
                 */
                const char *key_default;
                const struct hf__json *key_value;
        };
        unsigned short protobuf_tag; /* the field's number in protobuf; 0 = not in protobuf */
        unsigned char flags;
        /*
         * For Go's embedded structs: in protobuf the field is in an inner message with this number,
         * below 16. 0 = it is in the message of the struct itself. HFD_EMBEDDED_IN gives the number
         * for an inner message of an inner message.
         */
        unsigned char embedded_tag;
};

struct hfd_schema {
        enum hfd_schema_type type;
        enum hfd_schema_list_type list_type;
        bool atomic; /* a STRUCT or MAP that apply treats as one value (x-kubernetes-map-type) */
        bool preserve_unknown; /* of a STRUCT: fields that are not in the table are kept */
        bool only_objects;     /* of an ANY: other values than objects make no sense (FieldsV1) */
        unsigned n_fields;     /* of a STRUCT */
        /* Of a STRUCT: sorted by name (strcmp), so that a field is found by bisection. */
        const struct hfd_schema_field *fields;
        const struct hfd_schema *items; /* of a MAP, a LIST or an EITHER, never NULL there */
        const struct hfd_schema *other; /* of an EITHER: a BOOLEAN or a LIST */
        const char *const *list_keys;   /* of HFD_LIST_MAP: names, sorted; ends with NULL */
        /*
         * The name of the definition in OpenAPI ("io.k8s.api.core.v1.ConfigMap"). Its last two
         * parts are the Go type that Kubernetes' messages show ("v1.ConfigMap"). A TEXT, LIST or
         * MAP has a definition, for messages alone, if its Go type has a name of its own; a MAP
         * whose keys have such a type has the whole Go type, which begins with "map[". A QUANTITY
         * or INT_OR_STRING always has one, unless it is of a custom kind. NULL = none.
         */
        const char *definition;
        const char *description; /* of the definition; NULL = none */
        /* Of a STRUCT that has fields with embedded_tag: the name of the embedded struct in Go, for
         * messages. If it embeds another one: the two names ("RuleWithOperations.Rule"). */
        const char *embedded;
};

/* The field of a STRUCT by its name; NULL = there is no such field. Takes logarithmic time. */
const struct hfd_schema_field *hfd_schema_field(const struct hfd_schema *schema, const char *name);
/* The field of a STRUCT by its number in protobuf: in the message itself (embedded_tag 0) or in an
 * inner message. NULL = there is no such field. Takes linear time. */
const struct hfd_schema_field *hfd_schema_field_by_tag(const struct hfd_schema *schema,
                                                       unsigned embedded_tag, unsigned tag);
/* Whether the message of the STRUCT (outer 0), or its inner message with the number `outer`, has an
 * inner message with the number `tag`. */
bool hfd_schema_embeds(const struct hfd_schema *schema, unsigned outer, unsigned tag);
/* The embedded_tag of the fields of the inner message with the number `tag`. That message is in the
 * inner message with the number `outer`; outer 0: it is in the message of the struct itself. */
#define HFD_EMBEDDED_IN(outer, tag) ((outer) == 0 ? (tag) : (outer) + 16 * (tag))
#define HFD_EMBEDDED_MAX            16 /* numbers of inner messages are below it */
/* The schema of the value under a key of a STRUCT or a MAP. NULL = the STRUCT has no such field, or
 * schema is of another type, or NULL: so a walk by keys needs no check at each step. */
const struct hfd_schema *hfd_schema_of_member(const struct hfd_schema *schema, const char *key);
/* Writes the type as Go prints it: "v1.ConfigMap", "map[string]string", "[]v1.PolicyRule". A longer
 * text is cut. */
#define HFD_GO_TYPE_MAX 120 /* bytes, with the NUL */
void hfd_schema_go_type(const struct hfd_schema *schema, char text[HFD_GO_TYPE_MAX]);
/* The name of a STRUCT without its package, "ConfigMap". Borrowed. "" = it has no definition. */
const char *hfd_schema_struct_name(const struct hfd_schema *schema);

/* ---- for tables ---- */

extern const struct hfd_schema hfd_schema_any, hfd_schema_text, hfd_schema_boolean,
        hfd_schema_int32, hfd_schema_int64, hfd_schema_number, hfd_schema_bytes, hfd_schema_time,
        hfd_schema_micro_time, hfd_schema_int_or_string, hfd_schema_quantity,
        hfd_schema_map_of_texts, hfd_schema_atomic_map_of_texts, hfd_schema_map_of_bytes,
        hfd_schema_resource_list, hfd_schema_list_of_texts, hfd_schema_set_of_texts;

#define HFD_N_FIELDS(table) (sizeof(table) / sizeof(table)[0])
/* Initializes the members of a struct hfd_schema: a STRUCT with the fields of a table. */
#define HFD_STRUCT(name, table)                                                                    \
        .type = HFD_SCHEMA_STRUCT, .definition = (name), .fields = (table),                        \
        .n_fields = HFD_N_FIELDS(table)
/* The address of a TEXT with a definition. Only for tables at file scope, as HFD_LIST_OF. */
#define HFD_NAMED_TEXT(name)                                                                       \
        (&(const struct hfd_schema){.type = HFD_SCHEMA_TEXT, .definition = (name)})
/* The address of a MAP of lists of texts. name: the definition of the lists. */
#define HFD_MAP_OF_LISTS(name)                                                                     \
        (&(const struct hfd_schema){.type = HFD_SCHEMA_MAP,                                        \
                                    .items = HFD_LIST_OF(&hfd_schema_text, .definition = (name))})
/* The address of a LIST with these elements. Further arguments set other members. Only for tables
 * at file scope: in a function the schema would end with the block. */
#define HFD_LIST_OF(element, ...)                                                                  \
        (&(const struct hfd_schema){.type = HFD_SCHEMA_LIST, .items = (element), __VA_ARGS__})
