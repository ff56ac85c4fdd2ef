/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Converts values of CEL to JSON, for the parts of an object that a mutating policy makes, and
 * checks the names of the types in them.
 *
 * Invariants: every part that is visited is taken from the room before anything is made of it, and
 * so is every string, bytes value and key, because values share them: a small value can stand for a
 * huge JSON text. The depth is limited as in JSON, and with it the recursion. A function that fails
 * leaves *ret_json NULL, so its caller frees only what it has made itself.
 */
#include "server/admission/expressions/value_json.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/base64.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "cel/values/number_text.h"
#include "cel/values/timestamp.h"

/* A conversion or a check that is under way. */
struct walk {
        struct hf__strbuf *message;
        struct hfd_value_room *room;
        unsigned depth;
};

/* Sets the message, which is text and detail. Returns HF_E_INVALID. */
static int refuse_value(struct walk *walk, const char *text, const char *detail) {
        hf__strbuf_printf(walk->message, "%s%s", text, detail);
        return HF_E_INVALID;
}

/* Refuses the value by a limit that Kubernetes does not have. Returns HF_E_TOO_MANY. */
static int refuse_by_limit(struct walk *walk, const char *text) {
        hf__strbuf_puts(walk->message, text);
        return HF_E_TOO_MANY;
}

static int refuse_size(struct walk *walk) {
        return refuse_by_limit(walk, "the value is too large");
}

/* Takes n bytes of a text from the room. 0 or HF_E_TOO_MANY. */
static int take_bytes(struct walk *walk, size_t n) {
        if (n > walk->room->bytes)
                return refuse_size(walk);
        walk->room->bytes -= n;
        return 0;
}

/* Takes one more part from the room. Allows 4 levels less than JSON has, because the value becomes
 * a part of an object, which adds a few levels of its own. 0 or HF_E_TOO_MANY. */
static int take_part(struct walk *walk) {
        if (walk->room->parts == 0)
                return refuse_size(walk);
        walk->room->parts--;
        return walk->depth > HF__JSON_DEPTH_MAX - 4
                       ? refuse_by_limit(walk, "the value is nested too deeply")
                       : 0;
}

/* Parses text that was printed here. If the parser refuses it, for example a string with a NUL,
 * *ret_json stays NULL. 0 or -ENOMEM. */
static int parse_json(const char *text, size_t n, struct hf__json **ret_json) {
        return hf__json_parse(text, n, ret_json, NULL) == -ENOMEM ? -ENOMEM : 0;
}

/* Makes a JSON string of the text. The parser refuses a text with a NUL, and *ret_json stays NULL
 * (parse_json). */
static int string_json(struct walk *walk, struct hf__cel_value value, struct hf__json **ret_json) {
        struct hf__strbuf quoted = {0};
        int r = take_bytes(walk, value.n);

        if (r != 0)
                return r;
        hf__strbuf_json(&quoted, value.as.text, value.n);
        r = quoted.error == 0 ? parse_json(quoted.data, quoted.n, ret_json) : -ENOMEM;
        hf__strbuf_done(&quoted);
        return r;
}

/* Times and durations become the texts that Kubernetes has for them. */
static int scalar_json(struct walk *walk, struct hf__cel_value value, struct hf__json **ret_json) {
        struct hf__strbuf text = {0};
        int r;

        switch (value.kind) {
        case HF__CEL_NULL: hf__strbuf_puts(&text, "null"); break;
        case HF__CEL_BOOL: hf__strbuf_puts(&text, value.as.boolean ? "true" : "false"); break;
        case HF__CEL_INT: hf__strbuf_printf(&text, "%lld", (long long)value.as.i); break;
        case HF__CEL_UINT: hf__strbuf_u64(&text, value.as.u); break;
        case HF__CEL_DOUBLE:
                if (!isfinite(value.as.d))
                        return refuse_value(walk, "the number has no form in JSON", "");
                hf__cel_double_print(&text, value.as.d);
                break;
        case HF__CEL_TIMESTAMP:
        case HF__CEL_DURATION:
                hf__strbuf_putc(&text, '"');
                if (value.kind == HF__CEL_DURATION)
                        hf__cel_duration_print(&text, value.as.i);
                else
                        hf__cel_timestamp_print(&text, value);
                hf__strbuf_putc(&text, '"');
                break;
        default:
                return refuse_value(walk, "unsupported type ",
                                    hf__cel_type_name(hf__cel_value_type(value)));
        }
        r = text.error == 0 ? parse_json(text.data, text.n, ret_json) : -ENOMEM;
        hf__strbuf_done(&text);
        return r;
}

/* Bytes become base64, as in the JSON of Kubernetes. */
static int bytes_json(struct walk *walk, struct hf__cel_value value, struct hf__json **ret_json) {
        struct hf__strbuf text = {0};
        int r = take_bytes(walk, value.n / 3 * 4);

        if (r != 0)
                return r;
        hf__strbuf_putc(&text, '"');
        hf__base64_encode(&text, value.as.text, value.n);
        hf__strbuf_putc(&text, '"');
        r = text.error == 0 ? parse_json(text.data, text.n, ret_json) : -ENOMEM;
        hf__strbuf_done(&text);
        return r;
}

static int to_json(struct walk *walk, struct hf__cel_value value, struct hf__json **ret_json);

static int list_json(struct walk *walk, const struct hf__cel_list *list,
                     struct hf__json **ret_json) {
        struct hf__json *array = hf__json_array();
        int r = array ? 0 : -ENOMEM;

        for (size_t i = 0; i < list->n && r == 0; i++) {
                struct hf__json *item = NULL;

                r = to_json(walk, hf__cel_list_at(list, i), &item);
                if (r == 0)
                        r = hf__json_append(array, item);
        }
        if (r != 0)
                array = hf__json_free(array);
        *ret_json = array;
        return r;
}

/* Sets a member whose key is text that may have no NUL at its end. */
static int put_member(struct hf__json *object, struct hf__cel_value key, struct hf__json *value) {
        char *name = strndup(key.as.text, key.n);
        int r;

        if (!name) {
                hf__json_free(value);
                return -ENOMEM;
        }
        r = hf__json_add(object, name, value);
        free(name);
        return r;
}

static int map_json(struct walk *walk, const struct hf__cel_map *map, struct hf__json **ret_json) {
        struct hf__json *object = hf__json_object();
        int r = object ? 0 : -ENOMEM;

        for (size_t i = 0; i < map->n && r == 0; i++) {
                struct hf__cel_entry entry = hf__cel_map_at(map, i);
                struct hf__json *value = NULL;

                if (entry.key.kind != HF__CEL_STRING || memchr(entry.key.as.text, 0, entry.key.n))
                        r = refuse_value(walk, "a key of a map is not a string", "");
                if (r == 0)
                        r = take_bytes(walk, entry.key.n);
                if (r == 0)
                        r = to_json(walk, entry.value, &value);
                if (r == 0)
                        r = put_member(object, entry.key, value);
        }
        if (r != 0)
                object = hf__json_free(object);
        *ret_json = object;
        return r;
}

static int to_json(struct walk *walk, struct hf__cel_value value, struct hf__json **ret_json) {
        int r = take_part(walk);

        *ret_json = NULL;
        if (r != 0)
                return r;
        walk->depth++;
        switch (value.kind) {
        case HF__CEL_ERROR: r = refuse_value(walk, value.as.text, ""); break;
        case HF__CEL_STRING: r = string_json(walk, value, ret_json); break;
        case HF__CEL_BYTES: r = bytes_json(walk, value, ret_json); break;
        case HF__CEL_LIST: r = list_json(walk, value.as.list, ret_json); break;
        case HF__CEL_MAP:
        case HF__CEL_OBJECT: r = map_json(walk, value.as.map, ret_json); break;
        default: r = scalar_json(walk, value, ret_json);
        }
        assert(walk->depth > 0);
        walk->depth--;
        if (r == 0 && !*ret_json)
                r = refuse_value(walk, "the value has no form in JSON", "");
        return r;
}

int hfd_value_to_json(struct hf__cel_value value, struct hfd_value_room *room,
                      struct hf__json **ret_json, struct hf__strbuf *reterr_message) {
        struct walk walk = {.message = reterr_message, .room = room};

        assert(room && ret_json);
        return to_json(&walk, value, ret_json);
}

/* ---- the names of types ---- */

/* Checks the types of a value. path: the type name that an object at this place must have. */
static int check_value(struct walk *walk, struct hf__cel_value value, struct hf__strbuf *path);

/* Checks the types below a map or an object. The type name of an object's member is that of the
 * object, a dot and the name of the member; the key of a map adds nothing to it. */
static int check_map(struct walk *walk, const struct hf__cel_map *map, bool object,
                     struct hf__strbuf *path) {
        int r = 0;

        for (size_t i = 0; i < map->n && r == 0; i++) {
                struct hf__cel_entry entry = hf__cel_map_at(map, i);
                size_t n = path->n;

                if (object) {
                        hf__strbuf_putc(path, '.');
                        hf__strbuf_add(path, entry.key.as.text, entry.key.n);
                }
                r = path->error == 0 ? check_value(walk, entry.value, path) : -ENOMEM;
                if (path->error == 0) {
                        path->n = n;
                        path->data[n] = 0;
                }
        }
        return r;
}

static int check_value(struct walk *walk, struct hf__cel_value value, struct hf__strbuf *path) {
        int r = take_part(walk);

        if (r != 0)
                return r;
        walk->depth++;
        if (value.kind == HF__CEL_OBJECT && value.as.map->type && value.as.map->type->open &&
            strcmp(value.as.map->type->name, path->data) != 0) {
                hf__strbuf_printf(walk->message,
                                  "unexpected type name \"%s\", expected \"%s\", which matches "
                                  "field name path from root Object type",
                                  value.as.map->type->name, path->data);
                r = HF_E_INVALID;
        } else if (value.kind == HF__CEL_OBJECT || value.kind == HF__CEL_MAP) {
                r = check_map(walk, value.as.map, value.kind == HF__CEL_OBJECT, path);
        } else if (value.kind == HF__CEL_LIST) {
                for (size_t i = 0; i < value.as.list->n && r == 0; i++)
                        r = check_value(walk, hf__cel_list_at(value.as.list, i), path);
        }
        assert(walk->depth > 0);
        walk->depth--;
        return r;
}

int hfd_value_check_types(struct hf__cel_value value, struct hfd_value_room room,
                          struct hf__strbuf *reterr_message) {
        struct walk walk = {.message = reterr_message, .room = &room};
        struct hf__strbuf path = {0};
        int r;

        if (value.kind != HF__CEL_OBJECT || !value.as.map->type)
                return 0;
        hf__strbuf_puts(&path, value.as.map->type->name);
        r = path.error == 0 ? check_value(&walk, value, &path) : -ENOMEM;
        hf__strbuf_done(&path);
        return r;
}
