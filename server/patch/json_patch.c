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

/* What a JSON pointer refers to: a member of a container, or the position of a new member. */
struct location {
        struct hf__json *container; /* NULL = the whole document */
        struct hf__json *member;    /* NULL = the container has no such member */
        char *key;    /* owned; the last token: a key of an object; an index of an array, or "-" */
        size_t depth; /* nesting depth of the member; that of the whole document is 1 */
};

/* Sets the reason. Always returns HF_E_INVALID. */
static int refuse_patch(struct patching *p, const char *what, const char *path) {
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
 * Decodes the next token of *pointer, which points to a '/', and advances *pointer past it. "~1" is
 * '/', "~0" is '~'. The caller frees the token. NULL: *ret_invalid is set, or memory ran out.
 */
static char *next_token(const char **pointer, bool *ret_invalid) {
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
                        *ret_invalid = true;
                        free(token);
                        return NULL;
                }
                *out++ = *c == '0' ? '~' : '/';
        }
        *out = '\0';
        return token;
}

/* Parses an array index. False: no number, a leading zero, or more than nine digits. */
static bool parse_index(const char *text, size_t *ret_index) {
        size_t n = strlen(text), index = 0;

        if (n == 0 || n > 9 || strspn(text, "0123456789") != n || (n > 1 && *text == '0'))
                return false;
        for (; *text; text++)
                index = index * 10 + (size_t)(*text - '0');
        *ret_index = index;
        return true;
}

/*
 * Finds the member of container that token names; *ret_member NULL = there is none. Members are a
 * linked list, so the search is linear and its steps count as work.
 */
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

static void free_location(struct location *location) { free(location->key); }

/*
 * Follows pointer. All but its last token must exist. The caller calls free_location, also after a
 * failure.
 */
static int find_location(struct patching *p, const char *pointer, struct location *location) {
        const char *rest = pointer;
        bool invalid = false;
        int r;

        *location = (struct location){.member = *p->document, .depth = 1};
        if (!*pointer)
                return 0;
        if (*pointer != '/')
                return refuse_patch(p, "no JSON pointer", pointer);
        while (*rest) {
                if (!hf__json_is_object(location->member) && !hf__json_is_array(location->member))
                        return refuse_patch(p, "there is no such place", pointer);
                location->container = location->member;
                free(location->key);
                location->key = next_token(&rest, &invalid);
                if (!location->key)
                        return invalid ? refuse_patch(p, "no JSON pointer", pointer) : -ENOMEM;
                location->depth++;
                r = find_member(p, location->container, location->key, &location->member);
                if (r != 0)
                        return r;
        }
        return 0;
}

/* ---- steps that operations share ---- */

/* Inserts value before the member, or appends it. Takes ownership of value, even on failure. */
static int insert_into_array(struct patching *p, const char *path, const struct location *location,
                             struct hf__json *value) {
        size_t index;

        if (location->member)
                return hf__json_insert(location->container, location->member, value);
        if (strcmp(location->key, "-") == 0 ||
            (parse_index(location->key, &index) && index == hf__json_count(location->container))) {
                int r = spend_work(p, hf__json_count(location->container));
                if (r == 0)
                        return hf__json_append(location->container, value);
                hf__json_free(value);
                return r;
        }
        hf__json_free(value);
        return refuse_patch(p, "no index of the array", path);
}

/*
 * Checks whether value may be stored at the location. Runs before any change, because a result that
 * is nested too deeply could not be parsed again once it is stored. 0, or the error.
 */
static int check_value(struct patching *p, const char *path, const struct location *location,
                       const struct hf__json *value, bool replace) {
        struct measure m = {0};
        int r;

        measure_value(value, 0, &m);
        r = spend_work(p, m.nodes);
        if (r != 0)
                return r;
        if (location->depth + m.depth > HF__JSON_DEPTH_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the result is nested too deeply");
                return HF_E_TOO_LARGE;
        }
        if (replace && !location->member)
                return refuse_patch(p, "there is nothing to replace", path);
        return 0;
}

/*
 * Adds value at path. replace: it replaces a member, which must exist. Takes ownership of value,
 * even on failure.
 */
static int put_value(struct patching *p, const char *path, struct hf__json *value, bool replace) {
        struct location location = {0};
        int r = find_location(p, path, &location);

        if (r == 0)
                r = check_value(p, path, &location, value, replace);
        if (r != 0) {
                hf__json_free(value);
        } else if (!location.container) {
                hf__json_free(*p->document);
                *p->document = value;
        } else if (hf__json_is_array(location.container) && !replace) {
                r = insert_into_array(p, path, &location, value);
        } else if (location.member) {
                r = hf__json_replace(location.container, location.member, value);
        } else {
                r = hf__json_add(location.container, location.key, value);
        }
        free_location(&location);
        return r;
}

/* Removes the value at path from the document. The caller frees *ret_value. */
static int detach_value(struct patching *p, const char *path, struct hf__json **ret_value) {
        struct location location = {0};
        int r = find_location(p, path, &location);

        if (r == 0 && !location.member)
                r = refuse_patch(p, "there is nothing to remove", path);
        if (r == 0 && !location.container)
                r = refuse_patch(p, "the whole document cannot be removed", path);
        if (r == 0)
                *ret_value = hf__json_detach(location.container, location.member);
        free_location(&location);
        return r;
}

/*
 * Copies the value at a path. The caller frees *ret_value. The limits are checked before the copy:
 * a patch that copies a value into itself doubles the document with each operation.
 */
static int copy_value(struct patching *p, const char *from, struct hf__json **ret_value) {
        struct measure m = {0};
        struct location location = {0};
        int r = find_location(p, from, &location);

        if (r == 0 && !location.member)
                r = refuse_patch(p, "there is nothing to copy", from);
        if (r == 0) {
                measure_value(location.member, 0, &m);
                p->copied += m.bytes;
                r = spend_work(p, m.nodes);
        }
        if (r == 0 && p->copied > COPY_MAX) {
                (void)snprintf(p->why, HFD_PATCH_WHY, "the patch copies more than %zu bytes",
                               COPY_MAX);
                r = HF_E_TOO_LARGE;
        }
        if (r == 0) {
                *ret_value = hf__json_dup(location.member);
                r = *ret_value ? 0 : -ENOMEM;
        }
        free_location(&location);
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
        int r = detach_value(p, operation->path, &value);

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
                return refuse_patch(p, "a value cannot be moved into itself", path);
        if (strcmp(from, path) == 0) { /* nothing moves, but RFC 6902 requires that from exists */
                struct location location = {0};
                r = find_location(p, from, &location);
                if (r == 0 && !location.member)
                        r = refuse_patch(p, "there is nothing to move", from);
                free_location(&location);
                return r;
        }
        r = detach_value(p, from, &value);
        return r == 0 ? put_value(p, path, value, false) : r;
}

/* The work is counted before the comparison, so that a huge value is refused and not compared. */
static int apply_test(struct patching *p, const struct operation *operation) {
        struct measure m = {0};
        struct location location = {0};
        int r = find_location(p, operation->path, &location);

        measure_value(operation->value, 0, &m);
        if (r == 0)
                r = spend_work(p, m.nodes + hf__json_count(location.member));
        if (r == 0 && (!location.member || !hf__json_equal(location.member, operation->value)))
                r = refuse_patch(p, "testing value failed", operation->path);
        free_location(&location);
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
                return refuse_patch(p, "an operation needs op and path",
                                    operation.path ? operation.path : "");
        for (size_t i = 0; i < sizeof operations / sizeof operations[0]; i++) {
                if (strcmp(operations[i].name, op) != 0)
                        continue;
                if (operations[i].needs_value && !operation.value)
                        return refuse_patch(p, "the operation needs a value", operation.path);
                if (operations[i].needs_from && !operation.from)
                        return refuse_patch(p, "the operation needs a from", operation.path);
                return operations[i].apply(p, &operation);
        }
        return refuse_patch(p, "there is no such operation", op);
}

int hfd_json_patch_apply(struct hf__json **document, const struct hf__json *patch,
                         char why[HFD_PATCH_WHY]) {
        struct patching p = {.document = document, .why = why};
        int r = 0;

        assert(hf__json_is_array(patch) && hf__json_count(patch) <= HFD_PATCH_OPS_MAX);
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = hf__json_is_object(m) ? apply_operation(&p, m)
                                          : refuse_patch(&p, "an operation is an object", "");
        return r;
}
