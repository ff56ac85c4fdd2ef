/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller with a queue: while this process leads, each ConfigMap with the label copy=yes in
 * the namespace default has a copy, "<name>-copy". The copy has an owner reference to its original,
 * with controller: true. An object of that name without this reference is left alone.
 * docs/embedding.md explains it.
 *
 *      cc reconciler.c $(pkg-config --cflags --libs libholdfast libcurl) -o reconciler
 *      ./reconciler IDENTITY [KUBECONFIG]
 */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/owned.h>
#include <holdfast/reconciler.h>
#include <holdfast/recorder.h>
#include <holdfast/selector.h>
#include <holdfast/upsert.h>

static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static struct hf_informer *informer;
static const char *identity;

/* The state of one term. */
struct copies {
        struct hf_recorder *recorder;
};

static struct hf_request request_for(const char *ns, const char *name, const char *body) {
        return (struct hf_request){.size = sizeof(struct hf_request),
                                   .resource = configmaps,
                                   .ns = ns,
                                   .name = name,
                                   .body = body,
                                   .n_body = body ? strlen(body) : 0};
}

/* Called if the informer does not have the original `name`. If that has lost its label, deletes the
 * copy. If it was deleted, does nothing: the garbage collector deletes the copy, which has an owner
 * reference. */
static int delete_copy(struct hf_term *term, const char *ns, const char *name,
                       const char *copy_name) {
        struct hf_request read = request_for(ns, name, NULL);
        const struct hf_request copy = request_for(ns, copy_name, NULL);
        char *original = NULL;
        size_t n = 0;

        read.verb = HF_VERB_GET;
        int r = hf_client_do(hf_term_client(term), &read, hf_term_abort(term), &original, &n, NULL);
        if (r == HF_E_NOT_FOUND)
                return 0;
        if (r == 0)
                r = hf_owned_delete(hf_term_client(term), &copy, original, n, hf_term_abort(term),
                                    NULL);
        free(original);
        return r;
}

static int write_copy(struct copies *copies, struct hf_term *term, const char *ns, const char *name,
                      const char *copy_name, const char *original, size_t n) {
        enum hf_upsert_result result = HF_UPSERT_UNCHANGED;
        struct hf_status status = {0};
        char body[512];

        (void)snprintf(body, sizeof body,
                       "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"data\":{\"of\":\"%s\"}}",
                       name);
        const struct hf_request request = request_for(ns, copy_name, body);
        int r = hf_owned_upsert(hf_term_client(term), &request, original, n, hf_term_abort(term),
                                &result, &status);
        if (r == HF_E_EXISTS || r == HF_E_INVALID)
                hf_recorder_event(copies->recorder, original, n, HF_RECORDER_WARNING, "NotCopied",
                                  "%s", status.message);
        else if (r == 0 && result != HF_UPSERT_UNCHANGED)
                hf_recorder_event(copies->recorder, original, n, HF_RECORDER_NORMAL, "Copied",
                                  "%s is up to date", copy_name);
        /* If another object has that name, a retry makes no sense before the original changes. */
        return r == HF_E_EXISTS ? 0 : r;
}

/* Brings one copy to its desired state. Reads the current state, because several changes of an
 * object are merged into one key. After an error the key comes again, after a growing delay. */
static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], copy[HF_NAME_MAX + 16], *original = NULL;
        size_t n = 0;

        int r = hf_key_split(key, ns, name);
        if (r != 0)
                return r;
        (void)snprintf(copy, sizeof copy, "%s-copy", name);
        r = hf_informer_get(informer, ns, name, &original, &n);
        if (r == HF_E_NOT_FOUND)
                r = delete_copy(term, ns, name, copy);
        else if (r == 0)
                r = write_copy(ctx, term, ns, name, copy, original, n);
        free(original);
        return r;
}

static int run(struct hf_term *term, void *ctx) {
        const struct hf_recorder_config recorded = {.size = sizeof recorded,
                                                    .client = hf_term_client(term),
                                                    .component = "copies",
                                                    .instance = identity};
        struct copies copies = {.recorder = NULL};
        const struct hf_reconciler_source sources[] = {
                {.size = sizeof(struct hf_reconciler_source), .informer = informer}};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "copies",
                                                 .sources = sources,
                                                 .n_sources = 1,
                                                 .n_workers = 4,
                                                 .reconcile = reconcile,
                                                 .ctx = &copies};

        int r = hf_recorder_new(hf_term_host(term), &recorded, &copies.recorder);
        if (r == 0)
                r = hf_reconciler_run(&reconciler, term);
        hf_recorder_free(copies.recorder);
        return r;
}

/* Watches the ConfigMaps with the label copy=yes. */
static int start_informer(const struct hf_host *host, struct hf_client *client,
                          struct hf_status *status) {
        const char *const yes[] = {"yes"};
        const struct hf_selector_term label = {.key = "copy", .values = yes, .n_values = 1};
        const struct hf_selector selector = {.size = sizeof selector,
                                             .labels = &label,
                                             .n_labels = 1};
        char *query = NULL;
        int r = hf_selector_query(&selector, &query, status);
        const struct hf_informer_config watched = {.size = sizeof watched,
                                                   .client = client,
                                                   .resource = configmaps,
                                                   .ns = "default",
                                                   .query = query};

        if (r == 0)
                r = hf_informer_new(host, &watched, &informer);
        free(query);
        return r == 0 ? hf_informer_start(informer) : r;
}

/* Contends for the Lease, and leads, until SIGTERM. */
static int lead(const struct hf_host *host, struct hf_client *client, const sigset_t *mask,
                struct hf_status *status) {
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "copies",
                                                 .run = run};
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .client = client,
                                                 .ns = "default",
                                                 .name = "copies",
                                                 .identity = identity,
                                                 .controllers = &controller,
                                                 .n_controllers = 1};
        struct hf_electors *electors = NULL;
        int number, r = hf_electors_new(host, &electors);

        if (r == 0)
                r = hf_electors_add(electors, &config, NULL, status);
        if (r == 0)
                r = hf_electors_start(electors, status);
        if (r == 0) {
                (void)sigwait(mask, &number);
                r = hf_electors_stop(electors, status);
        }
        if (r != HF_E_STUCK) /* a controller that is stuck still uses them */
                hf_electors_free(electors);
        return r;
}

int main(int argc, char **argv) {
        const struct hf_host host = {.size = sizeof host};
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        sigset_t mask;

        if (argc < 2) {
                fprintf(stderr, "usage: reconciler IDENTITY [KUBECONFIG]\n");
                return 2;
        }
        identity = argv[1];
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        int r = hf_rest_client_from_kubeconfig(&host, argv[2], &client, &status);
        if (r == 0) /* on every instance, so that a standby is warm */
                r = start_informer(&host, client, &status);
        if (r == 0)
                r = lead(&host, client, &mask, &status);
        if (r != 0)
                fprintf(stderr, "reconciler: %s %s\n", hf_strerror(r), status.message);
        if (r == HF_E_STUCK)
                _Exit(70);
        hf_informer_free(informer);
        hf_client_free(client);
        curl_global_cleanup();
        return r != 0;
}
