/* SPDX-License-Identifier: Apache-2.0 */
/* The expressions of policies and webhooks: variables, budgets, rights and matchConditions. */
#undef NDEBUG
#include <errno.h>
#include <malloc.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <holdfast/error.h>

#include "base/arena.h"
#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/admission.h"
#include "server/admission/expressions/match_conditions.h"
#include "server/admission/expressions/request_value.h"
#include "server/admission/turn.h"
#include "server/auth/user.h"
#include "server/resources/custom/rules/custom_rules.h"
#include "server/resources/resource.h"
#include "server/resources/rows/resource_table.h"

#define ALL (HFD_EXPRESSION_PARAMS | HFD_EXPRESSION_AUTHORIZER | HFD_EXPRESSION_VARIABLES)

struct fixture {
        struct hfd_admission_attributes of;
        struct hfd_requester user;
        const char *groups[2];
        struct hfd_expression_input input;
        struct hf__json *json[4];
        struct hfd_expressions *set;
};

static struct hf__json *parse(const char *text) {
        struct hf__json *json = NULL;

        assert_int_equal(hf__json_parse(text, strlen(text), &json, NULL), 0);
        return json;
}

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof *f);
        static const char extra[] = "scope\0b\0other\0c\0scope\0a";

        assert_non_null(f);
        f->groups[0] = "system:masters";
        f->groups[1] = "developers";
        f->user = (struct hfd_requester){{"jane", f->groups, 2}, "u1", extra, sizeof extra};
        f->of = (struct hfd_admission_attributes){.operation = HFD_ADMIT_CREATE,
                                                  .resource =
                                                          hfd_resource_find("", "v1", "configmaps"),
                                                  .kind = hfd_resource_find("", "v1", "configmaps"),
                                                  .subresource = "",
                                                  .ns = "default",
                                                  .name = "a",
                                                  .user = &f->user};
        f->json[0] = parse("{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"y\"}},"
                           "\"data\":{\"n\":\"1\"},\"list\":[1,2.5,\"c\",null]}");
        f->json[1] = parse("{\"metadata\":{\"name\":\"default\",\"uid\":\"7\",\"labels\":"
                           "{\"env\":\"test\"},\"managedFields\":[]},\"spec\":{\"finalizers\":"
                           "[\"kubernetes\"]},\"status\":{\"phase\":\"Active\"}}");
        f->json[2] = parse("{\"data\":{\"max\":\"3\"}}");
        f->json[3] = parse("{\"kind\":\"CreateOptions\",\"fieldManager\":\"kubectl\"}");
        f->input = (struct hfd_expression_input){.of = &f->of,
                                                 .resource = f->of.resource,
                                                 .kind = f->of.kind,
                                                 .object = f->json[0],
                                                 .namespace_object = f->json[1],
                                                 .params = f->json[2],
                                                 .options = f->json[3]};
        assert_int_equal(hfd_expressions_new(ALL | HFD_EXPRESSION_PATCH, NULL, NULL, &f->set), 0);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        hfd_expressions_free(f->set);
        for (size_t i = 0; i < 4; i++)
                hf__json_free(f->json[i]);
        free(f);
        return 0;
}

static const struct hfd_expression *compile(struct fixture *f, const char *text,
                                            enum hfd_expression_result result) {
        const struct hfd_expression *expression = NULL;

        assert_int_equal(hfd_expressions_compile(f->set, text, ALL, result, &expression), 0);
        return expression;
}

static void add_variable(struct fixture *f, const char *name, const char *text) {
        const struct hfd_expression *expression;

        assert_int_equal(hfd_expressions_add_variable(f->set, name, text, &expression), 0);
}

/* outcome: "true", "false", or the message of the error. */
static void assert_outcome(struct fixture *f, const char *text, const char *outcome) {
        const struct hfd_expression *expression = compile(f, text, HFD_RESULT_ANY);
        struct hf__strbuf message = {0};
        struct hfd_expression_run run;
        struct hf__cel_value value;
        int r;

        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        r = hfd_expression_eval(&run, expression, &value, &message);
        if (r == 0)
                hf__strbuf_puts(&message,
                                value.kind == HF__CEL_BOOL && value.as.boolean ? "true" : "false");
        if (strcmp(message.data, outcome) != 0)
                print_error("%s\n  is     = %s\n  not    = %s\n", text, message.data, outcome);
        assert_string_equal(message.data, outcome);
        hf__strbuf_done(&message);
        hfd_expression_run_done(&run);
}

static void test_variables_have_the_values_of_the_request(void **state) {
        struct fixture *f = *state;

        assert_outcome(f, "object.metadata.labels.x == 'y' && oldObject == null", "true");
        assert_outcome(f,
                       "object.list.size() == 4 && object.list[1] == 2.5 && object.list[3] == null",
                       "true");
        assert_outcome(f, "request.kind.kind == 'ConfigMap' && request.resource.group == ''",
                       "true");
        assert_outcome(f, "request.operation == 'CREATE' && request.name == 'a'", "true");
        assert_outcome(f, "request.namespace == 'default' && !request.dryRun", "true");
        assert_outcome(f, "has(request.subResource) || has(request.requestSubResource)", "false");
        assert_outcome(f, "request.userInfo.username == 'jane' && request.userInfo.uid == 'u1'",
                       "true");
        assert_outcome(f, "'developers' in request.userInfo.groups", "true");
        assert_outcome(f, "request.userInfo.extra == {'scope': ['b', 'a'], 'other': ['c']}",
                       "true");
        assert_outcome(f, "request.options.fieldManager == 'kubectl'", "true");
        assert_outcome(f,
                       "namespaceObject.metadata.labels.env == 'test' && "
                       "namespaceObject.status.phase == 'Active'",
                       "true");
        assert_outcome(f, "int(params.data.max) > 2 && int(object.data.n) < 2", "true");
        assert_outcome(f, "object.spec.replicas > 1",
                       "expression 'object.spec.replicas > 1' resulted in error: no such key: "
                       "spec");
}

/* The values of extra come from the client (Impersonate-Extra-...). */
static void test_extra_takes_memory_in_proportion_to_its_size(void **state) {
        struct fixture *f = *state;
        char extra[HFD_USER_EXTRA] = "";
        size_t n = 0;
        struct hf__arena arena;

        for (; n + 5 <= sizeof extra; n += 5) /* the value of each key is "" */
                (void)snprintf(extra + n, 4, "%03zu", n / 5);
        f->user.extra = extra;
        f->user.n_extra = n;
        assert_outcome(f, "request.userInfo.extra.size() == 204", "true");
        assert_outcome(f, "request.userInfo.extra.all(k, request.userInfo.extra[k] == [''])",
                       "true");
        hf__arena_init(&arena);
        size_t before = mallinfo2().uordblks;
        assert_int_equal(hfd_request_value(&arena, &f->input).kind, HF__CEL_MAP);
        assert_true(mallinfo2().uordblks - before < 200 * HFD_USER_EXTRA);
        hf__arena_deinit(&arena);
}

static void test_mistakes_have_the_words_of_kubernetes(void **state) {
        static const struct {
                const char *text;
                enum hfd_expression_result result;
                const char *error;
        } cases[] = {
                {"object.", HFD_RESULT_BOOL,
                 "compilation failed: ERROR: <input>:1:8: Syntax error:"},
                {"request.operations == ''", HFD_RESULT_BOOL,
                 "compilation failed: ERROR: <input>:1:8: undefined field 'operations'\n"
                 " | request.operations == ''\n | .......^"},
                {"nothing", HFD_RESULT_BOOL,
                 "compilation failed: ERROR: <input>:1:1: undeclared reference to 'nothing' (in "
                 "container '')\n | nothing\n | ^"},
                {"'a'", HFD_RESULT_BOOL, "must evaluate to bool but got string"},
                {"object.x", HFD_RESULT_BOOL, "must evaluate to bool but got dyn"},
                {"1", HFD_RESULT_STRING_OR_NULL,
                 "must evaluate to one of [string null_type] but got int"},
                {"['a']", HFD_RESULT_STRING, "must evaluate to string but got list(string)"},
                {"Object{}", HFD_RESULT_BOOL,
                 "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in "
                 "container '')"},
                {"variables.a", HFD_RESULT_BOOL,
                 "compilation failed: ERROR: <input>:1:10: undefined field 'a'"},
        };
        struct fixture *f = *state;

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                const struct hfd_expression *e = compile(f, cases[i].text, cases[i].result);

                assert_null(e->program);
                if (strncmp(e->error, cases[i].error, strlen(cases[i].error)) != 0)
                        fail_msg("%s: %s", cases[i].text, e->error);
        }
}

static void test_composed_variables_are_lazy_and_typed(void **state) {
        struct fixture *f = *state;

        add_variable(f, "n", "int(object.data.n)");
        add_variable(f, "twice", "variables.n * 2");
        add_variable(f, "bad", "object.missing");
        add_variable(f, "wrong", "variables.n + 'a'");
        add_variable(f, "later", "variables.bad");
        assert_outcome(f, "variables.n == 1 && variables.twice == 2", "true");
        assert_outcome(f, "variables.n == 1 || variables.bad == 2", "true");
        assert_outcome(f, "has(variables.twice)", "true");
        assert_outcome(f, "variables.bad == 1",
                       "expression 'variables.bad == 1' resulted in error: composited variable "
                       "\"bad\" fails to evaluate: no such key: missing");
        assert_outcome(f, "variables.later == 1",
                       "expression 'variables.later == 1' resulted in error: composited variable "
                       "\"later\" fails to evaluate: composited variable \"bad\" fails to "
                       "evaluate: "
                       "no such key: missing");
        assert_null(compile(f, "variables.n == 'a'", HFD_RESULT_BOOL)->program);
        assert_non_null(compile(f, "variables.wrong == 'a'", HFD_RESULT_BOOL)->program);
}

static void test_a_chain_of_variables_ends(void **state) {
        struct fixture *f = *state;
        char name[16];
        char text[1600];

        add_variable(f, "v0", "1");
        for (int i = 1; i < 60; i++) {
                size_t n = (size_t)snprintf(text, sizeof text, "variables.v%d", i - 1);

                for (int k = 0; k < 20; k++)
                        n += (size_t)snprintf(text + n, sizeof text - n, " + 1");
                snprintf(name, sizeof name, "v%d", i);
                add_variable(f, name, text);
        }
        assert_outcome(f, "variables.v5 == 101", "true");
        /* In order, each variable is computed before the next one needs it: no chain of unread
         * variables gets too deep. */
        assert_outcome(f, "[variables.v8, variables.v16, variables.v24] == [161, 321, 481]",
                       "true");
        assert_non_null(compile(f, "variables.v59 == 1", HFD_RESULT_BOOL)->program);
        {
                struct hf__strbuf message = {0};
                struct hfd_expression_run run;
                struct hf__cel_value value;

                hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
                assert_int_equal(hfd_expression_eval(&run,
                                                     compile(f, "variables.v59", HFD_RESULT_ANY),
                                                     &value, &message),
                                 HF_E_TOO_MANY);
                hf__strbuf_done(&message);
                hfd_expression_run_done(&run);
        }
}

static void test_all_expressions_share_a_budget(void **state) {
        struct fixture *f = *state;
        const struct hfd_expression *e;
        struct hf__strbuf message = {0};
        struct hfd_expression_run run;
        struct hf__cel_value value;
        int r = 0;
        int n = 0;

        add_variable(f, "sum", "[1, 2, 3, 4, 5, 6, 7, 8].map(i, i * 2)");
        e = compile(f, "variables.sum.size() == 8 && authorizer.path('/x').check('get').allowed()",
                    HFD_RESULT_BOOL);
        hfd_expression_run_init(&run, f->set, &f->input, HFD_MATCH_BUDGET);
        for (; r == 0 && n < 100; n++)
                r = hfd_expression_eval(&run, e, &value, &message);
        assert_int_equal(r, HF_E_TOO_LARGE);
        assert_int_equal(n, 8); /* each check costs 350,000 of the budget */
        assert_string_equal(message.data, "validation failed due to running out of cost budget, no "
                                          "further validation rules will be run");
        hf__strbuf_done(&message);
        hfd_expression_run_done(&run);
        assert_outcome(f, "[1, 2, 3].all(i, authorizer.path('/x').check('get').allowed())",
                       "expression '[1, 2, 3].all(i, "
                       "authorizer.path('/x').check('get').allowed())' "
                       "resulted in error: operation cancelled: actual cost limit exceeded");
}

/* Evaluates with what a thread that serves connections may spend. Returns what the evaluation
 * returns; *ret_spent: whether it must be repeated on another thread. */
static int eval_inline(struct fixture *f, const char *text, bool *ret_spent) {
        struct hfd_expression_allowance allowance = {.left = HFD_ADMISSION_INLINE_COST};
        const struct hfd_expression *e = compile(f, text, HFD_RESULT_BOOL);
        struct hf__strbuf message = {0};
        struct hfd_expression_run run;
        struct hf__cel_value value;

        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        run.allowance = &allowance;
        int r = hfd_expression_eval(&run, e, &value, &message);
        *ret_spent = allowance.spent;
        hf__strbuf_done(&message);
        hfd_expression_run_done(&run);
        return r;
}

/* An object with a text of 60,000 bytes. A search for the pattern in it costs 31,506, but takes a
 * step of work for each byte. */
static struct hf__json *long_object(void) {
        struct hf__json *object = parse("{\"data\":{}}");
        char *text = calloc(1, 60001);

        assert_non_null(text);
        memset(text, 'x', 60000);
        assert_int_equal(hf__json_set_string(object, "data.k", text), 0);
        free(text);
        return object;
}

static void test_work_beyond_the_allowance_is_no_error_of_the_expression(void **state) {
        static const char searched[] =
                "!object.data.exists(k, object.data[k].matches('BEGIN RSA PRIVATE KEY'))";
        struct fixture *f = *state;
        struct hf__json *object = long_object();
        bool spent;

        assert_int_equal(eval_inline(f, searched, &spent), 0);
        assert_false(spent);
        f->input.object = object;
        assert_int_equal(eval_inline(f, searched, &spent), HF_E_TOO_LARGE);
        assert_true(spent);
        assert_outcome(f, searched, "true");
        hf__json_free(object);
}

/* An object whose text has n digits. The caller frees it. */
static struct hf__json *object_of_digits(size_t n) {
        struct hf__json *object = parse("{\"data\":{}}");
        char *text = calloc(1, n + 1);

        assert_non_null(text);
        memset(text, '7', n);
        assert_int_equal(hf__json_set_string(object, "data.k", text), 0);
        free(text);
        return object;
}

/* It takes 17 million steps; Kubernetes' cost of it is 200,000. */
static void test_a_repetition_is_searched_in_a_long_text(void **state) {
        struct fixture *f = *state;
        struct hf__json *object = object_of_digits((size_t)1 << 19);

        f->input.object = object;
        assert_outcome(f, "object.data.k.matches('[0-9a-f]{128}x')", "false");
        hf__json_free(object);
}

/* Evaluates until it fails, but 400 times at most; *ret_r is why. Returns how often it has not
 * failed. */
static int eval_often(struct fixture *f, const char *text, struct hfd_expression_work *work,
                      int *ret_r) {
        const struct hfd_expression *e = compile(f, text, HFD_RESULT_BOOL);
        struct hf__cel_value value;
        int n = 0;

        for (*ret_r = 0; n < 400; n++) {
                struct hfd_expression_run run;
                hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
                run.work = work;
                *ret_r = hfd_expression_eval(&run, e, &value, NULL);
                assert_int_equal(run.ended, *ret_r);
                hfd_expression_run_done(&run);
                if (*ret_r != 0)
                        break;
        }
        return n;
}

/* A search takes some million steps. The limit without the bytes of the object suffices for nine of
 * them, and with the bytes for two or three more. */
static void test_the_work_of_all_expressions_has_a_limit(void **state) {
        const size_t n_digits = 40000;
        const uint64_t limit = HFD_EXPRESSION_WORK + HFD_EXPRESSION_BYTE_WORK * n_digits;
        struct fixture *f = *state;
        struct hfd_expression_work work = {0};
        struct hf__json *object = object_of_digits(n_digits);
        int r;

        f->input.object = object;
        assert_in_range(eval_often(f, "!object.data.k.matches('[0-9]{100}x')", &work, &r), 11, 12);
        assert_int_equal(r, HF_E_TOO_MANY);
        assert_in_range(work.used, limit, limit + 10000);
        hf__json_free(object);
}

/* Variables that are suspended have charged what they have used. Each of them takes some 45,000
 * steps before it reads the next one. */
static void test_suspended_variables_count(void **state) {
        struct fixture *f = *state;
        struct hfd_expression_allowance allowance = {.left = HFD_ADMISSION_INLINE_COST};
        struct hfd_expression_work work = {0};
        struct hf__json *object = object_of_digits(600);
        struct hfd_expression_run run;
        struct hf__cel_value value;
        char name[16], text[200];

        add_variable(f, "v0", "true");
        for (int i = 1; i < 20; i++) {
                (void)snprintf(text, sizeof text,
                               "!object.data.k.matches('[0-9]{900}x') && variables.v%d", i - 1);
                (void)snprintf(name, sizeof name, "v%d", i);
                add_variable(f, name, text);
        }
        f->input.object = object;
        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        run.allowance = &allowance;
        run.work = &work;
        assert_int_equal(hfd_expression_eval(&run, compile(f, "variables.v19", HFD_RESULT_ANY),
                                             &value, NULL),
                         HF_E_TOO_LARGE);
        assert_true(allowance.spent);
        assert_true(run.used < 2 * HFD_ADMISSION_INLINE_COST);
        hfd_expression_run_done(&run);
        hf__json_free(object);
}

/* A limit that Kubernetes does not have is no error that an operator could absorb. */
static void test_own_limits_end_the_run(void **state) {
        static const char *const texts[] = {
                "object.data.k.split('').size() == 1 || true",
                "variables.parts == 1 || true",
                "variables.parts == 1 ? false : true",
        };
        struct fixture *f = *state;
        struct hf__json *object = object_of_digits((size_t)2 << 20);

        add_variable(f, "parts", "object.data.k.split('').size()");
        f->input.object = object;
        for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
                struct hf__strbuf message = {0};
                struct hfd_expression_run run;
                struct hf__cel_value value;

                hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
                assert_int_equal(hfd_expression_eval(&run, compile(f, texts[i], HFD_RESULT_ANY),
                                                     &value, &message),
                                 HF_E_TOO_MANY);
                assert_non_null(strstr(message.data, "limit exceeded"));
                assert_int_equal(hfd_expression_eval(&run, compile(f, "true", HFD_RESULT_ANY),
                                                     &value, NULL),
                                 HF_E_TOO_MANY);
                hf__strbuf_done(&message);
                hfd_expression_run_done(&run);
        }
        hf__json_free(object);
}

/* Kubernetes searches for each of these patterns but the last one, which is invalid. */
static void test_the_limits_of_patterns_end_the_run(void **state) {
        static const struct {
                const char *text;
                const char *reason;
                int r;
        } cases[] = {
                {"''.matches(object.data.k) || true", "the pattern is too long", HF_E_TOO_MANY},
                {"''.matches('x{1000}'.replace('x', 'xx{1000}x{1000}x{1000}x{1000}x')) || true",
                 "expression too large", HF_E_TOO_MANY},
                {"''.matches(lists.range(200).map(v, r'\\pL').join()) || true",
                 "expression too large", HF_E_TOO_MANY},
                {"''.matches(lists.range(101).map(v, '(').join() + lists.range(101).map(v, ')')"
                 ".join()) || true",
                 "expression nests too deeply", HF_E_TOO_MANY},
                {"''.matches('(' + object.data.k.substring(0, 1)) || true", "", 0},
        };
        struct fixture *f = *state;
        struct hf__json *object = object_of_digits(10001);

        f->input.object = object;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct hf__strbuf message = {0};
                struct hfd_expression_run run;
                struct hf__cel_value value;

                hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
                assert_int_equal(hfd_expression_eval(&run,
                                                     compile(f, cases[i].text, HFD_RESULT_ANY),
                                                     &value, &message),
                                 cases[i].r);
                if (cases[i].r != 0)
                        assert_non_null(strstr(message.data, cases[i].reason));
                hf__strbuf_done(&message);
                hfd_expression_run_done(&run);
        }
        hf__json_free(object);
}

/* A list of 5,000 numbers, as deep as JSON may have it. The caller frees it. */
static struct hf__json *deep_object(void) {
        struct hf__strbuf text = {0};
        struct hf__json *object;

        hf__strbuf_puts(&text, "{\"d\":");
        for (int i = 0; i < HF__JSON_DEPTH_MAX - 1; i++)
                hf__strbuf_putc(&text, '[');
        for (int i = 0; i < 5000; i++)
                hf__strbuf_puts(&text, i > 0 ? ",1" : "1");
        for (int i = 0; i < HF__JSON_DEPTH_MAX - 1; i++)
                hf__strbuf_putc(&text, ']');
        hf__strbuf_putc(&text, '}');
        object = parse(text.data);
        hf__strbuf_done(&text);
        return object;
}

/* The work exceeds its first limit while the deepest level of the deepest variable compares the
 * deepest level of two objects. There the bytes of the objects are counted. */
static void *measure_deeply(void *ctx) {
        struct fixture *f = ctx;
        struct hfd_expression_work work = {.used = HFD_EXPRESSION_WORK - 1};
        struct hfd_expression_run run;
        struct hf__cel_value value;

        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        run.work = &work;
        assert_int_equal(hfd_expression_eval(&run, compile(f, "variables.v3", HFD_RESULT_ANY),
                                             &value, NULL),
                         0);
        assert_true(work.has_measured);
        hfd_expression_run_done(&run);
        return NULL;
}

/* A thread that needs more ends the process: the page below its stack is not accessible. */
static void test_evaluations_need_no_more_stack_than_they_say(void **state) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
        skip(); /* Sanitizers make stack frames several times as large. */
#endif
        struct fixture *f = *state;
        struct hf__json *object = deep_object();
        struct hf__json *old = deep_object();
        struct hf__strbuf text = {0};
        pthread_attr_t attr;
        pthread_t thread;
        char name[8];

        for (int i = 0; i < 4; i++) {
                for (int k = 0; k < 57; k++) /* an expression has at most 60 levels */
                        hf__strbuf_puts(&text, "[1].all(a, ");
                if (i == 0)
                        hf__strbuf_puts(&text, "object.d == oldObject.d");
                else
                        hf__strbuf_printf(&text, "variables.v%d", i - 1);
                for (int k = 0; k < 57; k++) /* an expression has at most 60 levels */
                        hf__strbuf_putc(&text, ')');
                (void)snprintf(name, sizeof name, "v%d", i);
                add_variable(f, name, text.data);
                hf__strbuf_reset(&text);
        }
        f->input.object = object;
        f->input.old = old;
        assert_int_equal(pthread_attr_init(&attr), 0);
        assert_int_equal(pthread_attr_setstacksize(&attr, HFD_CUSTOM_RULES_STACK + HF__JSON_STACK),
                         0);
        assert_int_equal(pthread_create(&thread, &attr, measure_deeply, f), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
        pthread_attr_destroy(&attr);
        hf__strbuf_done(&text);
        hf__json_free(object);
        hf__json_free(old);
}

static size_t memory_in_use(void) {
        struct mallinfo2 info = mallinfo2();

        return info.uordblks + info.hblkhd;
}

/* Each expression makes a list of 8 MiB, which nobody needs after it. */
static void test_memory_is_freed_after_each_expression(void **state) {
        struct fixture *f = *state;
        struct hf__json *object = object_of_digits((size_t)1 << 19);
        const struct hfd_expression *e =
                compile(f, "object.data.k.split('').size() > 1", HFD_RESULT_BOOL);
        const size_t before = memory_in_use();
        struct hfd_expression_run run;
        struct hf__cel_value value;

        f->input.object = object;
        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        for (int i = 0; i < 10; i++)
                assert_int_equal(hfd_expression_eval(&run, e, &value, NULL), 0);
        assert_true(memory_in_use() - before < (size_t)20 << 20);
        hfd_expression_run_done(&run);
        hf__json_free(object);
}

/* Variables stay until the end of the run, so their memory is limited in all. */
static void test_variables_share_a_limit_of_memory(void **state) {
        struct fixture *f = *state;
        struct hf__json *object = object_of_digits((size_t)1 << 19);
        struct hfd_expression_run run;
        struct hf__cel_value value;
        char name[16], text[64];
        int r = 0, n = 0;

        for (int i = 0; i < 10; i++) {
                (void)snprintf(name, sizeof name, "v%d", i);
                add_variable(f, name, "object.data.k.split('')");
        }
        f->input.object = object;
        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        for (; r == 0 && n < 10; n++) {
                (void)snprintf(text, sizeof text, "variables.v%d.size() > 1", n);
                r = hfd_expression_eval(&run, compile(f, text, HFD_RESULT_ANY), &value, NULL);
        }
        assert_int_equal(r, HF_E_TOO_MANY);
        assert_int_equal(n, 4);
        hfd_expression_run_done(&run);
        hf__json_free(object);
}

/* The expression has been paid for before somebody reads the variables in its value. */
static void test_variables_that_are_read_later_have_a_budget(void **state) {
        struct fixture *f = *state;
        struct hfd_expression_run run;
        struct hf__cel_value value;

        add_variable(f, "a", "lists.range(100).all(i, i >= 0)");
        add_variable(f, "b", "lists.range(100).all(i, i >= 0)");
        hfd_expression_run_init(&run, f->set, &f->input, 1000);
        assert_int_equal(hfd_expression_eval(&run, compile(f, "variables", HFD_RESULT_ANY), &value,
                                             NULL),
                         0);
        assert_int_equal(hf__cel_map_at(value.as.map, 0).value.kind, HF__CEL_BOOL);
        assert_in_range(run.variables_cost, 501, 999);
        assert_int_equal(hf__cel_map_at(value.as.map, 1).value.kind, HF__CEL_ERROR);
        assert_int_equal(run.ended, 0);
        hfd_expression_run_done(&run);
}

static int may_go_on(const void *ctx) {
        int *calls = *(int *const *)ctx;

        return ++*calls > 20 ? HF_E_TIMEOUT : 0;
}

static void test_an_evaluation_ends_with_its_request(void **state) {
        struct fixture *f = *state;
        struct hf__json *object = object_of_digits((size_t)1 << 20);
        struct hfd_expression_run run;
        struct hf__cel_value value;
        int n_calls = 0, *calls = &n_calls;

        add_variable(f, "search", "object.data.k.matches('8')");
        add_variable(f, "either", "variables.search || true");
        f->input.object = object;
        hfd_expression_run_init(&run, f->set, &f->input, HFD_EXPRESSIONS_BUDGET);
        run.may_go_on = may_go_on;
        run.may_ctx = (const void *)&calls;
        assert_int_equal(hfd_expression_eval(&run, compile(f, "variables.either", HFD_RESULT_ANY),
                                             &value, NULL),
                         HF_E_TIMEOUT);
        assert_int_equal(run.ended, HF_E_TIMEOUT);
        assert_int_equal(value.kind, HF__CEL_ERROR);
        assert_in_range(run.used, 0, 200000);
        hfd_expression_run_done(&run);
        hf__json_free(object);
}

static void test_expressions_ask_for_rights(void **state) {
        struct fixture *f = *state;

        assert_outcome(f,
                       "authorizer.group('apps').resource('deployments').subresource('scale')"
                       ".namespace('a').name('b').check('update').allowed()",
                       "true");
        assert_outcome(f, "authorizer.requestResource.check('delete').allowed()", "true");
        assert_outcome(f,
                       "authorizer.serviceAccount('default', 'x').group('').resource('pods')"
                       ".check('get').allowed()",
                       "false");
        assert_outcome(f, "authorizer.serviceAccount('default', 'x').requestResource",
                       "compilation error: compilation failed: ERROR: <input>:1:42: type "
                       "'kubernetes.authorization.Authorizer' does not support field selection\n | "
                       "authorizer.serviceAccount('default', 'x').requestResource\n | "
                       ".........................................^");
        assert_outcome(f, "authorizer.path('/healthz').check('get').errored()", "false");
        assert_outcome(f, "authorizer.path('/healthz').check('get').error() == ''", "true");
        assert_outcome(f, "authorizer.serviceAccount('De', 'x').path('/a').check('get').allowed()",
                       "expression 'authorizer.serviceAccount('De', 'x').path('/a').check('get')"
                       ".allowed()' resulted in error: Invalid service account namespace");
        assert_outcome(f, "authorizer.group('').resource(' ').check('get').allowed()",
                       "expression 'authorizer.group('').resource(' ').check('get').allowed()' "
                       "resulted in error: resource must not be empty");
        /* Kubernetes trims what Unicode calls white space. */
        assert_outcome(f,
                       "authorizer.path('\xc2\x85\xc2\xa0\xe2\x80\x83\xe3\x80\x80').check('get')."
                       "allowed()",
                       "expression "
                       "'authorizer.path('\xc2\x85\xc2\xa0\xe2\x80\x83\xe3\x80\x80').check('get')"
                       ".allowed()' resulted in error: path must not be empty");
        assert_outcome(f, "authorizer.path('\xc2\xa0/\xe2\x80\x8b').check('get').errored()",
                       "false");
        f->groups[0] = "none";
        assert_outcome(f, "authorizer.requestResource.check('get').allowed()", "false");
}

/* Evaluates each condition in a separate step, once within one run and once in a run of its own. */
static void match_in_turns(struct fixture *f, const struct hfd_match_conditions *conditions,
                           enum hfd_match expected, const char *expected_message) {
        struct hfd_match_progress progress = {0};
        struct hf__strbuf text = {0};
        enum hfd_match result = HFD_MATCH_MORE;
        const char *failed = "";
        char message[400];
        size_t n_turns = 0;

        for (; result == HFD_MATCH_MORE; n_turns++) {
                struct hfd_expression_run run;
                uint64_t turn_left = 1;
                hfd_expression_run_init(&run, f->set, &f->input, HFD_MATCH_BUDGET);
                result = hfd_match_conditions_go_on(conditions, &run, &progress, &turn_left,
                                                    &failed, &text);
                hfd_expression_run_done(&run);
                assert_true(progress.next <= n_turns + 1);
        }
        snprintf(message, sizeof message, "%s%s", failed, text.data ? text.data : "");
        assert_int_equal(result, expected);
        assert_string_equal(message, expected_message);
        hf__strbuf_done(&text);
        hfd_match_progress_done(&progress);
}

static enum hfd_match match(struct fixture *f, const char *conditions, char *message, size_t n) {
        struct hf__json *json = parse(conditions);
        struct hfd_match_conditions *compiled;
        struct hf__strbuf text = {0};
        struct hfd_expression_run run;
        const char *failed = "";
        enum hfd_match result;

        assert_int_equal(hfd_match_conditions_new(f->set, json, HFD_EXPRESSION_AUTHORIZER,
                                                  &compiled),
                         0);
        hf__json_free(json);
        hfd_expression_run_init(&run, f->set, &f->input, HFD_MATCH_BUDGET);
        result = hfd_match_conditions_check(compiled, &run, &failed, &text);
        snprintf(message, n, "%s%s", failed, text.data ? text.data : "");
        hf__strbuf_done(&text);
        hfd_expression_run_done(&run);
        match_in_turns(f, compiled, result, message);
        free(compiled);
        return result;
}

static void test_a_condition_that_is_false_decides(void **state) {
        struct fixture *f = *state;
        char message[400];

        assert_int_equal(match(f, "[]", message, sizeof message), HFD_MATCH_YES);
        assert_int_equal(match(f, "[{\"name\":\"a\",\"expression\":\"request.name == 'a'\"}]",
                               message, sizeof message),
                         HFD_MATCH_YES);
        assert_int_equal(match(f,
                               "[{\"name\":\"a\",\"expression\":\"object.q == 1\"},"
                               "{\"name\":\"b\",\"expression\":\"false\"}]",
                               message, sizeof message),
                         HFD_MATCH_NO);
        assert_string_equal(message, "b");
        assert_int_equal(match(f,
                               "[{\"name\":\"a\",\"expression\":\"object.q == 1\"},"
                               "{\"name\":\"b\",\"expression\":\"true\"}]",
                               message, sizeof message),
                         HFD_MATCH_ERROR);
        assert_string_equal(message,
                            "expression 'object.q == 1' resulted in error: no such key: q");
        assert_int_equal(match(f,
                               "[{\"name\":\"a\",\"expression\":\"object.q == 1\"},"
                               "{\"name\":\"b\",\"expression\":\"object.r == 1\"}]",
                               message, sizeof message),
                         HFD_MATCH_ERROR);
        assert_string_equal(message,
                            "[expression 'object.q == 1' resulted in error: no such key: q, "
                            "expression 'object.r == 1' resulted in error: no such key: r]");
}

static void test_conditions_without_memory_end_the_run(void **state) {
        struct fixture *f = *state;
        struct hf__json *json = parse("[{\"name\":\"a\",\"expression\":\"object.x == 1\"}]");
        struct hfd_match_conditions *conditions;
        struct hf__strbuf text = {0};
        struct hfd_expression_run run;

        assert_int_equal(hfd_match_conditions_new(f->set, json, 0, &conditions), 0);
        hfd_expression_run_init(&run, f->set, &f->input, HFD_MATCH_BUDGET);
        run.arena.failed = true;
        assert_int_equal(hfd_match_conditions_check(conditions, &run, NULL, &text),
                         HFD_MATCH_ENDED);
        assert_int_equal(run.ended, -ENOMEM);
        hfd_expression_run_done(&run);
        hf__strbuf_done(&text);
        free(conditions);
        hf__json_free(json);
}

static void test_a_turn_ends_by_its_work(void **state) {
        struct fixture *f = *state;
        struct hf__json *object = long_object();
        struct hf__json *json =
                parse("[{\"name\":\"a\",\"expression\":\"!object.data.k.matches('BEGIN RSA "
                      "PRIVATE KEY')\"},{\"name\":\"b\",\"expression\":\"true\"}]");
        struct hfd_match_progress progress = {0};
        struct hfd_match_conditions *conditions;
        struct hf__strbuf text = {0};
        struct hfd_expression_run run;
        uint64_t turn_left = 50000;

        f->input.object = object;
        assert_int_equal(hfd_match_conditions_new(f->set, json, 0, &conditions), 0);
        hfd_expression_run_init(&run, f->set, &f->input, HFD_MATCH_BUDGET);
        assert_int_equal(hfd_match_conditions_go_on(conditions, &run, &progress, &turn_left, NULL,
                                                    &text),
                         HFD_MATCH_MORE);
        assert_int_equal(progress.next, 1);
        hfd_expression_run_done(&run);
        hfd_match_progress_done(&progress);
        hf__strbuf_done(&text);
        free(conditions);
        hf__json_free(json);
        hf__json_free(object);
}

static void test_mutations_construct_objects(void **state) {
        struct fixture *f = *state;
        const struct hfd_expression *e;

        assert_int_equal(hfd_expressions_compile(f->set,
                                                 "Object{spec: Object.spec{replicas: 2, x: 'a'}}",
                                                 ALL | HFD_EXPRESSION_PATCH, HFD_RESULT_OBJECT, &e),
                         0);
        assert_non_null(e->program);
        assert_int_equal(hfd_expressions_compile(f->set,
                                                 "[JSONPatch{op: 'add', path: '/a', value: "
                                                 "Object.a{b: [1]}}]",
                                                 ALL | HFD_EXPRESSION_PATCH, HFD_RESULT_JSON_PATCH,
                                                 &e),
                         0);
        assert_non_null(e->program);
        assert_int_equal(hfd_expressions_compile(f->set, "object == null ? Object{} : null",
                                                 ALL | HFD_EXPRESSION_PATCH, HFD_RESULT_OBJECT, &e),
                         0);
        assert_non_null(e->program); /* null can be assigned to an object */
        assert_int_equal(hfd_expressions_compile(f->set, "Object.spec{}",
                                                 ALL | HFD_EXPRESSION_PATCH, HFD_RESULT_OBJECT, &e),
                         0);
        assert_string_equal(e->error, "must evaluate to Object but got Object.spec");
        assert_int_equal(hfd_expressions_compile(f->set, "[JSONPatch{what: 'add'}]",
                                                 ALL | HFD_EXPRESSION_PATCH, HFD_RESULT_JSON_PATCH,
                                                 &e),
                         0);
        assert_non_null(strstr(e->error, "undefined field 'what'"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_variables_have_the_values_of_the_request),
                TEST(test_extra_takes_memory_in_proportion_to_its_size),
                TEST(test_mistakes_have_the_words_of_kubernetes),
                TEST(test_composed_variables_are_lazy_and_typed),
                TEST(test_a_chain_of_variables_ends),
                TEST(test_all_expressions_share_a_budget),
                TEST(test_work_beyond_the_allowance_is_no_error_of_the_expression),
                TEST(test_a_repetition_is_searched_in_a_long_text),
                TEST(test_the_work_of_all_expressions_has_a_limit),
                TEST(test_suspended_variables_count),
                TEST(test_own_limits_end_the_run),
                TEST(test_evaluations_need_no_more_stack_than_they_say),
                TEST(test_the_limits_of_patterns_end_the_run),
                TEST(test_memory_is_freed_after_each_expression),
                TEST(test_variables_share_a_limit_of_memory),
                TEST(test_variables_that_are_read_later_have_a_budget),
                TEST(test_an_evaluation_ends_with_its_request),
                TEST(test_expressions_ask_for_rights),
                TEST(test_a_condition_that_is_false_decides),
                TEST(test_conditions_without_memory_end_the_run),
                TEST(test_a_turn_ends_by_its_work),
                TEST(test_mutations_construct_objects),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
