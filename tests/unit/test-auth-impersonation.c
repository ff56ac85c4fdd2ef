/* SPDX-License-Identifier: Apache-2.0 */
/* The rights that an impersonation needs, in each of the modes that Kubernetes knows. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_request.h"
#include "server/auth/impersonation.h"
#include "server/auth/impersonation_rights.h"

#define HELD_MAX 6

/* "VERB GROUP RESOURCE NAMESPACE NAME", with "-" for what is empty. */
static void write_right(const struct hfd_attributes *right, char text[256]) {
        (void)snprintf(text, 256, "%s %s %s%s%s %s %s", right->verb,
                       right->group[0] ? right->group : "-", right->resource,
                       right->subresource[0] ? "/" : "", right->subresource,
                       right->ns[0] ? right->ns : "-", right->name[0] ? right->name : "-");
}

/* ctx: the rights that the sender has, up to a NULL. */
static bool has(void *ctx, const struct hfd_attributes *right) {
        char text[256];

        write_right(right, text);
        for (const char *const *held = ctx; *held; held++)
                if (strcmp(*held, text) == 0)
                        return true;
        return false;
}

/* parts: after the name "u:UID", "g:GROUP" or "e:KEY=VALUE", each with a space in front. The
 * caller frees it. */
static struct hfd_requester *make_user(const char *parts, size_t *ret_n_groups) {
        struct hfd_user user = {.n_groups = 0};
        char copy[512], *save = NULL;

        (void)snprintf(copy, sizeof copy, "%s", parts);
        assert_true(hfd_user_set_name(&user, strtok_r(copy, " ", &save)));
        for (char *part; (part = strtok_r(NULL, " ", &save));) {
                char *value = strchr(part, '=');
                if (part[0] == 'u')
                        assert_true(hfd_user_set_uid(&user, part + 2));
                if (part[0] == 'g')
                        assert_true(hfd_user_add_group(&user, part + 2));
                if (part[0] != 'e')
                        continue;
                assert_non_null(value);
                *value = '\0';
                assert_true(hfd_user_add_extra(&user, part + 2, value + 1));
        }
        *ret_n_groups = user.n_groups;
        assert_true(hfd_user_add_group(&user, HFD_GROUP_AUTHENTICATED)); /* needs no right */
        struct hfd_requester *requester = hfd_requester_new(&user);
        assert_non_null(requester);
        return requester;
}

#define ON(mode) "impersonate-on:" mode ":list - pods ns -"
#define API      " authentication.k8s.io "
#define INFO     "impersonate:user-info" API
#define ACCOUNT  "system:serviceaccount:shop:x"

struct refusal {
        const char *user, *held[HELD_MAX]; /* held: up to a NULL */
        const char *missing, *why;
};

static void try(const char *user, const char *const *held, bool allowed,
                enum hfd_impersonation_mode mode, const char *missing, const char *why) {
        static const struct hfd_attributes list = {.verb = "list",
                                                   .group = "",
                                                   .resource = "pods",
                                                   .subresource = "",
                                                   .ns = "ns",
                                                   .name = "",
                                                   .path = "",
                                                   .is_resource = true};
        struct hfd_impersonation asked = {.attributes = &list};
        struct hfd_requester *requested = make_user(user, &asked.n_groups);
        enum hfd_impersonation_mode found;
        struct hfd_missing_right lacks;
        char text[256];

        asked.requested = requested;
        bool ok = hfd_impersonation_find(&asked, has, (void *)held, &found, &lacks);
        if (ok != allowed)
                print_message("%s\n", user);
        assert_int_equal(ok, allowed);
        if (ok) {
                assert_int_equal(found, mode);
                assert_true(hfd_impersonation_allowed(&asked, mode, has, (void *)held, &lacks));
        } else {
                write_right(&lacks.right, text);
                assert_string_equal(text, missing);
                assert_string_equal(lacks.why ? lacks.why : "", why ? why : "");
        }
        free(requested);
}

static void test_the_first_mode_with_all_rights_counts(void **state) {
        static const struct {
                const char *user, *held[HELD_MAX];
                enum hfd_impersonation_mode mode;
        } cases[] = {
                {"joe", {ON("user-info"), INFO "users - joe"}, HFD_IMPERSONATE_USER_INFO},
                {"joe", {"impersonate - users - joe"}, HFD_IMPERSONATE_LEGACY},
                {"joe",
                 {ON("user-info"), INFO "users - joe", "impersonate - users - joe"},
                 HFD_IMPERSONATE_USER_INFO},
                {"system:node:n.1",
                 {ON("arbitrary-node"), "impersonate:arbitrary-node" API "nodes - n.1"},
                 HFD_IMPERSONATE_NODE},
                {"system:node:n.1 u:1",
                 {"impersonate - users - system:node:n.1", "impersonate" API "uids - 1"},
                 HFD_IMPERSONATE_LEGACY},
                {"system:node:N",
                 {ON("user-info"), INFO "users - system:node:N"},
                 HFD_IMPERSONATE_USER_INFO},
                {ACCOUNT,
                 {ON("serviceaccount"), "impersonate:serviceaccount" API "serviceaccounts shop x"},
                 HFD_IMPERSONATE_ACCOUNT},
                {ACCOUNT " g:one",
                 {"impersonate - serviceaccounts shop x", "impersonate - groups - one"},
                 HFD_IMPERSONATE_LEGACY},
                {"joe u:7 g:one e:a.b/k=v",
                 {ON("user-info"), INFO "users - joe", INFO "uids - 7", INFO "groups - one",
                  INFO "userextras/a.b/k - v"},
                 HFD_IMPERSONATE_USER_INFO},
                {"joe g:a g:b g:c g:d e:a.b/k=1 e:a.b/k=2 e:a.b/l=1 e:a.b/m=1",
                 {ON("user-info"), INFO "users - joe", INFO "groups - *", INFO "userextras/* - *"},
                 HFD_IMPERSONATE_USER_INFO},
                /* What the finer modes never allow. */
                {"joe g:system:masters e:scopes=v",
                 {ON("user-info"), INFO "users - joe", "impersonate - users - joe",
                  "impersonate - groups - system:masters",
                  "impersonate" API "userextras/scopes - v"},
                 HFD_IMPERSONATE_LEGACY},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                try(cases[i].user, cases[i].held, true, cases[i].mode, NULL, NULL);
}

static void test_each_part_needs_a_right(void **state) {
        static const char key[] = "impersonating an invalid key in extra is not allowed";
        static const struct refusal cases[] = {
                {"joe", {NULL}, ON("user-info"), NULL},
                {"joe", {ON("user-info")}, INFO "users - joe", NULL},
                {"joe", {INFO "users - joe"}, ON("user-info"), NULL},
                {"joe", {ON("serviceaccount"), INFO "users - joe"}, ON("user-info"), NULL},
                {"joe u:7 g:one",
                 {ON("user-info"), INFO "users - joe", INFO "groups - one"},
                 INFO "uids - 7",
                 NULL},
                {"joe g:one g:two g:three",
                 {ON("user-info"), INFO "users - joe", INFO "groups - one", INFO "groups - *"},
                 INFO "groups - two",
                 NULL},
                {"joe e:a.b/k=v e:a.b/k=w",
                 {ON("user-info"), INFO "users - joe", INFO "userextras/a.b/k - v"},
                 INFO "userextras/a.b/k - w",
                 NULL},
                {"joe g:one g:system:masters",
                 {ON("user-info"), INFO "users - joe", INFO "groups - one",
                  INFO "groups - system:masters"},
                 INFO "groups - system:masters",
                 "impersonating the system:masters group is not allowed"},
                {"joe g:system:masters g:",
                 {ON("user-info"), INFO "users - joe", INFO "groups - -"},
                 INFO "groups - -",
                 "impersonating the empty string group is not allowed"},
                {ACCOUNT " g:",
                 {ON("serviceaccount"), "impersonate:serviceaccount" API "serviceaccounts shop x",
                  "impersonate - serviceaccounts shop x"},
                 "impersonate - groups - -",
                 NULL},
                {"joe e:a.b/K=v",
                 {ON("user-info"), INFO "users - joe"},
                 INFO "userextras - -",
                 key},
                {"joe e:a.b/=v", {ON("user-info"), INFO "users - joe"}, INFO "userextras - -", key},
                {"joe e:/k=v", {ON("user-info"), INFO "users - joe"}, INFO "userextras - -", key},
                {"joe e:a.b/k=",
                 {ON("user-info"), INFO "users - joe"},
                 INFO "userextras - -",
                 "impersonating the empty string value in extra is not allowed"},
                {"system:node:n", {NULL}, ON("arbitrary-node"), NULL},
                {"system:node:n",
                 {ON("arbitrary-node")},
                 "impersonate:arbitrary-node" API "nodes - n",
                 NULL},
                {"system:node:n g:one", {NULL}, "impersonate - users - system:node:n", NULL},
                {ACCOUNT,
                 {ON("serviceaccount")},
                 "impersonate:serviceaccount" API "serviceaccounts shop x",
                 NULL},
                {ACCOUNT " u:7", {NULL}, "impersonate - serviceaccounts shop x", NULL},
                {ACCOUNT " u:7",
                 {"impersonate - serviceaccounts shop x"},
                 "impersonate" API "uids - 7",
                 NULL},
                {ACCOUNT " g:one g:two",
                 {"impersonate - serviceaccounts shop x", "impersonate - groups - one"},
                 "impersonate - groups - two",
                 NULL},
                {ACCOUNT " e:scopes=v",
                 {"impersonate - serviceaccounts shop x"},
                 "impersonate" API "userextras/scopes - v",
                 NULL},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
                try(cases[i].user, cases[i].held, false, HFD_IMPERSONATE_LEGACY, cases[i].missing,
                    cases[i].why);
}

/* As in Kubernetes, a name that no object can have is that of a user. */
static void test_only_names_of_objects_make_a_service_account(void **state) {
        static const char *const users[] = {"system:serviceaccount:Ns:x",
                                            "system:serviceaccount:n.s:x",
                                            "system:serviceaccount:ns:X",
                                            "system:serviceaccount:ns:a_b",
                                            "system:serviceaccount:ns:a:b",
                                            "system:serviceaccount:ns:",
                                            "system:serviceaccount::x",
                                            "system:serviceaccount:ns",
                                            "system:node:",
                                            "system:node:a_b"};
        static const char *const none[] = {NULL};

        try("system:serviceaccount:ns:a.b", none, false, HFD_IMPERSONATE_LEGACY,
            ON("serviceaccount"), NULL);
        for (size_t i = 0; i < sizeof users / sizeof users[0]; i++)
                try(users[i], none, false, HFD_IMPERSONATE_LEGACY, ON("user-info"), NULL);
}

/* Whoever may impersonate every group passes on the names of groups that others have chosen. */
static void test_each_value_of_a_header_is_one_name(void **state) {
        static const char two[] = "a, system:masters" HFD_HTTP_VALUE_SEPARATOR "b",
                          values[] = "v,w" HFD_HTTP_VALUE_SEPARATOR HFD_HTTP_VALUE_SEPARATOR "x ";
        static const char extra[] = "k\0v,w\0k\0\0k\0x ";
        struct hfd_http_request *request = fake_request_new("GET", "/", "");
        struct hfd_user user;
        const char *fault;
        bool asked = false;
        size_t n_groups = 0;

        request->given[0] = (struct hfd_header){"impersonate-group", two};
        request->given[1] =
                (struct hfd_header){"impersonate-user", "joe" HFD_HTTP_VALUE_SEPARATOR "admin"};
        request->given[2] = (struct hfd_header){"impersonate-extra-k", values};
        assert_int_equal(hfd_impersonation_parse(request, &user, &asked, &n_groups, &fault), 0);
        assert_true(asked);
        assert_string_equal(user.name, "joe"); /* as in Go, further values do not count */
        assert_int_equal(n_groups, 2);
        assert_string_equal(user.groups[0], "a, system:masters");
        assert_string_equal(user.groups[1], "b");
        assert_false(hfd_user_in_group(&user, HFD_GROUP_MASTERS));
        assert_int_equal(user.n_extra, sizeof extra);
        assert_memory_equal(user.extra, extra, sizeof extra);
        free(request);
}

static int parse(const char *user, const char *group, const char *uid, struct hfd_user *ret_user,
                 bool *ret_asked, size_t *ret_n_groups) {
        const struct hfd_header given[] = {{"impersonate-user", user},
                                           {"impersonate-group", group},
                                           {"impersonate-uid", uid}};
        struct hfd_http_request *request = fake_request_new("GET", "/", "");
        const char *fault;
        size_t n = 0;

        for (size_t i = 0; i < sizeof given / sizeof given[0]; i++)
                if (given[i].value)
                        request->given[n++] = given[i];
        int r = hfd_impersonation_parse(request, ret_user, ret_asked, ret_n_groups, &fault);
        free(request);
        return r;
}

/* As in Go, the first value of a header counts, and an empty one is as good as none. */
static void test_an_empty_name_in_front_asks_for_nobody(void **state) {
        static const char then_joe[] = HFD_HTTP_VALUE_SEPARATOR "joe";
        struct hfd_user user;
        bool asked = true;
        size_t n_groups;

        assert_int_equal(parse(then_joe, NULL, NULL, &user, &asked, &n_groups), 0);
        assert_false(asked);
        asked = true;
        assert_int_equal(parse(NULL, NULL, then_joe, &user, &asked, &n_groups), 0);
        assert_false(asked);
        assert_int_equal(parse(then_joe, "g", NULL, &user, &asked, &n_groups), HF_E_INVALID);
        assert_int_equal(parse(then_joe, NULL, "7", &user, &asked, &n_groups), HF_E_INVALID);
        assert_int_equal(parse("joe", NULL, then_joe, &user, &asked, &n_groups), 0);
        assert_true(asked);
        assert_string_equal(user.uid, "");
}

/* An empty group is a named one, so an account gets no groups of accounts beside it. */
static void test_an_empty_group_is_a_group(void **state) {
        struct hfd_user user;
        bool asked = false;
        size_t n_groups = 0;

        assert_int_equal(parse(ACCOUNT, "", NULL, &user, &asked, &n_groups), 0);
        assert_true(asked);
        assert_int_equal(n_groups, 1);
        assert_int_equal(user.n_groups, 2);
        assert_string_equal(user.groups[0], "");
        assert_string_equal(user.groups[1], HFD_GROUP_AUTHENTICATED);
        assert_int_equal(parse(NULL, "", NULL, &user, &asked, &n_groups), HF_E_INVALID);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_the_first_mode_with_all_rights_counts),
                cmocka_unit_test(test_each_part_needs_a_right),
                cmocka_unit_test(test_each_value_of_a_header_is_one_name),
                cmocka_unit_test(test_only_names_of_objects_make_a_service_account),
                cmocka_unit_test(test_an_empty_name_in_front_asks_for_nobody),
                cmocka_unit_test(test_an_empty_group_is_a_group),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
