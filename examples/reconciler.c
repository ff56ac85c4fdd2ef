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

#include <holdfast/reconciler.h>

static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static struct hf_informer *informer;

/* Brings one copy to its desired state. It reads the current state, because several changes of an
 * object are merged into one key. */
static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1], copy[HF_NAME_MAX + 16], body[1024];
        struct hf_request request = {.resource = configmaps, .ns = ns, .name = copy};
        char *object = NULL;

        int r = hf_key_split(key, ns, name);
        if (r != 0)
                return r;
        (void)snprintf(copy, sizeof copy, "%s-copy", name);
        r = hf_informer_get(informer, ns, name, &object, NULL);
        free(object); /* a real controller would read its data */
        if (r == HF_E_NOT_FOUND) {
                request.verb = HF_VERB_DELETE;
                r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                                 NULL);
                return r == HF_E_NOT_FOUND ? 0 : r;
        }
        if (r != 0)
                return r;
        request.verb = HF_VERB_CREATE;
        request.body = body;
        request.n_body = (size_t)snprintf(body, sizeof body,
                                          "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\","
                                          "\"metadata\":{\"name\":\"%s\"},"
                                          "\"data\":{\"of\":\"%s\"}}",
                                          copy, name);
        r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL, NULL);
        if (r == HF_E_EXISTS) { /* create or update: without a resourceVersion it overwrites */
                request.verb = HF_VERB_UPDATE;
                r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL, NULL,
                                 NULL);
        }
        return r; /* after an error the key comes again, after a growing delay */
}

static int run(struct hf_term *term, void *ctx) {
        const struct hf_reconciler_source sources[] = {{.informer = informer}};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "copies",
                                                 .sources = sources,
                                                 .n_sources = 1,
                                                 .n_workers = 4,
                                                 .reconcile = reconcile};

        return hf_reconciler_run(&reconciler, term);
}

int main(int argc, char **argv) {
        const struct hf_host host = {.size = sizeof host};
        const struct hf_controller controller = {.name = "copies", .run = run};
        struct hf_informer_config watched = {.size = sizeof watched,
                                             .resource = configmaps,
                                             .ns = "default",
                                             .query = "labelSelector=copy%3Dyes"};
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
        config.identity = argv[1];
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
        curl_global_cleanup();
        return r != 0;
}
