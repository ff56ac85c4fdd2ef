/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes an expression of admission, with the functions that the server adds to the language: named
 * formats, changes of objects. It is compiled, and evaluated within a small budget. When an
 * evaluation is repeated, it returns the same code and the same kind of value. An error has a
 * message.
 */
#undef NDEBUG
#include <assert.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/expressions/expression_run.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

#define FEATURES (HFD_EXPRESSION_PATCH | HFD_EXPRESSION_VARIABLES)
#define BUDGET   20000

static int evaluate(const struct hfd_expressions *set, const struct hfd_expression *expression,
                    const struct hf__json *object, enum hf__cel_kind *ret_kind) {
        struct hfd_expression_input input = {.object = object};
        struct hf__strbuf message = {0};
        struct hfd_expression_run run;
        struct hf__cel_value value;

        hfd_expression_run_init(&run, set, &input, BUDGET);
        int r = hfd_expression_eval(&run, expression, &value, &message);
        assert(r == 0 || r == -ENOMEM || message.n > 0);
        *ret_kind = value.kind;
        hfd_expression_run_done(&run);
        hf__strbuf_done(&message);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
        static const char text_of_object[] =
                "{\"metadata\":{\"name\":\"a-1\",\"labels\":{\"a.b/c\":\"d\"}},\"n\":[1,2.5,null]}";
        char *text = strndup((const char *)data, n);
        const struct hfd_expression *expression = NULL;
        struct hfd_expressions *set = NULL;
        struct hf__json *object = NULL;
        enum hf__cel_kind first, second;

        assert(text && hf__json_parse(text_of_object, strlen(text_of_object), &object, NULL) == 0);
        assert(hfd_expressions_new(FEATURES, NULL, NULL, &set) == 0);
        assert(hfd_expressions_compile(set, text, FEATURES, HFD_RESULT_ANY, &expression) == 0);
        int r = evaluate(set, expression, object, &first);
        assert(evaluate(set, expression, object, &second) == r);
        assert(r != 0 || first == second);
        hfd_expressions_free(set);
        hf__json_free(object);
        free(text);
        return 0;
}
