/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decodes protobuf by the tables of protobuf_fields.c. The result means the same as the JSON that
 * the same client would have sent: an empty string or message becomes an absent member, except
 * where the two differ in meaning (HFD_PB_TEXT_OR_EMPTY). Refused are a text with a NUL, which
 * hf__json cannot store; times before 1970 and after 9999; and what Kubernetes does not use: field
 * numbers above 2^20, and the wire types fixed32, fixed64 and group.
 *
 * Invariant: the bytes come from clients, so every read is checked against the end of its slice,
 * and no length is used before it has been checked.
 */
#include "server/handlers/protobuf_body.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "base/time_format.h"
#include "server/handlers/protobuf_fields.h"

#define TIME_MAX 253402300799 /* 9999-12-31T23:59:59Z: the latest second of a Time */

/* ---- the wire format ---- */

/* The bytes that have not been read yet, borrowed from the body. */
struct slice {
        const unsigned char *at, *end;
};

/* One encoded field: its number, and a varint or bytes. */
struct wire {
        unsigned number;
        bool bytes; /* true: data is set; false: value is set */
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

/* Consumes one field. False: the bytes are not a field that is accepted. */
static bool read_field(struct slice *in, struct wire *ret_wire) {
        enum { VARINT = 0, LENGTH_DELIMITED = 2, NUMBER_MAX = 1 << 20 };
        uint64_t key, n;

        if (!read_varint(in, &key) || key >> 3 > NUMBER_MAX)
                return false;
        *ret_wire = (struct wire){.number = (unsigned)(key >> 3)};
        if ((key & 7) == VARINT)
                return read_varint(in, &ret_wire->value);
        if ((key & 7) != LENGTH_DELIMITED || !read_varint(in, &n) ||
            n > (uint64_t)(in->end - in->at))
                return false;
        ret_wire->bytes = true;
        ret_wire->data = (struct slice){in->at, in->at + n};
        in->at += n;
        return true;
}

/* Makes a NUL-terminated copy of data, which must not contain a NUL. NULL = out of memory. */
static char *copy_text(const struct slice *data) {
        return strndup((const char *)data->at, (size_t)(data->end - data->at));
}

/* ---- values ---- */

static bool has_nul(const struct slice *data) {
        return data->end > data->at && memchr(data->at, 0, (size_t)(data->end - data->at));
}

/* {1: seconds, 2: nanoseconds}. An empty message is Go's zero time: the member stays absent. */
static int put_time(struct hf__json *object, const struct hfd_protobuf_field *f, struct slice in) {
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
        if (seconds < 0 || seconds > TIME_MAX || nanos < 0 || nanos > 999999999)
                return HF_E_INVALID;
        if (f->type == HFD_PB_TIME)
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

/*
 * Adds one entry of a map: {1: key, 2: value}. Does not search for a duplicate key, because a body
 * may have very many entries. The registry refuses duplicates later, as in a JSON body.
 */
static int put_entry(struct hf__json *object, const struct hfd_protobuf_field *f, struct slice in) {
        struct slice key = {0}, value = {0};
        struct hf__json *map = get_or_create(object, f->name, hf__json_object);
        struct wire wire;

        while (in.at < in.end) {
                if (!read_field(&in, &wire) || !wire.bytes)
                        return HF_E_INVALID;
                if (wire.number == 1)
                        key = wire.data;
                else if (wire.number == 2)
                        value = wire.data;
        }
        if (has_nul(&key) || (f->type == HFD_PB_MAP && has_nul(&value)))
                return HF_E_INVALID;
        /* An absent key or value is "". */
        char *key_text = key.at ? copy_text(&key) : strdup(""),
             *value_text = value.at && f->type == HFD_PB_MAP ? copy_text(&value) : strdup("");
        int r = -ENOMEM;
        if (map && key_text && value_text && f->type == HFD_PB_MAP)
                r = hf__json_add_string(map, key_text, value_text);
        else if (map && key_text && value_text)
                r = put_base64(map, key_text, &value);
        free(key_text);
        free(value_text);
        return r;
}

static int decode_message(struct hf__json *object, const struct hfd_protobuf_field *fields,
                          struct slice in);

/* Adds a message, or one element of an array of messages. */
static int put_message(struct hf__json *object, const struct hfd_protobuf_field *f,
                       struct slice in) {
        assert(f->fields);
        struct hf__json *message = hf__json_object();
        int r = message ? decode_message(message, f->fields, in) : -ENOMEM;
        bool omitted = f->type == HFD_PB_MESSAGE && hf__json_count(message) == 0;

        if (r != 0 || omitted) {
                hf__json_free(message);
                return r;
        }
        if (f->type == HFD_PB_MESSAGE)
                return hf__json_set(object, f->name, message);
        struct hf__json *list = get_or_create(object, f->name, hf__json_array);
        if (list)
                return hf__json_append(list, message);
        hf__json_free(message);
        return -ENOMEM;
}

/* Adds a string, or one element of an array of strings. */
static int put_text(struct hf__json *object, const struct hfd_protobuf_field *f,
                    const struct slice *data) {
        if (has_nul(data))
                return HF_E_INVALID;
        char *text = copy_text(data);
        int r = 0;

        if (!text)
                return -ENOMEM;
        if (f->type == HFD_PB_TEXTS) {
                struct hf__json *list = get_or_create(object, f->name, hf__json_array);
                r = list ? hf__json_append_string(list, text) : -ENOMEM;
        } else if (*text || f->type == HFD_PB_TEXT_OR_EMPTY) {
                r = hf__json_set_string(object, f->name, text);
        }
        free(text);
        return r;
}

static int put_field(struct hf__json *object, const struct hfd_protobuf_field *f,
                     const struct wire *wire) {
        bool is_number = f->type == HFD_PB_INT || f->type == HFD_PB_BOOL;

        if (is_number == wire->bytes)
                return HF_E_INVALID;
        switch (f->type) {
        case HFD_PB_TEXT:
        case HFD_PB_TEXT_OR_EMPTY:
        case HFD_PB_TEXTS: return put_text(object, f, &wire->data);
        case HFD_PB_INT: return hf__json_set_i64(object, f->name, (int64_t)wire->value);
        case HFD_PB_BOOL: return hf__json_set_bool(object, f->name, wire->value != 0);
        case HFD_PB_MESSAGE:
        case HFD_PB_MESSAGES: return put_message(object, f, wire->data);
        case HFD_PB_MAP:
        case HFD_PB_MAP_BYTES: return put_entry(object, f, wire->data);
        case HFD_PB_TIME:
        case HFD_PB_MICROTIME: return put_time(object, f, wire->data);
        case HFD_PB_END: break;
        }
        return 0;
}

/* ---- messages ---- */

/*
 * Adds the fields of one message to object, and skips those that no table contains. The recursion
 * is as deep as the tables are nested.
 */
static int decode_message(struct hf__json *object, const struct hfd_protobuf_field *fields,
                          struct slice in) {
        struct wire wire;
        int r = 0;

        while (r == 0 && in.at < in.end) {
                if (!read_field(&in, &wire))
                        return HF_E_INVALID;
                const struct hfd_protobuf_field *f = fields;
                while (f->type != HFD_PB_END && f->number != wire.number)
                        f++;
                if (f->type != HFD_PB_END)
                        r = put_field(object, f, &wire);
        }
        return r;
}

/*
 * The body is `k8s\0` and a runtime.Unknown: {1: TypeMeta, 2: the object's bytes}. kind and
 * apiVersion are in the TypeMeta only.
 */
int hfd_protobuf_to_json(const struct hfd_resource *resource, bool delete_options, const void *body,
                         size_t n_body, struct hf__json **ret_json) {
        const struct hfd_protobuf_field *fields = delete_options
                                                          ? hfd_protobuf_fields_of_delete_options()
                                                          : hfd_protobuf_fields(resource);
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
                if (!read_field(&in, &wire) || !wire.bytes)
                        r = HF_E_INVALID;
                else if (wire.number == 1)
                        r = decode_message(object, hfd_protobuf_fields_of_type_meta(), wire.data);
                else if (wire.number == 2)
                        raw = wire.data;
        }
        if (r == 0 && raw.at)
                r = decode_message(object, fields, raw);
        if (r != 0) {
                hf__json_free(object);
                return r;
        }
        *ret_json = object;
        return 0;
}
