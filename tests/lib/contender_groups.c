/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that embeds the library with several Leases, each with a group of controllers, in one
 * process and one loop.
 *
 *      contender-groups KUBECONFIG IDENTITY NAME...
 *
 * For each NAME it contends for the Lease default/NAME. While it leads, the second controller of
 * the group, which starts after the first, writes the ConfigMap default/NAME every 20 ms. stdout:
 * one line per change, `NAME <state> term <term>`. SIGTERM stops it: exit 0.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/leader.h>

#include "base/http/global.h"

#define MAX_GROUPS 8

struct group {
        const char *name, *identity;
        char first[80], second[80];
};

static void on_log(void *ctx, enum hf_log_level level, const char *component, const char *message) {
        fprintf(stderr, "%d %s: %s\n", level, component, message);
}

static void on_change(void *ctx, const struct hf_leader_info *info) {
        static const char *const states[] = {"following", "leading", "draining", "aborting",
                                             "releasing", "stopped", "stuck"};
        printf("%s %s term %llu\n", info->name, states[info->state],
               (unsigned long long)info->term);
        fflush(stdout);
}

static int run_first(struct hf_term *term, void *ctx) {
        hf_term_started(term);
        (void)hf_cancel_wait(hf_term_drain(term), HF_NSEC_NEVER);
        return 0;
}

static int run_second(struct hf_term *term, void *ctx) {
        const struct group *group = ctx;
        const struct hf_clock *clock = hf_host_clock(hf_term_host(term));
        bool exists = true;

        for (unsigned long long count = 1; !hf_cancel_fired(hf_term_drain(term)); count++) {
                char body[640];
                int n = snprintf(body, sizeof body,
                                 "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\","
                                 "\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"},"
                                 "\"data\":{\"term\":\"%llu\",\"count\":\"%llu\","
                                 "\"identity\":\"%s\"}}",
                                 group->name, (unsigned long long)hf_term_fence(term)->term, count,
                                 group->identity);
                struct hf_request request = {.size = sizeof request,
                                             .verb = exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                             .resource = {"", "v1", "configmaps"},
                                             .ns = "default",
                                             .name = exists ? group->name : NULL,
                                             .body = body,
                                             .n_body = (size_t)n};
                int r = hf_client_do(hf_term_client(term), &request, hf_term_abort(term), NULL,
                                     NULL, NULL);
                if (r == 0 || r == HF_E_NOT_FOUND || r == HF_E_EXISTS)
                        exists = r != HF_E_NOT_FOUND;
                (void)hf_cancel_wait(hf_term_drain(term), hf_now(clock) + 20 * HF_NSEC_PER_MSEC);
        }
        return 0;
}

static int add(struct hf_electors *electors, struct hf_client *client, struct group *group,
               struct hf_status *reterr_status) {
        const char *const after[] = {group->first};
        const struct hf_controller controllers[] = {{.size = sizeof(struct hf_controller),
                                                     .name = group->second,
                                                     .run = run_second,
                                                     .ctx = group,
                                                     .after = after,
                                                     .n_after = 1},
                                                    {.size = sizeof(struct hf_controller),
                                                     .name = group->first,
                                                     .run = run_first}};
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .ns = "default",
                                                 .name = group->name,
                                                 .identity = group->identity,
                                                 .client = client,
                                                 .timing = {.lease_duration = 4 * HF_NSEC_PER_SEC,
                                                            .renew_deadline = 2 * HF_NSEC_PER_SEC,
                                                            .retry_period = 300 * HF_NSEC_PER_MSEC},
                                                 .controllers = controllers,
                                                 .n_controllers = 2,
                                                 .labels = (const char *const[]){"group=shown"},
                                                 .n_labels = 1,
                                                 .on_change = on_change};
        (void)snprintf(group->first, sizeof group->first, "%.60s-first", group->name);
        (void)snprintf(group->second, sizeof group->second, "%.60s-second", group->name);
        return hf_electors_add(electors, &config, NULL, reterr_status);
}

int main(int argc, char **argv) {
        struct hf_host host = {.size = sizeof host,
                               .log = {.write = on_log, .max_level = HF_LOG_INFO}};
        struct group groups[MAX_GROUPS] = {0};
        struct hf_electors *electors = NULL;
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        sigset_t signals;
        int number;

        if (argc < 4 || argc - 3 > MAX_GROUPS) {
                fprintf(stderr, "usage: contender-groups KUBECONFIG IDENTITY NAME...\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        sigemptyset(&signals);
        sigaddset(&signals, SIGTERM);
        pthread_sigmask(SIG_BLOCK, &signals, NULL);
        int r = hf__http_global_init();
        r = r != 0 ? r : hf_rest_client_from_kubeconfig(&host, argv[1], &client, &status);
        r = r != 0 ? r : hf_electors_new(&host, &electors);
        for (int i = 3; r == 0 && i < argc; i++) {
                groups[i - 3].name = argv[i];
                groups[i - 3].identity = argv[2];
                r = add(electors, client, &groups[i - 3], &status);
        }
        r = r != 0 ? r : hf_electors_start(electors, &status);
        if (r == 0) {
                (void)sigwait(&signals, &number);
                r = hf_electors_stop(electors, &status);
        }
        if (r != 0)
                fprintf(stderr, "contender-groups: %s: %s\n", hf_strerror(r), status.message);
        hf_electors_free(electors);
        hf_client_free(client);
        return r != 0;
}
