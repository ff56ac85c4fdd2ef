/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load of server-side apply, with IN_FLIGHT requests at a time. The objects are CONFIGMAPS
 * different ConfigMaps of five keys. A run writes each of them once.
 *
 *      apply-load KUBECONFIG MODE IN_FLIGHT CONFIGMAPS ROUND SERVER_PID
 *
 * ROUND is the value of one of the keys. MODE: `put` writes by an update without a resourceVersion.
 * All others apply, and differ only in the output: `create` says that the objects do not exist yet,
 * `apply` that ROUND differs from that of the run before, and `same` that it is the same, so that
 * nothing changes.
 *
 * Prints one JSON line: requests, seconds, microseconds of the server's CPU per request (of
 * SERVER_PID, from /proc), failures.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <holdfast/client.h>

#include "base/http/global.h"

static const struct hf_resource maps = {"", "v1", "configmaps"};

static struct hf_client *client;
static bool put;
static long wanted, round_number;
static atomic_long sent, answered, failed;
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int running; /* guarded by mu */

static void next(void);

static void leave(void) {
        pthread_mutex_lock(&mu);
        running--;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mu);
}

static void on_reply(void *ctx, const struct hf_response *reply) {
        if (reply->error && atomic_fetch_add(&failed, 1) == 0)
                fprintf(stderr, "apply-load: %s: %s\n", hf_strerror(reply->error),
                        reply->status.message);
        atomic_fetch_add(&answered, 1);
        next();
}

static void next(void) {
        long i = atomic_fetch_add(&sent, 1);
        char name[32], body[700];

        if (i >= wanted) {
                leave();
                return;
        }
        (void)snprintf(name, sizeof name, "load-%ld", i);
        int n = snprintf(
                body, sizeof body,
                "{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"%s\","
                "\"namespace\":\"default\",\"labels\":{\"app\":\"load\"}},\"data\":{"
                "\"one\":\"value of the first key\",\"two\":\"value of the second key\","
                "\"three\":\"value of the third key\",\"four\":\"value of the fourth key\","
                "\"round\":\"%ld\"}}",
                name, round_number);
        struct hf_request request = {.size = sizeof request,
                                     .verb = put ? HF_VERB_UPDATE : HF_VERB_PATCH,
                                     .patch = put ? HF_PATCH_MERGE : HF_PATCH_APPLY,
                                     .resource = maps,
                                     .ns = "default",
                                     .name = name,
                                     .query = put ? "fieldManager=put"
                                                  : "fieldManager=load&force=true",
                                     .body = body,
                                     .n_body = (size_t)n};
        if (hf_client_request(client, &request, on_reply, NULL, NULL))
                leave();
}

/* The CPU time of a process in microseconds. */
static double cpu_of(long pid) {
        char path[64], text[1024];
        unsigned long user = 0, system = 0;

        snprintf(path, sizeof path, "/proc/%ld/stat", pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return 0;
        if (fgets(text, sizeof text, file)) {
                char *rest = strrchr(text, ')');
                if (rest)
                        sscanf(rest + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu",
                               &user, &system);
        }
        fclose(file);
        return (double)(user + system) * 1e6 / (double)sysconf(_SC_CLK_TCK);
}

static void run(int n_in_flight) {
        running = n_in_flight;
        for (int i = 0; i < n_in_flight; i++)
                next();
        pthread_mutex_lock(&mu);
        while (running > 0)
                pthread_cond_wait(&cond, &mu);
        pthread_mutex_unlock(&mu);
}

int main(int argc, char **argv) {
        struct hf_host host = {.size = sizeof host};
        struct hf_status status = {0};

        if (argc != 7) {
                fprintf(stderr, "usage: apply-load KUBECONFIG create|apply|same|put IN_FLIGHT "
                                "CONFIGMAPS ROUND SERVER_PID\n");
                return 2;
        }
        long pid = atol(argv[6]);
        put = strcmp(argv[2], "put") == 0;
        wanted = atol(argv[4]);
        round_number = atol(argv[5]);
        if (hf__http_global_init()) {
                fprintf(stderr, "apply-load: libcurl cannot be initialised\n");
                return 1;
        }
        if (hf_rest_client_from_kubeconfig(&host, argv[1], &client, &status)) {
                fprintf(stderr, "apply-load: %s\n", status.message);
                return 1;
        }
        const struct hf_clock *clock = hf_clock_system();
        double cpu = cpu_of(pid);
        hf_nsec begin = clock->monotonic(clock->ctx);
        run(atoi(argv[3]));
        double seconds = (double)(clock->monotonic(clock->ctx) - begin) / 1e9;
        printf("{\"mode\":\"%s\",\"requests\":%ld,\"seconds\":%.3f,\"cpu_us_per_request\":%.1f,"
               "\"failed\":%ld}\n",
               argv[2], atomic_load(&answered), seconds,
               (cpu_of(pid) - cpu) / (double)atomic_load(&answered), atomic_load(&failed));
        hf_client_free(client);
        return atomic_load(&failed) != 0;
}
