/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes protobuf by the schema of the kind. The result means the same as the JSON that the same
 * client would have sent: a zero, an empty string or an empty message becomes an absent member,
 * except where an absent member has another meaning (HFD_FIELD_POINTER). Fields that the schema
 * does not have are ignored, so that newer clients can send them. The decoder refuses:
 *
 *  - a text with a NUL, or one that is not UTF-8 (is_no_text);
 *  - times before the year 1 or after 9999, or with nanoseconds outside 0 to 999999999;
 *  - messages that are nested deeper than JSON may be;
 *  - a double that is infinite or not a number, which JSON cannot express;
 *  - what Kubernetes does not use: field numbers above 2^20, the wire types fixed32 and group.
 *
 * Invariants:
 *
 *  - The bytes come from clients, so every read is checked against the end of its slice, and no
 *    length is used before it has been checked.
 *  - Some messages contain messages of their own type, so the depth of a slice limits the
 *    recursion.
 */
#include "server/handlers/protobuf_body.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "base/utf8.h"
#include "server/schema/common.h"

/* The seconds of the years that a Time can have as text. The first one is Go's zero time. */
#define TIME_MIN (-INT64_C(62135596800)) /* 0001-01-01T00:00:00Z */
#define TIME_MAX INT64_C(253402300799)   /* 9999-12-31T23:59:59Z */

/* ---- the wire format ---- */

/* The bytes that have not been read yet, borrowed from the body, or static. */
struct slice {
        const unsigned char *at, *end;
        unsigned depth; /* how many messages enclose these bytes */
};

/* One encoded field: its number, and a varint, a double or bytes. */
struct wire {
        unsigned number;
        bool bytes;     /* true: data is set; false: value is set */
        bool is_double; /* value has the bits of a double */
        uint64_t value;
        struct slice data;
};

/* Consumes a varint. False: it is incomplete, or longer than ten bytes. */
static bool read_varint(struct slice *in, uint64_t *ret_value) {
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

/* Consumes eight bytes, lowest first. False: there are fewer. */
static bool read_fixed64(struct slice *in, struct wire *ret_wire) {
        if (in->end - in->at < 8)
                return false;
        for (unsigned i = 0; i < 8; i++)
                ret_wire->value |= (uint64_t)*in->at++ << 8 * i;
        ret_wire->is_double = true;
        return true;
}

/* Consumes one field. False: the bytes are not a field that is accepted. */
static bool read_field(struct slice *in, struct wire *ret_wire) {
        enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2, NUMBER_MAX = 1 << 20 };
        uint64_t key, n;

        if (!read_varint(in, &key) || key >> 3 > NUMBER_MAX)
                return false;
        *ret_wire = (struct wire){.number = (unsigned)(key >> 3)};
        if ((key & 7) == VARINT)
                return read_varint(in, &ret_wire->value);
        if ((key & 7) == FIXED64)
                return read_fixed64(in, ret_wire);
        if ((key & 7) != LENGTH_DELIMITED || !read_varint(in, &n) ||
            n > (uint64_t)(in->end - in->at))
                return false;
        ret_wire->bytes = true;
        ret_wire->data = (struct slice){in->at, in->at + n, in->depth + 1};
        in->at += n;
        return true;
}

/* Makes a NUL-terminated copy of data, which must not contain a NUL. NULL = out of memory. */
static char *copy_text(const struct slice *data) {
        return strndup((const char *)data->at, (size_t)(data->end - data->at));
}

/* ---- values ---- */

/* Adds the fields of one message to object. embedded_tag: 0, or the number of the inner message
 * that has these fields (schema.h). */
static int decode_message(struct hf__json *object, const struct hfd_schema *schema,
                          unsigned embedded_tag, struct slice in);
static int put_message(struct hf__json *object, const struct hfd_schema_field *f, struct slice in);
static int put_either(struct hf__json *object, const struct hfd_schema_field *f, struct slice in);

/* Whether the bytes cannot be a text of JSON. hf__json stores no text with a NUL, and a body in
 * JSON that is not UTF-8 is refused, too. If such a text were accepted, each wrong byte would be
 * printed as U+FFFD, so two different keys of a map could become the same. */
static bool is_no_text(const struct slice *data) {
        size_t n = (size_t)(data->end - data->at);

        return n > 0 && (memchr(data->at, 0, n) || !hf__utf8_valid((const char *)data->at, n));
}

/* Adds a time: {1: seconds, 2: nanoseconds}. An empty message and TIME_MIN are Go's zero time, for
 * which the member stays absent. */
static int put_time(struct hf__json *object, const struct hfd_schema_field *f, struct slice in) {
        char text[HF__MICROTIME_MAX];
        int64_t seconds = 0, nanos = 0;
        struct wire wire;

        if (in.at == in.end)
                return 0;
        while (in.at < in.end) {
                if (!read_field(&in, &wire) || wire.bytes)
                        return HF_E_INVALID;
                if (wire.number == 1)
                        seconds = (int64_t)wire.value;
                else if (wire.number == 2)
                        nanos = (int64_t)wire.value;
        }
        if (seconds < TIME_MIN || seconds > TIME_MAX || nanos < 0 || nanos > 999999999)
                return HF_E_INVALID;
        bool whole = f->schema->type == HFD_SCHEMA_TIME; /* has no fraction */
        if (seconds == TIME_MIN && (whole || nanos < 1000))
                return 0;
        if (whole)
                hf__time_format(seconds, text);
        else
                hf__microtime_format(seconds * 1000000 + nanos / 1000, text);
        return hf__json_set_string(object, f->name, text);
}

static int put_base64(struct hf__json *object, const char *key, const struct slice *data) {
        struct hf__strbuf s = {0};

        hf__base64_encode(&s, data->at, (size_t)(data->end - data->at));
        int r = s.error;
        if (r == 0)
                r = hf__json_add_string(object, key, s.data ? s.data : "");
        hf__strbuf_done(&s);
        return r;
}

/* Returns the member of that name, and creates it if it is missing. NULL = out of memory. */
static struct hf__json *get_or_create(struct hf__json *object, const char *name,
                                      struct hf__json *(*create)(void)) {
        struct hf__json *member = hf__json_get(object, name);

        if (!member && hf__json_set(object, name, create()) == 0)
                member = hf__json_get(object, name);
        return member;
}

/* Reads a Quantity: {1: text}. Whether the text is a quantity is checked later, when the JSON is
 * decoded (schema/decode.h). An empty message is Go's zero quantity, for example the divisor of a
 * resourceFieldRef that has none. False: malformed. */
static bool read_quantity(struct slice in, struct slice *ret_text) {
        static const unsigned char zero[] = {'0'};
        struct wire wire;

        *ret_text = (struct slice){zero, zero + sizeof zero, in.depth};
        while (in.at < in.end) {
                if (!read_field(&in, &wire) || !wire.bytes)
                        return false;
                if (wire.number == 1)
                        *ret_text = wire.data;
        }
        return !is_no_text(ret_text);
}

/* Adds an entry that is a list of texts: {1: element}, Go's ExtraValue. */
static int put_texts(struct hf__json *map, const char *key, struct slice in) {
        struct hf__json *list = hf__json_array();
        struct wire wire;
        int r = list ? 0 : -ENOMEM;

        while (r == 0 && in.at < in.end) {
                if (!read_field(&in, &wire) || !wire.bytes || is_no_text(&wire.data)) {
                        r = HF_E_INVALID;
                } else if (wire.number == 1) {
                        char *text = copy_text(&wire.data);
                        r = text ? hf__json_append_string(list, text) : -ENOMEM;
                        free(text);
                }
        }
        if (r == 0)
                return hf__json_add(map, key, list);
        hf__json_free(list);
        return r;
}

/* Adds an entry that is a message. The value is decoded as a field of an object of its own first:
 * the map may have the key already, and the functions for fields search for their member. */
static int put_map_message(struct hf__json *map, const char *key, const struct hfd_schema *items,
                           struct slice in) {
        const struct hfd_schema_field f = {"value", items, .flags = HFD_FIELD_POINTER};
        struct hf__json *holder = hf__json_object();
        int r = -ENOMEM;

        if (holder)
                r = items->type == HFD_SCHEMA_STRUCT ? put_message(holder, &f, in)
                                                     : put_either(holder, &f, in);
        if (r == 0 && hf__json_first(holder))
                r = hf__json_add(map, key, hf__json_detach(holder, hf__json_first(holder)));
        hf__json_free(holder);
        return r;
}

/* Adds an entry to a map. The slice of a key or a value that the message lacks is empty. */
static int put_map_value(struct hf__json *map, const struct hfd_schema *items,
                         const struct slice *key, const struct slice *value) {
        char *key_text = key->at ? copy_text(key) : strdup(""), *text = NULL;
        bool is_quantity = items->type == HFD_SCHEMA_QUANTITY;
        struct slice inner = *value;
        int r = key_text ? 0 : -ENOMEM;

        if (r == 0 && is_quantity && !read_quantity(*value, &inner))
                r = HF_E_INVALID;
        if (r == 0 && (items->type == HFD_SCHEMA_TEXT || is_quantity)) {
                text = inner.at ? copy_text(&inner) : strdup(""); /* NULL: the value is missing */
                r = text ? hf__json_add_string(map, key_text, text) : -ENOMEM;
        } else if (r == 0 && items->type == HFD_SCHEMA_LIST) {
                r = put_texts(map, key_text, *value);
        } else if (r == 0 &&
                   (items->type == HFD_SCHEMA_STRUCT || items->type == HFD_SCHEMA_EITHER)) {
                r = put_map_message(map, key_text, items, *value);
        } else if (r == 0) {
                r = put_base64(map, key_text, value);
        }
        free(key_text);
        free(text);
        return r;
}

/*
 * Adds one entry of a map: {1: key, 2: value}. Does not search for a duplicate key, because a body
 * may have very many entries. The registry removes duplicates later, as in a JSON body.
 */
static int put_entry(struct hf__json *object, const struct hfd_schema_field *f, struct slice in) {
        struct slice key = {0}, value = {0};
        struct hf__json *map = get_or_create(object, f->name, hf__json_object);
        const struct hfd_schema *items = f->schema->items;
        struct wire wire;

        while (in.at < in.end) {
                if (!read_field(&in, &wire) || !wire.bytes)
                        return HF_E_INVALID;
                if (wire.number == 1)
                        key = wire.data;
                else if (wire.number == 2)
                        value = wire.data;
        }
        if (is_no_text(&key) || (items->type == HFD_SCHEMA_TEXT && is_no_text(&value)))
                return HF_E_INVALID;
        return map ? put_map_value(map, items, &key, &value) : -ENOMEM;
}

static bool is_pointer(const struct hfd_schema_field *f) {
        return (f->flags & HFD_FIELD_POINTER) != 0;
}

static bool is_list(const struct hfd_schema_field *f) { return f->schema->type == HFD_SCHEMA_LIST; }

/* The schema of one value of a field, which may be a list of them. */
static const struct hfd_schema *value_schema(const struct hfd_schema_field *f) {
        return is_list(f) ? f->schema->items : f->schema;
}

/* Adds a value to the list in a field, or sets the field. Owns value. */
static int put_json(struct hf__json *object, const struct hfd_schema_field *f,
                    struct hf__json *value) {
        if (!is_list(f))
                return hf__json_set(object, f->name, value);
        struct hf__json *list = get_or_create(object, f->name, hf__json_array);
        if (list)
                return hf__json_append(list, value);
        hf__json_free(value);
        return -ENOMEM;
}

/* Adds a value of any type: {1: its JSON text}. In a list an empty message becomes a null; in
 * another field it leaves the member absent. */
static int put_any_value(struct hf__json *object, const struct hfd_schema_field *f,
                         struct slice in) {
        struct wire wire = {0};
        struct hf__json *value;
        const char *text = "null";
        size_t n = 4;

        if (in.at == in.end && !is_list(f))
                return 0;
        if (in.at < in.end) {
                if (!read_field(&in, &wire) || !wire.bytes || wire.number != 1)
                        return HF_E_INVALID;
                text = (const char *)wire.data.at;
                n = (size_t)(wire.data.end - wire.data.at);
        }
        if (!hf__utf8_valid(text, n))
                return HF_E_INVALID;
        int r = hf__json_parse(text, n, &value, NULL);
        if (r != 0)
                return r == -ENOMEM ? r : HF_E_INVALID;
        return put_json(object, f, value);
}

/* Adds a message, or one element of an array of messages. */
static int put_message(struct hf__json *object, const struct hfd_schema_field *f, struct slice in) {
        struct hf__json *message = hf__json_object();
        int r = message ? decode_message(message, value_schema(f), 0, in) : -ENOMEM;
        bool omitted = !is_list(f) && !is_pointer(f) && hf__json_count(message) == 0;

        if (r != 0 || omitted) {
                hf__json_free(message);
                return r;
        }
        return put_json(object, f, message);
}

/*
 * Adds one of two forms: {1: an object, 2: a list} or {1: a boolean, 2: an object} (schema.h). The
 * parts are decoded as fields of a message that has them.
 */
static int put_either(struct hf__json *object, const struct hfd_schema_field *f, struct slice in) {
        const struct hfd_schema *either = f->schema;
        bool with_bool = either->other->type == HFD_SCHEMA_BOOLEAN;
        const struct hfd_schema_field parts[] = {
                {"object", either->items, .protobuf_tag = with_bool ? 2 : 1,
                 .flags = HFD_FIELD_POINTER},
                {"other", either->other, .protobuf_tag = with_bool ? 1 : 2,
                 .flags = HFD_FIELD_POINTER},
        };
        const struct hfd_schema message = {.type = HFD_SCHEMA_STRUCT,
                                           .fields = parts,
                                           .n_fields = 2};
        struct hf__json *found = hf__json_object();
        int r = found ? decode_message(found, &message, 0, in) : -ENOMEM;
        struct hf__json *value = hf__json_get(found, "object");

        if (!value)
                value = hf__json_get(found, "other");
        if (r == 0 && value)
                r = hf__json_set(object, f->name, hf__json_detach(found, value));
        else if (r == 0 && with_bool)
                r = hf__json_set_bool(object, f->name, false);
        hf__json_free(found);
        return r;
}

/* Adds a string, or one element of an array of strings. */
static int put_text(struct hf__json *object, const struct hfd_schema_field *f,
                    const struct slice *data) {
        if (is_no_text(data))
                return HF_E_INVALID;
        char *text = copy_text(data);
        int r = 0;

        if (!text)
                return -ENOMEM;
        if (is_list(f)) {
                struct hf__json *list = get_or_create(object, f->name, hf__json_array);
                r = list ? hf__json_append_string(list, text) : -ENOMEM;
        } else if (*text || is_pointer(f)) {
                r = hf__json_set_string(object, f->name, text);
        }
        free(text);
        return r;
}

static int put_quantity(struct hf__json *object, const struct hfd_schema_field *f,
                        struct slice in) {
        struct slice text;

        if (!read_quantity(in, &text))
                return HF_E_INVALID;
        bool is_zero = text.end - text.at == 1 && *text.at == '0';
        return is_zero && !is_pointer(f) ? 0 : put_text(object, f, &text);
}

/* Adds a sequence of bytes, or one element of an array of them. */
static int put_bytes(struct hf__json *object, const struct hfd_schema_field *f,
                     const struct slice *data) {
        struct hf__json *list;
        struct hf__strbuf s = {0};
        int r;

        if (!is_list(f)) {
                hf__json_drop(object, f->name); /* the last value wins */
                return put_base64(object, f->name, data);
        }
        list = get_or_create(object, f->name, hf__json_array);
        hf__base64_encode(&s, data->at, (size_t)(data->end - data->at));
        r = list ? s.error : -ENOMEM;
        if (r == 0)
                r = hf__json_append_string(list, s.data ? s.data : "");
        hf__strbuf_done(&s);
        return r;
}

/* Adds an IntOrString: {1: 0 = number or 1 = text, 2: the number, 3: the text}. */
static int put_int_or_string(struct hf__json *object, const struct hfd_schema_field *f,
                             struct slice in) {
        struct slice data = {0};
        uint64_t type = 0, number = 0;
        struct wire wire;

        while (in.at < in.end) {
                if (!read_field(&in, &wire))
                        return HF_E_INVALID;
                if (wire.number < 1 || wire.number > 3)
                        continue; /* a field of a newer version */
                if (wire.bytes != (wire.number == 3))
                        return HF_E_INVALID;
                if (wire.number == 1)
                        type = wire.value;
                else if (wire.number == 2)
                        number = wire.value;
                else
                        data = wire.data;
        }
        if (type == 0 && number == 0 && !is_pointer(f))
                return 0;
        if (type == 0)
                return hf__json_set_i64(object, f->name, (int32_t)number);
        if (is_no_text(&data))
                return HF_E_INVALID;
        char *text = data.at ? copy_text(&data) : strdup("");
        int r = text ? hf__json_set_string(object, f->name, text) : -ENOMEM;
        free(text);
        return r;
}

/* Adds one element of an array of whole numbers. */
static int put_list_number(struct hf__json *object, const struct hfd_schema_field *f,
                           uint64_t value) {
        struct hf__json *list = get_or_create(object, f->name, hf__json_array),
                        *holder = hf__json_object();
        int r = list && holder ? hf__json_set_i64(holder, "n", (int64_t)value) : -ENOMEM;

        if (r == 0)
                r = hf__json_append(list, hf__json_detach(holder, hf__json_first(holder)));
        hf__json_free(holder);
        return r;
}

static int put_number(struct hf__json *object, const struct hfd_schema_field *f, uint64_t value) {
        if (is_list(f))
                return put_list_number(object, f, value);
        if (value == 0 && !is_pointer(f))
                return 0;
        if (f->schema->type == HFD_SCHEMA_BOOLEAN)
                return hf__json_set_bool(object, f->name, value != 0);
        return hf__json_set_i64(object, f->name, (int64_t)value);
}

/* Adds a double. JSON has no infinity and no NaN, so they are refused. */
static int put_double(struct hf__json *object, const struct hfd_schema_field *f, uint64_t bits) {
        struct hf__json *value = NULL;
        char text[40];
        double number;

        memcpy(&number, &bits, sizeof number);
        if (!isfinite(number))
                return HF_E_INVALID;
        int n = snprintf(text, sizeof text, "%.17g", number);
        int r = hf__json_parse(text, (size_t)n, &value, NULL);
        if (r != 0)
                return r == -ENOMEM ? r : HF_E_INVALID;
        return put_json(object, f, value);
}

static int put_field(struct hf__json *object, const struct hfd_schema_field *f,
                     const struct wire *wire) {
        enum hfd_schema_type type = value_schema(f)->type;
        bool is_number = type == HFD_SCHEMA_BOOLEAN || type == HFD_SCHEMA_INT32 ||
                         type == HFD_SCHEMA_INT64 || type == HFD_SCHEMA_NUMBER;

        if (is_number == wire->bytes || wire->is_double != (type == HFD_SCHEMA_NUMBER))
                return HF_E_INVALID;
        if (type == HFD_SCHEMA_NUMBER)
                return put_double(object, f, wire->value);
        if (is_number)
                return put_number(object, f, wire->value);
        if (type == HFD_SCHEMA_TEXT)
                return put_text(object, f, &wire->data);
        if (type == HFD_SCHEMA_QUANTITY)
                return put_quantity(object, f, wire->data);
        if (type == HFD_SCHEMA_STRUCT)
                return put_message(object, f, wire->data);
        if (type == HFD_SCHEMA_MAP)
                return put_entry(object, f, wire->data);
        if (type == HFD_SCHEMA_ANY)
                return put_any_value(object, f, wire->data);
        if (type == HFD_SCHEMA_EITHER)
                return put_either(object, f, wire->data);
        if (type == HFD_SCHEMA_INT_OR_STRING)
                return put_int_or_string(object, f, wire->data);
        if (type == HFD_SCHEMA_BYTES)
                return put_bytes(object, f, &wire->data);
        assert(type == HFD_SCHEMA_TIME || type == HFD_SCHEMA_MICRO_TIME);
        return put_time(object, f, wire->data);
}

/* ---- messages ---- */

static int decode_message(struct hf__json *object, const struct hfd_schema *schema,
                          unsigned embedded_tag, struct slice in) {
        struct wire wire;
        int r = in.depth > HF__JSON_DEPTH_MAX ? HF_E_INVALID : 0;

        while (r == 0 && in.at < in.end) {
                if (!read_field(&in, &wire))
                        return HF_E_INVALID;
                const struct hfd_schema_field *f =
                        hfd_schema_field_by_tag(schema, embedded_tag, wire.number);
                if (f)
                        r = put_field(object, f, &wire);
                else if (hfd_schema_embeds(schema, embedded_tag, wire.number))
                        r = wire.bytes ? decode_message(object, schema,
                                                        HFD_EMBEDDED_IN(embedded_tag, wire.number),
                                                        wire.data)
                                       : HF_E_INVALID;
        }
        return r;
}

/* Whether value is nested more than max times. The depth of the slices does not tell: in JSON an
 * element of a list is one level deeper than its message, and a value that comes as JSON text
 * (put_any_value) has levels of its own. */
static bool is_deeper(const struct hf__json *value, unsigned max) {
        if (!hf__json_is_object(value) && !hf__json_is_array(value))
                return false;
        for (const struct hf__json *m = hf__json_first(value); m && max > 0; m = hf__json_next(m))
                if (is_deeper(m, max - 1))
                        return true;
        return max == 0;
}

bool hfd_protobuf_has_form(const struct hfd_resource *resource) {
        return hfd_schema_field_by_tag(resource->schema, 0, 1) != NULL &&
               !resource->no_strategic_patch;
}

/*
 * The body is `k8s\0` and a runtime.Unknown: {1: TypeMeta, 2: the object's bytes}. kind and
 * apiVersion are in the TypeMeta only.
 */
int hfd_protobuf_to_json(const struct hfd_resource *resource, bool delete_options, const void *body,
                         size_t n_body, struct hf__json **ret_json) {
        const struct hfd_schema *schema =
                delete_options ? &hfd_schema_delete_options : resource->schema;
        struct slice in, raw = {0};
        struct wire wire;
        int r = 0;

        if ((!delete_options && !hfd_protobuf_has_form(resource)) || n_body < 4 ||
            memcmp(body, "k8s\0", 4) != 0)
                return HF_E_INVALID;
        in = (struct slice){(const unsigned char *)body + 4, (const unsigned char *)body + n_body,
                            0};
        struct hf__json *object = hf__json_object();
        if (!object)
                return -ENOMEM;
        while (r == 0 && in.at < in.end) {
                if (!read_field(&in, &wire) || !wire.bytes)
                        r = HF_E_INVALID;
                else if (wire.number == 1)
                        r = decode_message(object, &hfd_schema_type_meta, 0, wire.data);
                else if (wire.number == 2)
                        raw = wire.data;
        }
        if (r == 0 && raw.at)
                r = decode_message(object, schema, 0, raw);
        if (r == 0 && is_deeper(object, HF__JSON_DEPTH_MAX))
                r = HF_E_INVALID; /* the parser would refuse it once it is stored */
        if (r != 0) {
                hf__json_free(object);
                return r;
        }
        *ret_json = object;
        return 0;
}
