/* SPDX-License-Identifier: Apache-2.0 */
/* Authentication by token and by certificate, and what the user may do. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "fake_request.h"
#include "server/auth/auth.h"
#include "server/auth/files.h"
#include "server/auth/fixed_rules.h"
#include "server/auth/user_extra.h"
#include "server/auth/write_file.h"

static hf_nsec real_now = INT64_C(1000) * HF_NSEC_PER_SEC;

static hf_nsec real_time(void *ctx) { return real_now; }

static struct hf_clock test_clock;
static const struct hf_host host = {.size = sizeof host, .clock = &test_clock};
static char path[64];

static struct hfd_auth *new_auth(const char *tokens) {
        struct hfd_auth *auth = NULL;
        snprintf(path, sizeof path, "/tmp/tokens-%d", (int)getpid());
        assert(hfd_write_file(path, tokens, 0600, NULL) == 0);
        assert(hfd_auth_new(&host, path, &auth, NULL) == 0);
        return auth;
}

static void expect_token(struct hfd_auth *auth, const char *header, int result, const char *user,
                         const char *groups) {
        struct hfd_credential *credential;
        struct hfd_user found = {0};
        struct hfd_http_request *request = fake_request_new("GET", "/", "");
        char joined[1024] = "";
        request->authorization = header;
        assert_int_equal(hfd_auth_authenticate(auth, request, &found, &credential), result);
        if (result == 0) {
                assert_string_equal(found.name, user);
                for (size_t i = 0; i < found.n_groups; i++) {
                        strcat(joined, found.groups[i]);
                        strcat(joined, "|");
                }
                assert_string_equal(joined, groups);
        }
        free(request);
}

static void test_bearer_tokens_are_authenticated(void **state) {
        struct hfd_auth *auth =
                new_auth("t1,alice,1\n"
                         "\"t,2\",\"bob \"\"the\"\" b\",2,\"dev, ops,,system:masters\"\r\n"
                         "\n"
                         "t3,first,3\nt3,last,3,solo\nt4,no-newline,4,\"\"");
        expect_token(auth, "Bearer t1", 0, "alice", "system:authenticated|");
        expect_token(auth, "bearer t1", 0, "alice", "system:authenticated|");
        expect_token(auth, "Bearer t1 t3", 0, "alice", "system:authenticated|");
        expect_token(auth, "Bearer t1 ", 0, "alice", "system:authenticated|");
        expect_token(auth, "\t Bearer t1\t", 0, "alice", "system:authenticated|");
        expect_token(auth, "Bearer t1\tx", HF_E_UNAUTHORIZED, NULL, NULL);
        expect_token(auth, "Bearer \t", 0, "system:anonymous", "system:unauthenticated|");
        expect_token(auth, "Bearer x t1", HF_E_UNAUTHORIZED, NULL, NULL);
        expect_token(auth, "Bearer t,2", 0, "bob \"the\" b",
                     "dev|ops|system:masters|system:authenticated|");
        expect_token(auth, "Bearer t3", 0, "last", "solo|system:authenticated|");
        expect_token(auth, "Bearer t4", 0, "no-newline", "system:authenticated|");
        expect_token(auth, "Bearer t", HF_E_UNAUTHORIZED, NULL, NULL);
        expect_token(auth, "Bearer t1x", HF_E_UNAUTHORIZED, NULL, NULL);
        /* These headers contain no token. */
        expect_token(auth, "Bearer ", 0, "system:anonymous", "system:unauthenticated|");
        expect_token(auth, "Bearer", 0, "system:anonymous", "system:unauthenticated|");
        expect_token(auth, "Bearer  t1", 0, "system:anonymous", "system:unauthenticated|");
        expect_token(auth, "Bearert1", 0, "system:anonymous", "system:unauthenticated|");
        expect_token(auth, "Basic dDE6", 0, "system:anonymous", "system:unauthenticated|");
        expect_token(auth, NULL, 0, "system:anonymous", "system:unauthenticated|");
        hfd_auth_free(auth);
        assert_int_equal(unlink(path), 0);
}

/* Read as a C string, the file would end at the NUL, and all later tokens would silently be lost.
 */
static void test_a_token_file_with_a_nul_is_refused(void **state) {
        static const char binary[] = "t8,ann,1\n\0t9,zoe,1\n";
        struct hfd_auth *auth = new_auth("t1,alice,1\n");
        struct hf_status status = {0};
        FILE *file = fopen(path, "w");

        assert_non_null(file);
        assert_int_equal(fwrite(binary, 1, sizeof binary - 1, file), sizeof binary - 1);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(hfd_auth_reload(auth, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, path));
        assert_non_null(strstr(status.message, "NUL"));
        expect_token(auth, "Bearer t1", 0, "alice", "system:authenticated|");
        hfd_auth_free(auth);
        assert_int_equal(unlink(path), 0);
}

static void test_a_bad_token_file_is_named_and_the_previous_table_is_kept(void **state) {
        static const char *const bad[] = {"ok,a,1\nt,u\n",
                                          "ok,a,1\n,u,1\n",
                                          "ok,a,1\nt,,1\n",
                                          "ok,a,1\n\"t,u,1\n",
                                          "ok,a,1\nt\"x,u,1\n",
                                          "ok,a,1\n\"t\"x,u,1\n",
                                          "ok,a,1\nt,u,1,\"a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p\"\n"};
        struct hfd_auth *auth = new_auth("t1,alice,1\n"), *none = NULL;
        struct hf_status status = {0};
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                assert(hfd_write_file(path, bad[i], 0600, NULL) == 0);
                assert_int_equal(hfd_auth_reload(auth, &status), HF_E_INVALID);
                assert_non_null(strstr(status.message, path));
                assert_non_null(strstr(status.message, "line 2"));
                expect_token(auth, "Bearer t1", 0, "alice", "system:authenticated|");
        }
        char long_name[400];
        snprintf(long_name, sizeof long_name, "t,%0351d,1\n", 1);
        assert(hfd_write_file(path, long_name, 0600, NULL) == 0);
        assert_int_equal(hfd_auth_reload(auth, &status), 0);
        snprintf(long_name, sizeof long_name, "t,%0352d,1\n", 1);
        assert(hfd_write_file(path, long_name, 0600, NULL) == 0);
        assert_int_equal(hfd_auth_reload(auth, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "the user name is longer than 351 bytes"));
        assert(hfd_write_file(path, "t9,zoe,1\n", 0600, NULL) == 0);
        assert_int_equal(hfd_auth_reload(auth, &status), 0);
        expect_token(auth, "Bearer t1", HF_E_UNAUTHORIZED, NULL, NULL);
        expect_token(auth, "Bearer t9", 0, "zoe", "system:authenticated|");
        hfd_auth_free(auth);
        assert_int_equal(unlink(path), 0);
        assert_int_not_equal(hfd_auth_new(&host, path, &none, &status), 0);
        assert_non_null(strstr(status.message, path));
}

static void test_client_certificates_are_authenticated(void **state) {
        static const char credential_extra[] = "authentication.kubernetes.io/credential-id\0"
                                               "X509SHA256=a1b2";
        struct hfd_auth *auth = NULL;
        struct hfd_user user = {0};
        struct hfd_credential *credential;
        char long_name[400];
        assert_int_equal(hfd_auth_new(&host, NULL, &auth, NULL), 0);
        struct hfd_http_request *request = fake_request_new_admin("GET", "/", "");
        request->authorization = "Bearer wrong"; /* the certificate takes precedence */
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential), 0);
        assert_string_equal(user.name, "admin");
        assert_true(hfd_user_in_group(&user, "system:masters"));
        assert_true(hfd_user_in_group(&user, "system:authenticated"));
        assert_false(hfd_user_in_group(&user, "system:master"));

        for (size_t i = 0; i < 15; i++)
                request->organisations[i] = "g";
        request->n_organisations = 15;
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential), 0);
        request->organisations[15] = "g";
        request->n_organisations = 16;
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential),
                         HF_E_UNAUTHORIZED);
        request->n_organisations = 0;
        memset(long_name, 'x', sizeof long_name);
        long_name[sizeof user.name] = '\0';
        request->common_name = long_name;
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential),
                         HF_E_UNAUTHORIZED);
        request->common_name = "x";
        request->uid = "u-1";
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential), 0);
        assert_string_equal(user.uid, "u-1");
        assert_int_equal(user.n_extra, sizeof credential_extra);
        assert_memory_equal(user.extra, credential_extra, sizeof credential_extra);
        request->uid = long_name;
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential),
                         HF_E_UNAUTHORIZED);
        free(request);
        hfd_auth_free(auth);
}

/* As in Kubernetes: a client with a certificate of another cluster can use a token of this one. */
static void test_a_bad_certificate_leaves_the_choice_to_the_token(void **state) {
        struct hfd_auth *auth = new_auth("t1,alice,1\n");
        static const struct {
                const char *header;
                int result;
        } rows[] = {{NULL, HF_E_UNAUTHORIZED},
                    {"Basic dDE6", HF_E_UNAUTHORIZED},
                    {"Bearer x", HF_E_UNAUTHORIZED},
                    {"Bearer t1", 0}};

        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
                struct hfd_http_request *request = fake_request_new_admin("GET", "/", "");
                struct hfd_credential *credential;
                struct hfd_user user = {0};
                request->peer = HFD_PEER_BAD;
                request->authorization = rows[i].header;
                assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential),
                                 rows[i].result);
                if (rows[i].result == 0) {
                        assert_string_equal(user.name, "alice");
                        assert_int_equal(user.n_groups, 1); /* system:authenticated */
                        assert_int_equal(user.n_extra, 0);
                }
                free(request);
        }
        hfd_auth_free(auth);
        assert_int_equal(unlink(path), 0);
}

/* As in Kubernetes, which verifies it for each request: a connection may live longer. */
static void test_a_certificate_names_a_user_until_it_expires(void **state) {
        struct hfd_auth *auth = new_auth("t1,alice,1\n");
        struct hfd_http_request *request = fake_request_new_admin("GET", "/", "");
        struct hfd_credential *credential;
        struct hfd_user user = {0};

        request->expires = 1000;
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential), 0);
        assert_string_equal(user.name, "admin");
        request->expires = 999;
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential),
                         HF_E_UNAUTHORIZED);
        request->authorization = "Bearer t1";
        assert_int_equal(hfd_auth_authenticate(auth, request, &user, &credential), 0);
        assert_string_equal(user.name, "alice");
        free(request);
        hfd_auth_free(auth);
        assert_int_equal(unlink(path), 0);
}

static bool allows(const struct hfd_user *user, const struct hfd_attributes *asked) {
        const char *groups[HFD_MAX_GROUPS];
        const struct hfd_subject subject = hfd_user_subject(user, groups);

        return hfd_fixed_rules_allow(&subject, asked);
}

static bool may(const char *group, const char *verb, const char *asked_path) {
        struct hfd_user user = {.name = "u", .n_groups = 1};
        const struct hfd_attributes asked = {.verb = verb,
                                             .group = "",
                                             .resource = "",
                                             .ns = "",
                                             .name = "",
                                             .path = asked_path};
        strcpy(user.groups[0], group);
        return allows(&user, &asked);
}

static void test_only_system_masters_may_do_everything(void **state) {
        struct hfd_user user = {.name = "u", .n_groups = 1, .groups = {"system:authenticated"}};
        struct hfd_attributes asked = {.verb = "get",
                                       .group = "",
                                       .resource = "configmaps",
                                       .ns = "n",
                                       .name = "",
                                       .path = "/healthz",
                                       .is_resource = true};
        assert_false(allows(&user, &asked));
        strcpy(user.groups[0], "system:masters");
        assert_true(allows(&user, &asked));
        assert_true(may("system:masters", "post", "/debug/leader"));
        assert_false(may("x", "get", "/metrics"));
        assert_false(may("x", "get", "/"));
}

static void test_everybody_may_read_health_and_version(void **state) {
        assert_true(may("system:unauthenticated", "get", "/healthz"));
        assert_true(may("system:unauthenticated", "head", "/readyz"));
        /* A single check needs a right, as in Kubernetes. */
        assert_false(may("system:unauthenticated", "get", "/livez/ping"));
        assert_false(may("x", "get", "/readyz/"));
        assert_true(may("x", "get", "/version"));
        assert_false(may("x", "post", "/healthz"));
        assert_false(may("x", "get", "/healthzz"));
        assert_false(may("x", "get", "/version/x"));
}

/* As in kube-apiserver, where RBAC grants the reading of these paths by the verb get, and no
 * authorizer allows a path for every verb. */
static void test_a_probe_as_somebody_else_needs_a_right(void **state) {
        assert_false(may("x", "impersonate-on:user-info:get", "/healthz"));
        assert_false(may("x", "impersonate-on:serviceaccount:head", "/livez"));
        assert_false(may("x", "impersonate-on:arbitrary-node:get", "/readyz"));
        assert_false(may("x", "impersonate-on:user-info:get", "/version"));
}

/* As Go prints a map. */
static void test_extra_values_are_sorted_by_their_keys(void **state) {
        static const char *const pairs[][2] = {{"b", "2"}, {"a\"", "3"}, {"b", "1"},
                                               {"c", ""},  {"a\"", "0"}, {"b", "2"}};
        struct hfd_requester *none, *some;
        struct hf__strbuf out = {0};
        struct hfd_user user = {0};

        assert_true(hfd_user_set_name(&user, "alice"));
        none = hfd_requester_new(&user);
        for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
                assert_true(hfd_user_add_extra(&user, pairs[i][0], pairs[i][1]));
        some = hfd_requester_new(&user);
        hfd_user_put_extra(&out, none, HFD_EXTRA_JSON);
        hfd_user_put_extra(&out, none, HFD_EXTRA_GO);
        hf__strbuf_putc(&out, '\n');
        hfd_user_put_extra(&out, some, HFD_EXTRA_JSON);
        hf__strbuf_putc(&out, '\n');
        hfd_user_put_extra(&out, some, HFD_EXTRA_GO);
        assert_string_equal(out.data,
                            "{}map[]\n"
                            "{\"a\\\"\":[\"3\",\"0\"],\"b\":[\"2\",\"1\",\"2\"],\"c\":[\"\"]}\n"
                            "map[a\":[3 0] b:[2 1 2] c:[]]");
        hf__strbuf_done(&out);
        free(none);
        free(some);
}

/* Accepts every token; ctx: whether the user has a uid, extra values and as many groups as fit. */
static int accept_token(void *ctx, const char *token, const struct hfd_token_use *use,
                        struct hfd_user *ret_user) {
        assert_string_equal(ret_user->uid, "");
        assert_int_equal(ret_user->n_extra, 0);
        assert_true(hfd_user_set_name(ret_user, ctx ? "first" : "second"));
        ret_user->n_groups = 0;
        if (!ctx)
                return 0;
        assert_true(hfd_user_set_uid(ret_user, "uid"));
        assert_true(hfd_user_add_extra(ret_user, "key", "value"));
        return 0;
}

/* The token of the first authenticator is for an audience that nobody has asked for. */
static void test_a_refused_user_leaves_nothing_behind(void **state) {
        struct hf__json *own = hf__json_array(), *other = hf__json_array();
        const struct hfd_token_authenticator first = {.authenticate = accept_token,
                                                      .ctx = own,
                                                      .audiences = own,
                                                      .any_audience = true},
                                             second = {.authenticate = accept_token};
        const struct hfd_token_use use = {.audiences = other};
        struct hfd_auth *auth = NULL;
        struct hfd_user user = {0};

        assert_int_equal(hf__json_append_string(own, "here"), 0);
        assert_int_equal(hf__json_append_string(other, "there"), 0);
        assert_int_equal(hfd_auth_new(&host, NULL, &auth, NULL), 0);
        hfd_auth_use(auth, &first);
        hfd_auth_use(auth, &second);
        assert_int_equal(hfd_auth_authenticate_token(auth, "t", &use, &user), 0);
        assert_string_equal(user.name, "second");
        assert_string_equal(user.uid, "");
        hfd_auth_free(auth);
        hf__json_free(own);
        hf__json_free(other);
}

static int accept_with_groups(void *ctx, const char *token, const struct hfd_token_use *use,
                              struct hfd_user *ret_user) {
        assert_true(hfd_user_set_name(ret_user, "a"));
        ret_user->n_groups = 0;
        while (hfd_user_add_group(ret_user, "g"))
                continue;
        *use->ret_audiences = hf__json_array();
        return 0;
}

static void test_a_token_that_is_not_accepted_has_no_audiences(void **state) {
        const struct hfd_token_authenticator other = {.authenticate = accept_with_groups};
        struct hf__json *audiences = NULL;
        const struct hfd_token_use use = {.ret_audiences = &audiences};
        struct hfd_auth *auth = NULL;
        struct hfd_user user = {0};

        assert_int_equal(hfd_auth_new(&host, NULL, &auth, NULL), 0);
        hfd_auth_use(auth, &other);
        assert_int_equal(hfd_auth_authenticate_token(auth, "t", &use, &user), HF_E_UNAUTHORIZED);
        assert_null(audiences);
        hfd_auth_free(auth);
}

int main(void) {
        test_clock = *hf_clock_system();
        test_clock.real = real_time;
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_bearer_tokens_are_authenticated),
                cmocka_unit_test(test_a_token_file_with_a_nul_is_refused),
                cmocka_unit_test(test_a_bad_token_file_is_named_and_the_previous_table_is_kept),
                cmocka_unit_test(test_client_certificates_are_authenticated),
                cmocka_unit_test(test_a_bad_certificate_leaves_the_choice_to_the_token),
                cmocka_unit_test(test_a_certificate_names_a_user_until_it_expires),
                cmocka_unit_test(test_extra_values_are_sorted_by_their_keys),
                cmocka_unit_test(test_a_refused_user_leaves_nothing_behind),
                cmocka_unit_test(test_a_token_that_is_not_accepted_has_no_audiences),
                cmocka_unit_test(test_only_system_masters_may_do_everything),
                cmocka_unit_test(test_everybody_may_read_health_and_version),
                cmocka_unit_test(test_a_probe_as_somebody_else_needs_a_right),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
