/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes an expression: it is compiled, and what compiles is evaluated within small limits. A
 * message of the compiler is not empty. An evaluation has the same result and the same cost when it
 * is repeated, ends at its limits, and an error has a message. A value of a known type has this
 * type.
 */
#undef NDEBUG
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel/cel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static const struct hf__cel_value items[] = {
        {.kind = HF__CEL_INT, .as.i = 1},
        {.kind = HF__CEL_INT, .as.i = INT64_MIN},
        {.kind = HF__CEL_INT, .as.i = INT64_MAX},
};
static const struct hf__cel_list list = {.n = 3, .items = items};
static const struct hf__cel_entry entries[] = {
        {.key = {.kind = HF__CEL_STRING, .n = 1, .as.text = "a"},
         .value = {.kind = HF__CEL_LIST, .as.list = &list}},
        {.key = {.kind = HF__CEL_STRING, .n = 1, .as.text = "b"},
         .value = {.kind = HF__CEL_DOUBLE, .as.d = 1e300}},
};
static const struct hf__cel_map map = {.n = 2, .entries = entries};
static const struct hf__cel_value inputs[] = {
        {.kind = HF__CEL_MAP, .as.map = &map},
        {.kind = HF__CEL_LIST, .as.list = &list},
        {.kind = HF__CEL_STRING, .n = 6, .as.text = "h\xc3\xa9llo"},
};

static void evaluate(const struct hf__cel_program *program) {
        const struct hf__cel_limits limits = {.cost = 3000, .bytes = 1 << 20};
        struct hf__arena arena;
        struct hf__cel_usage usage[2];
        int r[2];

        for (int i = 0; i < 2; i++) {
                enum hf__cel_kind kind = hf__cel_program_type(program)->kind;
                struct hf__cel_value value;

                hf__arena_init(&arena);
                r[i] = hf__cel_eval(program, inputs, &limits, &arena, &value, &usage[i]);
                assert(r[i] == 0 || r[i] == HF_E_INVALID || r[i] == HF_E_TOO_LARGE);
                assert((r[i] != 0) == hf__cel_is_error(value));
                if (r[i] != 0)
                        assert(*value.as.text);
                else if (kind != HF__CEL_DYN && kind != HF__CEL_MAP)
                        assert(value.kind == kind || value.kind == HF__CEL_NULL);
                hf__arena_deinit(&arena);
        }
        assert(r[0] == r[1] && usage[0].cost == usage[1].cost && usage[0].work == usage[1].work);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static struct hf__cel_library *library;
        static const char list_of_ints[] = "list(int)";
        const char *type = list_of_ints;
        struct hf__cel_variable variables[] = {
                {"x", hf__cel_type_of(HF__CEL_DYN)},
                {"l", NULL},
                {"s", hf__cel_type_of(HF__CEL_STRING)},
        };
        struct hf__cel_program *program;
        struct hf__strbuf message = {0};
        struct hf__arena types;
        int r;

        if (!library)
                assert(hf__cel_library_new(NULL, &library) == 0);
        hf__arena_init(&types);
        variables[1].type = hf__cel_type_parse(&types, &type);
        struct hf__cel_declarations declarations = {.functions = library,
                                                    .variables = variables,
                                                    .n_variables = 3,
                                                    .mixed_literals = n % 2 == 0};
        r = hf__cel_compile(&declarations, (const char *)data, n, &message, &program, NULL);
        assert(r == 0 || r == HF_E_INVALID);
        assert((r == 0) == (message.n == 0));
        if (r == 0) {
                evaluate(program);
                hf__cel_program_free(program);
        }
        hf__strbuf_done(&message);
        hf__arena_deinit(&types);
        return 0;
}
