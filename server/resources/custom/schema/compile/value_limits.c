/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compiles the value validations of a node: lengths, ranges, patterns, enums, and what is below
 * allOf, anyOf, oneOf and not.
 *
 * Invariants: the limits of a node are in the order of enum hfd_custom_limit_kind. What compiles a
 * pattern has large variables, so it is not inlined into the functions that recurse.
 */
#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "cel/regex/regex.h"
#include "cel/regex/regex_program.h"
#include "server/resources/custom/schema/compile/compile.h"
#include "server/resources/custom/schema/formats/formats.h"

#define LIMITS_MAX (HFD_LIMIT_REQUIRED + 1) /* one of each kind at most; REQUIRED is the last */

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

/* ---- patterns ---- */

/* The sum of all programs is limited, not only each pattern: a definition may have thousands. */
int hfd_custom_pattern_compile(struct hf__arena *arena, const char *text, size_t *n_bytes,
                               const struct hf__cel_regex **ret_regex, char *reterr_message,
                               size_t max_message) {
        size_t n = strlen(text);
        uint64_t work;
        int r = HF_E_TOO_LARGE;

        if (n <= HF__CEL_PATTERN_MAX)
                r = hf__cel_regex_compile(arena, text, n, ret_regex, reterr_message, max_message,
                                          &work);
        if (r == 0)
                *n_bytes += (*ret_regex)->n_bytes;
        if (r == 0 && *n_bytes > HFD_CUSTOM_PROGRAMS_MAX)
                r = HF_E_TOO_LARGE;
        if (r == HF_E_TOO_LARGE) {
                static const char message[] = "expression too large";
                if (max_message >= sizeof message)
                        memcpy(reterr_message, message, sizeof message);
                r = HF_E_INVALID;
        }
        return r;
}

/* For tsearch: patterns by their texts. */
static int compare_patterns(const void *a, const void *b) {
        const struct hfd_custom_pattern *x = a, *y = b;

        return strcmp(x->text, y->text);
}

/* Copies a set of characters into kept pieces. NULL: compiler->error is set. */
static const struct hf__cel_set *keep_set(struct hfd_schema_compiler *compiler,
                                          const struct hf__cel_set *set) {
        struct hf__cel_set copy;

        memset(&copy, 0, sizeof copy);
        copy.n = copy.space = set->n;
        memcpy(copy.ascii, set->ascii, sizeof copy.ascii);
        if (set->n > 0) {
                /* Nothing changes a finished set. */
                copy.ranges =
                        (struct hf__cel_range *)hfd_compile_keep(compiler, set->ranges,
                                                                 set->n * sizeof set->ranges[0]);
        }
        return hfd_compile_keep(compiler, &copy, sizeof copy);
}

/* The same for a program, without what only its compilation needed. Repeated sets are kept once. */
static const struct hf__cel_regex *keep_regex(struct hfd_schema_compiler *compiler,
                                              const struct hf__cel_regex *regex) {
        struct hf__cel_instruction *list = calloc(regex->n, sizeof *list);
        const struct hf__cel_set *last = NULL, *last_kept = NULL;
        const struct hf__cel_regex *kept = NULL;
        struct hf__cel_regex copy;

        memset(&copy, 0, sizeof copy);
        if (!list)
                hfd_compile_fail(compiler, -ENOMEM);
        for (uint32_t i = 0; list && i < regex->n && compiler->error == 0; i++) {
                list[i] = regex->instructions[i];
                if (list[i].kind != HF__CEL_DO_SET || !list[i].set)
                        continue;
                /* A repetition that was written out has the same set many times. */
                if (list[i].set != last) {
                        last = list[i].set;
                        last_kept = keep_set(compiler, last);
                }
                list[i].set = last_kept;
        }
        if (compiler->error == 0) {
                copy.instructions =
                        (struct hf__cel_instruction *)hfd_compile_keep(compiler, list,
                                                                       regex->n * sizeof *list);
                copy.n = regex->n;
                copy.anchored = regex->anchored;
                kept = hfd_compile_keep(compiler, &copy, sizeof copy);
        }
        free(list);
        return kept;
}

/* Compiles a pattern in memory of its own, because the program is a small part of what it needs. */
__attribute__((noinline)) static const struct hf__cel_regex *
compile_regex(struct hfd_schema_compiler *compiler, const char *text) {
        const struct hf__cel_regex *regex = NULL;
        struct hf__arena arena;
        char message[128];

        hf__arena_init(&arena);
        int r = hfd_custom_pattern_compile(&arena, text, &compiler->n_program_bytes, &regex,
                                           message, sizeof message);
        if (r == 0)
                regex = keep_regex(compiler, regex);
        else
                hfd_compile_fail(compiler, r);
        hf__arena_deinit(&arena);
        return r == 0 ? regex : NULL;
}

/* The compiled pattern, which is made once, because patterns often occur many times in a schema.
 * NULL: compiler->error is set. */
static const struct hfd_custom_pattern *find_pattern(struct hfd_schema_compiler *compiler,
                                                     const char *text) {
        struct hfd_custom_pattern wanted = {.text = text};
        void *found = tfind(&wanted, &compiler->patterns, compare_patterns);

        if (found)
                return *(const struct hfd_custom_pattern **)found;
        wanted.text = hfd_compile_text(compiler, text);
        wanted.regex = compile_regex(compiler, text);
        if (compiler->error != 0)
                return NULL;
        const struct hfd_custom_pattern *pattern =
                hfd_compile_keep(compiler, &wanted, sizeof wanted);
        if (pattern && !tsearch(pattern, &compiler->patterns, compare_patterns))
                hfd_compile_fail(compiler, -ENOMEM);
        return pattern;
}

void hfd_compile_patterns_done(struct hfd_schema_compiler *compiler) {
        while (compiler->patterns)
                (void)tdelete(*(struct hfd_custom_pattern **)compiler->patterns,
                              &compiler->patterns, compare_patterns);
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
                        find_pattern(limits->compiler, pattern);
        if (format && format_applies(format, node))
                add_limit(limits, HFD_LIMIT_FORMAT)->as.format =
                        hfd_compile_text(limits->compiler, format);
}

static void add_enum(struct limits *limits) {
        const struct hf__json *values = hf__json_get(limits->props, "enum");

        if (hf__json_is_array(values) && hf__json_first(values))
                add_limit(limits, HFD_LIMIT_ENUM)->as.values =
                        hfd_compile_value(limits->compiler, hf__json_dup(values));
}

/* Adds a limit with one pointer for each element of the array, made by make. */
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
                /* Of REQUIRED these are names: both are arrays of pointers. */
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
