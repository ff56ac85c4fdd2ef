/* SPDX-License-Identifier: Apache-2.0 */
/*
 * holdfastd with an additional leader-only controller, `mirror`. Each ConfigMap default/<name> with
 * the label mirror=source gets a copy default/copy-of-<name> with the label mirror=copy. The copy
 * has the same data.v, and data.term is the term that wrote it. The copy is created, updated and
 * deleted with its source, and recreated after it was deleted.
 *
 * Tests compare sources and copies to see what a leader has acted on. Two informers feed one
 * reconciler; the events of copies are mapped to their sources. A controller of every instance,
 * `mirror-informers`, owns the informers, so that a standby has the objects already. It frees them
 * only when no term uses them (n_users).
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/reconciler.h>

#include "base/json.h"
#include "server/main/program.h"
#include "server/server.h"

#define PREFIX "copy-of-"

static const struct hf_resource configmaps = {"", "v1", "configmaps"};

static struct {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        /* guarded by mu */
        struct hf_informer *sources, *copies; /* NULL while run_informers() does not run */
        unsigned n_users;
} shared = {.mu = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

/* ---- the leader-only controller ---- */

/*
 * Reads data.v and metadata.resourceVersion of an object. Returns HF_E_NOT_FOUND if the informer
 * does not have it.
 */
static int read_object(struct hf_informer *informer, const char *name, char value[64],
                       char version[32]) {
        struct hf__json *json = NULL;
        char *text = NULL;
        size_t n = 0;

        int r = hf_informer_get(informer, "default", name, &text, &n);
        if (r == 0)
                r = hf__json_parse(text, n, &json, NULL);
        free(text);
        if (r != 0)
                return r;
        const char *v = hf__json_string(json, "data.v"),
                   *rv = hf__json_string(json, "metadata.resourceVersion");
        snprintf(value, 64, "%s", v ? v : "");
        snprintf(version, 32, "%s", rv ? rv : "");
        hf__json_free(json);
        return 0;
}

static int write_copy(struct hf_term *term, enum hf_verb verb, const char *copy, const char *value,
                      const char *version) {
        char body[1200];
        struct hf_status status;
        int n = 0;

        if (verb == HF_VERB_DELETE)
                n = snprintf(body, sizeof body,
                             "{\"kind\":\"DeleteOptions\",\"apiVersion\":\"v1\",\"preconditions\":{"
                             "\"resourceVersion\":\"%s\"}}",
                             version);
        else
                n = snprintf(body, sizeof body,
                             "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":"
                             "\"%s\",\"namespace\":\"default\","
                             "\"labels\":{\"mirror\":\"copy\"}%s%s%s},\"data\":{\"v\":\"%s\","
                             "\"term\":\"%llu\"}}",
                             copy, *version ? ",\"resourceVersion\":\"" : "", version,
                             *version ? "\"" : "", value,
                             (unsigned long long)hf_term_fence(term)->term);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = verb,
                                           .resource = configmaps,
                                           .ns = "default",
                                           .name = verb == HF_VERB_CREATE ? NULL : copy,
                                           .body = body,
                                           .n_body = (size_t)n};
        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                             &status);
        /*
         * The informer was behind. The key will be added again by the event that the informer has
         * not seen yet.
         */
        return r == HF_E_CONFLICT || r == HF_E_EXISTS || r == HF_E_NOT_FOUND ? 0 : r;
}

struct mirror {
        struct hf_informer *sources, *copies; /* borrowed; n_users counts this use */
};

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        const struct mirror *mirror = ctx;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], copy[HF_NAME_MAX + sizeof PREFIX];
        char wanted[64], actual[64], version[32] = "";

        int r = hf_key_split(key, ns, name);
        if (r != 0)
                return r;
        snprintf(copy, sizeof copy, PREFIX "%s", name);
        int source = read_object(mirror->sources, name, wanted, version);
        int mirrored = read_object(mirror->copies, copy, actual, version);
        if (mirrored == HF_E_NOT_FOUND)
                version[0] = '\0';
        if (source == 0 && mirrored == HF_E_NOT_FOUND)
                return write_copy(term, HF_VERB_CREATE, copy, wanted, version);
        if (source == 0 && mirrored == 0)
                return strcmp(wanted, actual) == 0
                               ? 0
                               : write_copy(term, HF_VERB_UPDATE, copy, wanted, version);
        if (source == HF_E_NOT_FOUND && mirrored == 0)
                return write_copy(term, HF_VERB_DELETE, copy, "", version);
        if (source != HF_E_NOT_FOUND)
                return source;
        return mirrored == HF_E_NOT_FOUND ? 0 : mirrored;
}

static int map_copy(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                    const char *name, const char *object, size_t n) {
        char key[HF_KEY_MAX];

        if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 ||
            hf_key_make(key, ns, name + sizeof PREFIX - 1) != 0)
                return 0;
        return hf_workqueue_add(queue, key);
}

static int run_mirror(struct hf_term *term, void *ctx) {
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct mirror mirror = {0};

        while (!mirror.sources &&
               hf_cancel_wait(hf_term_drain(term), hf_now(clock) + HF_NSEC_PER_MSEC) !=
                       HF_E_CANCELED) {
                pthread_mutex_lock(&shared.mu);
                mirror = (struct mirror){shared.sources, shared.copies};
                shared.n_users += mirror.sources != NULL;
                pthread_mutex_unlock(&shared.mu);
        }
        if (!mirror.sources)
                return 0;
        const struct hf_reconciler_source sources[] = {{.size = sizeof(struct hf_reconciler_source),
                                                        .informer = mirror.sources},
                                                       {.size = sizeof(struct hf_reconciler_source),
                                                        .informer = mirror.copies,
                                                        .map = map_copy}};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "mirror",
                                                 .sources = sources,
                                                 .n_sources = 2,
                                                 .n_workers = 2,
                                                 .reconcile = reconcile,
                                                 .ctx = &mirror};
        int r = hf_reconciler_run(&reconciler, term);
        pthread_mutex_lock(&shared.mu);
        shared.n_users--;
        pthread_cond_broadcast(&shared.changed);
        pthread_mutex_unlock(&shared.mu);
        return r;
}

/* ---- the controller of every instance ---- */

static int start_informer(struct hf_term *term, const char *query,
                          struct hf_informer **ret_informer) {
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = hf_term_ungated_client(term),
                                                  .resource = configmaps,
                                                  .ns = "default",
                                                  .query = query,
                                                  .one_revision = true};
        int r = hf_informer_new(hf_term_host(term), &config, ret_informer);
        return r != 0 ? r : hf_informer_start(*ret_informer);
}

static int run_informers(struct hf_term *term, void *ctx) {
        struct hf_informer *sources = NULL, *copies = NULL;

        int r = start_informer(term, "labelSelector=mirror%3Dsource", &sources);
        if (r == 0)
                r = start_informer(term, "labelSelector=mirror%3Dcopy", &copies);
        if (r == 0) {
                pthread_mutex_lock(&shared.mu);
                shared.sources = sources;
                shared.copies = copies;
                pthread_mutex_unlock(&shared.mu);
                (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        }
        pthread_mutex_lock(&shared.mu);
        shared.sources = shared.copies = NULL;
        while (shared.n_users > 0)
                pthread_cond_wait(&shared.changed, &shared.mu);
        pthread_mutex_unlock(&shared.mu);
        hf_informer_free(sources);
        hf_informer_free(copies);
        return r;
}

int main(int argc, char **argv) {
        const struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                                     .name = "mirror",
                                                     .runs = HF_LEADER_ONLY,
                                                     .run = run_mirror},
                                                    {.size = sizeof(struct hf_controller),
                                                     .name = "mirror-informers",
                                                     .runs = HF_EVERY_INSTANCE,
                                                     .run = run_informers}};
        const struct hfd_extra extra = {.controllers = controllers, .n_controllers = 2};

        return hfd_program_main(argc, argv, &extra);
}
