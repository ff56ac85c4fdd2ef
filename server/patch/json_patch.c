/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON patch (RFC 6902) over JSON pointers (RFC 6901).
 *
 * Invariant: the cost of a patch is limited, because even a small patch can cause much work. Each
 * step through members and each node that is compared or copied counts against WORK_MAX. The bytes
 * of copies also count against COPY_MAX. The result is never nested more deeply than the parser
 * accepts, because printing recurses.
 */
#include "server/patch/json_patch.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"

#define WORK_MAX ((size_t)20 << 20) /* steps and nodes of one patch */
#define COPY_MAX ((size_t)3 << 20)  /* bytes that copies add, as large as a body may be */

struct patching {
        struct hf__json **document;
        size_t work, copied; /* spent so far */
        char *why;
};

struct operation {
        const char *path, *from;      /* from NULL = not given */
        const struct hf__json *value; /* NULL = not given */
};

/* The target of a pointer: a container and its member, or the place for a new member. */
struct place {
        struct hf__json *container; /* NULL = the whole document */
        struct hf__json *member;    /* NULL = there is none */
        char *key;    /* owned; of the member: of an object its key, of an array its index or "-" */
        size_t depth; /* of the member; the document's is 1 */
};

/* Returns HF_E_INVALID. */
static int refuse(struct patching *p, const char *what, const char *path) {
        (void)snprintf(p->why, HFD_PATCH_WHY, "%s: %.120s", what, path);
        return HF_E_INVALID;
}

/* ---- the budget ---- */

static int spend_work(struct patching *p, size_t work) {
        p->work += work;
        if (p->work <= WORK_MAX)
                return 0;
        (void)snprintf(p->why, HFD_PATCH_WHY, "the patch takes more steps than a request may");
        return HF_E_TOO_LARGE;
}

struct measure {
        size_t nodes, bytes;
        size_t depth; /* of the deepest node */
};

/* Adds json and all in it to m. depth is that of json. */
static void measure_value(const struct hf__json *json, size_t depth, struct measure *m) {
        const char *key = hf__json_key(json), *text = hf__json_text(json);

        m->nodes++;
        m->bytes += 64 + (key ? strlen(key) : 0) + (text ? strlen(text) : 0);
        if (depth > m->depth)
                m->depth = depth;
        for (const struct hf__json *c = hf__json_first(json); c; c = hf__json_next(c))
                measure_value(c, depth + 1, m);
}

/* ---- pointers ---- */

/*
 * Takes the next token of *pointer, which is at a '/', and decodes it: "~1" is '/', "~0" is '~'.
 * The caller frees it. NULL: out of memory, or *ret_bad.
 */
static char *next_token(const char **pointer, bool *ret_bad) {
        size_t n = strcspn(*pointer + 1, "/");
        char *token = strndup(*pointer + 1, n), *out = token;

        assert(**pointer == '/');
        *pointer += n + 1;
        if (!token)
                return NULL;
        for (const char *c = token; *c; c++) {
                if (*c != '~') {
                        *out++ = *c;
                        continue;
                }
                c++;
                if (*c != '0' && *c != '1') {
                        *ret_bad = true;
                        free(token);
                        return NULL;
                }
                *out++ = *c == '0' ? '~' : '/';
        }
        *out = '\0';
        return token;
}

/* "0", "17", without leading zeros. False: it is not an index. */
static bool parse_index(const char *text, size_t *ret_index) {
        size_t n = strlen(text), index = 0;

        if (n == 0 || n > 9 || strspn(text, "0123456789") != n || (n > 1 && *text == '0'))
                return false;
        for (; *text; text++)
                index = index * 10 + (size_t)(*text - '0');
        *ret_index = index;
        return true;
}

/* The member of container that token names; *ret_member NULL = there is none. */
static int find_member(struct patching *p, struct hf__json *container, const char *token,
                       struct hf__json **ret_member) {
        bool in_array = hf__json_is_array(container);
        size_t index = 0, i = 0;

        *ret_member = NULL;
        if (in_array && !parse_index(token, &index))
                return 0;
        for (struct hf__json *m = hf__json_first(container); m; m = hf__json_next(m), i++) {
                bool found = in_array ? i == index : strcmp(hf__json_key(m), token) == 0;
                if (found) {
                        *ret_member = m;
                        break;
                }
        }
        return spend_work(p, i + 1);
}

static void place_done(struct place *place) { free(place->key); }

/* Follows pointer. All but its last token must exist. The caller calls place_done in any case. */
static int find_place(struct patching *p, const char *pointer, struct place *place) {
        const char *rest = pointer;
        bool bad = false;
        int r;

        *place = (struct place){.member = *p->document, .depth = 1};
        if (!*pointer)
                return 0;
        if (*pointer != '/')
                return refuse(p, "no JSON pointer", pointer);
        while (*rest) {
                if (!hf__json_is_object(place->member) && !hf__json_is_array(place->member))
                        return refuse(p, "there is no such place", pointer);
                place->container = place->member;
                free(place->key);
                place->key = next_token(&rest, &bad);
                if (!place->key)
                        return bad ? refuse(p, "no JSON pointer", pointer) : -ENOMEM;
                place->depth++;
                r = find_member(p, place->container, place->key, &place->member);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* ---- what operations are made of ---- */

/* Inserts value before the place's member, or appends it. Takes value. */
static int insert_into_array(struct patching *p, const char *path, const struct place *place,
                             struct hf__json *value) {
        size_t index;

        if (place->member)
                return hf__json_insert(place->container, place->member, value);
        if (strcmp(place->key, "-") == 0 ||
            (parse_index(place->key, &index) && index == hf__json_count(place->container))) {
                int r = spend_work(p, hf__json_count(place->container));
                if (r == 0)
                        return hf__json_append(place->container, value);
                hf__json_free(value);
                return r;
        }
        hf__json_free(value);
        return refuse(p, "no index of the array", path);
}

/* Whether value may be put at the place. 0 or the failure. */
static int check_value(struct patching *p, const char *path, const struct place *place,
                       const struct hf__json *value, bool replace) {
        struct measure m = {0};
        int r;

        measure_value(value, 0, &m);
        r = spend_work(p, m.nodes);
        if (r != 0)
                return r;
        if (place->depth + m.depth > HF__JSON_DEPTH_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the result is nested too deeply");
                return HF_E_TOO_LARGE;
        }
        if (replace && !place->member)
                return refuse(p, "there is nothing to replace", path);
        return 0;
}

/* Adds value, or with replace puts it in the place of a member, which must exist. Takes value. */
static int put_value(struct patching *p, const char *path, struct hf__json *value, bool replace) {
        struct place place = {0};
        int r = find_place(p, path, &place);

        if (r == 0)
                r = check_value(p, path, &place, value, replace);
        if (r != 0) {
                hf__json_free(value);
        } else if (!place.container) {
                hf__json_free(*p->document);
                *p->document = value;
        } else if (hf__json_is_array(place.container) && !replace) {
                r = insert_into_array(p, path, &place, value);
        } else if (place.member) {
                r = hf__json_replace(place.container, place.member, value);
        } else {
                r = hf__json_add(place.container, place.key, value);
        }
        place_done(&place);
        return r;
}

/* Takes the value at path out of the document. The caller frees it. */
static int take_value(struct patching *p, const char *path, struct hf__json **ret_value) {
        struct place place = {0};
        int r = find_place(p, path, &place);

        if (r == 0 && !place.member)
                r = refuse(p, "there is nothing to remove", path);
        if (r == 0 && !place.container)
                r = refuse(p, "the whole document cannot be removed", path);
        if (r == 0)
                *ret_value = hf__json_detach(place.container, place.member);
        place_done(&place);
        return r;
}

/* Copies the value at a path. The caller frees it. */
static int copy_value(struct patching *p, const char *from, struct hf__json **ret_value) {
        struct measure m = {0};
        struct place place = {0};
        int r = find_place(p, from, &place);

        if (r == 0 && !place.member)
                r = refuse(p, "there is nothing to copy", from);
        if (r == 0) {
                measure_value(place.member, 0, &m);
                p->copied += m.bytes;
                r = spend_work(p, m.nodes);
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

/* ---- operations ---- */

/* Puts a copy of the value into the document, because the patch must not change. */
static int put_copy(struct patching *p, const struct operation *operation, bool replace) {
        struct hf__json *copy = hf__json_dup(operation->value);

        return copy ? put_value(p, operation->path, copy, replace) : -ENOMEM;
}

static int apply_add(struct patching *p, const struct operation *operation) {
        return put_copy(p, operation, false);
}

static int apply_replace(struct patching *p, const struct operation *operation) {
        return put_copy(p, operation, true);
}

static int apply_remove(struct patching *p, const struct operation *operation) {
        struct hf__json *value = NULL;
        int r = take_value(p, operation->path, &value);

        hf__json_free(value);
        return r;
}

static int apply_copy(struct patching *p, const struct operation *operation) {
        struct hf__json *value = NULL;
        int r = copy_value(p, operation->from, &value);

        return r == 0 ? put_value(p, operation->path, value, false) : r;
}

static int apply_move(struct patching *p, const struct operation *operation) {
        const char *from = operation->from, *path = operation->path;
        size_t n = strlen(from);
        struct hf__json *value = NULL;
        int r;

        if (strncmp(from, path, n) == 0 && path[n] == '/')
                return refuse(p, "a value cannot be moved into itself", path);
        if (strcmp(from, path) == 0) { /* nothing moves; but it must exist */
                struct place place = {0};
                r = find_place(p, from, &place);
                if (r == 0 && !place.member)
                        r = refuse(p, "there is nothing to move", from);
                place_done(&place);
                return r;
        }
        r = take_value(p, from, &value);
        return r == 0 ? put_value(p, path, value, false) : r;
}

static int apply_test(struct patching *p, const struct operation *operation) {
        struct measure m = {0};
        struct place place = {0};
        int r = find_place(p, operation->path, &place);

        measure_value(operation->value, 0, &m);
        if (r == 0)
                r = spend_work(p, m.nodes + hf__json_count(place.member));
        if (r == 0 && (!place.member || !hf__json_equal(place.member, operation->value)))
                r = refuse(p, "testing value failed", operation->path);
        place_done(&place);
        return r;
}

static const struct {
        const char *name;
        bool needs_value, needs_from;
        int (*apply)(struct patching *p, const struct operation *operation);
} operations[] = {
        {"add", true, false, apply_add},         {"remove", false, false, apply_remove},
        {"replace", true, false, apply_replace}, {"move", false, true, apply_move},
        {"copy", false, true, apply_copy},       {"test", true, false, apply_test},
};

static int apply_operation(struct patching *p, const struct hf__json *json) {
        const char *op = hf__json_text(hf__json_get(json, "op"));
        const struct operation operation = {.path = hf__json_text(hf__json_get(json, "path")),
                                            .from = hf__json_text(hf__json_get(json, "from")),
                                            .value = hf__json_get(json, "value")};

        if (!op || !operation.path)
                return refuse(p, "an operation needs op and path",
                              operation.path ? operation.path : "");
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
                if (strcmp(operations[i].name, op) != 0)
                        continue;
                if (operations[i].needs_value && !operation.value)
                        return refuse(p, "the operation needs a value", operation.path);
                if (operations[i].needs_from && !operation.from)
                        return refuse(p, "the operation needs a from", operation.path);
                return operations[i].apply(p, &operation);
        }
        return refuse(p, "there is no such operation", op);
}

int hfd_json_patch_apply(struct hf__json **document, const struct hf__json *patch,
                         char why[HFD_PATCH_WHY]) {
        struct patching p = {.document = document, .why = why};
        int r = 0;

        assert(hf__json_is_array(patch) && hf__json_count(patch) <= HFD_PATCH_OPS_MAX);
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = hf__json_is_object(m) ? apply_operation(&p, m)
                                          : refuse(&p, "an operation is an object", "");
        return r;
}
