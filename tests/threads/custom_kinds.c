/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kinds of the controllers, while definitions are created, changed and deleted. Some threads
 * work with sets of kinds, one needs a complete set, and everything may end at any moment. The API
 * server fails at times.
 *
 * Promised: the kinds of a set and their informers live as long as a thread has the set; a set that
 * is complete after a wait for a revision has each kind that was Established at that revision; the
 * end joins the thread and frees everything.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "fake_api_client.h"
#include "server/controllers/kinds/kinds.h"
#include "threads.h"

#define DEFINITIONS "customresourcedefinitions/"

static struct {
        struct fake_api *api;
        struct fake_api_client *client;
        struct hf_informer_thread *thread;
        struct hfd_kinds kinds;
        const struct hfd_kind *definitions;
} k;

/* ---- definitions ---- */

/* Creates or changes the definition of the plural, and returns the revision. */
static uint64_t put_definition(const char *plural, const char *version, bool established) {
        char key[120], text[600];

        (void)snprintf(key, sizeof key, DEFINITIONS "/%s.example.com", plural);
        (void)snprintf(text, sizeof text,
                       "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":"
                       "\"CustomResourceDefinition\",\"metadata\":{\"name\":\"%s.example.com\"},"
                       "\"spec\":{\"group\":\"example.com\",\"scope\":\"Namespaced\",\"versions\":"
                       "[{\"name\":\"%s\",\"served\":true,\"storage\":true}]},\"status\":{"
                       "\"acceptedNames\":{\"plural\":\"%s\",\"kind\":\"%s\"},\"conditions\":[{"
                       "\"type\":\"Established\",\"status\":\"%s\"}]}}",
                       plural, version, plural, plural, established ? "True" : "False");
        return fake_api_put(k.api, key, text);
}

static void *change_definitions(void *ctx) {
        for (uint64_t left = baton_random(4); left > 0; left--) {
                const char *plural = baton_random(2) == 0 ? "as" : "bs";
                char key[120];
                (void)snprintf(key, sizeof key, DEFINITIONS "/%s.example.com", plural);
                if (baton_random(3) == 0)
                        (void)fake_api_delete(k.api, key);
                else
                        (void)put_definition(plural, baton_random(2) == 0 ? "v1" : "v2",
                                             baton_random(3) > 0);
                if (baton_random(2) == 0)
                        scenario_sleep((hf_nsec)baton_random(3) * HF_NSEC_PER_SEC);
        }
        return NULL;
}

/* ---- sets ---- */

static void check_set(const struct hfd_kind_set *set) {
        for (size_t i = 0; i < set->n; i++) {
                const struct hfd_kind *kind = set->kinds[i];
                const struct hf_resource *resource = &kind->row.resource;
                char version[64];
                (void)snprintf(version, sizeof version, "%s/any", resource->group);
                BATON_CHECK(!kind->is_custom || hf_informer_synced(kind->informer));
                BATON_CHECK(hfd_kind_set_find(set, resource->group, resource->plural) == kind);
                BATON_CHECK(hfd_kind_set_find_by_name(set, version, kind->row.kind) == kind);
                BATON_CHECK(hfd_kind_set_find_by_id(set, kind->id) == kind);
        }
}

static void fire(void *token) { hf_cancel_fire(token, HF_CANCEL_STOPPING); }

/* As hfd_kinds_run does: works with a set until another takes its place. */
static void *use_sets(void *ctx) {
        for (uint64_t left = 1 + baton_random(2); left > 0; left--) {
                struct hfd_kind_set *set = hfd_kinds_get(&k.kinds);
                struct hf_cancel_waker waker;
                struct hf_cancel *until;

                BATON_CHECK(hf_cancel_new(NULL, NULL, &until) == 0);
                hf_cancel_add_waker(set->replaced, &waker, fire, until);
                check_set(set);
                (void)hf_cancel_wait(until, hf_now(hf_clock_system()) +
                                                    (hf_nsec)baton_random(4) * HF_NSEC_PER_SEC);
                check_set(set);
                struct hfd_kind_set *current = hfd_kinds_get(&k.kinds);
                if (current != set)
                        BATON_CHECK(hf_cancel_wait(until, HF_NSEC_NEVER) == HF_E_CANCELED);
                hfd_kind_set_unref(current);
                hf_cancel_remove_waker(&waker);
                hf_cancel_unref(until);
                hfd_kind_set_unref(set);
        }
        return NULL;
}

/* Creates an Established definition of its own, and waits for a complete set. */
static void *need_all_kinds(void *ctx) {
        char revision[24];
        bool complete = false;

        (void)snprintf(revision, sizeof revision, "%llu",
                       (unsigned long long)put_definition("mine", "v1", true));
        BATON_CHECK(hf_informer_wait(k.definitions->informer, revision, hf_cancel_never()) == 0);
        while (!complete) {
                struct hfd_kind_set *set = hfd_kinds_get(&k.kinds);
                complete = hfd_kinds_is_complete(&k.kinds, set);
                BATON_CHECK(!complete || hfd_kind_set_find(set, "example.com", "mine"));
                hfd_kind_set_unref(set);
                if (!complete)
                        scenario_sleep(HF_NSEC_PER_SEC);
        }
        return NULL;
}

/* ---- the scenario ---- */

static void begin(void) {
        const struct hfd_kind_row row = {{"apiextensions.k8s.io", "v1",
                                          "customresourcedefinitions"},
                                         "CustomResourceDefinition",
                                         false};

        memset(&k, 0, sizeof k);
        k.api = fake_api_new();
        k.client = fake_api_client_new(k.api);
        if (baton_random(2) == 0)
                (void)put_definition("as", "v1", true);
        if (baton_random(3) == 0)
                fake_api_client_refuse(k.client, HF_E_UNAVAILABLE, 1 + (unsigned)baton_random(2));
        if (baton_random(3) == 0)
                fake_api_fail_list(k.api, 2 + (unsigned)baton_random(2), HF_E_NOT_FOUND);
        BATON_CHECK(hf_informer_thread_new(&scenario_host, &k.thread) == 0);
        const struct hfd_kinds_config config = {.sources = {.host = &scenario_host,
                                                            .client = &k.client->base,
                                                            .thread = k.thread},
                                                .rows = &row,
                                                .n_rows = 1,
                                                .custom = true};
        BATON_CHECK(hfd_kinds_init(&k.kinds, &config) == 0);
        k.definitions = &k.kinds.kinds[0];
        BATON_CHECK(hfd_kinds_start(&k.kinds) == 0);
}

void custom_kinds(void) {
        pthread_t threads[4];
        unsigned n_threads = 0;

        begin();
        pthread_t writer = scenario_thread("writer", change_definitions, NULL);
        for (uint64_t left = baton_random(3); left > 0; left--)
                threads[n_threads++] = scenario_thread("user", use_sets, NULL);
        if (baton_random(2) == 0)
                threads[n_threads++] = scenario_thread("needs", need_all_kinds, NULL);
        while (n_threads > 0)
                (void)hf__thread_join(threads[--n_threads]);
        hfd_kinds_done(&k.kinds);
        k.thread = hf_informer_thread_free(k.thread);
        (void)hf__thread_join(writer);
        baton_be_quick();
        hf_client_free(&k.client->base);
        fake_api_free(k.api);
}
