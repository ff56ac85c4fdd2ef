/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * OpenAPI documents as protobuf: gnostic's messages, which have a field for each member of the JSON
 * form. A table describes a message, and one writer turns any JSON into it, so the two forms of a
 * document cannot contradict each other.
 *
 * The tables of v2 and v3 are in message_v2.c and message_v3.c. Numbers are those of gnostic's
 * OpenAPIv2.proto and OpenAPIv3.proto; they never change. Pure. Thread: owner of the arguments.
 */
#include <stdbool.h>
#include <stddef.h>

struct hf__buf;
struct hf__json;
struct hf__strbuf;
struct hfd_message;

enum hfd_message_form {
        HFD_FORM_MESSAGE, /* an inner message, of the table `message` */
        HFD_FORM_TEXT,
        HFD_FORM_BOOLEAN,
        HFD_FORM_INTEGER, /* int64 */
        HFD_FORM_NUMBER,  /* double */
        HFD_FORM_YAML,    /* gnostic's Any, with any value as YAML */
        HFD_FORM_YAMLS    /* one Any for each element of an array */
};

/* Which values select this field of a oneof. */
enum hfd_message_when {
        HFD_WHEN_ANY,
        HFD_WHEN_REFERENCE, /* an object with $ref */
        HFD_WHEN_IN,        /* an object whose member `in` is the name of the field */
        HFD_WHEN_TEXT,
        HFD_WHEN_BOOLEAN,
        HFD_WHEN_NUMBER
};

/* An array is written as a repeated field, once for each element, unless the field has
 * HFD_FORM_YAML or `whole`. */
struct hfd_message_field {
        const char *name; /* of the member; in a oneof only HFD_WHEN_IN reads it */
        unsigned char number;
        unsigned char form; /* enum hfd_message_form */
        unsigned char when; /* enum hfd_message_when */
        bool split;         /* its value, an object, is large: it is read member by member */
        bool whole;         /* an array is one value */
        const struct hfd_message *message; /* of HFD_FORM_MESSAGE */
};

/*
 * A message is one of three kinds: a struct with the fields of the table, a map, which has a pair
 * {1: key, 2: value} for each member that is not in the table, or a oneof, in which the whole value
 * becomes one of the fields. Members that the table does not name are left out, except those of a
 * map, and x-... if the message has `extensions`.
 */
struct hfd_message {
        const struct hfd_message_field *fields;
        size_t n_fields;
        unsigned char
                extensions;  /* the field for members x-..., pairs of a name and YAML; 0 = none */
        unsigned char pairs; /* of a map: the field for its pairs; 0 = the message is no map */
        const struct hfd_message *values; /* of a map */
        bool is_oneof;                    /* the first field that fits is written, if any */
};

#define HFD_MESSAGE_FIELDS(table) .fields = (table), .n_fields = sizeof(table) / sizeof(table)[0]

/* The documents of v2 and v3. */
extern const struct hfd_message hfd_message_v2, hfd_message_v3;

/* Appends the fields of a message. Errors are kept in the buffer (strbuf.h). Takes time and memory
 * in proportion to the JSON. */
void hfd_message_put(struct hf__strbuf *s, const struct hfd_message *message,
                     const struct hf__json *json);
/*
 * The message of a whole document: JSON without spaces, as this folder makes it. Only one member of
 * a field with `split` is parsed at a time, because a parsed document takes many times the memory
 * of its text. NULL = out of memory.
 */
struct hf__buf *hfd_message_document(const struct hfd_message *message, const struct hf__buf *text);
