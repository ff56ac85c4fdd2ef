/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the value validations of a node: lengths, ranges, patterns, enums, and what is below
 * allOf, anyOf, oneOf and not.
 *
 * Invariant: the limits of a node are in the order of enum hfd_custom_limit_kind.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/resources/custom/schema/compile/canonical_text.h"
#include "server/resources/custom/schema/compile/compile.h"
#include "server/resources/custom/schema/formats/formats.h"

#define LIMITS_MAX (HFD_LIMIT_REQUIRED + 1) /* one of each kind at most; REQUIRED is the last */
#define FEW_VALUES 16                       /* of an enum: they are compared one after the other */

/* The limits of one node while they are collected; the array is kept afterwards. */
struct limits {
        struct hfd_schema_compiler *compiler;
        const struct hf__json *props;
        struct hfd_custom_limit list[LIMITS_MAX];
        uint32_t n;
};

/* Each kind is added once at most, so there is room in the list. */
static struct hfd_custom_limit *add_limit(struct limits *limits, enum hfd_custom_limit_kind kind) {
        struct hfd_custom_limit *limit = &limits->list[limits->n++];

        limit->kind = (unsigned char)kind;
        return limit;
}

/* ---- limits of values ---- */

/* A limit of another type than a whole number is left out. The decoder refuses it in what clients
 * send. */
static void add_count(struct limits *limits, const char *key, enum hfd_custom_limit_kind kind) {
        int64_t count;

        if (hf__json_i64(limits->props, key, &count))
                add_limit(limits, kind)->as.count = count;
}

static void add_number(struct limits *limits, const char *key, const char *exclusive,
                       enum hfd_custom_limit_kind kind) {
        const struct hf__json *number = hf__json_get(limits->props, key);

        if (!hf__json_is_number(number))
                return;
        struct hfd_custom_limit *limit = add_limit(limits, kind);
        limit->as.number = hf__json_number(number);
        limit->exclusive = exclusive && hf__json_bool(limits->props, exclusive, false);
}

/* Whether values of the node are checked by this format. Kubernetes ignores a format that it does
 * not know, and every format of objects, lists and booleans. */
static bool format_applies(const char *format, const struct hfd_custom_node *node) {
        switch ((enum hfd_custom_type)node->type) {
        case HFD_CUSTOM_NONE:
        case HFD_CUSTOM_STRING: return hfd_custom_format_is_known(format);
        case HFD_CUSTOM_INTEGER:
                return strcmp(format, "int32") == 0 || strcmp(format, "int64") == 0;
        case HFD_CUSTOM_NUMBER:
                return strcmp(format, "float") == 0 || strcmp(format, "double") == 0;
        case HFD_CUSTOM_OBJECT:
        case HFD_CUSTOM_ARRAY:
        case HFD_CUSTOM_BOOLEAN: break;
        }
        return false;
}

static void add_text_limits(struct limits *limits, const struct hfd_custom_node *node) {
        const char *pattern = hf__json_string(limits->props, "pattern"),
                   *format = hf__json_string(limits->props, "format");

        add_count(limits, "maxLength", HFD_LIMIT_MAX_LENGTH);
        add_count(limits, "minLength", HFD_LIMIT_MIN_LENGTH);
        if (pattern && *pattern)
                add_limit(limits, HFD_LIMIT_PATTERN)->as.pattern =
                        hfd_compile_pattern(limits->compiler, pattern);
        if (format && format_applies(format, node))
                add_limit(limits, HFD_LIMIT_FORMAT)->as.format =
                        hfd_compile_text(limits->compiler, format);
}

/* The integer that a number is equal to (hf__json_equal). False: there is none of 64 bits. */
static bool find_integer(const struct hf__json *number, int64_t *ret_integer) {
        if (hf__json_integer(number, ret_integer))
                return true;
        *ret_integer = INT64_MIN; /* also of smaller numbers, which have the same double */
        return hf__json_number(number) == -0x1p63;
}

int hfd_custom_scalar_compare(const struct hf__json *a, const struct hf__json *b) {
        const bool is_number = hf__json_is_number(a);

        if (is_number != hf__json_is_number(b))
                return is_number ? 1 : -1;
        if (!is_number)
                return strcmp(hf__json_text(a), hf__json_text(b));
        const double x = hf__json_number(a), y = hf__json_number(b);
        if (x != y)
                return x < y ? -1 : 1;
        int64_t i = 0, k = 0;
        const bool is_integer = find_integer(a, &i);
        if (is_integer != find_integer(b, &k))
                return is_integer ? -1 : 1;
        return is_integer ? (i > k) - (i < k) : 0;
}

static int compare_scalars(const void *a, const void *b) {
        return hfd_custom_scalar_compare(*(const struct hf__json *const *)a,
                                         *(const struct hf__json *const *)b);
}

static bool is_scalar(const struct hf__json *value) {
        return hf__json_is_string(value) || hf__json_is_number(value);
}

/* Adds the texts and numbers of an enum in order, even if there are none: the limit also says that
 * the enum has many values, which must not be searched one by one. */
static void add_sorted(struct limits *limits, const struct hf__json *values, size_t n_values) {
        const struct hf__json **list = calloc(n_values, sizeof *list);
        size_t n = 0;

        if (!list) {
                hfd_compile_fail(limits->compiler, -ENOMEM);
                return;
        }
        for (const struct hf__json *m = hf__json_first(values); m; m = hf__json_next(m))
                if (is_scalar(m))
                        list[n++] = m;
        struct hfd_custom_limit *limit = add_limit(limits, HFD_LIMIT_ENUM_SORTED);
        limit->n = (uint32_t)n;
        if (n > 0) {
                qsort(list, n, sizeof *list, compare_scalars);
                limit->as.sorted = hfd_compile_keep(limits->compiler, list, n * sizeof *list);
        }
        free(list);
}

int hfd_custom_text_compare(const void *a, const void *b) {
        const struct hfd_custom_text *x = a, *y = b;

        if (x->n != y->n)
                return x->n < y->n ? -1 : 1;
        return memcmp(x->text, y->text, x->n);
}

/* The canonical text of a value. If it cannot be made, the compiler's error is set. */
static struct hfd_custom_text keep_canonical(struct hfd_schema_compiler *compiler,
                                             const struct hf__json *value) {
        struct hfd_custom_text kept = {0};
        struct hf__strbuf text = {0};

        if (hfd_canonical_text(value, &text) == 0)
                kept = (struct hfd_custom_text){text.n, hfd_compile_text(compiler, text.data)};
        else
                hfd_compile_fail(compiler, -ENOMEM);
        hf__strbuf_done(&text);
        return kept;
}

/* Adds the canonical texts of the other values of an enum. null is left out, because it never
 * matches. */
static void add_others(struct limits *limits, const struct hf__json *values, size_t n_values) {
        struct hfd_custom_text *list = calloc(n_values, sizeof *list);
        size_t n = 0;

        if (!list) {
                hfd_compile_fail(limits->compiler, -ENOMEM);
                return;
        }
        for (const struct hf__json *m = hf__json_first(values); m && limits->compiler->error == 0;
             m = hf__json_next(m))
                if (!is_scalar(m) && !hf__json_is_null(m))
                        list[n++] = keep_canonical(limits->compiler, m);
        if (n > 0 && limits->compiler->error == 0) {
                struct hfd_custom_limit *limit = add_limit(limits, HFD_LIMIT_ENUM_OTHERS);
                qsort(list, n, sizeof *list, hfd_custom_text_compare);
                limit->n = (uint32_t)n;
                limit->as.texts = hfd_compile_keep(limits->compiler, list, n * sizeof *list);
        }
        free(list);
}

/* Adds the values of a large enum in order, so that a search in them takes logarithmic time. One by
 * one, checking a list with n elements would take n times the number of values. */
static void add_many(struct limits *limits, const struct hf__json *values) {
        const size_t n = hf__json_count(values);

        if (n <= FEW_VALUES || n > UINT32_MAX)
                return;
        add_sorted(limits, values, n);
        add_others(limits, values, n);
}

static void add_enum(struct limits *limits) {
        const struct hf__json *values = hf__json_get(limits->props, "enum");

        if (!hf__json_is_array(values) || !hf__json_first(values))
                return;
        values = hfd_compile_value(limits->compiler, hf__json_dup(values));
        add_limit(limits, HFD_LIMIT_ENUM)->as.values = values;
        if (limits->compiler->error == 0)
                add_many(limits, values);
}

/* Adds one limit with the pointers that `make` returns for the elements of the array. An empty or
 * absent array adds none. */
static void add_list(struct limits *limits, const struct hf__json *array,
                     enum hfd_custom_limit_kind kind,
                     const void *(*make)(struct limits *limits, const struct hf__json *element)) {
        size_t n = hf__json_count(array), i = 0;

        if (n == 0 || n > UINT32_MAX)
                return;
        const void **list = calloc(n, sizeof *list);
        if (!list) {
                hfd_compile_fail(limits->compiler, -ENOMEM);
                return;
        }
        for (const struct hf__json *m = hf__json_first(array); m && limits->compiler->error == 0;
             m = hf__json_next(m))
                list[i++] = make(limits, m);
        if (limits->compiler->error == 0) {
                struct hfd_custom_limit *limit = add_limit(limits, kind);
                limit->n = (uint32_t)n;
                /* For REQUIRED, the pointers are read as as.names, which shares the union. */
                limit->as.nodes = hfd_compile_keep(limits->compiler, list, n * sizeof *list);
        }
        free(list);
}

static const void *make_node(struct limits *limits, const struct hf__json *element) {
        return hfd_compile_node(limits->compiler, element, true);
}

/* A required name need not be a property: the structure rules do not demand it. */
static const void *make_name(struct limits *limits, const struct hf__json *element) {
        const char *name = hf__json_text(element);

        if (!name)
                hfd_compile_fail(limits->compiler, HF_E_INVALID);
        return hfd_compile_text(limits->compiler, name);
}

static void add_nodes(struct limits *limits, const char *key, enum hfd_custom_limit_kind kind) {
        const struct hf__json *array = hf__json_get(limits->props, key);

        if (array && !hf__json_is_null(array) && !hf__json_is_array(array))
                hfd_compile_fail(limits->compiler, HF_E_INVALID);
        add_list(limits, array, kind, make_node);
}

/* A limit has an array of nodes; that of `not` has one element. */
static void add_not(struct limits *limits) {
        const struct hf__json *props = hf__json_get(limits->props, "not");
        const struct hfd_custom_node *node;

        if (!props || hf__json_is_null(props))
                return;
        node = hfd_compile_node(limits->compiler, props, true);
        if (!node)
                return;
        struct hfd_custom_limit *limit = add_limit(limits, HFD_LIMIT_NOT);
        limit->n = 1;
        limit->as.nodes = hfd_compile_keep(limits->compiler, &node, sizeof node);
}

void hfd_compile_limits(struct hfd_schema_compiler *compiler, const struct hf__json *props,
                        struct hfd_custom_node *node) {
        /* On the stack, because few nodes have all limits; only those that were added are kept. */
        struct limits limits;

        memset(&limits, 0, sizeof limits);
        limits.compiler = compiler;
        limits.props = props;
        add_nodes(&limits, "anyOf", HFD_LIMIT_ANY_OF);
        add_nodes(&limits, "oneOf", HFD_LIMIT_ONE_OF);
        add_nodes(&limits, "allOf", HFD_LIMIT_ALL_OF);
        add_not(&limits);
        add_text_limits(&limits, node);
        add_number(&limits, "multipleOf", NULL, HFD_LIMIT_MULTIPLE_OF);
        add_number(&limits, "minimum", "exclusiveMinimum", HFD_LIMIT_MINIMUM);
        add_number(&limits, "maximum", "exclusiveMaximum", HFD_LIMIT_MAXIMUM);
        add_count(&limits, "minItems", HFD_LIMIT_MIN_ITEMS);
        add_count(&limits, "maxItems", HFD_LIMIT_MAX_ITEMS);
        add_enum(&limits);
        add_count(&limits, "minProperties", HFD_LIMIT_MIN_PROPERTIES);
        add_count(&limits, "maxProperties", HFD_LIMIT_MAX_PROPERTIES);
        add_list(&limits, hf__json_get(props, "required"), HFD_LIMIT_REQUIRED, make_name);
        node->n_limits = limits.n;
        if (limits.n > 0 && compiler->error == 0)
                node->limits =
                        hfd_compile_keep(compiler, limits.list, limits.n * sizeof limits.list[0]);
}
