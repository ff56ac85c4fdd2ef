/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Estimates the calls of functions.
 *
 * Invariant: the numbers are those of Kubernetes; a function that is not named here costs one. Some
 * names are marked "of the server": the server adds their rows to the library
 * (hf__cel_library_new).
 */
#include <string.h>

#include "cel/estimate.h"
#include "cel/values/function.h"

/* cel-go's StringTraversalCostFactor and RegexStringLengthCostFactor: a character of a text costs a
 * tenth of an element, one of a pattern a quarter. */
#define TEXT_FACTOR    0.1
#define PATTERN_FACTOR 0.25

typedef uint64_t estimator_function(const struct hf__cel_overload *overload,
                                    const struct hf__cel_estimate *args,
                                    struct hf__cel_estimate *result);

static struct hf__cel_size size_of(const struct hf__cel_estimate *arg) {
        return hf__cel_size_or_any(arg);
}

static uint64_t text_cost(struct hf__cel_size size, double times) {
        return hf__cel_cost_factor(size.max, times * TEXT_FACTOR);
}

static void give_size(struct hf__cel_estimate *result, uint64_t min, uint64_t max) {
        result->has_size = true;
        result->size = (struct hf__cel_size){min, max};
}

/* The cost of a walk over the first argument. The result has the same size. */
static uint64_t same_text(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                          struct hf__cel_estimate *result) {
        give_size(result, size_of(&args[0]).min, size_of(&args[0]).max);
        return text_cost(size_of(&args[0]), 1);
}

/* The cost of a walk over the first argument. */
static uint64_t first_text(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                           struct hf__cel_estimate *result) {
        return o->n_args > 0 ? text_cost(size_of(&args[0]), 1) : 1;
}

static uint64_t first_text_twice(const struct hf__cel_overload *o,
                                 const struct hf__cel_estimate *args,
                                 struct hf__cel_estimate *result) {
        return text_cost(size_of(&args[0]), 2);
}

/* As a member, ip() takes the address of a block, which is parsed already. */
static uint64_t estimate_ip(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                            struct hf__cel_estimate *result) {
        return o->member ? 1 : text_cost(size_of(&args[0]), 1);
}

/* A prefix or suffix is compared; the rest of the text is not read. */
static uint64_t second_text(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                            struct hf__cel_estimate *result) {
        return o->n_args > 1 ? text_cost(size_of(&args[1]), 1) : 1;
}

/* Assumes that the text is matched with a pattern of 128 bytes. */
static uint64_t estimate_validate(const struct hf__cel_overload *o,
                                  const struct hf__cel_estimate *args,
                                  struct hf__cel_estimate *result) {
        return hf__cel_cost_product(text_cost(size_of(&args[1]), 1), 128 / 4);
}

/* Sizes of texts count characters, those of bytes count bytes: a character has 1 to 4 of them. */
static uint64_t to_bytes(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                         struct hf__cel_estimate *result) {
        struct hf__cel_size size = size_of(&args[0]);

        if (o->args[0]->kind != HF__CEL_STRING)
                return 1;
        give_size(result, size.min, hf__cel_cost_product(size.max, 4));
        return text_cost(size, 1);
}

/* The reverse of to_bytes: n bytes are n / 4 to n characters. */
static uint64_t to_string(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                          struct hf__cel_estimate *result) {
        struct hf__cel_size size = size_of(&args[0]);

        if (o->args[0]->kind != HF__CEL_BYTES)
                return 1;
        give_size(result, size.min / 4, size.max);
        return text_cost(size, 1);
}

/* The quotes are two characters, and each character may need a backslash. */
static uint64_t estimate_quote(const struct hf__cel_overload *o,
                               const struct hf__cel_estimate *args,
                               struct hf__cel_estimate *result) {
        struct hf__cel_size size = size_of(&args[0]);

        give_size(result, hf__cel_cost_sum(size.min, 2),
                  hf__cel_cost_sum(hf__cel_cost_product(size.max, 2), 2));
        return text_cost(size, 1);
}

/* A map is searched by an index, a list from its beginning. */
static uint64_t estimate_in(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                            struct hf__cel_estimate *result) {
        return o->args[1]->kind == HF__CEL_LIST ? size_of(&args[1]).max : 1;
}

/* Each character of the text may advance all parts of the pattern. The 1 stands for the end of the
 * text, so that an empty text costs, too. */
static uint64_t pattern_cost(const struct hf__cel_estimate *args) {
        struct hf__cel_size text = size_of(&args[0]);

        text.max = hf__cel_cost_sum(text.max, 1);
        return hf__cel_cost_product(text_cost(text, 1),
                                    hf__cel_cost_factor(size_of(&args[1]).max, PATTERN_FACTOR));
}

/* Kubernetes estimates the form text.matches(pattern) only. The other form, matches(text, pattern),
 * has the cost of an unknown function. */
static uint64_t estimate_matches(const struct hf__cel_overload *o,
                                 const struct hf__cel_estimate *args,
                                 struct hf__cel_estimate *result) {
        return o->member ? pattern_cost(args) : 1;
}

static uint64_t estimate_find(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        give_size(result, 0, size_of(&args[0]).max);
        return pattern_cost(args);
}

static uint64_t estimate_contains(const struct hf__cel_overload *o,
                                  const struct hf__cel_estimate *args,
                                  struct hf__cel_estimate *result) {
        return hf__cel_cost_product(text_cost(size_of(&args[0]), 1),
                                    text_cost(size_of(&args[1]), 1));
}

/* The size of the elements of a list. */
static struct hf__cel_size element_size(const struct hf__cel_estimate *list) {
        if (list->path.state == HF__CEL_PATH_AT && list->path.type->n_params > 0)
                return (struct hf__cel_size){0,
                                             list->path.type->params[list->path.type->n_params - 1]
                                                     ->max_size};
        return (struct hf__cel_size){0, UINT64_MAX};
}

/* isSorted, sum, max, min, indexOf, lastIndexOf. The last two exist for texts as well, whose type
 * has no parameter. */
static uint64_t list_walk(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                          struct hf__cel_estimate *result) {
        const struct hf__cel_type *type = args[0].node->type;
        uint64_t one = 1;

        if (type->n_params == 0)
                return text_cost(size_of(&args[0]), 1);
        if (type->params[0]->kind == HF__CEL_STRING || type->params[0]->kind == HF__CEL_BYTES)
                one = hf__cel_cost_sum(1, text_cost(element_size(&args[0]), 1));
        return hf__cel_cost_product(size_of(&args[0]).max, one);
}

static uint64_t divide_up(uint64_t a, uint64_t b) { return a / b + (a % b > 0 ? 1 : 0); }

static uint64_t estimate_replace(const struct hf__cel_overload *o,
                                 const struct hf__cel_estimate *args,
                                 struct hf__cel_estimate *result) {
        struct hf__cel_size text = size_of(&args[0]);
        struct hf__cel_size from = size_of(&args[1]);
        struct hf__cel_size to = size_of(&args[2]);
        uint64_t most = 0;  /* replacements in the longest result */
        uint64_t least = 0; /* replacements in the shortest result */
        uint64_t kept_max = text.max;
        uint64_t kept_min = text.min;

        /* The longest result: if a replacement can be longer than what it replaces, as many of the
         * shortest parts as possible are replaced; otherwise none is. An empty part matches before
         * each character and at the end. The shortest result: if a replacement can be shorter, as
         * many of the longest parts as possible are replaced; otherwise none is. */
        if (from.min == 0) {
                most = hf__cel_cost_sum(text.max, 1);
        } else if (to.max > from.min) {
                most = divide_up(text.max, from.min);
                kept_max = 0;
        }
        if (from.max == 0) {
                least = hf__cel_cost_sum(text.min, 1);
        } else if (from.max > to.min) {
                least = divide_up(text.min, from.max);
                kept_min = 0;
        }
        give_size(result, hf__cel_cost_sum(hf__cel_cost_product(least, to.min), kept_min),
                  hf__cel_cost_sum(hf__cel_cost_product(most, to.max), kept_max));
        return text_cost(text, 2);
}

static uint64_t estimate_split(const struct hf__cel_overload *o,
                               const struct hf__cel_estimate *args,
                               struct hf__cel_estimate *result) {
        struct hf__cel_size text = size_of(&args[0]);
        uint64_t max = text.max;

        if (o->n_args > 2 && args[2].node->kind == HF__CEL_NODE_CONST &&
            args[2].node->as.constant.kind == HF__CEL_INT)
                /* A negative limit becomes a huge number, which means here what it means in CEL: no
                 * limit. */
                max = (uint64_t)args[2].node->as.constant.as.i;
        give_size(result, 0, max);
        return text_cost(text, 2);
}

/* There is one separator less than there are elements. */
static uint64_t estimate_join(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        struct hf__cel_size list = size_of(&args[0]);
        struct hf__cel_size element = element_size(&args[0]);
        struct hf__cel_size size = {hf__cel_cost_product(list.min, element.min),
                                    hf__cel_cost_product(list.max, element.max)};

        if (o->n_args > 1) {
                struct hf__cel_size between = size_of(&args[1]);
                uint64_t min = list.min > 0 ? list.min - 1 : 0;
                uint64_t max = list.max > 0 ? list.max - 1 : 0;

                size.min = hf__cel_cost_sum(size.min, hf__cel_cost_product(between.min, min));
                size.max = hf__cel_cost_sum(size.max, hf__cel_cost_product(between.max, max));
        }
        give_size(result, size.min, size.max);
        return text_cost(size, 1);
}

/* ---- functions that make a list: they cost 11, and a factor for each element ---- */

static uint64_t new_list(double factor, struct hf__cel_size size, struct hf__cel_estimate *result) {
        give_size(result, size.min, size.max);
        return hf__cel_cost_sum(hf__cel_cost_factor(size.max, factor), 11);
}

/* The value of an int literal, at least 0. For any other argument: `number`. */
static uint64_t literal_or(const struct hf__cel_estimate *arg, uint64_t number) {
        struct hf__cel_value value = arg->node->as.constant;

        if (arg->node->kind != HF__CEL_NODE_CONST || value.kind != HF__CEL_INT)
                return number;
        return value.as.i < 0 ? 0 : (uint64_t)value.as.i;
}

/* Kubernetes subtracts without a check, so the estimate of a slice that ends before it begins is
 * huge. */
static uint64_t estimate_slice(const struct hf__cel_overload *o,
                               const struct hf__cel_estimate *args,
                               struct hf__cel_estimate *result) {
        uint64_t n = literal_or(&args[2], size_of(&args[0]).max) - literal_or(&args[1], 0);

        return new_list(1, (struct hf__cel_size){n, n}, result);
}

/* Only a literal says how long the list gets. Any other number may be the largest one. */
static uint64_t estimate_range(const struct hf__cel_overload *o,
                               const struct hf__cel_estimate *args,
                               struct hf__cel_estimate *result) {
        uint64_t n = literal_or(&args[0], UINT64_MAX);

        return new_list(1, (struct hf__cel_size){n, n}, result);
}

static uint64_t estimate_copy(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        return new_list(1, size_of(&args[0]), result);
}

/* Each level is a walk over the list. */
static uint64_t estimate_flatten(const struct hf__cel_overload *o,
                                 const struct hf__cel_estimate *args,
                                 struct hf__cel_estimate *result) {
        uint64_t levels = o->n_args > 1 ? literal_or(&args[1], UINT64_MAX) : 1;

        return new_list((double)levels, size_of(&args[0]), result);
}

uint64_t hf__cel_estimate_pairs(bool texts, struct hf__cel_size list,
                                struct hf__cel_estimate *result) {
        struct hf__cel_size square = {hf__cel_cost_product(list.min, list.min),
                                      hf__cel_cost_product(list.max, list.max)};

        /* Each pair is compared twice, and texts are read for that. */
        return new_list(texts ? 2 + TEXT_FACTOR : 2, square, result);
}

static uint64_t estimate_distinct(const struct hf__cel_overload *o,
                                  const struct hf__cel_estimate *args,
                                  struct hf__cel_estimate *result) {
        return hf__cel_estimate_pairs(false, size_of(&args[0]), result);
}

static bool is_text(const struct hf__cel_type *type) {
        return type->kind == HF__CEL_STRING || type->kind == HF__CEL_BYTES;
}

static uint64_t estimate_sort(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        return hf__cel_estimate_pairs(is_text(o->args[0]->params[0]), size_of(&args[0]), result);
}

static uint64_t estimate_add(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                             struct hf__cel_estimate *result) {
        struct hf__cel_size a = size_of(&args[0]);
        struct hf__cel_size b = size_of(&args[1]);

        if (!is_text(o->args[0]) && o->args[0]->kind != HF__CEL_LIST)
                return 1;
        give_size(result, hf__cel_cost_sum(a.min, b.min), hf__cel_cost_sum(a.max, b.max));
        return is_text(o->args[0]) ? text_cost(result->size, 1) : 1;
}

static uint64_t estimate_compare(const struct hf__cel_overload *o,
                                 const struct hf__cel_estimate *args,
                                 struct hf__cel_estimate *result) {
        uint64_t a = size_of(&args[0]).max;
        uint64_t b = size_of(&args[1]).max;

        if (!is_text(o->args[0]))
                return 1;
        return hf__cel_cost_factor(a < b ? a : b, TEXT_FACTOR);
}

/* An element of a list or map that the expression makes is at most as large as the largest one that
 * it puts in. For a declared list, estimate_function follows the path. */
static uint64_t element_at(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                           struct hf__cel_estimate *result) {
        if (args[0].has_parts)
                give_size(result, args[0].element.min, args[0].element.max);
        return 1;
}

/* Compares 16 bytes of two addresses, at a tenth for each of the 32, rounded up: 4. If the second
 * argument is a text, it is parsed before. */
static uint64_t contains_ip(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                            struct hf__cel_estimate *result) {
        uint64_t parse = o->args[1]->kind == HF__CEL_STRING ? text_cost(size_of(&args[1]), 1) : 0;

        return hf__cel_cost_sum(4, parse);
}

/* 3 more than contains_ip: Kubernetes masks the address of the block, a walk over its 16 bytes (2),
 * and compares the lengths of the prefixes (1). */
static uint64_t contains_cidr(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        return hf__cel_cost_sum(3, contains_ip(o, args, result));
}

/* 1 and the product of both sizes, for sets.equivalent twice the product. An evaluation is charged
 * in the same way. */
static uint64_t estimate_sets(const struct hf__cel_overload *o, const struct hf__cel_estimate *args,
                              struct hf__cel_estimate *result) {
        uint64_t product = hf__cel_cost_product(size_of(&args[0]).max, size_of(&args[1]).max);
        bool twice = o->cost == HF__CEL_COST_SETS_TWICE;

        return hf__cel_cost_sum(1, hf__cel_cost_product(product, twice ? 2 : 1));
}

/* The cost of a check is such that the limit of an expression allows two checks, but not three. */
static uint64_t estimate_authorization(const struct hf__cel_overload *o,
                                       const struct hf__cel_estimate *args,
                                       struct hf__cel_estimate *result) {
        return HF__CEL_AUTHORIZATION_COST;
}

/* A selector is a list of requirements, at most one for each two characters. Parsing one costs 50.
 */
static uint64_t estimate_selector(const struct hf__cel_overload *o,
                                  const struct hf__cel_estimate *args,
                                  struct hf__cel_estimate *result) {
        uint64_t requirements = hf__cel_cost_factor(size_of(&args[1]).max, 0.5);

        return hf__cel_cost_sum(10, hf__cel_cost_sum(text_cost(size_of(&args[1]), 1),
                                                     hf__cel_cost_product(requirements, 50)));
}

static const struct {
        const char *name;
        estimator_function *estimate;
} functions[] = {
        {"lowerAscii", same_text},
        {"upperAscii", same_text},
        {"substring", same_text},
        {"trim", same_text},
        {"cidr", first_text},
        {"isIP", first_text},
        {"isCIDR", first_text},
        {"quantity", first_text},        /* of the server */
        {"isQuantity", first_text},      /* of the server */
        {"url", same_text},              /* of the server */
        {"validate", estimate_validate}, /* of the server */
        {"semver", first_text},
        {"isSemver", first_text},
        {"format", first_text},
        {"jsonpatch.escapeKey", same_text}, /* of the server */
        {"check", estimate_authorization},
        {"fieldSelector", estimate_selector},
        {"labelSelector", estimate_selector},
        {"ip", estimate_ip},
        {"ip.isCanonical", first_text_twice},
        {"containsIP", contains_ip},
        {"containsCIDR", contains_cidr},
        {"startsWith", second_text},
        {"endsWith", second_text},
        {"bytes", to_bytes},
        {"string", to_string},
        {"strings.quote", estimate_quote},
        {"@in", estimate_in},
        {"matches", estimate_matches},
        {"find", estimate_find},
        {"findAll", estimate_find},
        {"contains", estimate_contains},
        {"isSorted", list_walk},
        {"sum", list_walk},
        {"max", list_walk},
        {"min", list_walk},
        {"indexOf", list_walk},
        {"lastIndexOf", list_walk},
        {"slice", estimate_slice},
        {"lists.range", estimate_range},
        {"reverse", estimate_copy},
        {"flatten", estimate_flatten},
        {"distinct", estimate_distinct},
        {"sort", estimate_sort},
        {"replace", estimate_replace},
        {"split", estimate_split},
        {"join", estimate_join},
        {"_+_", estimate_add},
        {"_<_", estimate_compare},
        {"_<=_", estimate_compare},
        {"_>_", estimate_compare},
        {"_>=_", estimate_compare},
        {"_[_]", element_at},
        {"sets.contains", estimate_sets},
        {"sets.equivalent", estimate_sets},
        {"sets.intersects", estimate_sets},
};

uint64_t hf__cel_estimate_overload(const struct hf__cel_overload *overload,
                                   const struct hf__cel_estimate *args,
                                   struct hf__cel_estimate *result) {
        /* A search from the beginning is enough: the function runs when an expression is compiled,
         * once for each overload of each call in it. */
        for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++)
                if (strcmp(functions[i].name, overload->name) == 0)
                        return functions[i].estimate(overload, args, result);
        return 1;
}
