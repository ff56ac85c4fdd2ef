/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The etcd store over an etcd that is killed, stopped, restarted, silent, or behind TLS. Nothing is
 * timed: each operation must end, and its reported outcome must be true.
 */
#undef NDEBUG
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/buf.h"
#include "patience.h"
#include "server/storage/etcd/store.h"
#include "store_client.h"
#include "store_fixture.h"
#include "watch_recorder.h"

extern char **environ;

static const struct hf_host host = {.size = sizeof(struct hf_host)};
static struct etcd_spawn etcd;

static struct hfd_store *open_store(const char *first, const char *second) {
        const char *endpoints[] = {first, second, NULL};
        struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hfd_store *store = NULL;
        struct hf_status status;

        assert_int_equal(hfd_etcd_store_new(&host, &config, &store, &status), 0);
        return store;
}

static int put(struct hfd_store *store, const char *key, unsigned deadline_ms,
               uint64_t *ret_revision) {
        struct hfd_op op = {.kind = HFD_PUT, .key = key, .value = hf__buf_copy("v", 1)};
        struct hfd_txn txn = {.ops = &op, .n_ops = 1};
        struct store_reply response;
        int r;

        store_reply_init(&response);
        r = store->ops->txn(store, &txn, in_msec(deadline_ms), store_reply_fill, &response);
        if (r == 0)
                r = store_reply_wait(&response);
        if (r == 0 && ret_revision)
                *ret_revision = response.revision;
        store_reply_deinit(&response);
        hf__buf_unref(op.value);
        return r;
}

/* After a restart the first requests may still use the dead connection. */
static void put_at_last(struct hfd_store *store, const char *key) {
        for (int i = 0; i < 100; i++) {
                int r = put(store, key, 5000, NULL);

                if (r == 0)
                        return;
                assert_true(r == HF_E_UNAVAILABLE || r == HF_E_TIMEOUT);
        }
        fail_msg("the store does not come back");
}

static bool exists(struct hfd_store *store, const char *key) {
        struct store_reply response;
        bool found;

        assert_int_equal(store_client_get(store, key, &response), 0);
        found = response.n_kvs;
        store_reply_deinit(&response);
        return found;
}

enum { N_WRITERS = 8, N_WRITES = 100000 };

struct writer {
        struct hfd_store *store;
        int number;
        atomic_int acknowledged; /* the first n writes were acknowledged */
        int last;                /* the outcome of the write after those */
};

static void *writer_run(void *ctx) {
        struct writer *writer = ctx;
        char key[64];

        for (int i = 0; i < N_WRITES; i++) {
                snprintf(key, sizeof key, "/kill/%d/%d", writer->number, i);
                writer->last = put(writer->store, key, 5000, NULL);
                if (writer->last)
                        break;
                atomic_store(&writer->acknowledged, i + 1);
        }
        return NULL;
}

static int n_acknowledged(struct writer writers[N_WRITERS]) {
        int total = 0;

        for (int i = 0; i < N_WRITERS; i++)
                total += atomic_load(&writers[i].acknowledged);
        return total;
}

static void test_killing_etcd_loses_no_acknowledged_write(void **state) {
        struct hfd_store *store = open_store(etcd.url, NULL);
        struct writer writers[N_WRITERS];
        pthread_t threads[N_WRITERS];
        char key[64];

        for (int i = 0; i < N_WRITERS; i++) {
                writers[i] = (struct writer){.store = store, .number = i};
                assert_int_equal(pthread_create(&threads[i], NULL, writer_run, &writers[i]), 0);
        }
        PATIENCE_AWAIT(n_acknowledged(writers) >= 400);
        etcd_spawn_signal(&etcd, SIGKILL);
        for (int i = 0; i < N_WRITERS; i++)
                pthread_join(threads[i], NULL);
        assert_true(etcd_spawn_restart(&etcd, NULL));
        put_at_last(store, "/kill/again");
        for (int i = 0; i < N_WRITERS; i++) {
                assert_true(writers[i].last == HF_E_TIMEOUT || writers[i].last == HF_E_UNAVAILABLE);
                for (int j = 0; j < writers[i].acknowledged; j++) {
                        snprintf(key, sizeof key, "/kill/%d/%d", i, j);
                        assert_true(exists(store, key));
                }
                snprintf(key, sizeof key, "/kill/%d/%d", i, writers[i].acknowledged);
                if (writers[i].last == HF_E_UNAVAILABLE)
                        assert_false(exists(store, key)); /* "certainly not done" */
        }
        store->ops->free(store);
}

static void test_a_stopped_etcd_blocks_nothing(void **state) {
        struct hfd_store *store = open_store(etcd.url, NULL), *closed = open_store(etcd.url, NULL);
        struct store_reply get, left;
        static struct watch_recorder recorder, earlier;

        put_at_last(store, "/stop/before");
        assert_int_equal(watch_recorder_start(&earlier, store, "/stop/", "/stop0",
                                              store_client_revision(store)),
                         0);
        watch_recorder_await(&earlier, 1);
        put_at_last(closed, "/stop/before");
        etcd_spawn_signal(&etcd, SIGSTOP);
        store_reply_init(&get);
        store_reply_init(&left);
        assert_int_equal(watch_recorder_start(&recorder, store, "/stop/", "/stop0", 0), 0);
        assert_int_equal(store->ops->get(store, "/stop/before", false, in_msec(300),
                                         store_reply_fill, &get),
                         0);
        assert_int_equal(put(store, "/stop/unknown", 300, NULL), HF_E_TIMEOUT);
        assert_int_equal(store_reply_wait(&get), HF_E_TIMEOUT);
        /* Freeing the store does not wait for deadlines. */
        assert_int_equal(closed->ops->get(closed, "/stop/before", false, in_msec(600000),
                                          store_reply_fill, &left),
                         0);
        closed->ops->free(closed);
        assert_int_equal(store_reply_wait(&left), HF_E_CANCELED);
        /* A watch without a sign of life ends, whether it has begun or not. */
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_UNAVAILABLE);
        assert_int_equal(watch_recorder_await_end(&earlier), HF_E_UNAVAILABLE);
        etcd_spawn_signal(&etcd, SIGCONT);
        put_at_last(store, "/stop/after");
        assert_true(exists(store, "/stop/after"));
        store_reply_deinit(&get);
        store_reply_deinit(&left);
        watch_recorder_stop(&recorder);
        watch_recorder_stop(&earlier);
        store->ops->free(store);
}

static hf_nsec fast_boot(void *ctx) {
        const struct hf_clock *clock = hf_clock_system();

        return 4 * hf_now(clock);
}

/* etcd responds to the progress requests of an idle watch, so the watch stays. The clock is faster,
 * so that several are sent soon; each makes the store's loop iterate twice. */
static void test_an_idle_watch_stays(void **state) {
        static const struct hf_clock clock = {.size = sizeof clock, .boot = fast_boot};
        static const struct hf_host fast_host = {.size = sizeof fast_host, .clock = &clock};
        static struct watch_recorder recorder;
        const char *endpoints[] = {etcd.url, NULL};
        struct hfd_etcd_config config = {.endpoints = endpoints};
        struct hfd_store *store = open_store(etcd.url, NULL), *fast = NULL;
        struct hf_status status;
        uint64_t revision, turns;

        revision = store_client_revision(store);
        assert_int_equal(hfd_etcd_store_new(&fast_host, &config, &fast, &status), 0);
        assert_int_equal(watch_recorder_start(&recorder, fast, "/idle/", "/idle0", revision + 1),
                         0);
        assert_int_equal(put(store, "/idle/a", 5000, NULL), 0);
        watch_recorder_await(&recorder, 1);
        turns = fast->ops->iterations(fast);
        PATIENCE_AWAIT(fast->ops->iterations(fast) >= turns + 10);
        assert_int_equal(put(store, "/idle/b", 5000, NULL), 0);
        watch_recorder_await(&recorder, 2);
        assert_int_equal(recorder.n, 2);
        assert_false(recorder.ended);
        watch_recorder_stop(&recorder);
        fast->ops->free(fast);
        store->ops->free(store);
}

static void test_a_watch_is_resumed_without_a_gap(void **state) {
        enum { N = 40 };
        struct hfd_store *store = open_store(etcd.url, NULL);
        uint64_t revisions[N], last;
        static struct watch_recorder before, after;
        char key[64];

        put_at_last(store, "/resume");
        assert_int_equal(watch_recorder_start(&before, store, "/resume/", "/resume0",
                                              store_client_revision(store) + 1),
                         0);
        for (int i = 0; i < N / 2; i++) {
                snprintf(key, sizeof key, "/resume/%d", i);
                assert_int_equal(put(store, key, 5000, &revisions[i]), 0);
        }
        watch_recorder_await(&before, 1);
        etcd_spawn_signal(&etcd, SIGKILL);
        assert_int_equal(watch_recorder_await_end(&before), HF_E_UNAVAILABLE);
        assert_true(before.n >= 1);
        last = before.events[before.n - 1].revision;

        assert_true(etcd_spawn_restart(&etcd, NULL));
        put_at_last(store, "/resume");
        assert_int_equal(watch_recorder_start(&after, store, "/resume/", "/resume0", last + 1), 0);
        for (int i = N / 2; i < N; i++) {
                snprintf(key, sizeof key, "/resume/%d", i);
                assert_int_equal(put(store, key, 5000, &revisions[i]), 0);
        }
        watch_recorder_await(&after, N - before.n);
        assert_int_equal(before.n + after.n, N);
        for (size_t i = 0; i < N; i++) {
                const struct watch_recorder_event *event =
                        i < before.n ? &before.events[i] : &after.events[i - before.n];

                assert_int_equal(event->revision, revisions[i]);
        }
        watch_recorder_stop(&before);
        watch_recorder_stop(&after);
        store->ops->free(store);
}

/* A port that accepts connections in the kernel and never responds. */
static int silent_listener(char *url, size_t max_url) {
        struct sockaddr_in address = {.sin_family = AF_INET,
                                      .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t n = sizeof address;
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert_true(fd >= 0);
        assert_int_equal(bind(fd, (struct sockaddr *)&address, n), 0);
        assert_int_equal(listen(fd, 16), 0);
        assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &n), 0);
        snprintf(url, max_url, "http://127.0.0.1:%d", ntohs(address.sin_port));
        return fd;
}

static void test_operations_fail_over_to_the_next_endpoint(void **state) {
        static struct watch_recorder recorder;
        struct hfd_store *store;
        char refusing[64];

        snprintf(refusing, sizeof refusing, "http://127.0.0.1:%d", etcd_spawn_free_port());
        store = open_store(refusing, etcd.url);
        /* An operation that was certainly not done goes to the next endpoint, even a write. */
        assert_int_equal(put(store, "/failover/a", 10000, NULL), 0);
        assert_true(exists(store, "/failover/a"));
        store->ops->free(store);

        store = open_store(refusing, etcd.url);
        assert_int_equal(watch_recorder_start(&recorder, store, "/failover/", "/failover0", 0), 0);
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_UNAVAILABLE);
        watch_recorder_stop(&recorder);
        assert_int_equal(watch_recorder_start(&recorder, store, "/failover/", "/failover0",
                                              store_client_revision(store) + 1),
                         0);
        assert_int_equal(put(store, "/failover/b", 10000, NULL), 0);
        watch_recorder_await(&recorder, 1);
        assert_int_equal(recorder.n, 1);
        watch_recorder_stop(&recorder);
        store->ops->free(store);

        store = open_store(refusing, NULL);
        assert_int_equal(put(store, "/failover/c", 10000, NULL), HF_E_UNAVAILABLE);
        assert_int_equal(store_client_get(store, "/failover/c", NULL), HF_E_UNAVAILABLE);
        store->ops->free(store);
}

/*
 * A silent endpoint gets no request, because it does not greet. So also a write was certainly not
 * done, and is tried on the next endpoint if there is time for it.
 */
static void test_operations_pass_over_a_silent_endpoint(void **state) {
        struct store_reply response;
        struct hfd_store *store;
        char silent[64];
        int fd;

        fd = silent_listener(silent, sizeof silent);
        store = open_store(silent, NULL);
        assert_int_equal(put(store, "/failover/d", 300, NULL), HF_E_UNAVAILABLE);
        store->ops->free(store);
        store = open_store(silent, etcd.url);
        assert_int_equal(put(store, "/failover/e", 20000, NULL), 0);
        assert_false(exists(store, "/failover/d"));
        store->ops->free(store);
        store = open_store(silent, etcd.url);
        store_reply_init(&response);
        assert_int_equal(store->ops->get(store, "/failover/e", false, in_msec(6000),
                                         store_reply_fill, &response),
                         0);
        assert_int_equal(store_reply_wait(&response), 0);
        assert_int_equal(response.n_kvs, 1);
        assert_true(response.cluster_id != 0);
        store_reply_deinit(&response);
        store->ops->free(store);
        close(fd);
}

static void test_host_names_are_looked_up(void **state) {
        char url[64];
        struct hfd_store *store;
        struct store_reply left;

        /* localhost may also be ::1, on which nothing listens */
        snprintf(url, sizeof url, "http://localhost:%d", etcd.client_port);
        store = open_store(url, NULL);
        assert_int_equal(put(store, "/names/a", 20000, NULL), 0);
        store->ops->free(store);
        store = open_store("http://no-such-host.invalid:2379", etcd.url);
        assert_int_equal(put(store, "/names/b", 20000, NULL), 0);
        assert_true(exists(store, "/names/b"));
        store->ops->free(store);
        /* freed during the look-up */
        store = open_store("http://no-such-host.invalid:2379", NULL);
        store_reply_init(&left);
        assert_int_equal(store->ops->get(store, "/names/a", false, in_msec(60000), store_reply_fill,
                                         &left),
                         0);
        store->ops->free(store);
        assert_int_not_equal(store_reply_wait(&left), 0);
        store_reply_deinit(&left);
}

struct long_callback {
        sem_t entered, leave;
};

static void on_reply_take_long(void *ctx, const struct hfd_store_reply *reply) {
        struct long_callback *callback = ctx;

        sem_post(&callback->entered);
        sem_wait(&callback->leave);
}

/* One callback of a list and one of a get take as long as the urgent operations. */
static void test_urgent_operations_wait_for_no_other_callback(void **state) {
        struct hfd_store *store = open_store(etcd.url, NULL);
        struct hfd_op op = {.kind = HFD_PUT, .key = "/urgent/a", .value = hf__buf_copy("v", 1)};
        const struct hfd_txn txn = {.ops = &op, .n_ops = 1, .urgent = true};
        struct long_callback callback;
        struct store_reply reply;

        sem_init(&callback.entered, 0, 0);
        sem_init(&callback.leave, 0, 0);
        assert_int_equal(store->ops->get(store, "/urgent/a", false, in_msec(60000),
                                         on_reply_take_long, &callback),
                         0);
        assert_int_equal(store->ops->list(store, "/urgent/", NULL, 0, 0, false, in_msec(60000),
                                          on_reply_take_long, &callback),
                         0);
        sem_wait(&callback.entered);
        sem_wait(&callback.entered);
        assert_int_equal(store_client_txn(store, &txn, NULL), 0);
        store_reply_init(&reply);
        assert_int_equal(store->ops->get(store, "/urgent/a", true, in_msec(60000), store_reply_fill,
                                         &reply),
                         0);
        assert_int_equal(store_reply_wait(&reply), 0);
        assert_string_equal(store_reply_value(&reply, 0), "v");
        store_reply_deinit(&reply);
        sem_post(&callback.leave);
        sem_post(&callback.leave);
        store->ops->free(store);
        sem_destroy(&callback.entered);
        sem_destroy(&callback.leave);
        hf__buf_unref(op.value);
}

static int watch_failover(struct watch_recorder *recorder, struct hfd_store *store) {
        return watch_recorder_start(recorder, store, "/failover/", "/failover0",
                                    store_client_revision(store) + 1);
}

/* A watch that hangs is given up together with its endpoint. The requests stay where they are. */
static void test_a_suspected_watch_moves_to_the_next_endpoint(void **state) {
        char refusing[64];
        struct hfd_store *store;
        static struct watch_recorder recorder;

        snprintf(refusing, sizeof refusing, "http://127.0.0.1:%d", etcd_spawn_free_port());
        store = open_store(etcd.url, refusing);
        assert_int_equal(watch_failover(&recorder, store), 0);
        assert_int_equal(put(store, "/failover/w", 10000, NULL), 0);
        watch_recorder_await(&recorder, 1);
        store->ops->watch_suspect(store, recorder.id);
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_CANCELED);
        watch_recorder_stop(&recorder);
        assert_int_equal(watch_failover(&recorder, store), 0);
        assert_int_equal(watch_recorder_await_end(&recorder), HF_E_UNAVAILABLE); /* refused */
        watch_recorder_stop(&recorder);
        assert_int_equal(watch_failover(&recorder, store), 0); /* it is back where it was */
        assert_int_equal(put(store, "/failover/w", 10000, NULL), 0);
        watch_recorder_await(&recorder, 1);
        assert_int_equal(recorder.n, 1);
        watch_recorder_stop(&recorder);
        store->ops->free(store);
}

static bool shell(const char *command) {
        char *argv[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
        int status = -1;
        pid_t pid;

        if (posix_spawnp(&pid, "sh", NULL, NULL, argv, environ))
                return false;
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        return status == 0;
}

static char *slurp(const char *dir, const char *name) {
        char path[256], *text = calloc(1, 16384);
        FILE *file;

        snprintf(path, sizeof path, "%s/%s", dir, name);
        file = fopen(path, "r");
        assert_non_null(file);
        assert_true(fread(text, 1, 16383, file) > 0);
        fclose(file);
        return text;
}

static bool make_certificates(const char *dir) {
        char command[4096];

        snprintf(command, sizeof command,
                 "cd %s && exec 2>log && for ca in ca other; do openssl req -x509 -newkey ec "
                 "-pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $ca.key -out $ca.crt -days "
                 "2 -subj /CN=test-$ca || exit 1; done; for who in server client; do openssl req "
                 "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -keyout $who.key -out "
                 "$who.csr -subj /CN=$who || exit 1; printf "
                 "'subjectAltName=IP:127.0.0.1\\nextendedKeyUsage=serverAuth,clientAuth\\n' >ext; "
                 "openssl x509 -req -in $who.csr -CA ca.crt -CAkey ca.key -CAcreateserial -out "
                 "$who.crt -days 2 -extfile ext || exit 1; done",
                 dir);
        return shell(command);
}

static struct hfd_store *open_tls(const char *url, const char *ca, const char *cert,
                                  const char *key) {
        const char *endpoints[] = {url, NULL};
        struct hfd_etcd_config config = {.endpoints = endpoints,
                                         .ca_pem = ca,
                                         .cert_pem = cert,
                                         .key_pem = key};
        struct hfd_store *store = NULL;
        struct hf_status status;

        assert_int_equal(hfd_etcd_store_new(&host, &config, &store, &status), 0);
        return store;
}

static void test_tls_is_verified_in_both_directions(void **state) {
        char dir[] = "/tmp/hf-etcd-tls-XXXXXX", command[128];
        char *ca, *other, *cert, *key;
        struct etcd_spawn tls_etcd = {0};
        struct hfd_store *store;
        static struct watch_recorder recorder;

        assert_non_null(mkdtemp(dir));
        snprintf(command, sizeof command, "rm -rf %s", dir);
        if (!make_certificates(dir)) {
                shell(command);
                fprintf(stderr, "SKIPPED over TLS: openssl made no certificates\n");
                skip();
        }
        ca = slurp(dir, "ca.crt");
        other = slurp(dir, "other.crt");
        cert = slurp(dir, "client.crt");
        key = slurp(dir, "client.key");
        assert_true(etcd_spawn_start(&tls_etcd, dir));

        store = open_tls(tls_etcd.url, ca, cert, key);
        assert_int_equal(watch_recorder_start(&recorder, store, "/tls/", "/tls0",
                                              store_client_revision(store) + 1),
                         0);
        assert_int_equal(put(store, "/tls/a", 10000, NULL), 0);
        assert_true(exists(store, "/tls/a"));
        watch_recorder_await(&recorder, 1);
        assert_int_equal(recorder.n, 1);
        watch_recorder_stop(&recorder);
        store->ops->free(store);

        store = open_tls(tls_etcd.url, other, cert,
                         key); /* the client does not trust this server */
        assert_int_equal(put(store, "/tls/b", 10000, NULL), HF_E_UNAVAILABLE);
        store->ops->free(store);
        /* The server does not trust the client; with TLS 1.3 it reports that late. */
        store = open_tls(tls_etcd.url, ca, NULL, NULL);
        assert_int_not_equal(put(store, "/tls/b", 10000, NULL), 0);
        store->ops->free(store);
        store = open_tls(tls_etcd.url, ca, cert, key);
        assert_false(exists(store, "/tls/b"));
        store->ops->free(store);

        etcd_spawn_stop(&tls_etcd);
        shell(command);
        free(ca);
        free(other);
        free(cert);
        free(key);
}

int main(void) {
        const struct CMUnitTest cases[] = {
                cmocka_unit_test(test_killing_etcd_loses_no_acknowledged_write),
                cmocka_unit_test(test_a_stopped_etcd_blocks_nothing),
                cmocka_unit_test(test_an_idle_watch_stays),
                cmocka_unit_test(test_a_watch_is_resumed_without_a_gap),
                cmocka_unit_test(test_operations_fail_over_to_the_next_endpoint),
                cmocka_unit_test(test_operations_pass_over_a_silent_endpoint),
                cmocka_unit_test(test_host_names_are_looked_up),
                cmocka_unit_test(test_urgent_operations_wait_for_no_other_callback),
                cmocka_unit_test(test_a_suspected_watch_moves_to_the_next_endpoint),
                cmocka_unit_test(test_tls_is_verified_in_both_directions),
        };

        return store_fixture_run_with_etcd(&etcd, cases, sizeof cases / sizeof cases[0]);
}
