/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cel-calculator [--strict]: evaluates expressions, for tests against other implementations. It
 * reads lines of two kinds from standard input; TYPE and EXPRESSION are in hexadecimal:
 *
 *      V NAME TYPE EXPRESSION     declares a variable for the next E; its value is the expression's
 *      E EXPRESSION               prints "= value", type, cost and estimate, separated by tabs;
 *                                 or "! error"; or "? message of the compiler"
 *
 * --strict refuses literals of mixed types, as Kubernetes does.
 */
#undef NDEBUG
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/strbuf.h"
#include "cel/cel.h"
#include "cel_print.h"
#include "server/resources/zones/zones.h"

#define MAX 16

static struct hf__cel_variable variables[MAX];
static struct hf__cel_value inputs[MAX];
static size_t n_variables;
static struct hf__cel_program *kept[MAX];
static struct hf__arena arena;
static struct hf__cel_declarations declarations;

static char *unhex(const char *text, size_t *ret_n) {
        size_t n = strlen(text) / 2;
        char *out = malloc(n + 1);

        assert(out);
        for (size_t i = 0; i < n; i++) {
                unsigned byte;

                assert(sscanf(text + 2 * i, "%2x", &byte) == 1);
                out[i] = (char)byte;
        }
        out[n] = 0;
        *ret_n = n;
        return out;
}

static void print_line(const char *mark, const char *text, size_t n) {
        printf("%s ", mark);
        for (size_t i = 0; i < n; i++)
                putchar(text[i] == '\n' ? '|' : text[i]);
        putchar('\n');
}

/* Compiles and evaluates. NULL: it does not compile, and the message was printed. */
static struct hf__cel_program *evaluate(const char *hex, struct hf__cel_value *ret_value,
                                        struct hf__cel_usage *ret_usage) {
        struct hf__strbuf message = {0};
        struct hf__cel_program *program = NULL;
        size_t n;
        char *text = unhex(hex, &n);
        int r = hf__cel_compile(&declarations, text, n, &message, &program, NULL);

        if (r > 0)
                print_line("?", message.data, message.n);
        else
                hf__cel_eval(program, inputs, NULL, &arena, ret_value, ret_usage);
        hf__strbuf_done(&message);
        free(text);
        return program;
}

static void declare(char *name, const char *type, const char *hex) {
        struct hf__cel_value value;
        size_t before = n_variables;

        assert(n_variables < MAX);
        n_variables = declarations.n_variables = 0;
        kept[before] = evaluate(hex, &value, NULL);
        assert(kept[before]);
        n_variables = before + 1;
        declarations.n_variables = n_variables;
        variables[before].name = hf__arena_text(&arena, name, strlen(name));
        variables[before].type = hf__cel_type_parse(&arena, &type);
        inputs[before] = value;
        assert(variables[before].type && !hf__cel_is_error(value));
}

static void answer(const char *hex) {
        struct hf__strbuf text = {0};
        struct hf__cel_value value;
        struct hf__cel_usage usage = {0};
        struct hf__cel_program *program = evaluate(hex, &value, &usage);

        if (program && hf__cel_is_error(value)) {
                print_line("!", value.as.text, strlen(value.as.text));
        } else if (program) {
                hf__cel_print(&text, value);
                hf__strbuf_putc(&text, '\t');
                hf__cel_type_print(&text, hf__cel_program_type(program));
                hf__strbuf_printf(&text, "\t%llu\t%llu", (unsigned long long)usage.cost,
                                  (unsigned long long)hf__cel_estimate(program));
                print_line("=", text.data, text.n);
        }
        hf__strbuf_done(&text);
        hf__cel_program_free(program);
        fflush(stdout);
        for (size_t i = 0; i < n_variables; i++)
                hf__cel_program_free(kept[i]);
        n_variables = declarations.n_variables = 0;
        hf__arena_deinit(&arena);
}

int main(int argc, char **argv) {
        struct hf__cel_library *library;
        static char line[1 << 20];

        assert(hf__cel_library_new(NULL, &library) == 0);
        hf__arena_init(&arena);
        declarations = (struct hf__cel_declarations){.functions = library,
                                                     .zones = hfd_zones(),
                                                     .variables = variables,
                                                     .mixed_literals = argc < 2};
        while (fgets(line, sizeof line, stdin)) {
                char *save;
                const char *kind = strtok_r(line, " \n", &save);

                if (!kind)
                        continue;
                if (*kind == 'V') {
                        char *name = strtok_r(NULL, " ", &save);
                        size_t n;
                        char *type = unhex(strtok_r(NULL, " ", &save), &n);

                        declare(name, type, strtok_r(NULL, " \n", &save));
                        free(type);
                } else {
                        const char *hex = strtok_r(NULL, " \n", &save);

                        answer(hex ? hex : "");
                }
        }
        hf__cel_library_free(library);
        return 0;
}
