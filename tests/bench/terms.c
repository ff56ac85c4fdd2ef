/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many terms in one process: two electors hand one Lease to each other, each term with a reconciler
 * over a shared informer that must see what was changed before it. What a term leaves behind would
 * show in memory, handlers, threads or descriptors.
 *
 *      terms KUBECONFIG N_TERMS
 *
 * Prints one JSON line: terms, seconds, resident memory after each tenth (KiB), and handlers,
 * threads and descriptors at the first and the last.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/reconciler.h>

#include "base/http/global.h"

#define N_SAMPLES 10

static const struct hf_host host = {.size = sizeof host};
static struct hf_status status;
static struct hf_informer *informer;

static struct {
        pthread_mutex_t mu;
        pthread_cond_t changed;
        int leads;         /* which of the two electors leads; -1 = none */
        long n_terms;      /* terms in which a key was handled */
        size_t n_handlers; /* the maximum at one time */
} w = {.mu = PTHREAD_MUTEX_INITIALIZER, .leads = -1};

static void check(int r, const char *what) {
        if (r == 0)
                return;
        fprintf(stderr, "terms: %s: %s: %s\n", what, hf_strerror(r), status.message);
        exit(1);
}

/* ---- a term ---- */

struct run {
        int me;
        atomic_bool counted; /* in this term */
};

static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct run *run = ctx;
        size_t n = hf_informer_n_handlers(informer);

        if (atomic_exchange(&run->counted, true))
                return 0;
        pthread_mutex_lock(&w.mu);
        w.n_terms++;
        w.leads = run->me;
        w.n_handlers = n > w.n_handlers ? n : w.n_handlers;
        pthread_cond_broadcast(&w.changed);
        pthread_mutex_unlock(&w.mu);
        return 0;
}

static int run_controller(struct hf_term *term, void *ctx) {
        struct run run = {.me = *(int *)ctx};
        const struct hf_reconciler_source source = {.size = sizeof source, .informer = informer};
        const struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                                 .name = "terms",
                                                 .sources = &source,
                                                 .n_sources = 1,
                                                 .n_workers = 2,
                                                 .reconcile = reconcile,
                                                 .ctx = &run};
        return hf_reconciler_run(&reconciler, term);
}

/* ---- what is measured ---- */

static long status_field(const char *name) {
        char line[256];
        long value = -1;
        FILE *file = fopen("/proc/self/status", "re");

        while (file && fgets(line, sizeof line, file))
                if (strncmp(line, name, strlen(name)) == 0)
                        value = atol(line + strlen(name) + 1);
        if (file)
                fclose(file);
        return value;
}

static int n_descriptors(void) {
        DIR *dir = opendir("/proc/self/fd");
        int n = 0;

        while (dir && readdir(dir))
                n++;
        if (dir)
                closedir(dir);
        return n;
}

static void print_counts(const char *name) {
        printf("\"%s\":{\"handlers\":%zu,\"threads\":%ld,\"descriptors\":%d},", name,
               hf_informer_n_handlers(informer), status_field("Threads"), n_descriptors());
}

/* ---- the run ---- */

static void make_informer(struct hf_client *client) {
        static const struct hf_resource configmaps = {"", "v1", "configmaps"};
        static const char body[] = "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                                   "\"name\":\"terms\",\"namespace\":\"default\"}}";
        const struct hf_request create = {.size = sizeof create,
                                          .verb = HF_VERB_CREATE,
                                          .resource = configmaps,
                                          .ns = "default",
                                          .body = body,
                                          .n_body = sizeof body - 1};
        const struct hf_informer_config config = {.size = sizeof config,
                                                  .client = client,
                                                  .resource = configmaps,
                                                  .ns = "default",
                                                  .one_revision = true};

        check(hf_client_do(client, &create, hf_cancel_never(), NULL, NULL, &status), "create");
        check(hf_informer_new(&host, &config, &informer), "cache");
        check(hf_informer_start(informer), "cache");
}

static struct hf_electors *start(struct hf_client *client, int *me,
                                 struct hf_elector **ret_elector) {
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "terms",
                                                 .runs = HF_LEADER_ONLY,
                                                 .run = run_controller,
                                                 .ctx = me};
        char identity[16];
        struct hf_electors *electors = NULL;

        snprintf(identity, sizeof identity, "terms_%d", *me);
        struct hf_elector_config config = {.size = sizeof config,
                                           .ns = "default",
                                           .name = "terms",
                                           .identity = identity,
                                           .client = client,
                                           .controllers = &controller,
                                           .n_controllers = 1};
        hf_leader_timing_defaults(&config.timing);
        config.timing.retry_period = 5 * HF_NSEC_PER_MSEC; /* an elector that has released waits for
                                                              two of them before it leads again */
        check(hf_electors_new(&host, &electors), "electors");
        check(hf_electors_add(electors, &config, ret_elector, &status), "add");
        check(hf_electors_start(electors, &status), "start");
        return electors;
}

/* Waits until the next term has done something. Returns which elector leads. */
static int await_term(long n) {
        const struct hf_clock *clock = hf_clock_system();

        pthread_mutex_lock(&w.mu);
        while (w.n_terms < n)
                (void)clock->wait(clock->ctx, &w.changed, &w.mu, HF_NSEC_NEVER);
        int leads = w.leads;
        pthread_mutex_unlock(&w.mu);
        return leads;
}

int main(int argc, char **argv) {
        const struct hf_clock *clock = hf_clock_system();
        struct hf_electors *electors[2];
        struct hf_elector *elector[2];
        struct hf_client *client = NULL;
        int me[2] = {0, 1};
        long n = argc == 3 ? atol(argv[2]) : 0;

        if (n < N_SAMPLES) {
                fprintf(stderr, "usage: terms KUBECONFIG N_TERMS\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        check(hf_cond_init(&w.changed), "init");
        check(hf__http_global_init(), "init");
        check(hf_rest_client_from_kubeconfig(&host, argv[1], &client, &status), "client");
        make_informer(client);
        for (int i = 0; i < 2; i++)
                electors[i] = start(client, &me[i], &elector[i]);
        hf_nsec begin = clock->monotonic(clock->ctx);
        printf("{\"rss_kib\":[");
        long sample[N_SAMPLES] = {0};
        for (long i = 1; i <= n; i++) {
                int leads = await_term(i);
                if (i % (n / N_SAMPLES) == 0 && i / (n / N_SAMPLES) <= N_SAMPLES)
                        sample[i / (n / N_SAMPLES) - 1] = status_field("VmRSS");
                if (i < n)
                        check(hf_elector_hand_over(elector[leads],
                                                   leads == 0 ? "terms_1" : "terms_0"),
                              "hand over");
        }
        for (int i = 0; i < N_SAMPLES; i++)
                printf("%s%ld", i ? "," : "", sample[i]);
        printf("],\"seconds\":%.3f,", (double)(clock->monotonic(clock->ctx) - begin) / 1e9);
        print_counts("last");
        for (int i = 0; i < 2; i++) {
                check(hf_electors_stop(electors[i], &status), "stop");
                hf_electors_free(electors[i]);
        }
        print_counts("stopped");
        printf("\"terms\":%ld,\"most_handlers\":%zu}\n", n, w.n_handlers);
        hf_informer_free(informer);
        hf_client_free(client);
        return 0;
}
