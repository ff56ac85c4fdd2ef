/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that embeds the library and contends for the Lease default/NAME on any API server, over
 * REST, without holdfastd. While it leads it writes the ConfigMap default/<CONFIGMAP>, or
 * default/<NAME>, every 20 ms.
 *
 *      contender KUBECONFIG|DIRECTORY NAME IDENTITY [--lease 4s] [--renew 2s] [--retry 500ms]
 *                [--unfenced] [--ignore-tokens] [--migrate-from OLD-NAME] [--writes CONFIGMAP]
 *                [--coordinated VERSION]
 *
 * With --coordinated it is a candidate of that version, and leads when the Lease names it.
 * DIRECTORY has the files of a pod's service account. An empty KUBECONFIG means the files of
 * $KUBECONFIG.
 *
 * stdout: with a directory first `namespace <namespace>`; then one line per change, `state <state>
 * holder <holder> term <term> end <why>`. SIGTERM stops it gracefully: exit 0, or 70 when a
 * controller is stuck.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <holdfast/candidate.h>
#include <holdfast/leader.h>

#include "base/http/global.h"
#include "base/time_format.h"

struct options {
        const char *name, *identity, *migrate_from, *writes, *coordinated;
        struct hf_leader_timing timing;
        bool unfenced, ignore_tokens;
};

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        (void)ctx;
        fprintf(stderr, "%d %s: %s\n", level, component, message);
}

static void on_change(void *ctx, const struct hf_leader_info *info) {
        static const char *const states[] = {"following", "leading", "draining", "aborting",
                                             "releasing", "stopped", "stuck"};
        (void)ctx;
        printf("state %s holder %s term %llu end %s\n", states[info->state], info->holder,
               (unsigned long long)info->term, info->last_end);
        fflush(stdout);
}

static int run_writer(struct hf_term *term, void *ctx) {
        const struct options *options = ctx;
        static const struct hf_resource configmaps = {"", "v1", "configmaps"};
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        struct hf_cancel *token = options->ignore_tokens ? hf_cancel_never() : hf_term_abort(term);
        bool exists = true;

        for (unsigned long long count = 1;; count++) {
                char body[640];
                struct hf_status status;
                int n = snprintf(body, sizeof body,
                                 "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                                 "\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},"
                                 "\"data\":{\"term\":\"%llu\",\"count\":\"%llu\","
                                 "\"identity\":\"%s\"}}",
                                 options->writes, (unsigned long long)hf_term_fence(term)->term,
                                 count, options->identity);
                struct hf_request request = {.size = sizeof request,
                                             .verb = exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                             .resource = configmaps,
                                             .ns = "default",
                                             .name = exists ? options->writes : NULL,
                                             .body = body,
                                             .n_body = (size_t)n};
                int r = hf_client_do(hf_term_client(term), &request, token, NULL, NULL, &status);
                if (r == HF_E_NOT_FOUND || r == HF_E_EXISTS)
                        exists = r == HF_E_EXISTS;
                if (hf_cancel_wait(token, hf_now(clock) + 20 * HF_NSEC_PER_MSEC) == HF_E_CANCELED)
                        return 0;
                if (!options->ignore_tokens && hf_cancel_fired(hf_term_drain(term)))
                        return 0;
        }
}

static hf_nsec *duration_option(struct options *options, const char *name) {
        if (strcmp(name, "--lease") == 0)
                return &options->timing.lease_duration;
        if (strcmp(name, "--renew") == 0)
                return &options->timing.renew_deadline;
        return strcmp(name, "--retry") == 0 ? &options->timing.retry_period : NULL;
}

static const char **text_option(struct options *options, const char *name) {
        if (strcmp(name, "--migrate-from") == 0)
                return &options->migrate_from;
        if (strcmp(name, "--writes") == 0)
                return &options->writes;
        return strcmp(name, "--coordinated") == 0 ? &options->coordinated : NULL;
}

static int parse(int argc, char **argv, struct options *options) {
        for (int i = 4; i < argc; i++) {
                hf_nsec *duration = duration_option(options, argv[i]);
                const char **text = text_option(options, argv[i]);
                if (text && i + 1 < argc) {
                        *text = argv[++i];
                } else if (duration && i + 1 < argc) {
                        if (hf__duration_parse(argv[++i], duration) != 0)
                                return 2;
                } else if (strcmp(argv[i], "--unfenced") == 0) {
                        options->unfenced = true;
                } else if (strcmp(argv[i], "--ignore-tokens") == 0) {
                        options->ignore_tokens = true;
                } else {
                        return 2;
                }
        }
        return 0;
}

static int contend(const struct hf_host *host, struct hf_client *client, struct options *options,
                   const sigset_t *signals) {
        struct hf_controller writer = {.size = sizeof writer,
                                       .name = "writer",
                                       .runs = HF_LEADER_ONLY,
                                       .run = run_writer,
                                       .ctx = options};
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "default",
                                           .name = options->name,
                                           .migrate_from = options->migrate_from,
                                           .coordinated = options->coordinated != NULL,
                                           .identity = options->identity,
                                           .client = client,
                                           .timing = options->timing,
                                           .controllers = &writer,
                                           .n_controllers = 1,
                                           .unfenced = options->unfenced,
                                           .on_change = on_change};
        struct hf_electors *electors;
        struct hf_elector *elector;
        struct hf_candidate_config candidacy = {.size = sizeof candidacy,
                                                .client = client,
                                                .ns = "default",
                                                .name = options->identity,
                                                .lease_name = options->name,
                                                .binary_version = options->coordinated};
        struct hf_candidate *candidate = NULL;
        struct hf_status status = {0};
        int number, r = hf_electors_new(host, &electors);

        if (r == 0 && options->coordinated)
                r = hf_candidate_new(host, &candidacy, &candidate, &status);
        if (r == 0 && candidate)
                r = hf_candidate_start(candidate);

        if (r == 0)
                r = hf_electors_add(electors, &config, &elector, &status);
        if (r == 0)
                r = hf_electors_start(electors, &status);
        if (r == 0) {
                (void)sigwait(signals, &number);
                r = hf_electors_stop(electors, &status);
        }
        if (r != 0)
                fprintf(stderr, "contender: %s: %s\n", hf_strerror(r), status.message);
        if (r == HF_E_STUCK)
                _exit(70);
        hf_candidate_free(candidate);
        hf_electors_free(electors);
        return r != 0;
}

static int connect_to(const struct hf_host *host, const char *where, struct hf_client **ret_client,
                      struct hf_status *reterr_status) {
        const struct hf_in_cluster_config config = {.size = sizeof config, .directory = where};
        char ns[HF_NAME_MAX + 1];
        struct stat st;

        if (stat(where, &st) < 0 || !S_ISDIR(st.st_mode))
                return hf_rest_client_from_kubeconfig(host, where[0] ? where : NULL, ret_client,
                                                      reterr_status);
        int r = hf_rest_client_in_cluster(host, &config, ret_client, ns, reterr_status);
        if (r == 0)
                printf("namespace %s\n", ns);
        return r;
}

int main(int argc, char **argv) {
        struct options options = {0};
        struct hf_host host = {.size = sizeof host,
                               .log = {.write = on_log, .max_level = HF_LOG_DEBUG}};
        struct hf_client *client;
        struct hf_status status = {0};
        sigset_t signals;

        if (argc < 4 || parse(argc, argv, &options) != 0) {
                fprintf(stderr, "usage: contender KUBECONFIG|DIRECTORY NAME IDENTITY\n"
                                "       [--lease D] [--renew D] [--retry D] [--unfenced] "
                                "[--ignore-tokens]\n"
                                "       [--migrate-from OLD-NAME] [--writes CONFIGMAP]\n"
                                "       [--coordinated VERSION]\n");
                return 2;
        }
        options.name = argv[2];
        options.identity = argv[3];
        if (!options.writes)
                options.writes = options.name;
        hf_leader_timing_defaults(&options.timing);
        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        if (hf__http_global_init() != 0 || connect_to(&host, argv[1], &client, &status) != 0) {
                fprintf(stderr, "contender: %s\n", status.message);
                return 1;
        }
        int r = contend(&host, client, &options, &signals);
        hf_client_free(client);
        return r;
}
