/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A controller with a queue: while this process leads, each ConfigMap with the label copy=yes in
 * the namespace default has a copy, "<name>-copy". docs/embedding.md explains it.
 *
 *      cc reconciler.c $(pkg-config --cflags --libs libholdfast libcurl) -o reconciler
 *      ./reconciler IDENTITY [KUBECONFIG]
 */
#include <curl/curl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/owner.h>
#include <holdfast/reconciler.h>
#include <holdfast/recorder.h>
#include <holdfast/selector.h>
#include <holdfast/upsert.h>

static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static struct hf_informer *informer;
static const char *identity;

/* What one term has. */
struct copies {
        struct hf_recorder *recorder;
};

/* Deletes the copy of an original that is gone, if it is a copy. The garbage collector does the
 * same by the owner reference, where there is one. */
static int delete_copy(struct hf_term *term, const char *ns, const char *copy) {
        struct hf_request request = {.verb = HF_VERB_DELETE,
                                     .resource = configmaps,
                                     .ns = ns,
                                     .name = copy};

        int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL, NULL);
        return r == HF_E_NOT_FOUND ? 0 : r;
}

static int write_copy(struct copies *copies, struct hf_term *term, const char *ns, const char *name,
                      const char *copy, const char *original, size_t n) {
        char text[1024], *body = NULL;
        enum hf_upsert_result result;
        struct hf_status status = {0};

        int n_text = snprintf(text, sizeof text,
                              "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                              "\"metadata\":{\"name\":\"%s\",\"namespace\":\"%s\"},"
                              "\"data\":{\"of\":\"%s\"}}",
                              copy, ns, name);
        /* The copy belongs to the original. */
        int r = hf_owner_set(text, (size_t)n_text, original, n, &body);
        if (r != 0)
                return r;
        const struct hf_request request = {.resource = configmaps,
                                           .ns = ns,
                                           .name = copy,
                                           .body = body,
                                           .n_body = strlen(body)};
        r = hf_upsert(hf_term_client(term), &request, hf_term_abort(term), &result, NULL, &status);
        if (r == 0 && result != HF_UPSERT_UNCHANGED)
                hf_recorder_event(copies->recorder, original, n, HF_RECORDER_NORMAL, "Copied",
                                  "%s is up to date", copy);
        else if (r == HF_E_INVALID)
                hf_recorder_event(copies->recorder, original, n, HF_RECORDER_WARNING, "NotCopied",
                                  "%s", status.message);
        free(body);
        return r;
}

/* Brings one copy to its desired state. It reads the current state, because several changes of an
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
                r = delete_copy(term, ns, copy);
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
        const struct hf_reconciler_source sources[] = {{.informer = informer}};
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

int main(int argc, char **argv) {
        const struct hf_host host = {.size = sizeof host};
        const struct hf_controller controller = {.name = "copies", .run = run};
        struct hf_informer_config watched = {.size = sizeof watched,
                                             .resource = configmaps,
                                             .ns = "default"};
        const char *const yes[] = {"yes"};
        const struct hf_selector_term label = {.key = "copy", .values = yes, .n_values = 1};
        const struct hf_selector selector = {.size = sizeof selector,
                                             .labels = &label,
                                             .n_labels = 1};
        char *query = NULL;
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "default",
                                           .name = "copies",
                                           .controllers = &controller,
                                           .n_controllers = 1};
        struct hf_electors *electors = NULL;
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        sigset_t mask;
        int number;

        if (argc < 2) {
                fprintf(stderr, "usage: reconciler IDENTITY [KUBECONFIG]\n");
                return 2;
        }
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        int r = hf_rest_client_from_kubeconfig(&host, argv[2], &client, &status);
        watched.client = config.client = client;
        config.identity = identity = argv[1];
        if (r == 0)
                r = hf_selector_query(&selector, &query, &status);
        watched.query = query;
        if (r == 0)
                r = hf_informer_new(&host, &watched, &informer);
        if (r == 0) /* on every instance, so that a standby is warm */
                r = hf_informer_start(informer);
        if (r == 0)
                r = hf_electors_new(&host, &electors);
        if (r == 0)
                r = hf_electors_add(electors, &config, NULL, &status);
        if (r == 0)
                r = hf_electors_start(electors, &status);
        if (r == 0) {
                (void)sigwait(&mask, &number);
                r = hf_electors_stop(electors, &status);
        }
        if (r != 0)
                fprintf(stderr, "reconciler: %s %s\n", hf_strerror(r), status.message);
        if (r == HF_E_STUCK)
                _Exit(70);
        hf_electors_free(electors);
        hf_informer_free(informer);
        hf_client_free(client);
        free(query);
        curl_global_cleanup();
        return r != 0;
}
