/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses method, path and query of a request.
 *
 * Invariant: a decoded segment may become part of a storage key. So it contains no slash, and is
 * neither "." nor "..". An invalid segment makes the whole path invalid. This also holds for
 * non-resource paths, so that no handler has to check segments.
 */
#include "server/filters/request/request_info.h"

#include <string.h>

#include <holdfast/error.h>

#include "base/assert_costly.h"
#include "base/percent.h"
#include "base/text.h"
#include "server/filters/request/query.h"

/* Whether a decoded segment is "." or "..". */
static bool is_dots(const char *text) {
        return text[0] == '.' && (text[1] == '\0' || (text[1] == '.' && text[2] == '\0'));
}

/*
 * Decodes a segment, and refuses characters that must not be in a storage key. A segment without
 * percent-encoding needs no such check: it ends at the next slash, and the HTTP server refuses
 * control characters. Decoding shortens a segment with percent-encoding, so the lengths tell which
 * kind it is.
 */
static int decode_segment(const char *text, size_t n, char *ret_text, size_t max) {
        int length = hf__percent_decode(text, n, false, ret_text, max);
        if (length <= 0 || is_dots(ret_text))
                return HF_E_INVALID;
        for (const char *c = ret_text; *c && (size_t)length < n; c++)
                if (*c == '/' || (unsigned char)*c < 0x20 || *c == 0x7f)
                        return HF_E_INVALID;
        return 0;
}

/* The part of a path that has not been parsed yet. The caller has removed a slash at the end. */
struct walk {
        const char *at, *end;
};

static bool has_segments(const struct walk *walk) { return walk->at < walk->end; }

/* Decodes the next segment, and moves past it. At the end of the path the segment is "". 0 or
 * HF_E_INVALID. */
static int next_segment(struct walk *walk, char *ret_text, size_t max) {
        ret_text[0] = '\0';
        if (!has_segments(walk))
                return 0;
        const char *start = walk->at + 1; /* at a '/' */
        const char *slash = memchr(start, '/', (size_t)(walk->end - start));
        walk->at = slash ? slash : walk->end;
        return decode_segment(start, (size_t)(walk->at - start), ret_text, max);
}

/* Decodes the next segment, and does not move: `walk` is a copy. False: there is no next segment,
 * or it is invalid. */
static bool walk_peek(struct walk walk, char *ret_text, size_t max) {
        return has_segments(&walk) && next_segment(&walk, ret_text, max) == 0;
}

/* Decodes all remaining segments, and joins them with slashes. 0 or HF_E_INVALID. */
static int join_segments(struct walk *walk, char *ret_text, size_t max) {
        size_t n = 0;
        ret_text[0] = '\0';
        while (has_segments(walk)) {
                if (n > 0)
                        ret_text[n++] = '/';
                if (n + 1 >= max || next_segment(walk, ret_text + n, max - n) != 0)
                        return HF_E_INVALID;
                n += strlen(ret_text + n);
        }
        return 0;
}

static bool is_namespace_subresource(const char *text) {
        return strcmp(text, "status") == 0 || strcmp(text, "finalize") == 0;
}

/* Parses what follows group and version: namespaces/NS/RESOURCE..., or RESOURCE... A segment after
 * namespaces/NS is a resource in this namespace, unless it is a subresource of the Namespace
 * itself. */
static int parse_resource(struct walk *walk, struct hfd_request_path *path) {
        char next[HF_NAME_MAX + 1];
        int r = next_segment(walk, path->resource, sizeof path->resource);
        if (r == 0)
                r = next_segment(walk, path->name, sizeof path->name);
        if (r == 0 && strcmp(path->resource, "namespaces") == 0 && has_segments(walk)) {
                if (!walk_peek(*walk, next, sizeof next))
                        return HF_E_INVALID;
                if (!is_namespace_subresource(next)) {
                        memcpy(path->ns, path->name, strlen(path->name) + 1);
                        r = next_segment(walk, path->resource, sizeof path->resource);
                        if (r == 0)
                                r = next_segment(walk, path->name, sizeof path->name);
                }
        }
        return r == 0 ? join_segments(walk, path->subresource, sizeof path->subresource) : r;
}

/* Checks the segments of a non-resource path, so that invalid ones are refused before any handler
 * runs. */
static int check_segments(struct walk walk) {
        char segment[1024];
        while (has_segments(&walk))
                if (next_segment(&walk, segment, sizeof segment) != 0)
                        return HF_E_INVALID;
        return 0;
}

/* Sets all strings to "". Clearing the whole arrays would take longer than the rest of the
 * parser. */
static void clear_path(struct hfd_request_path *path) {
        path->is_resource = false;
        path->group[0] = path->version[0] = path->resource[0] = path->subresource[0] = path->ns[0] =
                path->name[0] = '\0';
}

/* Decodes every segment of the path, because an invalid segment makes the path invalid. For a
 * non-resource path, the strings in *path have no meaning afterwards. */
static int parse_path(struct walk walk, struct hfd_request_path *path) {
        char root[8];
        bool valid = walk_peek(walk, root, sizeof root), core = valid && strcmp(root, "api") == 0;
        if (!core && (!valid || strcmp(root, "apis") != 0))
                return check_segments(walk);
        (void)next_segment(&walk, root, sizeof root);
        int r = core ? 0 : next_segment(&walk, path->group, sizeof path->group);
        if (r == 0)
                r = next_segment(&walk, path->version, sizeof path->version);
        if (r != 0 || !has_segments(&walk))
                return r;
        path->is_resource = true;
        return parse_resource(&walk, path);
}

int hfd_request_path_parse(const char *path, struct hfd_request_path *ret_path) {
        size_t n = strlen(path);
        clear_path(ret_path);
        if (n == 0 || path[0] != '/')
                return HF_E_INVALID;
        if (path[n - 1] == '/')
                n--;
        int r = parse_path((struct walk){.at = path, .end = path + n}, ret_path);
        if (r != 0 || !ret_path->is_resource)
                clear_path(ret_path);
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
                /* A HEAD has no body, so it cannot watch: nothing would ever end the watch. */
                bool watches = strcmp(method, "GET") == 0 && hfd_query_bool(query, "watch");
                return watches ? "watch" : methods[i].on_collection;
        }
        return "";
}

static bool is_reading(const char *verb) {
        static const char *const reading[] = {"get", "list", "watch", "head", "options"};

        for (size_t i = 0; i < sizeof reading / sizeof reading[0]; i++)
                if (strcmp(verb, reading[i]) == 0)
                        return true;
        return false;
}

size_t hfd_request_info_text_size(const struct hfd_request_path *path) {
        return strlen(path->group) + strlen(path->version) + strlen(path->resource) +
               strlen(path->subresource) + strlen(path->ns) + strlen(path->name) + 6; /* NULs */
}

void hfd_request_info_init(struct hfd_request_info *info, const char *method,
                           const struct hfd_request_path *path, bool valid, const char *query,
                           char *text) {
        const char *verb = hfd_request_verb(method, path, query);
        char *at = text;

        *info = (struct hfd_request_info){.verb = verb,
                                          .valid_path = valid,
                                          .is_resource = path->is_resource,
                                          .watch = strcmp(verb, "watch") == 0,
                                          .mutating = !is_reading(verb)};
        info->group = hf__text_copy(&at, path->group);
        info->version = hf__text_copy(&at, path->version);
        info->resource = hf__text_copy(&at, path->resource);
        info->subresource = hf__text_copy(&at, path->subresource);
        info->ns = hf__text_copy(&at, path->ns);
        info->name = hf__text_copy(&at, path->name); /* last: request_memo.c relies on it */
        hf__assert_costly(at == text + hfd_request_info_text_size(path));
}
