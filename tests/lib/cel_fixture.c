/* SPDX-License-Identifier: Apache-2.0 */
/* See cel_fixture.h. The values of the variables are results of expressions, too. */
#include "cel_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel_print.h"

struct bench {
        struct hf__cel_library *library;
        struct hf__arena arena;
        struct hf__cel_variable variables[5];
        struct hf__cel_value inputs[5];
        struct hf__cel_declarations declarations;
};

/* The programs that made the values of the variables. They live as long as the values. */
static struct hf__cel_program *kept[5];

static void open_bench(struct bench *b) {
        static const struct {
                const char *name;
                const char *type;
                const char *expression;
        } variables[] = {
                {"x", "dyn", "{'a': 1, 'b': [1, 2.5, 'c']}"},
                {"i", "int", "7"},
                {"s", "string", "'hello'"},
                {"l", "list(int)", "[1, 2, 3]"},
                {"m", "map(string, int)", "{'a': 1}"},
        };

        memset(b, 0, sizeof *b);
        hf__arena_init(&b->arena);
        assert_int_equal(hf__cel_library_new(NULL, &b->library), 0);
        b->declarations = (struct hf__cel_declarations){.functions = b->library,
                                                        .variables = b->variables,
                                                        .mixed_literals = true,
                                                        .open_object = "Object"};
        for (size_t i = 0; i < 5; i++) {
                const char *type = variables[i].type;

                assert_int_equal(hf__cel_compile(&b->declarations, variables[i].expression,
                                                 strlen(variables[i].expression), NULL, &kept[i],
                                                 NULL),
                                 0);
                assert_int_equal(hf__cel_eval(kept[i], NULL, NULL, &b->arena, &b->inputs[i], NULL),
                                 0);
                b->variables[i].name = variables[i].name;
                b->variables[i].type = hf__cel_type_parse(&b->arena, &type);
                assert_non_null(b->variables[i].type);
        }
        b->declarations.n_variables = 5;
}

static void close_bench(struct bench *b) {
        for (size_t i = 0; i < 5; i++)
                hf__cel_program_free(kept[i]);
        hf__arena_deinit(&b->arena);
        hf__cel_library_free(b->library);
}

static void describe(struct bench *b, const char *expression, struct hf__strbuf *out) {
        struct hf__strbuf message = {0};
        struct hf__cel_program *program = NULL;
        struct hf__cel_value value;

        if (hf__cel_compile(&b->declarations, expression, strlen(expression), &message, &program,
                            NULL) != 0) {
                const char *text = message.data + strlen("ERROR: <input>:");

                hf__strbuf_printf(out, "? %.*s", (int)strcspn(text, "\n"), text);
        } else if (hf__cel_eval(program, b->inputs, NULL, &b->arena, &value, NULL) != 0) {
                hf__strbuf_printf(out, "! %s", value.as.text);
        } else {
                hf__strbuf_puts(out, "= ");
                hf__cel_print(out, value);
        }
        hf__cel_program_free(program);
        hf__strbuf_done(&message);
}

static void check(const struct cel_case *cases, size_t n, bool mixed) {
        struct bench b;

        open_bench(&b);
        b.declarations.mixed_literals = mixed;
        for (size_t i = 0; i < n; i++) {
                struct hf__strbuf got = {0};

                describe(&b, cases[i].expression, &got);
                if (strcmp(got.data, cases[i].outcome) != 0)
                        fail_msg("%s\n  is     %s\n  not    %s", cases[i].expression, got.data,
                                 cases[i].outcome);
                hf__strbuf_done(&got);
        }
        close_bench(&b);
}

void cel_check(const struct cel_case *cases, size_t n) { check(cases, n, true); }

void cel_check_strict(const struct cel_case *cases, size_t n) { check(cases, n, false); }

static int evaluate(const char *expression, const struct hf__cel_limits *limits,
                    struct hf__cel_usage *ret_usage) {
        struct hf__strbuf message = {0};
        struct hf__cel_program *program = NULL;
        struct hf__cel_value value;
        struct bench b;
        int r;

        open_bench(&b);
        r = hf__cel_compile(&b.declarations, expression, strlen(expression), &message, &program,
                            NULL);
        if (r == 0)
                r = hf__cel_eval(program, b.inputs, limits, &b.arena, &value, ret_usage);
        hf__cel_program_free(program);
        hf__strbuf_done(&message);
        close_bench(&b);
        return r;
}

unsigned long long cel_compile_work(const char *expression) {
        struct hf__strbuf message = {0};
        struct hf__cel_program *program = NULL;
        struct bench b;
        uint64_t work;

        open_bench(&b);
        (void)hf__cel_compile(&b.declarations, expression, strlen(expression), &message, &program,
                              &work);
        hf__cel_program_free(program);
        hf__strbuf_done(&message);
        close_bench(&b);
        return work;
}

unsigned long long cel_cost(const char *expression) {
        struct hf__cel_usage usage;

        assert_int_equal(evaluate(expression, NULL, &usage), 0);
        return usage.cost;
}

int cel_result(const char *expression, const struct hf__cel_limits *limits) {
        return evaluate(expression, limits, NULL);
}
