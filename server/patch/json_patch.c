/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON patch (RFC 6902) over JSON pointers (RFC 6901).
 *
 * Invariant: the cost of a patch is limited, because even a small patch can cause much work. An
 * index (document_index.h) finds members, and each step and each node that is measured or copied
 * counts against HFD_PATCH_STEPS_MAX. The bytes of copies also count against COPY_MAX. The result
 * is never nested more deeply than the parser accepts, because printing recurses.
 *
 * If the Go library that Kubernetes uses refuses a patch for the same reason, the message is the
 * library's.
 */
#include "server/patch/json_patch.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/assert_costly.h"
#include "base/json.h"
#include "server/patch/document_index.h"

#define COPY_MAX ((size_t)3 << 20) /* estimated bytes of all copies; a body has the same limit */

struct operation {
        const char *op, *path, *from; /* from NULL = not given, or not a string */
        const struct hf__json *value; /* NULL = not given */
};

struct patching {
        struct hf__json **document;
        struct hfd_document_index index;
        const struct operation *operation; /* the current one */
        size_t copied;                     /* bytes so far */
        struct hfd_patch_outcome *outcome;
};

/* The target of a JSON pointer: a member of a container, or the position of a new member. */
struct location {
        struct hf__json *container;      /* NULL = the whole document */
        struct hfd_document_place place; /* place.member NULL = the container has no such member */
        char *key;    /* owned; the last token: an object's key, or an array's index or "-" */
        size_t depth; /* nesting depth of the member; that of the whole document is 1 */
};

/* Refuses a pointer that leads to no value. which: its role, for the message ("path", "key"). The
 * library quotes the pointer of an add and a remove only, and leaves out "doc" for a test. */
static int refuse_missing_path(struct patching *p, const char *which, const char *pointer) {
        const char *op = p->operation->op;
        const char *quote = *op == 'a' || strcmp(op, "remove") == 0 ? "\"" : "";

        return hfd_patch_refuse(p->outcome,
                                "%s operation does not apply: %sis missing %s: %s%.120s%s: "
                                "missing value",
                                op, *op == 't' ? "" : "doc ", which, quote, pointer, quote);
}

/* Refuses a pointer whose container exists, but whose last token does not name a member of it. */
static int refuse_missing_key(struct patching *p, const char *pointer,
                              const struct location *location) {
        const char *op = p->operation->op;

        if (hf__json_is_array(location->container))
                return hfd_patch_refuse(p->outcome,
                                        "error in %s for path: '%.120s': Unable to access invalid "
                                        "index: %.20s: invalid index referenced",
                                        op, pointer, location->key);
        return hfd_patch_refuse(p->outcome,
                                "error in %s for path: '%.100s': Unable to remove nonexistent key: "
                                "%.60s: missing value",
                                op, pointer, location->key ? location->key : "");
}

/* ---- measures ---- */

struct measure {
        size_t nodes, bytes;
        size_t levels; /* of nested containers; 0 = a scalar */
};

/* Adds json and all values in it to m. level: in how many measured containers json is. */
static void measure_value(const struct hf__json *json, size_t level, struct measure *m) {
        const char *key = hf__json_key(json), *text = hf__json_text(json);

        m->nodes++;
        /* 64: about the memory of a value without its texts. */
        m->bytes += 64 + (key ? strlen(key) : 0) + (text ? strlen(text) : 0);
        if (hf__json_is_object(json) || hf__json_is_array(json))
                level++;
        if (level > m->levels)
                m->levels = level;
        for (const struct hf__json *c = hf__json_first(json); c; c = hf__json_next(c))
                measure_value(c, level, m);
}

/* ---- pointers ---- */

/*
 * Decodes the next token of *pointer, which points to a '/', and advances *pointer past it. "~1" is
 * '/', "~0" is '~'. One pass decodes both, because "~01" is the key "~1" and not "/". The caller
 * frees the token. NULL: *ret_invalid is set, or memory ran out.
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

/* Parses an array index without its sign. False: no number, a leading zero, or more than nine
 * digits. */
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
 * Finds the place that token names in container. The end of an array ("-", or its length as the
 * index) is a place without a member. *ret_exists: an array has a member or its end there; always
 * true for an object. add: the place is for a new member. As in Kubernetes, a negative index counts
 * from the end: -1 is the last member or, for a new member, the place after it.
 */
static int find_place(struct patching *p, struct hf__json *container, const char *token, bool add,
                      struct hfd_document_place *ret_place, bool *ret_exists) {
        size_t number = SIZE_MAX, back;
        int r;

        if (!hf__json_is_array(container)) {
                *ret_exists = true;
                return hfd_document_index_get(&p->index, container, token, ret_place);
        }
        if (*token == '-' && parse_index(token + 1, &back) && back > 0) {
                r = hfd_document_index_at(&p->index, container, SIZE_MAX, ret_place);
                *ret_exists = back <= ret_place->place + add;
                if (r != 0 || !*ret_exists)
                        return r;
                number = ret_place->place + add - back;
                return hfd_document_index_at(&p->index, container, number, ret_place);
        }
        *ret_exists = strcmp(token, "-") == 0 || parse_index(token, &number);
        r = hfd_document_index_at(&p->index, container, number, ret_place);
        if (r == 0 && !ret_place->member && number != SIZE_MAX)
                *ret_exists = ret_place->place == number;
        return r;
}

static void free_location(struct location *location) { free(location->key); }

/*
 * Follows pointer; which: its role, for messages. All but its last token must name a member; the
 * last one may also name a new key or the end of an array. add: pointer is the place of a new
 * member. The caller calls free_location, also after a failure.
 */
static int find_location(struct patching *p, const char *which, const char *pointer, bool add,
                         struct location *location) {
        const char *rest = pointer;
        bool invalid = false, exists = true;
        int r;

        *location = (struct location){.place.member = *p->document, .depth = 1};
        if (*pointer && *pointer != '/')
                return refuse_missing_path(p, which, pointer);
        while (*rest) {
                struct hf__json *container = location->place.member;
                if (!hf__json_is_object(container) && !hf__json_is_array(container))
                        return refuse_missing_path(p, which, pointer);
                location->container = container;
                free(location->key);
                location->key = next_token(&rest, &invalid);
                if (!location->key)
                        return invalid ? refuse_missing_path(p, which, pointer) : -ENOMEM;
                location->depth++;
                r = find_place(p, container, location->key, add && !*rest, &location->place,
                               &exists);
                if (r != 0)
                        return r;
        }
        if (!exists) {
                assert(!location->place.member);
                return refuse_missing_key(p, pointer, location);
        }
        return 0;
}

/* ---- steps that operations share ---- */

/*
 * Checks that value may be stored at this depth. Runs before value gets into the document, because
 * a document that is nested too deeply could not be parsed again. 0, or the error.
 */
static int check_depth(struct patching *p, size_t depth, const struct hf__json *value) {
        struct measure m = {0};
        int r;

        measure_value(value, 0, &m);
        r = hfd_patch_spend(p->outcome, m.nodes);
        if (r != 0)
                return r;
        if (depth - 1 + m.levels <= HF__JSON_DEPTH_MAX)
                return 0;
        (void)hfd_patch_refuse(p->outcome, "the result is nested too deeply");
        p->outcome->too_deep = true;
        return HF_E_TOO_LARGE;
}

/* Stores value at the location. Takes ownership of value, even on failure. */
static int store_value(struct patching *p, struct location *location, struct hf__json *value) {
        struct hfd_document_place *place = &location->place;

        if (location->container && (hf__json_is_array(location->container) || !place->member))
                return hfd_document_index_insert(&p->index, location->container, place,
                                                 location->key, value);
        if (location->container)
                return hfd_document_index_replace(&p->index, location->container, place, value);
        hfd_document_index_free(&p->index, *p->document);
        *p->document = value;
        return 0;
}

/*
 * Adds value at path; which: the role of path, for messages. depth: that at which value was in the
 * document before; 0 = it is new. At this or a smaller depth value cannot be nested too deeply, so
 * that is not checked again. Takes ownership of value, even on failure.
 */
static int add_value(struct patching *p, const char *which, const char *path, size_t depth,
                     struct hf__json *value) {
        struct location location = {0};
        int r = find_location(p, which, path, true, &location);

        if (r == 0 && location.depth > depth)
                r = check_depth(p, location.depth, value);
        if (r == 0)
                r = store_value(p, &location, value);
        else
                hfd_document_index_free(&p->index, value);
        free_location(&location);
        return r;
}

/* Removes the value at path from the document, and returns it with the depth that it had. The
 * caller frees *ret_value with hfd_document_index_free, because the index may have trees of it. */
static int detach_value(struct patching *p, const char *which, const char *path, size_t *ret_depth,
                        struct hf__json **ret_value) {
        struct location location = {0};
        int r = find_location(p, which, path, false, &location);

        if (r == 0 && !location.container)
                r = refuse_missing_path(p, which, path); /* as in Kubernetes */
        if (r == 0 && !location.place.member)
                r = refuse_missing_key(p, path, &location);
        if (r == 0)
                *ret_value =
                        hfd_document_index_detach(&p->index, location.container, &location.place);
        *ret_depth = location.depth;
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
        int r = find_location(p, "from path", from, false, &location);

        if (r == 0 && !location.place.member)
                r = refuse_missing_path(p, "from path", from);
        if (r == 0) {
                measure_value(location.place.member, 0, &m);
                p->copied += m.bytes;
                r = hfd_patch_spend(p->outcome, m.nodes);
        }
        if (r == 0 && p->copied > COPY_MAX) {
                (void)hfd_patch_refuse(p->outcome,
                                       "Unable to complete the copy, the accumulated size increase "
                                       "of copy is %zu, exceeding the limit %zu",
                                       p->copied, COPY_MAX);
                r = HF_E_TOO_LARGE;
        }
        if (r == 0) {
                *ret_value = hf__json_dup(location.place.member);
                r = *ret_value ? 0 : -ENOMEM;
        }
        free_location(&location);
        return r;
}

/* ---- operations ---- */

/* Adds a copy of the value, because the patch must not change. */
static int apply_add(struct patching *p, const struct operation *operation) {
        struct hf__json *copy = hf__json_dup(operation->value);

        return copy ? add_value(p, "path", operation->path, 0, copy) : -ENOMEM;
}

static int apply_replace(struct patching *p, const struct operation *operation) {
        struct location location = {0};
        struct hf__json *copy = hf__json_dup(operation->value);
        int r = copy ? find_location(p, "path", operation->path, false, &location) : -ENOMEM;

        if (r == 0 && !location.place.member)
                r = refuse_missing_path(p, "key", operation->path);
        if (r == 0)
                r = check_depth(p, location.depth, copy);
        if (r != 0)
                hf__json_free(copy);
        else if (location.container)
                r = hfd_document_index_replace(&p->index, location.container, &location.place,
                                               copy);
        else
                r = store_value(p, &location, copy);
        free_location(&location);
        return r;
}

static int apply_remove(struct patching *p, const struct operation *operation) {
        struct hf__json *value = NULL;
        size_t depth;
        int r = detach_value(p, "path", operation->path, &depth, &value);

        hfd_document_index_free(&p->index, value);
        return r;
}

static int apply_copy(struct patching *p, const struct operation *operation) {
        struct hf__json *value = NULL;
        int r = copy_value(p, operation->from, &value);

        return r == 0 ? add_value(p, "destination path", operation->path, 0, value) : r;
}

static int apply_move(struct patching *p, const struct operation *operation) {
        const char *from = operation->from, *path = operation->path;
        size_t n = strlen(from), depth;
        struct hf__json *value = NULL;
        int r;

        /* A value cannot be moved into itself: once it is detached, so is the place that path
         * names. */
        if (strncmp(from, path, n) == 0 && path[n] == '/')
                return refuse_missing_path(p, "destination path", path);
        if (strcmp(from, path) == 0) { /* nothing moves, but RFC 6902 requires that from exists */
                struct location location = {0};
                r = find_location(p, "from path", from, false, &location);
                if (r == 0 && !location.place.member)
                        r = refuse_missing_key(p, from, &location);
                free_location(&location);
                return r;
        }
        r = detach_value(p, "from path", from, &depth, &value);
        return r == 0 ? add_value(p, "destination path", path, depth, value) : r;
}

/* Whether a test succeeds. As in kube-apiserver, a test for null also succeeds if the object does
 * not have the key: clients use it to test that a field is absent. */
static bool is_as_tested(const struct location *location, const struct hf__json *value) {
        if (!location->place.member)
                return hf__json_is_object(location->container) && hf__json_is_null(value);
        return hf__json_equal(location->place.member, value);
}

/* A comparison ends when the smaller of the two values ends. So it is charged only the size of the
 * value in the patch. */
static int apply_test(struct patching *p, const struct operation *operation) {
        struct measure m = {0};
        struct location location = {0};
        int r = find_location(p, "path", operation->path, false, &location);

        measure_value(operation->value, 0, &m);
        if (r == 0)
                r = hfd_patch_spend(p->outcome, m.nodes);
        if (r == 0 && !is_as_tested(&location, operation->value)) {
                p->outcome->test_failed = true;
                r = hfd_patch_refuse(p->outcome, "testing value %.120s failed: test failed",
                                     operation->path);
        }
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
        const struct operation operation = {.op = op,
                                            .path = hf__json_text(hf__json_get(json, "path")),
                                            .from = hf__json_text(hf__json_get(json, "from")),
                                            .value = hf__json_get(json, "value")};

        p->operation = &operation;
        for (size_t i = 0; op && i < sizeof operations / sizeof operations[0]; i++) {
                const char *missing = NULL;
                if (strcmp(operations[i].name, op) != 0)
                        continue;
                if (operations[i].needs_from && !operation.from)
                        missing = "from";
                else if (!operation.path)
                        missing = "path";
                else if (operations[i].needs_value && !operation.value)
                        missing = "value";
                if (missing)
                        return hfd_patch_refuse(p->outcome,
                                                "%s operation failed to decode %s: operation, "
                                                "missing %s field: missing value",
                                                op, missing, missing);
                return operations[i].apply(p, &operation);
        }
        return hfd_patch_refuse(p->outcome, "Unexpected kind: %.60s", op ? op : "unknown");
}

int hfd_json_patch_apply(struct hf__json **document, const struct hf__json *patch,
                         struct hfd_patch_outcome *outcome) {
        struct patching p = {.document = document, .outcome = outcome};
        int r = 0;

        assert(hf__json_is_array(patch));
        hf__assert_costly(hf__json_count(patch) <= HFD_PATCH_OPS_MAX); /* walks over the list */
        hfd_document_index_init(&p.index, outcome);
        for (const struct hf__json *m = hf__json_first(patch); m && r == 0; m = hf__json_next(m))
                r = apply_operation(&p, m);
        hfd_document_index_done(&p.index);
        return r;
}
