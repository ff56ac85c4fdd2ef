/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the index of functions from the tables of rows.
 *
 * Invariant: overloads of one name are neighbours, in the order of the tables: the evaluator calls
 * the first whose kinds match.
 */
#include "cel/library.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/cleanup.h"
#include "cel/functions/tables.h"

struct hf__cel_library {
        struct hf__arena arena; /* of the overloads and their types */
        const struct hf__cel_overload **overloads;
        size_t n;
};

/* Reads ".string(int, A) -> string". false: malformed, or out of memory. */
static bool parse_signature(struct hf__arena *arena, const char *text,
                            struct hf__cel_overload *overload) {
        overload->only_dyn = *text == '?';
        if (overload->only_dyn)
                text++;
        overload->member = *text == '.';
        if (overload->member) {
                text++;
                overload->args[overload->n_args++] = hf__cel_type_parse(arena, &text);
                if (!overload->args[0])
                        return false;
        }
        /* A signature is text of our own, or of the server's rows. A mistake in one is found by the
         * first test that makes a library. */
        if (*text++ != '(')
                return false;
        while (*text != ')') {
                if (overload->n_args == HF__CEL_ARGS_MAX)
                        return false;
                overload->args[overload->n_args] = hf__cel_type_parse(arena, &text);
                if (!overload->args[overload->n_args++])
                        return false;
                if (strncmp(text, ", ", 2) == 0)
                        text += 2;
        }
        if (strncmp(text, ") -> ", 5) != 0)
                return false;
        text += 5;
        overload->result = hf__cel_type_parse(arena, &text);
        return overload->result && !*text;
}

static int add_row(struct hf__cel_library *library, const struct hf__cel_row *row) {
        struct hf__cel_overload *overload = hf__arena_alloc(&library->arena, sizeof *overload);
        size_t at = library->n;

        if (!overload)
                return -ENOMEM;
        *overload =
                (struct hf__cel_overload){.name = row->name, .call = row->call, .cost = row->cost};
        /* An index may be a number of any type, although its overload is declared for int. */
        overload->any_number = strncmp(row->name, "_[", 2) == 0;
        if (!parse_signature(&library->arena, row->signature, overload))
                return library->arena.failed ? -ENOMEM : -EINVAL;
        /* Insertion keeps rows of one name in the order of the tables, which sorting with qsort
         * would not. It is quadratic in a constant number of rows. */
        while (at > 0 && strcmp(library->overloads[at - 1]->name, row->name) > 0) {
                library->overloads[at] = library->overloads[at - 1];
                at--;
        }
        library->overloads[at] = overload;
        library->n++;
        return 0;
}

/* Tables end with a row without a name, so they need no count beside them. The server may pass no
 * table of its own. */
static size_t count_rows(const struct hf__cel_row *rows) {
        size_t n = 0;

        while (rows && rows[n].name)
                n++;
        return n;
}

HF__CLEANUP_DEFINE(library_cleanup, struct hf__cel_library *, hf__cel_library_free)

int hf__cel_library_new(const struct hf__cel_row *extra, struct hf__cel_library **ret_library) {
        const struct hf__cel_row *const tables[] = {
                hf__cel_operators,   hf__cel_arithmetic,  hf__cel_conversions,
                hf__cel_times,       hf__cel_strings,     hf__cel_formats,
                hf__cel_semvers,     hf__cel_authorizers, hf__cel_lists,
                hf__cel_list_shapes, hf__cel_sets,        hf__cel_regexes,
                hf__cel_optionals,   hf__cel_networks,    extra,
        };
        HF__CLEANUP(library_cleanup)
        struct hf__cel_library *library = calloc(1, sizeof *library);
        size_t n = 0;

        if (!library)
                return -ENOMEM;
        hf__arena_init(&library->arena);
        for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
                n += count_rows(tables[t]);
        library->overloads = calloc(n, sizeof *library->overloads);
        if (!library->overloads)
                return -ENOMEM;
        for (size_t t = 0; t < sizeof tables / sizeof tables[0]; t++)
                for (size_t i = 0; i < count_rows(tables[t]); i++) {
                        int r = add_row(library, &tables[t][i]);

                        if (r != 0)
                                return r;
                }
        *ret_library = HF__TAKE(library);
        return 0;
}

void hf__cel_library_free(struct hf__cel_library *library) {
        if (!library)
                return;
        hf__arena_deinit(&library->arena);
        free((void *)library->overloads);
        free(library);
}

/* The lower bound by bisection: overloads of one name are neighbours, and the first of them must be
 * found. */
size_t hf__cel_library_find(const struct hf__cel_library *library, const char *name,
                            const struct hf__cel_overload *const **ret_overloads) {
        size_t low = 0;
        size_t high = library->n;
        size_t n = 0;

        while (low < high) {
                size_t middle = low + (high - low) / 2;

                if (strcmp(library->overloads[middle]->name, name) < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        while (low + n < library->n && strcmp(library->overloads[low + n]->name, name) == 0)
                n++;
        *ret_overloads = &library->overloads[low];
        return n;
}

/* Only kinds, and the names of opaque types, are compared. The checker has compared the types of
 * elements where they are known, and cel-go does not look at each element of a list either. An
 * object can be used as a map, since macros and has() treat both alike. */
static bool type_takes(const struct hf__cel_type *type, struct hf__cel_value value) {
        if (type->kind == HF__CEL_DYN || type->kind == HF__CEL_VAR)
                return true;
        if (type->kind == HF__CEL_OPAQUE)
                return value.kind == HF__CEL_OPAQUE &&
                       strcmp(type->name, value.as.opaque->type->name) == 0;
        return type->kind == value.kind ||
               (type->kind == HF__CEL_MAP && value.kind == HF__CEL_OBJECT);
}

bool hf__cel_overload_takes(const struct hf__cel_overload *overload,
                            const struct hf__cel_value *args, unsigned n_args) {
        if (overload->n_args != n_args)
                return false;
        for (unsigned i = 0; i < n_args; i++)
                if (!type_takes(overload->args[i], args[i]) &&
                    !(overload->any_number && overload->args[i]->kind == HF__CEL_INT &&
                      hf__cel_is_number(args[i])))
                        return false;
        return true;
}

const struct hf__cel_type *hf__cel_library_type(const char *name) {
        static const struct hf__cel_type *const types[] = {&hf__cel_ip_type, &hf__cel_cidr_type,
                                                           &hf__cel_semver_type};

        for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
                if (strcmp(types[i]->name, name) == 0)
                        return types[i];
        return NULL;
}
