/* SPDX-License-Identifier: Apache-2.0 */
#include "server/filters/request_info.h"

#include <string.h>
#include <strings.h>

#include <holdfast/error.h>

#include "base/json.h"

static int hex_digit(char c) {
        if (c >= '0' && c <= '9')
                return c - '0';
        if (c >= 'a' && c <= 'f')
                return c - 'a' + 10;
        if (c >= 'A' && c <= 'F')
                return c - 'A' + 10;
        return -1;
}

/*
 * Decodes n bytes into at most max - 1 plus a NUL. Returns the decoded length, or -1: bad encoding,
 * NUL inside, too long, not UTF-8 (what is asked for is said again in answers, and those are JSON).
 */
static int percent_decode(const char *text, size_t n, bool plus_is_space, char *ret_text,
                          size_t max) {
        size_t n_out = 0;
        if (n < max && !plus_is_space &&
            !memchr(text, '%', n)) { /* the usual segment: there is nothing to decode */
                memcpy(ret_text, text, n);
                ret_text[n] = '\0';
                return hf__utf8_valid(text, n) ? (int)n : -1;
        }
        for (size_t i = 0; i < n; i++) {
                char c = text[i];
                if (c == '%') {
                        int high = i + 2 < n ? hex_digit(text[i + 1]) : -1;
                        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
                        if (low < 0)
                                return -1;
                        c = (char)(high * 16 + low);
                        i += 2;
                } else if (c == '+' && plus_is_space)
                        c = ' ';
                if (c == '\0' || n_out + 1 >= max)
                        return -1;
                ret_text[n_out++] = c;
        }
        ret_text[n_out] = '\0';
        return hf__utf8_valid(ret_text, n_out) ? (int)n_out : -1;
}

/*
 * One decoded segment may become a part of a storage key: nothing in it may look like a separator
 * or climb. What was encoded is shorter now; a raw segment ends at a slash, and the HTTP server
 * refuses raw control characters.
 */
static int decode_segment(const char *text, size_t n, char *ret_text, size_t max) {
        int length = percent_decode(text, n, false, ret_text, max);
        if (length <= 0 || strcmp(ret_text, ".") == 0 || strcmp(ret_text, "..") == 0)
                return HF_E_INVALID;
        for (const char *c = ret_text; *c && (size_t)length < n; c++)
                if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7f)
                        return HF_E_INVALID;
        return 0;
}

/* A walk over the segments of a path; the one slash that may end it is cut off before. */
struct walk {
        const char *at, *end;
};

static bool walk_more(const struct walk *walk) { return walk->at < walk->end; }

/* Takes the next segment ("" where the path has ended). */
static int walk_next(struct walk *walk, char *ret_text, size_t max) {
        ret_text[0] = '\0';
        if (!walk_more(walk))
                return 0;
        const char *start = walk->at + 1; /* at a '/' */
        const char *slash = memchr(start, '/', (size_t)(walk->end - start));
        walk->at = slash ? slash : walk->end;
        return decode_segment(start, (size_t)(walk->at - start), ret_text, max);
}

/* What a walk would take next, without taking it; false: nothing, or nothing valid. */
static bool walk_peek(struct walk walk, char *ret_text, size_t max) {
        return walk_more(&walk) && walk_next(&walk, ret_text, max) == 0;
}

/* The rest, slash separated. */
static int walk_rest(struct walk *walk, char *ret_text, size_t max) {
        size_t n = 0;
        ret_text[0] = '\0';
        while (walk_more(walk)) {
                if (n > 0)
                        ret_text[n++] = '/';
                if (n + 1 >= max || walk_next(walk, ret_text + n, max - n) != 0)
                        return HF_E_INVALID;
                n += strlen(ret_text + n);
        }
        return 0;
}

static bool is_namespace_subresource(const char *text) {
        return strcmp(text, "status") == 0 || strcmp(text, "finalize") == 0;
}

/* After group and version: namespaces/NS/RESOURCE..., or RESOURCE... */
static int parse_resource(struct walk *walk, struct hfd_request_path *path) {
        char next[HF_NAME_MAX + 1];
        int r = walk_next(walk, path->resource, sizeof path->resource);
        if (r == 0)
                r = walk_next(walk, path->name, sizeof path->name);
        if (r == 0 && strcmp(path->resource, "namespaces") == 0 && walk_more(walk)) {
                if (!walk_peek(*walk, next, sizeof next))
                        return HF_E_INVALID;
                if (!is_namespace_subresource(next)) {
                        memcpy(path->ns, path->name, strlen(path->name) + 1);
                        r = walk_next(walk, path->resource, sizeof path->resource);
                        if (r == 0)
                                r = walk_next(walk, path->name, sizeof path->name);
                }
        }
        return r == 0 ? walk_rest(walk, path->subresource, sizeof path->subresource) : r;
}

/* Non-resource paths too are checked segment by segment: what is odd is refused whoever would
 * answer it. */
static int check_segments(struct walk walk) {
        char segment[1024];
        while (walk_more(&walk))
                if (walk_next(&walk, segment, sizeof segment) != 0)
                        return HF_E_INVALID;
        return 0;
}

/* All strings "": what stands behind their first byte is of no account, and clearing it costs more
 * than all else here. */
static void clear(struct hfd_request_path *path) {
        path->is_resource = false;
        path->group[0] = path->version[0] = path->resource[0] = path->subresource[0] = path->ns[0] =
                path->name[0] = '\0';
}

/* Takes every segment: one that is odd makes the path invalid. Not is_resource: what the strings
 * hold is no matter. */
static int parse(struct walk walk, struct hfd_request_path *path) {
        char root[8];
        bool valid = walk_peek(walk, root, sizeof root), core = valid && strcmp(root, "api") == 0;
        if (!core && (!valid || strcmp(root, "apis") != 0))
                return check_segments(walk);
        (void)walk_next(&walk, root, sizeof root);
        int r = core ? 0 : walk_next(&walk, path->group, sizeof path->group);
        if (r == 0)
                r = walk_next(&walk, path->version, sizeof path->version);
        if (r != 0 || !walk_more(&walk))
                return r;
        path->is_resource = true;
        return parse_resource(&walk, path);
}

int hfd_request_path_parse(const char *path, struct hfd_request_path *ret_path) {
        size_t n = strlen(path);
        clear(ret_path);
        if (n == 0 || path[0] != '/')
                return HF_E_INVALID;
        if (path[n - 1] == '/')
                n--;
        int r = parse((struct walk){.at = path, .end = path + n}, ret_path);
        if (r != 0 || !ret_path->is_resource)
                clear(ret_path);
        return r;
}

static const struct {
        const char *method, *lower, *on_object, *on_collection;
} methods[] = {
        {"GET", "get", "get", "list"},        {"HEAD", "head", "get", "list"},
        {"POST", "post", "create", "create"}, {"PUT", "put", "update", "update"},
        {"PATCH", "patch", "patch", "patch"}, {"DELETE", "delete", "delete", "deletecollection"},
        {"OPTIONS", "options", "", ""},
};

const char *hfd_request_verb(const char *method, const struct hfd_request_path *path,
                             const char *query) {
        for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
                if (strcmp(method, methods[i].method) != 0)
                        continue;
                if (!path->is_resource)
                        return methods[i].lower;
                if (path->name[0])
                        return methods[i].on_object;
                bool reads = strcmp(methods[i].on_collection, "list") == 0;
                return reads && hfd_query_bool(query, "watch") ? "watch" : methods[i].on_collection;
        }
        return "";
}

int hfd_query_get(const char *query, const char *key, size_t nth, char *ret_value,
                  size_t max_value) {
        size_t n_key = strlen(key);
        char name[128];
        for (const char *at = query; *at;) {
                const char *end = at + strcspn(at, "&");
                const char *equals = memchr(at, '=', (size_t)(end - at));
                const char *name_end = equals ? equals : end;
                int n_name = percent_decode(at, (size_t)(name_end - at), true, name, sizeof name);
                if (n_name >= 0 && (size_t)n_name == n_key && memcmp(name, key, n_key) == 0 &&
                    nth-- == 0) {
                        const char *value = equals ? equals + 1 : end;
                        return percent_decode(value, (size_t)(end - value), true, ret_value,
                                              max_value) < 0
                                       ? HF_E_INVALID
                                       : 0;
                }
                at = *end ? end + 1 : end;
        }
        return HF_E_NOT_FOUND;
}

bool hfd_query_bool(const char *query, const char *key) {
        char value[16];
        int r = hfd_query_get(query, key, 0, value, sizeof value);
        if (r == HF_E_NOT_FOUND)
                return false;
        return r != 0 || (strcmp(value, "0") != 0 && strcasecmp(value, "false") != 0);
}

bool hfd_query_single_name(const char *query, char ret_name[HF_NAME_MAX + 1]) {
        static const char field[] = "metadata.name";
        char selector[1024];
        if (hfd_query_get(query, "fieldSelector", 0, selector, sizeof selector) != 0)
                return false;
        for (char *term = selector; *term;) {
                size_t n = strcspn(term, ",");
                size_t n_skip = n + (term[n] == ',');
                if (n > sizeof field - 1 && memcmp(term, field, sizeof field - 1) == 0 &&
                    term[sizeof field - 1] == '=') {
                        const char *value = term + sizeof field;
                        value += *value == '='; /* "==" is the same as "=" */
                        size_t n_value = (size_t)(term + n - value);
                        if (n_value == 0 || n_value > HF_NAME_MAX)
                                return false;
                        memcpy(ret_name, value, n_value);
                        ret_name[n_value] = '\0';
                        return true;
                }
                term += n_skip;
        }
        return false;
}
