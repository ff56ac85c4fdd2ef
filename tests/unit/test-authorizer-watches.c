/* SPDX-License-Identifier: Apache-2.0 */
/* Watches end with the rights of their users, and of the senders who impersonate these. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fake_request.h"
#include "patience.h"
#include "scripted_cacher.h"
#include "server/auth/user.h"
#include "server/authorization/authorizer.h"
#include "time_units.h"

/* The rules of the sender: one for each part of the impersonation. */
static const char *const parts[] =
        {"{\"verbs\":[\"impersonate\"],\"apiGroups\":[\"\"],\"resources\":[\"users\"],"
         "\"resourceNames\":[\"joe\"]}",
         "{\"verbs\":[\"impersonate\"],\"apiGroups\":[\"\"],\"resources\":[\"groups\"]}",
         "{\"verbs\":[\"impersonate\"],\"apiGroups\":[\"authentication.k8s.io\"],"
         "\"resources\":[\"uids\"]}",
         "{\"verbs\":[\"impersonate\"],\"apiGroups\":[\"authentication.k8s.io\"],"
         "\"resources\":[\"userextras/k\"]}"};

#define N_PARTS (sizeof parts / sizeof parts[0])
#define NONE    N_PARTS

static struct {
        struct hfd_authorizer *authorizer;
        struct hfd_requester *sender, *user;
        struct hfd_http_request *request;
        uint64_t revision; /* of the last event */
        atomic_uint n_ended;
} f;

/* ---- the store ---- */

static void put(const char *key, const char *json) {
        scripted_store_event(&scripted.store, key, json, ++f.revision);
        hfd_authorizer_changed(f.authorizer);
}

static void bind(const char *role, const char *user) {
        char key[100], json[300];

        (void)snprintf(key, sizeof key, "/registry/clusterrolebindings/%s", role);
        (void)snprintf(json, sizeof json,
                       "{\"metadata\":{\"name\":\"%s\"},\"roleRef\":{\"kind\":\"ClusterRole\","
                       "\"name\":\"%s\"},\"subjects\":[{\"kind\":\"User\",\"name\":\"%s\"}]}",
                       role, role, user);
        put(key, json);
}

/* Gives the user the right to watch. */
static void let_watch(bool allowed) {
        put("/registry/clusterroles/watch",
            allowed ? "{\"metadata\":{\"name\":\"watch\"},\"rules\":[{\"verbs\":[\"watch\"],"
                      "\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"]}]}"
                    : "{\"metadata\":{\"name\":\"watch\"}}");
}

/* Gives the sender all rights but one. */
static void let_impersonate(size_t missing) {
        char json[1000];
        size_t n =
                (size_t)snprintf(json, sizeof json, "{\"metadata\":{\"name\":\"act\"},\"rules\":[");

        for (size_t i = 0; i < N_PARTS; i++)
                if (i != missing)
                        n += (size_t)snprintf(json + n, sizeof json - n, "%s,", parts[i]);
        (void)snprintf(json + n - 1, sizeof json - n + 1, "]}"); /* in place of the comma */
        put("/registry/clusterroles/act", json);
}

/* ---- watches ---- */

static void end_watch(void *ctx) { atomic_fetch_add(&f.n_ended, 1); }

/* The watch of the user, which the sender began if it is by impersonation. */
static struct hfd_watch_right new_right(bool by_impersonation) {
        return (struct hfd_watch_right){.subject = &f.user->subject,
                                        .attributes = {.verb = "watch",
                                                       .group = "",
                                                       .resource = "configmaps",
                                                       .subresource = "",
                                                       .ns = "ns",
                                                       .name = "",
                                                       .path = "",
                                                       .is_resource = true},
                                        .sender = by_impersonation ? &f.sender->subject : NULL,
                                        .impersonated = f.user,
                                        .n_named_groups = 1,
                                        .impersonation_mode = HFD_IMPERSONATE_LEGACY,
                                        .request = f.request,
                                        .end = end_watch};
}

static bool may_begin(bool by_impersonation) {
        struct hfd_watch_right right = new_right(by_impersonation);
        bool allowed = hfd_authorizer_track(f.authorizer, &right);

        hfd_authorizer_untrack(&right);
        return allowed;
}

/* Moves the clock, because the authorizer pauses between two indexes. */
static bool may_begin_later(bool by_impersonation) {
        scripted_cacher_move(20 * MSEC);
        return may_begin(by_impersonation);
}

static bool have_ended_later(unsigned n) {
        scripted_cacher_move(20 * MSEC);
        return atomic_load(&f.n_ended) == n;
}

/* ---- tests ---- */

static int set_up(void **state) {
        struct hfd_user sender = {.name = "actor"}, user = {.name = "joe"};
        int r = scripted_cacher_set_up(state);

        memset(&f, 0, sizeof f);
        f.revision = 10;
        assert_true(hfd_user_add_group(&user, "one") && hfd_user_add_group(&user, "two"));
        assert_true(hfd_user_set_uid(&user, "u") && hfd_user_add_extra(&user, "k", "v"));
        f.sender = hfd_requester_new(&sender);
        f.user = hfd_requester_new(&user);
        f.request = fake_request_new("GET", "/", "");
        scripted_cacher_fill();
        assert_int_equal(hfd_authorizer_new(&scripted.host, HFD_MODE_RBAC, &f.authorizer), 0);
        assert_int_equal(hfd_authorizer_start(f.authorizer, scripted.cacher), 0);
        bind("watch", "joe");
        bind("act", "actor");
        let_watch(true);
        return r;
}

static int tear_down(void **state) {
        hfd_authorizer_free(f.authorizer);
        free(f.sender);
        free(f.user);
        free(f.request);
        return scripted_cacher_tear_down(state);
}

static void test_a_watch_ends_with_the_right_of_its_user(void **state) {
        struct hfd_watch_right right = new_right(false);

        PATIENCE_AWAIT(may_begin_later(false));
        assert_true(hfd_authorizer_track(f.authorizer, &right));
        assert_false(may_begin(true)); /* the sender has no rights */
        let_watch(false);
        PATIENCE_AWAIT(have_ended_later(1));
        assert_false(may_begin(false));
        hfd_authorizer_untrack(&right);
}

static void test_a_watch_ends_with_each_right_of_its_sender(void **state) {
        for (size_t i = 0; i < N_PARTS; i++) {
                struct hfd_watch_right own = new_right(false), right = new_right(true);

                let_impersonate(NONE);
                PATIENCE_AWAIT(may_begin_later(true));
                assert_true(hfd_authorizer_track(f.authorizer, &own));
                assert_true(hfd_authorizer_track(f.authorizer, &right));
                let_impersonate(i);
                PATIENCE_AWAIT(have_ended_later((unsigned)i + 1));
                assert_false(may_begin(true));
                assert_true(may_begin(false)); /* the user itself has lost nothing */
                hfd_authorizer_untrack(&own);
                hfd_authorizer_untrack(&right);
        }
}

static bool begins_later(struct hfd_watch_right *right, const struct hfd_watch_right *wanted) {
        scripted_cacher_move(20 * MSEC);
        *right = *wanted;
        return hfd_authorizer_track(f.authorizer, right);
}

/* In a finer mode the sender needs the right to this very request, too. */
static void test_a_watch_ends_with_the_right_to_make_it_as_another(void **state) {
        static const char name[] = "{\"metadata\":{\"name\":\"act\"},\"rules\":[{\"verbs\":["
                                   "\"impersonate:user-info\"],\"apiGroups\":["
                                   "\"authentication.k8s.io\"],\"resources\":[\"users\"]}",
                          on[] = ",{\"verbs\":[\"impersonate-on:user-info:watch\"],"
                                 "\"apiGroups\":[\"\"],\"resources\":[\"configmaps\"]}";
        struct hfd_user plain = {.name = "joe"};
        struct hfd_watch_right wanted = new_right(true), right;
        struct hfd_requester *joe = hfd_requester_new(&plain);
        char json[400];

        wanted.impersonated = joe;
        wanted.n_named_groups = 0;
        wanted.impersonation_mode = HFD_IMPERSONATE_USER_INFO;
        (void)snprintf(json, sizeof json, "%s%s]}", name, on);
        put("/registry/clusterroles/act", json);
        PATIENCE_AWAIT(begins_later(&right, &wanted));
        (void)snprintf(json, sizeof json, "%s]}", name);
        put("/registry/clusterroles/act", json);
        PATIENCE_AWAIT(have_ended_later(1));
        hfd_authorizer_untrack(&right);
        free(joe);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_watch_ends_with_the_right_of_its_user),
                TEST(test_a_watch_ends_with_each_right_of_its_sender),
                TEST(test_a_watch_ends_with_the_right_to_make_it_as_another),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
