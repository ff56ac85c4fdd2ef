/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Load on the Lease API of a server, with IN_FLIGHT requests at a time. Each slot uses a separate
 * Lease and sends GET after GET, or PUT after PUT with the resourceVersion of the last response.
 *
 *      lease-load KUBECONFIG get|put IN_FLIGHT REQUESTS SERVER_PID
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
#include "base/json.h"
#include "base/time_format.h"

#define MAX_SLOTS 256

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};

struct slot {
        char name[32], rv[32];
        bool exists;
};

static struct hf_client *client;
static bool put;
static long wanted;
static atomic_long sent, answered, failed;
static struct slot slots[MAX_SLOTS];
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static int running; /* guarded by mu */

static void next(struct slot *slot);

static void leave(void) {
        pthread_mutex_lock(&mu);
        running--;
        pthread_cond_signal(&cond);
        pthread_mutex_unlock(&mu);
}

/*
 * Reads the resourceVersion without parsing the whole response, so that the load client is cheap.
 */
static void copy_resource_version(struct slot *slot, const char *body) {
        static const char key[] = "\"resourceVersion\":\"";
        const char *at = body ? strstr(body, key) : NULL;

        if (at)
                snprintf(slot->rv, sizeof slot->rv, "%.*s", (int)strcspn(at + sizeof key - 1, "\""),
                         at + sizeof key - 1);
}

static void on_reply(void *ctx, const struct hf_response *reply) {
        struct slot *slot = ctx;

        if (reply->error && !(reply->error == HF_E_EXISTS && !slot->exists)) {
                if (atomic_fetch_add(&failed, 1) == 0)
                        fprintf(stderr, "lease-load: %s: %s\n", hf_strerror(reply->error),
                                reply->status.message);
        } else if (put || !slot->exists) {
                copy_resource_version(slot, reply->body);
        }
        slot->exists = true;
        atomic_fetch_add(&answered, 1);
        next(slot);
}

static void next(struct slot *slot) {
        char body[700], now[HF__MICROTIME_MAX];
        const struct hf_clock *clock = hf_clock_system();
        struct hf_request request = {.size = sizeof request,
                                     .resource = leases,
                                     .ns = "default",
                                     .name = slot->name};

        if (atomic_fetch_add(&sent, 1) >= wanted) {
                leave();
                return;
        }
        hf__microtime_format(clock->real(clock->ctx) / 1000, now);
        request.verb = put ? HF_VERB_UPDATE : HF_VERB_GET;
        if (!slot->exists)
                request.verb = HF_VERB_CREATE;
        if (request.verb != HF_VERB_GET) {
                int n = snprintf(body, sizeof body,
                                 "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/v1\","
                                 "\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"%s%s%s},"
                                 "\"spec\":{\"holderIdentity\":\"load\","
                                 "\"leaseDurationSeconds\":15,\"renewTime\":\"%s\"}}",
                                 slot->name, slot->exists ? ",\"resourceVersion\":\"" : "",
                                 slot->exists ? slot->rv : "", slot->exists ? "\"" : "", now);
                request.body = body;
                request.n_body = (size_t)n;
        }
        if (request.verb == HF_VERB_CREATE)
                request.name = NULL;
        if (hf_client_request(client, &request, on_reply, slot, NULL))
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

static void run(int n_slots, long requests) {
        wanted = requests;
        atomic_store(&sent, 0);
        atomic_store(&answered, 0);
        running = n_slots;
        for (int i = 0; i < n_slots; i++)
                next(&slots[i]);
        pthread_mutex_lock(&mu);
        while (running > 0)
                pthread_cond_wait(&cond, &mu);
        pthread_mutex_unlock(&mu);
}

int main(int argc, char **argv) {
        struct hf_host host = {.size = sizeof host};
        struct hf_status status = {0};

        if (argc != 6) {
                fprintf(stderr,
                        "usage: lease-load KUBECONFIG get|put IN_FLIGHT REQUESTS SERVER_PID\n");
                return 2;
        }
        int n_slots = atoi(argv[3]);
        long pid = atol(argv[5]);
        if (n_slots < 1 || n_slots > MAX_SLOTS) {
                fprintf(stderr, "lease-load: IN_FLIGHT is 1 to %d\n", MAX_SLOTS);
                return 2;
        }
        if (hf__http_global_init()) {
                fprintf(stderr, "lease-load: libcurl cannot be initialised\n");
                return 1;
        }
        if (hf_rest_client_from_kubeconfig(&host, argv[1], &client, &status)) {
                fprintf(stderr, "lease-load: %s\n", status.message);
                return 1;
        }
        for (int i = 0; i < n_slots; i++)
                snprintf(slots[i].name, sizeof slots[i].name, "load-%d", i);
        run(n_slots, n_slots); /* creates the Leases, or finds that they exist */
        put = false;
        for (int i = 0; i < n_slots; i++)
                slots[i].exists = true;
        if (strcmp(argv[2], "put") == 0) {
                for (int i = 0; i < n_slots; i++) {
                        struct hf_request get = {.size = sizeof get,
                                                 .verb = HF_VERB_GET,
                                                 .resource = leases,
                                                 .ns = "default",
                                                 .name = slots[i].name};
                        char *text = NULL;
                        if (hf_client_do(client, &get, hf_cancel_never(), &text, NULL, &status) ==
                            0)
                                copy_resource_version(&slots[i], text);
                        free(text);
                }
                put = true;
        }
        atomic_store(&failed, 0);
        const struct hf_clock *clock = hf_clock_system();
        double cpu = cpu_of(pid);
        hf_nsec begin = clock->monotonic(clock->ctx);
        run(n_slots, atol(argv[4]));
        double seconds = (double)(clock->monotonic(clock->ctx) - begin) / 1e9;
        printf("{\"verb\":\"%s\",\"in_flight\":%d,\"requests\":%ld,\"seconds\":%.3f,\"cpu_us_per_"
               "request\":%.1f,\"failed\":%ld}\n",
               argv[2], n_slots, atomic_load(&answered), seconds,
               (cpu_of(pid) - cpu) / (double)atomic_load(&answered), atomic_load(&failed));
        hf_client_free(client);
        return atomic_load(&failed) != 0;
}
