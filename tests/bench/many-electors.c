/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Many electors in one process, on the one loop thread that a set of electors has, each leading
 * under a Lease of its own, until all are stopped at once; then as many bare PUTs of as many Leases
 * by the same client, at the rate at which the electors renewed; then one PUT of each of these
 * Leases, as fast as the client and the server can: what a release of all could take at least.
 *
 *      many-electors KUBECONFIG N SECONDS SERVER_PID STORE_PID
 *
 * STORE_PID: of etcd; 0 = the server's own file is the store. Prints one JSON line: how long until
 * all lead; per phase the calls made and the CPU of the three processes (the kernel's accounting);
 * resident memory, threads and sockets before, while they lead, and after.
 */
#include <dirent.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <holdfast/client_port.h>
#include <holdfast/leader.h>

#include "base/http/global.h"
#include "base/time_format.h"

#define MAX_ELECTORS 10000

static const struct hf_resource leases = {"coordination.k8s.io", "v1", "leases"};
static const struct hf_host host = {.size = sizeof host};
static struct hf_status status;

/* ---- a client that counts the requests that it forwards ---- */

static struct counting {
        struct hf_client base;
        struct hf_client *inner;
        atomic_long n_calls, n_updates, n_watches;
} counting;

static int count_call(struct hf_client *self, const struct hf_request *request, hf_response_fn done,
                      void *ctx, uint64_t *ret_id) {
        atomic_fetch_add(&counting.n_calls, 1);
        if (request->verb == HF_VERB_UPDATE)
                atomic_fetch_add(&counting.n_updates, 1);
        return hf_client_request(counting.inner, request, done, ctx, ret_id);
}
static int count_watch(struct hf_client *self, const struct hf_watch_spec *spec,
                       hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id) {
        atomic_fetch_add(&counting.n_watches, 1);
        return hf_client_watch(counting.inner, spec, on_event, on_end, ctx, ret_id);
}
static void count_cancel(struct hf_client *self, uint64_t id) {
        hf_client_cancel(counting.inner, id);
}
static void count_watch_cancel(struct hf_client *self, uint64_t id) {
        hf_client_watch_cancel(counting.inner, id);
}

static struct hf_client *count(struct hf_client *inner) {
        static const struct hf_client_ops ops = {.size = sizeof ops,
                                                 .request = count_call,
                                                 .cancel = count_cancel,
                                                 .watch = count_watch,
                                                 .watch_cancel = count_watch_cancel};

        counting.base = (struct hf_client){.ops = &ops, .host = &host};
        counting.inner = inner;
        return &counting.base;
}

/* ---- what is measured ---- */

struct reading {
        double seconds, own_cpu, server_cpu, store_cpu; /* all in seconds */
        long n_calls, n_updates;
};

static clockid_t server_clock, store_clock; /* store_clock 0: the store has no process */

static double seconds_of(clockid_t clock) {
        struct timespec t = {0};
        (void)clock_gettime(clock, &t);
        return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static struct reading read_all(void) {
        return (struct reading){.seconds = seconds_of(CLOCK_MONOTONIC),
                                .own_cpu = seconds_of(CLOCK_PROCESS_CPUTIME_ID),
                                .server_cpu = seconds_of(server_clock),
                                .store_cpu = store_clock ? seconds_of(store_clock) : 0,
                                .n_calls = atomic_load(&counting.n_calls),
                                .n_updates = atomic_load(&counting.n_updates)};
}

static void print_phase(const char *name, struct reading from, struct reading to) {
        printf("\"%s\":{\"seconds\":%.3f,\"calls\":%ld,\"updates\":%ld,\"own_cpu\":%.6f,"
               "\"server_cpu\":%.6f,\"store_cpu\":%.6f},",
               name, to.seconds - from.seconds, to.n_calls - from.n_calls,
               to.n_updates - from.n_updates, to.own_cpu - from.own_cpu,
               to.server_cpu - from.server_cpu, to.store_cpu - from.store_cpu);
}

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

static int n_sockets(void) {
        DIR *dir = opendir("/proc/self/fd");
        int n = 0;

        for (struct dirent *entry; dir && (entry = readdir(dir));) {
                char path[300], target[64] = "";
                snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
                if (readlink(path, target, sizeof target - 1) > 0 &&
                    strncmp(target, "socket:", 7) == 0)
                        n++;
        }
        if (dir)
                closedir(dir);
        return n;
}

static void print_size(const char *name) {
        printf("\"%s\":{\"rss_kib\":%ld,\"anon_kib\":%ld,\"threads\":%ld,\"sockets\":%d},", name,
               status_field("VmRSS"), status_field("RssAnon"), status_field("Threads"),
               n_sockets());
}

static void rest(double seconds) {
        struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
        while (nanosleep(&t, &t) != 0)
                ;
}

/* ---- the electors ---- */

static atomic_bool leading[MAX_ELECTORS];
static atomic_int n_leading;
static atomic_long n_losses;

static void on_change(void *ctx, const struct hf_leader_info *info) {
        atomic_bool *mine = ctx;
        bool leads = info->state == HF_LEADING, led = atomic_exchange(mine, leads);

        if (leads != led)
                atomic_fetch_add(&n_leading, leads ? 1 : -1);
        if (led && info->state == HF_ABORTING)
                atomic_fetch_add(&n_losses, 1);
}

static int check(int r, const char *what) {
        if (r == 0)
                return 0;
        fprintf(stderr, "many-electors: %s: %s: %s\n", what, hf_strerror(r), status.message);
        exit(1);
}

static struct hf_electors *start(struct hf_client *client, int n) {
        struct hf_electors *electors = NULL;

        check(hf_electors_new(&host, &electors), "new");
        for (int i = 0; i < n; i++) {
                char name[32], identity[48];
                struct hf_elector *elector;
                snprintf(name, sizeof name, "bench-%d", i);
                snprintf(identity, sizeof identity, "bench_%d_%ld", i, (long)getpid());
                struct hf_elector_config config = {.size = sizeof config,
                                                   .ns = "default",
                                                   .name = name,
                                                   .identity = identity,
                                                   .client = client,
                                                   .on_change = on_change,
                                                   .ctx = &leading[i]};
                hf_leader_timing_defaults(&config.timing);
                check(hf_electors_add(electors, &config, &elector, &status), "add");
        }
        check(hf_electors_start(electors, &status), "start");
        return electors;
}

/* ---- bare writes ---- */

#define MAX_UNDER_WAY 128 /* as many operations as the electors of one client have under way */

struct slot {
        char name[32], rv[32];
        atomic_bool busy;
};
static atomic_long n_failed;

static struct {
        pthread_mutex_t mu;
        pthread_cond_t ended;
        int n; /* guarded by mu */
} under_way = {.mu = PTHREAD_MUTEX_INITIALIZER, .ended = PTHREAD_COND_INITIALIZER};

/* Waits until fewer than this are under way. */
static void wait_for_room(int n) {
        pthread_mutex_lock(&under_way.mu);
        while (under_way.n >= n)
                pthread_cond_wait(&under_way.ended, &under_way.mu);
        pthread_mutex_unlock(&under_way.mu);
}

static void count_under_way(int change) {
        pthread_mutex_lock(&under_way.mu);
        under_way.n += change;
        pthread_cond_signal(&under_way.ended);
        pthread_mutex_unlock(&under_way.mu);
}

static void on_written(void *ctx, const struct hf_response *reply) {
        static const char key[] = "\"resourceVersion\":\"";
        struct slot *slot = ctx;
        const char *at = reply->error == 0 && reply->body
                                 ? memmem(reply->body, reply->n_body, key, sizeof key - 1)
                                 : NULL;

        if (reply->error && atomic_load(&n_failed) == 0)
                fprintf(stderr, "many-electors: %s: %s\n", hf_strerror(reply->error),
                        reply->status.message);
        if (at)
                snprintf(slot->rv, sizeof slot->rv, "%.*s", (int)strcspn(at + sizeof key - 1, "\""),
                         at + sizeof key - 1);
        else
                atomic_fetch_add(&n_failed, 1);
        atomic_store(&slot->busy, false);
        count_under_way(-1);
}

static void write_bare(struct hf_client *client, struct slot *slot, const char *holder) {
        char body[1024], now[HF__MICROTIME_MAX];
        const struct hf_clock *clock = hf_clock_system();
        bool exists = slot->rv[0];

        if (atomic_exchange(&slot->busy, true))
                return; /* the last request has no response yet */
        hf__microtime_format(clock->real(clock->ctx) / 1000, now);
        int n = snprintf(body, sizeof body,
                         "{\"kind\":\"Lease\",\"apiVersion\":\"coordination.k8s.io/"
                         "v1\",\"metadata\":{\"name\":\"%s\",\"namespace\":\"default\"%s%s%s},"
                         "\"spec\":{\"holderIdentity\":\"%s\",\"leaseDurationSeconds\":"
                         "15,\"acquireTime\":\"2026-01-01T00:00:00."
                         "000000Z\","
                         "\"renewTime\":\"%s\",\"leaseTransitions\":0}}",
                         slot->name, exists ? ",\"resourceVersion\":\"" : "", slot->rv,
                         exists ? "\"" : "", holder, now);
        const struct hf_request request = {.size = sizeof request,
                                           .verb = exists ? HF_VERB_UPDATE : HF_VERB_CREATE,
                                           .resource = leases,
                                           .ns = "default",
                                           .name = exists ? slot->name : NULL,
                                           .body = body,
                                           .n_body = (size_t)n,
                                           .lane = HF_LANE_LEASE};
        count_under_way(1);
        if (hf_client_request(client, &request, on_written, slot, NULL) != 0) {
                atomic_fetch_add(&n_failed, 1);
                count_under_way(-1);
        }
}

/* Sends one write at a time at this rate, as renewals are sent. */
static void write_paced(struct hf_client *client, struct slot *slots, int n, double rate,
                        double seconds) {
        double begin = seconds_of(CLOCK_MONOTONIC);

        for (long i = 0; (double)i / rate < seconds; i++) {
                double due = begin + (double)i / rate, now = seconds_of(CLOCK_MONOTONIC);
                if (due > now)
                        rest(due - now);
                write_bare(client, &slots[i % n], "bare_write");
        }
}

/* Writes each once, with as many under way as the electors have. The holder changes, as it does in
 * a release, so the server also writes the term record. */
static void write_burst(struct hf_client *client, struct slot *slots, int n) {
        for (int i = 0; i < n; i++) {
                wait_for_room(MAX_UNDER_WAY);
                write_bare(client, &slots[i], "");
        }
        wait_for_room(1);
}

/* ---- the run ---- */

/* Writes at the rate of the renewals, without electors, to compare. Creates the Leases first. */
static void measure_bare(struct hf_client *counted, struct slot *slots, int n, double rate,
                         double seconds) {
        for (int i = 0; i < n; i++)
                snprintf(slots[i].name, sizeof slots[i].name, "bare-%d", i);
        write_paced(counted, slots, n, rate, (double)n / rate);
        wait_for_room(1);
        struct reading from = read_all();
        write_paced(counted, slots, n, rate, seconds);
        wait_for_room(1);
        print_phase("bare", from, read_all());
        from = read_all();
        write_burst(counted, slots, n);
        print_phase("burst", from, read_all());
}

int main(int argc, char **argv) {
        struct hf_client *client = NULL;

        int n = argc == 6 ? atoi(argv[2]) : 0;
        double seconds = argc == 6 ? atof(argv[3]) : 0;
        if (n < 1 || n > MAX_ELECTORS || seconds <= 0 ||
            clock_getcpuclockid((pid_t)atol(argv[4]), &server_clock) != 0 ||
            (atol(argv[5]) && clock_getcpuclockid((pid_t)atol(argv[5]), &store_clock) != 0)) {
                fprintf(stderr, "usage: many-electors KUBECONFIG N SECONDS SERVER_PID STORE_PID\n");
                return 2;
        }
        signal(SIGPIPE, SIG_IGN);
        check(hf__http_global_init(), "init");
        check(hf_rest_client_from_kubeconfig(&host, argv[1], &client, &status), "client");
        struct hf_client *counted = count(client);

        printf("{\"electors\":%d,", n);
        print_size("before");
        struct reading from = read_all();
        struct hf_electors *electors = start(counted, n);
        while (atomic_load(&n_leading) < n)
                rest(0.005);
        print_phase("acquire", from, read_all());
        rest(5); /* the first renewals are as close together as the acquires were */
        from = read_all();
        rest(seconds);
        struct reading to = read_all();
        print_phase("lead", from, to);
        print_size("leading");
        double rate = (double)(to.n_updates - from.n_updates) / (to.seconds - from.seconds);
        from = read_all();
        check(hf_electors_stop(electors, &status), "stop");
        print_phase("release", from, read_all());
        hf_electors_free(electors);

        struct slot *slots = calloc((size_t)n, sizeof *slots);
        if (!slots)
                return 1;
        measure_bare(counted, slots, n, rate, seconds);
        print_size("after");
        printf("\"watches\":%ld,\"losses\":%ld,\"failed\":%ld}\n", atomic_load(&counting.n_watches),
               atomic_load(&n_losses), atomic_load(&n_failed));
        hf_client_free(client);
        free(slots);
        return 0;
}
