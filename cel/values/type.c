/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes, reads, compares and prints types.
 *
 * Invariant: the weight of a type is the number of its parts; a part that is shared counts each
 * time. So a walk over a type takes at most HF__CEL_TYPE_WEIGHT_MAX steps.
 */
#include "cel/values/type.h"

#include <assert.h>
#include <string.h>

#include "base/arena.h"
#include "base/strbuf.h"

static const struct hf__cel_type plain[] = {
        [HF__CEL_ERROR] = {.kind = HF__CEL_ERROR, .weight = 1},
        [HF__CEL_DYN] = {.kind = HF__CEL_DYN, .weight = 1},
        [HF__CEL_NULL] = {.kind = HF__CEL_NULL, .weight = 1},
        [HF__CEL_BOOL] = {.kind = HF__CEL_BOOL, .weight = 1},
        [HF__CEL_INT] = {.kind = HF__CEL_INT, .weight = 1},
        [HF__CEL_UINT] = {.kind = HF__CEL_UINT, .weight = 1},
        [HF__CEL_DOUBLE] = {.kind = HF__CEL_DOUBLE, .weight = 1},
        [HF__CEL_STRING] = {.kind = HF__CEL_STRING, .weight = 1},
        [HF__CEL_BYTES] = {.kind = HF__CEL_BYTES, .weight = 1},
        [HF__CEL_TIMESTAMP] = {.kind = HF__CEL_TIMESTAMP, .weight = 1},
        [HF__CEL_DURATION] = {.kind = HF__CEL_DURATION, .weight = 1},
        [HF__CEL_LIST] = {.kind = HF__CEL_LIST,
                          .weight = 2,
                          .n_params = 1,
                          .params = {&plain[HF__CEL_DYN]}},
        [HF__CEL_MAP] = {.kind = HF__CEL_MAP,
                         .weight = 3,
                         .n_params = 2,
                         .params = {&plain[HF__CEL_DYN], &plain[HF__CEL_DYN]}},
        [HF__CEL_OPTIONAL] = {.kind = HF__CEL_OPTIONAL,
                              .weight = 2,
                              .n_params = 1,
                              .params = {&plain[HF__CEL_DYN]}},
        [HF__CEL_TYPE] = {.kind = HF__CEL_TYPE, .weight = 1},
};

/* The names of kinds in signatures and messages, and in the values of type(). */
static const struct {
        const char *shown;
        const char *name;
} names[] = {
        [HF__CEL_ERROR] = {"!error!", "!error!"},
        [HF__CEL_DYN] = {"dyn", "dyn"},
        [HF__CEL_NULL] = {"null", "null_type"},
        [HF__CEL_BOOL] = {"bool", "bool"},
        [HF__CEL_INT] = {"int", "int"},
        [HF__CEL_UINT] = {"uint", "uint"},
        [HF__CEL_DOUBLE] = {"double", "double"},
        [HF__CEL_STRING] = {"string", "string"},
        [HF__CEL_BYTES] = {"bytes", "bytes"},
        [HF__CEL_TIMESTAMP] = {"timestamp", "google.protobuf.Timestamp"},
        [HF__CEL_DURATION] = {"duration", "google.protobuf.Duration"},
        [HF__CEL_LIST] = {"list", "list"},
        [HF__CEL_MAP] = {"map", "map"},
        [HF__CEL_OPTIONAL] = {"optional_type", "optional_type"},
        [HF__CEL_TYPE] = {"type", "type"},
};

const struct hf__cel_type *hf__cel_type_of(enum hf__cel_kind kind) {
        assert(kind <= HF__CEL_TYPE);
        return &plain[kind];
}

/* Types of declarations are written as constants, and need not state the weight 1. */
static uint32_t weight_of(const struct hf__cel_type *type) {
        return type->weight > 0 ? type->weight : 1;
}

const struct hf__cel_type *hf__cel_type_new(struct hf__arena *arena, enum hf__cel_kind kind,
                                            const struct hf__cel_type *a,
                                            const struct hf__cel_type *b) {
        uint32_t weight = 1 + weight_of(a) + (b ? weight_of(b) : 0);
        struct hf__cel_type *type;

        assert(kind == HF__CEL_LIST || kind == HF__CEL_MAP || kind == HF__CEL_OPTIONAL ||
               kind == HF__CEL_TYPE);
        assert((kind == HF__CEL_MAP) == (b != NULL));
        /* A type shares its parts, so its printed form can be far larger than its memory. The
         * weight counts the parts as often as they would be printed. */
        if (weight > HF__CEL_TYPE_WEIGHT_MAX)
                return NULL;
        type = hf__arena_alloc(arena, sizeof *type);
        if (!type)
                return NULL;
        *type = (struct hf__cel_type){.kind = kind,
                                      .weight = weight,
                                      .n_params = b ? 2 : 1,
                                      .params = {a, b}};
        return type;
}

/* Signatures are written by us, in the tables of functions, so the parser is as simple as they
 * are. */
static bool is_word(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}

static struct hf__cel_type *named_type(struct hf__arena *arena, const char *word, size_t n) {
        struct hf__cel_type *type = hf__arena_alloc(arena, sizeof *type);

        if (!type)
                return NULL;
        *type = (struct hf__cel_type){.weight = 1};
        /* One capital letter is a variable, as in the language definition: list(A). All other names
         * that are not built in are opaque types. */
        if (n == 1 && word[0] >= 'A' && word[0] <= 'Z') {
                type->kind = HF__CEL_VAR;
                type->var = (uint32_t)(word[0] - 'A');
                return type;
        }
        type->kind = HF__CEL_OPAQUE;
        type->name = hf__arena_text(arena, word, n);
        return type->name ? type : NULL;
}

const struct hf__cel_type *hf__cel_type_parse(struct hf__arena *arena, const char **text) {
        const char *word = *text;
        const struct hf__cel_type *a;
        const struct hf__cel_type *b = NULL;
        enum hf__cel_kind kind = HF__CEL_ERROR;
        size_t n = 0;

        while (is_word(word[n]))
                n++;
        *text += n;
        if (n == 0)
                return NULL;
        for (enum hf__cel_kind k = HF__CEL_DYN; k <= HF__CEL_TYPE; k++)
                if (strncmp(names[k].shown, word, n) == 0 && !names[k].shown[n])
                        kind = k;
        if (kind == HF__CEL_ERROR)
                return named_type(arena, word, n);
        /* Only the types from LIST on have parameters. Behind the others a parenthesis belongs to
         * the signature: in ".string(int)" it begins the arguments. */
        if (**text != '(' || kind < HF__CEL_LIST)
                return &plain[kind];
        (*text)++;
        a = hf__cel_type_parse(arena, text);
        if (a && kind == HF__CEL_MAP && strncmp(*text, ", ", 2) == 0) {
                *text += 2;
                b = hf__cel_type_parse(arena, text);
        }
        if (!a || (kind == HF__CEL_MAP && !b) || **text != ')')
                return NULL;
        (*text)++;
        return hf__cel_type_new(arena, kind, a, b);
}

/* Types are not unique objects, so equal ones are often at different addresses. */
bool hf__cel_type_same(const struct hf__cel_type *a, const struct hf__cel_type *b) {
        if (a == b)
                return true;
        if (a->kind != b->kind || a->n_params != b->n_params || a->var != b->var)
                return false;
        if (a->name && strcmp(a->name, b->name) != 0)
                return false;
        for (unsigned i = 0; i < a->n_params; i++)
                if (!hf__cel_type_same(a->params[i], b->params[i]))
                        return false;
        return true;
}

void hf__cel_type_print(struct hf__strbuf *out, const struct hf__cel_type *type) {
        if (type->kind == HF__CEL_VAR) {
                hf__strbuf_puts(out, "_var");
                hf__strbuf_u64(out, type->var);
                return;
        }
        hf__strbuf_puts(out, type->name ? type->name : names[type->kind].shown);
        for (unsigned i = 0; i < type->n_params; i++) {
                hf__strbuf_puts(out, i == 0 ? "(" : ", ");
                hf__cel_type_print(out, type->params[i]);
        }
        if (type->n_params > 0)
                hf__strbuf_putc(out, ')');
}

const char *hf__cel_type_name(const struct hf__cel_type *type) {
        return type->name ? type->name : names[type->kind].name;
}

/* Compares a name with a text of n bytes, as strcmp does. The text is a name that an expression
 * uses, and may have no NUL at its end. */
static int compare_name(const char *name, const char *text, size_t n) {
        int r = strncmp(name, text, n);

        return r != 0 ? r : name[n] != 0;
}

/* Sorted fields, for example those of custom resources, are found by bisection. The types of
 * built-in kinds and of `variables` are not marked as sorted: all of their fields are visited. */
const struct hf__cel_type *hf__cel_type_field(const struct hf__cel_type *object, const char *name,
                                              size_t n_name) {
        size_t low = 0;
        size_t high = object->n_fields;

        assert(object->kind == HF__CEL_OBJECT);
        /* The object of a patch may have any field; its type is checked when the patch is
         * applied. */
        if (object->open)
                return &plain[HF__CEL_DYN];
        for (size_t i = 0; !object->sorted && i < object->n_fields; i++)
                if (compare_name(object->fields[i].name, name, n_name) == 0)
                        return object->fields[i].type;
        while (object->sorted && low < high) {
                size_t middle = low + (high - low) / 2;
                int r = compare_name(object->fields[middle].name, name, n_name);

                if (r == 0)
                        return object->fields[middle].type;
                if (r < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return NULL;
}
