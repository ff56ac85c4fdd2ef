/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON patch (RFC 6902) over JSON pointers (RFC 6901).
 *
 * What a patch may cost is bounded: each step through members and each node that is compared or
 * copied is taken off one budget, copies have one of bytes, and nothing gets deeper than what the
 * parser takes, for printing recurses.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "server/patch/patch.h"

#define WORK_MAX ((size_t)20 << 20) /* steps and nodes of one patch */
#define COPY_MAX ((size_t)3 << 20)  /* bytes that copies add, as large as a body may be */

struct patching {
        struct hf__json **document;
        size_t work, copied;
        char *why;
};

/* A place: container and member, or where a member would be added. */
struct place {
        struct hf__json *container; /* NULL = the whole document */
        struct hf__json *member;    /* NULL = there is none */
        char *key;    /* owned; of an object's member; an array's index or "-" as text */
        size_t depth; /* of the member */
};

static int fail(struct patching *p, const char *what, const char *path) {
        (void)snprintf(p->why, HFD_PATCH_WHY, "%s: %.120s", what, path);
        return HF_E_INVALID;
}

static int spend(struct patching *p, size_t work) {
        p->work += work;
        if (p->work <= WORK_MAX)
                return 0;
        (void)snprintf(p->why, HFD_PATCH_WHY, "the patch takes more steps than a request may");
        return HF_E_TOO_LARGE;
}

struct measure {
        size_t nodes, bytes, depth;
};

static void measure(const struct hf__json *json, size_t depth, struct measure *m) {
        const char *key = hf__json_key(json), *text = hf__json_text(json);

        m->nodes++;
        m->bytes += 64 + (key ? strlen(key) : 0) + (text ? strlen(text) : 0);
        if (depth > m->depth)
                m->depth = depth;
        for (const struct hf__json *c = hf__json_first(json); c; c = hf__json_next(c))
                measure(c, depth + 1, m);
}

/* ---- pointers ---- */

/* Takes the next reference token of *pointer, which is at a '/'. NULL: out of memory, or *ret_bad.
 * The caller frees. */
static char *next_token(const char **pointer, bool *ret_bad) {
        size_t n = strcspn(*pointer + 1, "/");
        char *token = strndup(*pointer + 1, n), *out = token;

        *pointer += n + 1;
        for (const char *c = token; c && *c; c++) {
                if (*c == '~' && c[1] != '0' && c[1] != '1') {
                        *ret_bad = true;
                        free(token);
                        return NULL;
                }
                *out++ = *c != '~' ? *c : *++c == '0' ? '~' : '/';
        }
        if (token)
                *out = '\0';
        return token;
}

/* "0", "17"; false: no index. */
static bool parse_index(const char *text, size_t *ret_index) {
        size_t n = strlen(text), index = 0;

        if (!n || n > 9 || strspn(text, "0123456789") != n || (n > 1 && *text == '0'))
                return false;
        for (; *text; text++)
                index = index * 10 + (size_t)(*text - '0');
        *ret_index = index;
        return true;
}

/* The member of container under the token; NULL in *ret_member = none. */
static int member_of(struct patching *p, struct hf__json *container, const char *token,
                     struct hf__json **ret_member) {
        bool in_array = hf__json_is_array(container);
        size_t index = 0, i = 0;

        *ret_member = NULL;
        if (in_array && !parse_index(token, &index))
                return 0;
        struct hf__json *m = hf__json_first(container);
        for (; m && (in_array ? i < index : strcmp(hf__json_key(m), token)); m = hf__json_next(m))
                i++;
        *ret_member = m;
        return spend(p, i + 1);
}

static void place_done(struct place *place) { free(place->key); }

/* Finds where pointer leads; its parent must be there. The caller calls place_done, also after a
 * failure. */
static int find(struct patching *p, const char *pointer, struct place *place) {
        const char *rest = pointer;
        bool bad = false;
        int r;

        *place = (struct place){.member = *p->document, .depth = 1};
        if (!*pointer)
                return 0;
        if (*pointer != '/')
                return fail(p, "no JSON pointer", pointer);
        while (*rest) {
                if (!hf__json_is_object(place->member) && !hf__json_is_array(place->member))
                        return fail(p, "there is no such place", pointer);
                place->container = place->member;
                free(place->key);
                place->key = next_token(&rest, &bad);
                if (!place->key)
                        return bad ? fail(p, "no JSON pointer", pointer) : -ENOMEM;
                place->depth++;
                r = member_of(p, place->container, place->key, &place->member);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* ---- operations ---- */

/* Takes value. */
static int put_into_array(struct patching *p, const char *path, const struct place *place,
                          struct hf__json *value) {
        size_t index;

        if (place->member)
                return hf__json_insert(place->container, place->member, value);
        if (strcmp(place->key, "-") == 0 ||
            (parse_index(place->key, &index) && index == hf__json_count(place->container))) {
                int r = spend(p, hf__json_count(place->container));
                if (r == 0)
                        return hf__json_append(place->container, value);
                hf__json_free(value);
                return r;
        }
        hf__json_free(value);
        return fail(p, "no index of the array", path);
}

/* Adds, or with replace puts in the place of what must be there. Takes value. */
static int put(struct patching *p, const char *path, struct hf__json *value, bool replace) {
        struct measure m = {0};
        struct place place = {0};
        int r = find(p, path, &place);

        measure(value, 0, &m);
        if (r == 0)
                r = spend(p, m.nodes);
        if (r == 0 && place.depth + m.depth > HF__JSON_DEPTH_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the result is nested too deeply");
                r = HF_E_TOO_LARGE;
        }
        if (r == 0 && replace && !place.member)
                r = fail(p, "there is nothing to replace", path);
        if (r != 0) {
                hf__json_free(value);
        } else if (!place.container) {
                hf__json_free(*p->document);
                *p->document = value;
        } else if (hf__json_is_array(place.container) && !replace) {
                r = put_into_array(p, path, &place, value);
        } else if (place.member) {
                r = hf__json_replace(place.container, place.member, value);
        } else {
                r = hf__json_add(place.container, place.key, value);
        }
        place_done(&place);
        return r;
}

/* Takes the value at path out of the document. */
static int take(struct patching *p, const char *path, struct hf__json **ret_value) {
        struct place place = {0};
        int r = find(p, path, &place);

        if (r == 0 && !place.member)
                r = fail(p, "there is nothing to remove", path);
        if (r == 0 && !place.container)
                r = fail(p, "the whole document cannot be removed", path);
        if (r == 0)
                *ret_value = hf__json_detach(place.container, place.member);
        place_done(&place);
        return r;
}

static int copy(struct patching *p, const char *from, struct hf__json **ret_value) {
        struct measure m = {0};
        struct place place = {0};
        int r = find(p, from, &place);

        if (r == 0 && !place.member)
                r = fail(p, "there is nothing to copy", from);
        if (r == 0) {
                measure(place.member, 0, &m);
                p->copied += m.bytes;
                r = spend(p, m.nodes);
        }
        if (r == 0 && p->copied > COPY_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the patch copies more than %zu bytes",
                               COPY_MAX);
                r = HF_E_TOO_LARGE;
        }
        if (r == 0) {
                *ret_value = hf__json_dup(place.member);
                r = *ret_value ? 0 : -ENOMEM;
        }
        place_done(&place);
        return r;
}

static int test(struct patching *p, const char *path, const struct hf__json *value) {
        struct measure m = {0};
        struct place place = {0};
        int r = find(p, path, &place);

        measure(value, 0, &m);
        if (r == 0)
                r = spend(p, m.nodes + hf__json_count(place.member));
        if (r == 0 && (!place.member || !hf__json_equal(place.member, value)))
                r = fail(p, "testing value failed", path);
        place_done(&place);
        return r;
}

static int move(struct patching *p, const char *from, const char *path) {
        size_t n = strlen(from);
        struct hf__json *value = NULL;

        if (strncmp(from, path, n) == 0 && path[n] == '/')
                return fail(p, "a value cannot be moved into itself", path);
        if (strcmp(from, path) == 0) { /* nothing moves; but it must be there */
                struct place place = {0};
                int r = find(p, from, &place);
                if (r == 0 && !place.member)
                        r = fail(p, "there is nothing to move", from);
                place_done(&place);
                return r;
        }
        int r = take(p, from, &value);
        return r != 0 ? r : put(p, path, value, false);
}

/* A value for the document: what the patch says stays the patch's. */
static int put_copy(struct patching *p, const char *path, const struct hf__json *value,
                    bool replace) {
        struct hf__json *mine = hf__json_dup(value);

        return mine ? put(p, path, mine, replace) : -ENOMEM;
}

static int apply(struct patching *p, const struct hf__json *operation) {
        const char *op = hf__json_text(hf__json_get(operation, "op")),
                   *path = hf__json_text(hf__json_get(operation, "path"));
        const char *from = hf__json_text(hf__json_get(operation, "from"));
        const struct hf__json *value = hf__json_get(operation, "value");
        struct hf__json *taken = NULL;
        int r;

        if (!op || !path)
                return fail(p, "an operation needs op and path", path ? path : "");
        bool adds = strcmp(op, "add") == 0, replaces = strcmp(op, "replace") == 0,
             tests = strcmp(op, "test") == 0;
        bool moves = strcmp(op, "move") == 0, copies = strcmp(op, "copy") == 0;
        if ((adds || replaces || tests) && !value)
                return fail(p, "the operation needs a value", path);
        if ((moves || copies) && !from)
                return fail(p, "the operation needs a from", path);
        if (adds || replaces)
                return put_copy(p, path, value, replaces);
        if (tests)
                return test(p, path, value);
        if (moves)
                return move(p, from, path);
        if (copies) {
                r = copy(p, from, &taken);
                return r != 0 ? r : put(p, path, taken, false);
        }
        if (strcmp(op, "remove") != 0)
                return fail(p, "there is no such operation", op);
        r = take(p, path, &taken);
        hf__json_free(taken);
        return r;
}

int hfd_patch_json(struct hf__json **document, const struct hf__json *patch,
                   char why[HFD_PATCH_WHY]) {
        struct patching p = {.document = document, .why = why};
        int r = 0;

        for (const struct hf__json *operation = hf__json_first(patch); operation && r == 0;
             operation = hf__json_next(operation))
                r = hf__json_is_object(operation) ? apply(&p, operation)
                                                  : fail(&p, "an operation is an object", "");
        return r;
}
