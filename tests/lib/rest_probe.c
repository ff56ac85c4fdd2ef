/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes one request or watch with the REST client against a real server, and prints its outcome.
 *
 *      rest-probe KUBECONFIG VERB GROUP/VERSION/PLURAL NAMESPACE NAME [--query Q] [--body B]
 *                 [--fence F] [--from REVISION]
 *
 * VERB: get, list, create, update, delete, watch, or a kind of patch: merge, json, strategic,
 * apply. An empty NAMESPACE or NAME means none. stdout: `<hf_error> <http code> <reason> <fence
 * echoed>`, then a line with the message or the body. A watch prints a line per event before that.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/client.h>

#include "base/http/global.h"
#include "base/thread.h"

struct probe {
        pthread_mutex_t mu;
        pthread_cond_t cond;
        bool ended; /* guarded by mu */
};

static void print_outcome(struct probe *probe, int error, const struct hf_status *status,
                          bool echoed, const char *body, size_t n) {
        printf("%d %d %s %d\n", error, error ? status->http_code : 0,
               error && status->reason[0] ? status->reason : "-", echoed);
        printf("%.*s\n", error ? (int)strlen(status->message) : (int)n,
               error ? status->message : body);
        (void)pthread_mutex_lock(&probe->mu);
        probe->ended = true;
        (void)pthread_cond_broadcast(&probe->cond);
        (void)pthread_mutex_unlock(&probe->mu);
}

static void on_reply(void *ctx, const struct hf_response *reply) {
        print_outcome(ctx, reply->error, &reply->status, reply->fence_echoed,
                      reply->body ? reply->body : "", reply->n_body);
}
static void on_end(void *ctx, int error, const struct hf_status *status) {
        print_outcome(ctx, error, status, false, "", 0);
}
static void on_event(void *ctx, const struct hf_event *event) {
        static const char *const types[] = {"ADDED", "MODIFIED", "DELETED", "BOOKMARK"};
        printf("%s %s\n", types[event->type], event->resource_version);
        fflush(stdout);
}

static int set_verb(struct hf_request *request, const char *word) {
        static const struct {
                const char *word;
                enum hf_verb verb;
                enum hf_patch patch;
        } verbs[] = {{"get", HF_VERB_GET, 0},
                     {"list", HF_VERB_LIST, 0},
                     {"create", HF_VERB_CREATE, 0},
                     {"update", HF_VERB_UPDATE, 0},
                     {"delete", HF_VERB_DELETE, 0},
                     {"merge", HF_VERB_PATCH, HF_PATCH_MERGE},
                     {"json", HF_VERB_PATCH, HF_PATCH_JSON},
                     {"strategic", HF_VERB_PATCH, HF_PATCH_STRATEGIC},
                     {"apply", HF_VERB_PATCH, HF_PATCH_APPLY}};

        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (strcmp(verbs[i].word, word) == 0) {
                        request->verb = verbs[i].verb;
                        request->patch = verbs[i].patch;
                        return 0;
                }
        return -EINVAL;
}

/* Parses "apps/v1/things" or "v1/configmaps". Splits the text in place. */
static struct hf_resource resource_of(char *path) {
        char *last = strrchr(path, '/');
        *last = '\0';
        char *version = strrchr(path, '/');
        if (version)
                *version = '\0';
        return (struct hf_resource){.group = version ? path : "",
                                    .version = version ? version + 1 : path,
                                    .plural = last + 1};
}

static void set_body(struct hf_request *request, const char *text) {
        request->body = text;
        request->n_body = strlen(text);
}

static int start(struct hf_client *client, char **argv, int argc, struct probe *probe) {
        struct hf_request request = {.size = sizeof request,
                                     .resource = resource_of(argv[3]),
                                     .ns = argv[4],
                                     .name = argv[5]};
        struct hf_watch_spec spec = {.size = sizeof spec,
                                     .resource = request.resource,
                                     .ns = argv[4],
                                     .name = argv[5][0] ? argv[5] : NULL,
                                     .bookmarks = true};
        struct hf_fence fence;

        for (int i = 6; i + 1 < argc; i += 2) {
                if (strcmp(argv[i], "--query") == 0)
                        request.query = spec.query = argv[i + 1];
                else if (strcmp(argv[i], "--from") == 0)
                        spec.resource_version = argv[i + 1];
                else if (strcmp(argv[i], "--fence") == 0 &&
                         hf_fence_parse(argv[i + 1], strlen(argv[i + 1]), &fence) == 0)
                        request.fence = &fence;
                else if (strcmp(argv[i], "--body") == 0)
                        set_body(&request, argv[i + 1]);
                else
                        return -EINVAL;
        }
        if (strcmp(argv[2], "watch") == 0)
                return hf_client_watch(client, &spec, on_event, on_end, probe, NULL);
        int r = set_verb(&request, argv[2]);
        return r != 0 ? r : hf_client_request(client, &request, on_reply, probe, NULL);
}

int main(int argc, char **argv) {
        struct hf_host host = {.size = sizeof host};
        struct probe probe = {0};
        struct hf_client *client;
        struct hf_status status = {0};

        if (argc < 6 || !strchr(argv[3], '/')) {
                fprintf(stderr,
                        "usage: rest-probe KUBECONFIG VERB GROUP/VERSION/PLURAL NAMESPACE NAME\n"
                        "       [--query Q] [--body B] [--fence F] [--from REVISION]\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        if (hf__mutex_init(&probe.mu) != 0 || hf_cond_init(&probe.cond) != 0 ||
            hf__http_global_init() != 0 ||
            hf_rest_client_from_kubeconfig(&host, argv[1], &client, &status) != 0) {
                fprintf(stderr, "rest-probe: %s\n", status.message);
                return 1;
        }
        int r = start(client, argv, argc, &probe);
        (void)pthread_mutex_lock(&probe.mu);
        while (r == 0 && !probe.ended)
                (void)pthread_cond_wait(&probe.cond, &probe.mu);
        (void)pthread_mutex_unlock(&probe.mu);
        hf_client_free(client);
        if (r != 0)
                fprintf(stderr, "rest-probe: %s\n", hf_strerror(r));
        return r != 0;
}
