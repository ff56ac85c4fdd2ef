/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and lists when memory runs out while an object is selected or an event is built. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "api_fixture.h"
#include "base/thread.h"
#include "patience.h"
#include "server/cacher/state/cacher_state.h"
#include "server/cacher/sync/consistent_read.h"
#include "server/cacher/watch/watcher.h"
#include "server/resources/rows/resource_table.h"

/* The linker redirects hfd_object_at here. */
static atomic_bool is_short;
static struct hfd_cacher *_Atomic observed; /* copies are made without its lock; NULL = none */
static atomic_uint n_copies;                /* while a cacher is observed */
struct hfd_object *__real_hfd_object_at(const struct hfd_object *object, uint64_t revision);
struct hfd_object *__wrap_hfd_object_at(const struct hfd_object *object, uint64_t revision);
struct hfd_object *__wrap_hfd_object_at(const struct hfd_object *object, uint64_t revision) {
        struct hfd_cacher *cacher = atomic_load(&observed);

        if (cacher) {
                atomic_fetch_add(&n_copies, 1);
                PATIENCE_AWAIT(pthread_mutex_trylock(&cacher->mu) == 0);
                pthread_mutex_unlock(&cacher->mu);
        }
        return atomic_load(&is_short) ? NULL : __real_hfd_object_at(object, revision);
}

/* The linker redirects hfd_object_selectable here. */
static atomic_bool selects_nothing;
const struct hf__json *__real_hfd_object_selectable(struct hfd_object *object);
const struct hf__json *__wrap_hfd_object_selectable(struct hfd_object *object);
const struct hf__json *__wrap_hfd_object_selectable(struct hfd_object *object) {
        return atomic_load(&selects_nothing) ? NULL : __real_hfd_object_selectable(object);
}

struct seen {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        size_t n_events;
        bool ended;
        int end_error;
};

static bool on_events(void *ctx, struct hfd_watch_item *items, size_t n) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->n_events += n;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
        return true;
}

static void on_end(void *ctx, int error, const struct hfd_response *response) {
        struct seen *seen = ctx;

        pthread_mutex_lock(&seen->mu);
        seen->ended = true;
        seen->end_error = error;
        pthread_cond_broadcast(&seen->cond);
        pthread_mutex_unlock(&seen->mu);
}

static const struct hfd_watch_sink sink = {.events = on_events, .end = on_end};

/* Waits until there are n events in all, or the watch has ended. Returns whether it has ended. */
static bool await_events(struct seen *seen, size_t n) {
        pthread_mutex_lock(&seen->mu);
        PATIENCE_AWAIT_LOCKED(&seen->cond, &seen->mu, seen->n_events >= n || seen->ended);
        bool ended = seen->ended;
        pthread_mutex_unlock(&seen->mu);
        return ended;
}

/* Begins a watch of the workspaces with these labels, which may still run when the test fails. */
static struct hfd_watcher *watch(struct api_fixture *f, struct seen *seen, const char *selector) {
        const struct hfd_resource *resource =
                hfd_resource_find(api_workspaces.group, api_workspaces.version,
                                  api_workspaces.plural);
        struct hfd_selector labels = {0}, fields = {0};
        struct hfd_response response = {0};
        struct hfd_watcher *watcher;
        char reason[320];
        const struct hfd_watcher_spec spec = {.resource = resource,
                                              .ns = "",
                                              .name = "",
                                              .labels = &labels,
                                              .fields = &fields};

        assert_int_equal(hf__mutex_cond_init(&seen->mu, &seen->cond), 0);
        assert_int_equal(hfd_selector_parse(selector, false, resource, &labels, reason,
                                            sizeof reason),
                         0);
        assert_true(hfd_watcher_new(f->cacher, &spec, &sink, seen, &response, &watcher));
        hfd_watcher_start(watcher);
        assert_false(await_events(seen, 1)); /* w00 */
        return watcher;
}

static void watch_done(struct hfd_watcher *watcher, struct seen *seen) {
        hfd_watcher_unref(watcher);
        pthread_cond_destroy(&seen->cond);
        pthread_mutex_destroy(&seen->mu);
}

static void patch_labels(struct api_fixture *f, const char *name, const char *labels) {
        char patch[128];

        (void)snprintf(patch, sizeof patch, "{\"metadata\":{\"labels\":{%s}}}", labels);
        assert_int_equal(api_fixture_patch(f, api_workspaces, NULL, name, HFD_SUB_NONE,
                                           HFD_PATCH_MERGE, NULL, patch),
                         0);
}

/* An object no longer matches, and there is no memory for its DELETED event. */
static void test_a_watch_ends_instead_of_losing_an_event(void **state) {
        struct api_fixture *f = *state;
        static struct seen seen;

        api_fixture_make_workspaces(f, 2);
        assert_int_equal(api_fixture_n_selected(f, NULL), 2);
        struct hfd_watcher *watcher = watch(f, &seen, "parity=even");
        atomic_store(&is_short, true);
        patch_labels(f, "w00", "\"parity\":\"none\"");
        patch_labels(f, "w01", "\"parity\":\"even\"");
        assert_true(await_events(&seen, 2));
        assert_int_equal(seen.end_error, 0);
        atomic_store(&is_short, false);
        watch_done(watcher, &seen);
}

/* A copy takes time in proportion to the object, and other requests need the lock. */
static void test_a_deleted_object_is_copied_without_the_lock(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make(f, api_configmaps, "default", "{\"metadata\":{\"name\":\"a\"}}");
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "a"), 0);
        atomic_store(&observed, f->cacher);
        assert_int_equal(api_fixture_delete(f, api_configmaps, "default", "a", NULL), 0);
        assert_int_equal(api_fixture_get(f, api_configmaps, "default", "a"), HF_E_NOT_FOUND);
        atomic_store(&observed, NULL);
        assert_int_equal(atomic_load(&n_copies), 1);
}

/* Whether a change begins or ends to match a selector is not known, so the watch ends. */
static void test_a_watch_ends_instead_of_selecting_wrongly(void **state) {
        struct api_fixture *f = *state;
        static struct seen seen;

        api_fixture_make_workspaces(f, 1);
        assert_int_equal(api_fixture_n_selected(f, NULL), 1);
        struct hfd_watcher *watcher = watch(f, &seen, "parity!=odd");
        atomic_store(&selects_nothing, true);
        patch_labels(f, "w00", "\"a\":\"b\"");
        /* If its labels counted as absent, the object would be selected. */
        assert_true(await_events(&seen, 2));
        atomic_store(&selects_nothing, false);
        watch_done(watcher, &seen);
}

static void test_a_list_fails_instead_of_selecting_wrongly(void **state) {
        struct api_fixture *f = *state;

        api_fixture_make_workspaces(f, 2);
        atomic_store(&selects_nothing, true);
        for (int i = 0; i < 2; i++) {
                assert_int_not_equal(api_fixture_request(f, HF_VERB_LIST, api_workspaces, NULL,
                                                         NULL, "labelSelector=parity%3Deven", NULL),
                                     0);
                assert_non_null(strstr(f->last.body, "\"code\":500"));
                pthread_mutex_lock(&f->cacher->mu); /* the second read goes to the store */
                f->cacher->reads->direct_until = HF_NSEC_NEVER;
                pthread_mutex_unlock(&f->cacher->mu);
        }
        atomic_store(&selects_nothing, false);
        assert_int_equal(api_fixture_n_selected(f, "labelSelector=parity%3Deven"), 1);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                API_TEST(test_a_deleted_object_is_copied_without_the_lock),
                API_TEST(test_a_watch_ends_instead_of_selecting_wrongly),
                API_TEST(test_a_list_fails_instead_of_selecting_wrongly),
                API_TEST(test_a_watch_ends_instead_of_losing_an_event),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
