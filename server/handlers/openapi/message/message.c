/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON as protobuf messages.
 *
 * Invariant: a message is written in two passes, which begin and end the same inner messages in the
 * same order. The first one only measures, and notes the length of each inner message, in the order
 * in which they begin. The second one writes, with the lengths that were noted. So nested messages
 * need no buffers of their own, except those of fields with `split` (put_object_text).
 */
#include "server/handlers/openapi/message/message.h"

#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/strbuf.h"

/* Field numbers of gnostic's named pairs, and of Any. */
enum { PAIR_NAME = 1, PAIR_VALUE = 2, ANY_YAML = 2 };
/* Wire types of protobuf. */
enum { VARINT = 0, FIXED64 = 1, LENGTH_DELIMITED = 2 };

struct writer {
        struct hf__strbuf *out; /* NULL in the measuring pass */
        size_t *lengths;        /* owned; of the inner messages */
        size_t n, space;        /* n: how many messages have begun in this pass */
        size_t total;           /* bytes of the message that is being measured */
        struct hf__strbuf yaml; /* of one value */
        int error;
};

/* ---- fields ---- */

static void append_bytes(struct writer *w, const void *data, size_t n) {
        if (w->out)
                hf__strbuf_add(w->out, data, n);
        w->total += n;
}

/* Seven bits in a byte, the lowest first; the highest bit says that another byte follows. A
 * negative int64 takes ten bytes, as protobuf prescribes. */
static void put_varint(struct writer *w, uint64_t value) {
        char bytes[10];
        size_t n = 0;

        for (; value > 127; value >>= 7)
                bytes[n++] = (char)(value | 128);
        bytes[n++] = (char)value;
        append_bytes(w, bytes, n);
}

static void put_tag(struct writer *w, unsigned number, unsigned wire_type) {
        put_varint(w, number << 3 | wire_type);
}

static void put_bytes(struct writer *w, unsigned number, const char *data, size_t n) {
        put_tag(w, number, LENGTH_DELIMITED);
        put_varint(w, n);
        append_bytes(w, data, n);
}

static void put_number(struct writer *w, unsigned number, double value) {
        unsigned char bytes[8];
        uint64_t bits;

        memcpy(&bits, &value, sizeof bits);
        for (size_t i = 0; i < sizeof bytes; i++)
                bytes[i] = (unsigned char)(bits >> 8 * i);
        put_tag(w, number, FIXED64);
        append_bytes(w, bytes, sizeof bytes);
}

/* ---- inner messages ---- */

struct opened {
        size_t index;  /* in lengths */
        size_t before; /* total of the outer message */
};

/* Begins an inner message. The writing pass writes its tag and length, which the measuring pass has
 * noted; the measuring pass starts to count its bytes. */
static struct opened begin_message(struct writer *w, unsigned number) {
        struct opened opened = {w->n++, w->total};

        if (w->out) {
                put_tag(w, number, LENGTH_DELIMITED);
                put_varint(w, w->lengths[opened.index]);
                return opened;
        }
        if (w->n > w->space && w->error == 0) {
                size_t space = w->space ? 2 * w->space : 64;
                size_t *lengths = realloc(w->lengths, space * sizeof *lengths);
                if (lengths) {
                        w->lengths = lengths;
                        w->space = space;
                } else {
                        w->error = -ENOMEM;
                }
        }
        w->total = 0;
        return opened;
}

/* Ends an inner message. The measuring pass notes its length, and goes on with the outer
 * message. */
static void end_message(struct writer *w, unsigned number, struct opened opened) {
        size_t n = w->total;

        if (w->out)
                return;
        if (w->error == 0)
                w->lengths[opened.index] = n;
        w->total = opened.before;
        put_tag(w, number, LENGTH_DELIMITED);
        put_varint(w, n);
        w->total += n;
}

/* ---- YAML ---- */

/*
 * JSON allows some characters raw in a string that YAML does not allow there, or reads as a line
 * break. If the bytes at p are one of these, returns its code point, and in *ret_n how many bytes
 * it has; otherwise 0. The text is UTF-8 and ends with a NUL, so p[1] and p[2] are inside it
 * whenever the byte before them shows that they belong to the character.
 */
static unsigned unquotable_code(const unsigned char *p, size_t *ret_n) {
        *ret_n = 1;
        if (*p == 0x7f)
                return 0x7f;
        *ret_n = 2;
        if (*p == 0xc2 && p[1] < 0xa0)
                return p[1];
        *ret_n = 3;
        if (*p == 0xe2 && p[1] == 0x80 && (p[2] == 0xa8 || p[2] == 0xa9))
                return 0x2000 + (p[2] & 0x3fU);
        if (*p == 0xef && p[1] == 0xbb && p[2] == 0xbf)
                return 0xfeff;
        if (*p == 0xef && p[1] == 0xbf && p[2] >= 0xbe)
                return 0xffc0 + (p[2] & 0x3fU);
        return 0;
}

/* Appends an Any. Its YAML is the JSON text, because JSON is valid YAML once the unquotable
 * characters are escaped. */
static void put_yaml(struct writer *w, unsigned number, const struct hf__json *json) {
        struct hf__strbuf text = {0};
        size_t n, done = 0;

        hf__strbuf_reset(&w->yaml);
        hf__json_print(json, &text);
        for (size_t i = 0; i < text.n; i++) {
                unsigned code = unquotable_code((const unsigned char *)text.data + i, &n);
                if (code == 0)
                        continue;
                hf__strbuf_add(&w->yaml, text.data + done, i - done);
                hf__strbuf_printf(&w->yaml, "\\u%04x", code);
                done = i + n;
        }
        if (text.n > done)
                hf__strbuf_add(&w->yaml, text.data + done, text.n - done);
        if (text.error != 0 || w->yaml.error != 0)
                w->error = -ENOMEM;
        struct opened any = begin_message(w, number);
        put_bytes(w, ANY_YAML, w->yaml.data ? w->yaml.data : "", w->yaml.n);
        end_message(w, number, any);
        hf__strbuf_done(&text);
}

/* ---- values ---- */

static void put_contents(struct writer *w, const struct hfd_message *message,
                         const struct hf__json *json);

static void put_message(struct writer *w, unsigned number, const struct hfd_message *message,
                        const struct hf__json *json) {
        struct opened inner = begin_message(w, number);

        put_contents(w, message, json);
        end_message(w, number, inner);
}

/* Appends one value of a field. A scalar field whose value has another type is left out; a message
 * whose value does not fit is written empty. */
static void put_value(struct writer *w, const struct hfd_message_field *field,
                      const struct hf__json *json) {
        const char *text = hf__json_text(json);
        int64_t integer;

        switch ((enum hfd_message_form)field->form) {
        case HFD_FORM_MESSAGE: put_message(w, field->number, field->message, json); break;
        case HFD_FORM_YAML:
        case HFD_FORM_YAMLS: put_yaml(w, field->number, json); break;
        case HFD_FORM_TEXT:
                if (text)
                        put_bytes(w, field->number, text, strlen(text));
                break;
        case HFD_FORM_BOOLEAN:
                if (hf__json_is_bool(json)) {
                        put_tag(w, field->number, VARINT);
                        put_varint(w, hf__json_is_true(json));
                }
                break;
        case HFD_FORM_INTEGER:
                if (hf__json_integer(json, &integer)) {
                        put_tag(w, field->number, VARINT);
                        put_varint(w, (uint64_t)integer);
                }
                break;
        case HFD_FORM_NUMBER:
                if (hf__json_is_number(json))
                        put_number(w, field->number, hf__json_number(json));
                break;
        }
}

static void put_field(struct writer *w, const struct hfd_message_field *field,
                      const struct hf__json *json) {
        if (field->form == HFD_FORM_YAML || field->whole || !hf__json_is_array(json)) {
                put_value(w, field, json);
                return;
        }
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m))
                put_value(w, field, m);
}

/* Whether a value selects this field of a oneof. */
static bool field_fits(const struct hfd_message_field *field, const struct hf__json *json) {
        switch ((enum hfd_message_when)field->when) {
        case HFD_WHEN_ANY: break;
        case HFD_WHEN_REFERENCE: return hf__json_get(json, "$ref") != NULL;
        case HFD_WHEN_IN: return hf__json_has_text(json, "in", field->name);
        case HFD_WHEN_TEXT: return hf__json_is_string(json);
        case HFD_WHEN_BOOLEAN: return hf__json_is_bool(json);
        case HFD_WHEN_NUMBER: return hf__json_is_number(json);
        }
        return true;
}

/* The field of a member, whose name has n bytes; NULL = none. */
static const struct hfd_message_field *find_field(const struct hfd_message *message,
                                                  const char *name, size_t n) {
        for (size_t i = 0; i < message->n_fields; i++)
                if (strncmp(message->fields[i].name, name, n) == 0 && !message->fields[i].name[n])
                        return &message->fields[i];
        return NULL;
}

/* Appends a pair {name, value}; values NULL = the value is YAML. */
static void put_pair(struct writer *w, unsigned number, const struct hfd_message *values,
                     const struct hf__json *member) {
        const char *key = hf__json_key(member);
        struct opened pair = begin_message(w, number);

        put_bytes(w, PAIR_NAME, key, strlen(key));
        if (values)
                put_message(w, PAIR_VALUE, values, member);
        else
                put_yaml(w, PAIR_VALUE, member);
        end_message(w, number, pair);
}

static void put_contents(struct writer *w, const struct hfd_message *message,
                         const struct hf__json *json) {
        if (message->is_oneof) {
                for (size_t i = 0; i < message->n_fields; i++)
                        if (field_fits(&message->fields[i], json)) {
                                put_field(w, &message->fields[i], json);
                                return;
                        }
                return;
        }
        if (!hf__json_is_object(json))
                return;
        for (const struct hf__json *m = hf__json_first(json); m; m = hf__json_next(m)) {
                const char *key = hf__json_key(m);
                const struct hfd_message_field *field = find_field(message, key, strlen(key));
                if (field)
                        put_field(w, field, m);
                else if (message->pairs != 0)
                        put_pair(w, message->pairs, message->values, m);
                else if (message->extensions != 0 && strncmp(key, "x-", 2) == 0)
                        put_pair(w, message->extensions, NULL, m);
        }
}

void hfd_message_put(struct hf__strbuf *s, const struct hfd_message *message,
                     const struct hf__json *json) {
        struct writer w = {0};

        put_contents(&w, message, json);
        w.out = s;
        w.n = 0;
        if (w.error == 0)
                put_contents(&w, message, json);
        if (w.error != 0)
                s->error = w.error;
        hf__strbuf_done(&w.yaml);
        free(w.lengths);
}

/* ---- documents ---- */

/* Returns the end of the value at p. The JSON is well-formed, and the value is a string, an object
 * or an array: the top levels of a document have nothing else. */
static const char *skip_value(const char *p) {
        size_t depth = 0;

        do {
                assert(*p);
                if (*p == '"') {
                        for (p++; *p != '"'; p++)
                                p += *p == '\\';
                } else if (*p == '{' || *p == '[') {
                        depth++;
                } else if (*p == '}' || *p == ']') {
                        depth--;
                }
                p++;
        } while (depth > 0);
        return p;
}

/* Appends one member of an object. Its text, with the name, is [p, end). */
static void put_member_text(struct hf__strbuf *s, const struct hfd_message *message, const char *p,
                            const char *end) {
        struct hf__strbuf text = {0};
        struct hf__json *json = NULL;

        hf__strbuf_putc(&text, '{');
        hf__strbuf_add(&text, p, (size_t)(end - p));
        hf__strbuf_putc(&text, '}');
        int r = text.error;
        if (r == 0)
                r = hf__json_parse(text.data, text.n, &json, NULL);
        hf__strbuf_done(&text);
        if (r == 0)
                hfd_message_put(s, message, json);
        else
                s->error = r;
        hf__json_free(json);
}

/* Appends the object whose text begins at p, one member after another, so that only one of them is
 * parsed at a time. A field with `split` is done in the same way. The text of a name includes two
 * quotes. */
static void put_object_text(struct hf__strbuf *s, const struct hfd_message *message,
                            const char *p) {
        for (p++; *p != '}';) {
                const char *name_end = skip_value(p), *value = name_end + 1;
                const char *value_end = skip_value(value);
                const struct hfd_message_field *field =
                        find_field(message, p + 1, (size_t)(name_end - p - 2));
                if (field && field->split) {
                        struct hf__strbuf inner = {0};
                        put_object_text(&inner, field->message, value);
                        struct writer w = {.out = s};
                        put_bytes(&w, field->number, inner.data ? inner.data : "", inner.n);
                        if (inner.error != 0)
                                s->error = inner.error;
                        hf__strbuf_done(&inner);
                } else {
                        put_member_text(s, message, p, value_end);
                }
                p = value_end + (*value_end == ',');
        }
}

struct hf__buf *hfd_message_document(const struct hfd_message *message,
                                     const struct hf__buf *text) {
        struct hf__strbuf s = {0};

        put_object_text(&s, message, text->data);
        struct hf__buf *buf = hf__strbuf_to_buf(&s);
        hf__strbuf_done(&s);
        return buf;
}
