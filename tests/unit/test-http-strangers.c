/* SPDX-License-Identifier: Apache-2.0 */
/* What clients that have not authenticated themselves can hold, and for how long; and what the
 * server does when it has no room for a connection. */
#undef NDEBUG
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include "h2_client.h"
#include "http_fixture.h"
#include "patience.h"
#include "server/http/connection/http_private.h"
#include "server/http/connection/worker.h"
#include "server/http/limits/account.h"
#include "server/http/limits/strangers.h"
#include "server/http/request/http_request_private.h"
#include "server/http/request/origin.h"
#include "text_asserts.h"

static struct http_fixture f;
static struct hfd_http *default_http;

#define HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
#define KNOWN "GET /hello HTTP/1.1\r\nHost: a\r\nAuthorization: known\r\n\r\n"

/* A sender with the header "authorization" is known, unless it asks for /revoked. Nobody may use
 * /forbidden. */
static enum hfd_http_verdict decide(void *ctx, struct hfd_http_request *request) {
        if (strcmp(hfd_http_request_path(request), "/forbidden") == 0) {
                hfd_http_request_reply(request, 403, "text/plain", NULL, 0, NULL);
                return HFD_HTTP_REFUSED;
        }
        if (strcmp(hfd_http_request_path(request), "/revoked") == 0) {
                hfd_http_request_reply(request, 401, "text/plain", NULL, 0, NULL);
                return HFD_HTTP_REFUSED_STRANGER;
        }
        return hfd_http_request_header(request, "authorization") ? HFD_HTTP_READ_BODY
                                                                 : HFD_HTTP_IGNORE_BODY;
}

static int setup(void **state) {
        http_fixture_start(&f);
        default_http = f.http;
        return 0;
}

static int teardown(void **state) {
        if (f.http != default_http)
                hfd_http_free(f.http);
        f.http = default_http;
        http_fixture_stop(&f);
        return 0;
}

static void start(size_t max_connections) {
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};

        config.on_head = decide;
        config.n_workers = 1;
        config.max_connections = max_connections;
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
}

static struct tls_client open_client(void) {
        struct tls_client c;

        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, NULL, 0), 0);
        return c;
}

static bool says(struct tls_client *c, const char *request, const char *text) {
        tls_client_drop(c, c->n_in);
        tls_client_puts(c, request);
        return tls_client_await(c, text) != NULL;
}

/* ---- the sets ---- */

static struct hfd_stranger_key key_of(const char *text) {
        struct sockaddr_storage address = {0};

        if (strchr(text, ':')) {
                address.ss_family = AF_INET6;
                inet_pton(AF_INET6, text, &((struct sockaddr_in6 *)&address)->sin6_addr);
        } else {
                address.ss_family = AF_INET;
                inet_pton(AF_INET, text, &((struct sockaddr_in *)&address)->sin_addr);
        }
        return hfd_stranger_key(&address);
}

static void add(struct hfd_strangers *set, struct hfd_stranger *stranger, const char *address,
                hf_nsec now) {
        const struct hfd_stranger_key key = key_of(address);

        assert_int_equal(hfd_strangers_add(set, stranger, &key, now), 0);
}

static struct hfd_stranger *victim(const struct hfd_strangers *set, const char *address,
                                   hf_nsec now, hf_nsec min_age) {
        const struct hfd_stranger_key key = key_of(address);

        return hfd_strangers_victim(set, &key, now, min_age);
}

static void test_an_address_loses_its_own_first(void **state) {
        struct hfd_strangers set;
        struct hfd_stranger many[8] = {0}, one = {0};

        hfd_strangers_init(&set, 42);
        assert_null(victim(&set, "10.0.0.1", 0, 0));
        for (int i = 0; i < 8; i++)
                add(&set, &many[i], "10.0.0.1", i);
        add(&set, &one, "10.0.0.2", 100);
        assert_ptr_equal(victim(&set, "10.0.0.1", 200, 0), &many[0]);
        assert_ptr_equal(victim(&set, "10.0.0.2", 200, 0), &many[0]);
        assert_ptr_equal(victim(&set, "10.0.0.3", 200, 0), &many[0]);
        hfd_strangers_touch(&many[0], 150);
        assert_ptr_equal(victim(&set, "10.0.0.3", 200, 0), &many[1]);
        /* too young to be closed for its own address, but not for another one */
        assert_null(victim(&set, "10.0.0.1", 200, 1000));
        assert_ptr_equal(victim(&set, "10.0.0.2", 200, 1000), &many[1]);
        for (int i = 0; i < 8; i++)
                hfd_strangers_remove(&many[i]);
        hfd_strangers_remove(&many[0]); /* in no set: nothing happens */
        assert_ptr_equal(victim(&set, "10.0.0.1", 200, 0), &one);
        hfd_strangers_remove(&one);
        hfd_strangers_done(&set);
}

static void test_what_counts_as_one_address(void **state) {
        const struct hfd_stranger_key a = key_of("2001:db8:1:2::1"),
                                      b = key_of("2001:db8:1:2:ffff::9"),
                                      c = key_of("2001:db8:1:3::1"), four = key_of("192.0.2.7"),
                                      mapped = key_of("::ffff:192.0.2.7"),
                                      other = key_of("::ffff:192.0.2.8");

        assert_memory_equal(a.bytes, b.bytes, sizeof a.bytes);
        assert_memory_not_equal(a.bytes, c.bytes, sizeof a.bytes);
        assert_int_equal(four.family, mapped.family);
        assert_memory_equal(four.bytes, mapped.bytes, sizeof four.bytes);
        assert_memory_not_equal(four.bytes, other.bytes, sizeof four.bytes);
}

static void check_remote(const char *address, const char *text) {
        struct sockaddr_storage storage = {.ss_family = AF_INET6};
        struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&storage;
        struct hfd_origin *origin = NULL;

        assert_int_equal(inet_pton(AF_INET6, address, &in6->sin6_addr), 1);
        in6->sin6_port = htons(80);
        assert_int_equal(hfd_origin_new(&storage, &origin), 0);
        assert_string_equal(origin->remote, text);
        hfd_origin_unref(origin);
}

/* The audit log and the access log show them as Go does. */
static void test_an_ipv4_client_of_an_ipv6_listener_has_an_ipv4_address(void **state) {
        check_remote("2001:db8::1", "[2001:db8::1]:80");
        check_remote("::ffff:192.0.2.7", "192.0.2.7:80");
}

/* Random steps, compared with what a list of all members says. */
static void test_sets_stay_consistent(void **state) {
        enum { N = 300 };
        static struct hfd_stranger strangers[N];
        struct hfd_strangers set;
        size_t n = 0;

        srand(7);
        hfd_strangers_init(&set, 1);
        for (int step = 0; step < 20000; step++) {
                struct hfd_stranger *s = &strangers[rand() % N];
                char address[32];

                if (s->set) {
                        hfd_strangers_remove(s);
                        n--;
                } else {
                        snprintf(address, sizeof address, "10.0.0.%d", rand() % 7);
                        add(&set, s, address, step);
                        n++;
                }
                assert_int_equal(set.n, n);
                if (n > 0)
                        assert_non_null(victim(&set, "10.9.9.9", step, 0));
        }
        for (int i = 0; i < N; i++)
                hfd_strangers_remove(&strangers[i]);
        hfd_strangers_done(&set);
}

/* ---- the account ---- */

static void test_strangers_have_an_account_of_their_own(void **state) {
        struct hfd_account account = {0};
        struct hfd_account_share shares[1000] = {0};
        struct hfd_account_share good = {0};
        size_t n = 0;

        assert_int_equal(hfd_account_change(&account, &shares[0], 0,
                                            HFD_ACCOUNT_STRANGER_SHARE + 1),
                         HF_E_TOO_LARGE);
        assert_int_equal(hfd_account_change(&account, &shares[0], HFD_ACCOUNT_STRANGER_SHARE + 1,
                                            0),
                         0);
        while (hfd_account_change(&account, &shares[n], 0, HFD_ACCOUNT_STRANGER_SHARE) == 0)
                n++;
        assert_int_equal(n, HFD_ACCOUNT_STRANGER_TOTAL / HFD_ACCOUNT_STRANGER_SHARE);
        /* The strangers' account is used up. An ordinary client introduces itself all the same,
         * and then has the other account. */
        assert_int_equal(hfd_account_change(&account, &good, 0, HFD_ACCOUNT_STRANGER_FREE), 0);
        hfd_account_set_known(&account, &good, true);
        hfd_account_set_known(&account, &good, true);
        assert_int_equal(account.known, HFD_ACCOUNT_STRANGER_FREE);
        assert_int_equal(hfd_account_change(&account, &good, 0, (size_t)3 << 20), 0);
        for (size_t i = 0; i <= n; i++)
                (void)hfd_account_change(&account, &shares[i], shares[i].n, 0);
        assert_int_equal(account.strangers, 0);
}

/* ---- the server ---- */

/* What filters and nghttp2 keep counts for strangers only: known senders have other limits. */
static void test_what_others_keep_counts_for_strangers(void **state) {
        struct tls_client known, stranger;

        start(64);
        stranger = open_client();
        tls_client_puts(&stranger, "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
        struct hfd_http_request *of_stranger = http_fixture_take_held(&f);
        assert_int_equal(atomic_load(&f.http->account.strangers),
                         hfd_http_request_memory(of_stranger) + 512);
        known = open_client();
        assert_true(says(&known, KNOWN, "hello"));
        PATIENCE_AWAIT(atomic_load(&f.http->account.known) == 0);
        tls_client_puts(&known, "GET /hold HTTP/1.1\r\nHost: a\r\nAuthorization: known\r\n\r\n");
        struct hfd_http_request *of_known = http_fixture_take_held(&f);
        assert_int_equal(atomic_load(&f.http->account.known), hfd_http_request_memory(of_known));
        http_fixture_respond(of_stranger, 200, "late");
        http_fixture_respond(of_known, 200, "late");
        hfd_http_request_unref(of_stranger);
        hfd_http_request_unref(of_known);
        tls_client_close(&stranger);
        tls_client_close(&known);
        PATIENCE_AWAIT(atomic_load(&f.http->account.strangers) == 0 &&
                       atomic_load(&f.http->account.known) == 0);
}

static void test_a_strangers_body_is_not_awaited(void **state) {
        struct tls_client c;

        start(16);
        c = open_client();
        assert_true(says(&c,
                         "POST /forbidden HTTP/1.1\r\nHost: a\r\nContent-Length: "
                         "1000\r\n\r\nonly this",
                         "403"));
        assert_true(tls_client_is_closed(&c));
        tls_client_close(&c);
        c = open_client();
        assert_true(says(&c, "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\nonly",
                         "\r\n\r\n"));
        assert_non_null(strstr(c.in, "content-length: 0\r\n")); /* the part of the body that arrived
                                                                   is not used */
        assert_true(tls_client_is_closed(&c));
        tls_client_close(&c);
        /* A known sender's body is read. */
        c = open_client();
        assert_true(says(&c,
                         "POST /echo HTTP/1.1\r\nHost: a\r\nAuthorization: known\r\n"
                         "Content-Length: 4\r\n\r\nbody",
                         "\r\n\r\nbody"));
        assert_true(says(&c, HELLO, "hello"));
        tls_client_close(&c);
}

static void test_the_oldest_stranger_makes_room(void **state) {
        struct tls_client known[2], strangers[2], late;

        start(4);
        for (int i = 0; i < 2; i++) {
                known[i] = open_client();
                assert_true(says(&known[i], KNOWN, "hello"));
        }
        for (int i = 0; i < 2; i++) {
                strangers[i] = open_client();
                assert_true(says(&strangers[i], HELLO, "hello"));
        }
        late = open_client();
        assert_true(tls_client_is_closed(&strangers[0]));
        assert_true(says(&late, KNOWN, "hello"));
        assert_true(says(&strangers[1], HELLO, "hello"));
        for (int i = 0; i < 2; i++)
                assert_true(says(&known[i], KNOWN, "hello"));
        assert_int_equal(hfd_http_n_connections(f.http), 4);
        for (int i = 0; i < 2; i++) {
                tls_client_close(&known[i]);
                tls_client_close(&strangers[i]);
        }
        tls_client_close(&late);
}

static void test_known_senders_are_never_closed_for_others(void **state) {
        struct tls_client known[4], late;

        start(4);
        for (int i = 0; i < 4; i++) {
                known[i] = open_client();
                assert_true(says(&known[i], KNOWN, "hello"));
        }
        assert_int_equal(tls_client_open(&late, hfd_http_port(f.http), NULL, NULL, 0), -1);
        for (int i = 0; i < 4; i++) {
                assert_true(says(&known[i], HELLO, "hello"));
                tls_client_close(&known[i]);
        }
        tls_client_close(&late);
}

/* Whose token is valid no more must not keep a place that others need. */
static void test_a_refused_sender_is_a_stranger_again(void **state) {
        static const char revoked[] = "GET /revoked HTTP/1.1\r\nHost: a\r\n\r\n";
        struct tls_client known[4], late;

        start(4);
        for (int i = 0; i < 4; i++) {
                known[i] = open_client();
                assert_true(says(&known[i], KNOWN, "hello"));
        }
        assert_true(says(&known[0], revoked, "401"));
        assert_true(says(&known[0], KNOWN, "hello")); /* it is known again */
        assert_true(says(&known[1], revoked, "401"));
        late = open_client();
        assert_true(tls_client_is_closed(&known[1]));
        assert_true(says(&late, KNOWN, "hello"));
        for (int i = 0; i < 4; i++) {
                if (i != 1)
                        assert_true(says(&known[i], KNOWN, "hello"));
                tls_client_close(&known[i]);
        }
        tls_client_close(&late);
}

/* Whoever has lost a token cannot keep the place by requests of nobody that overlap. */
static void test_requests_of_nobody_keep_no_place(void **state) {
        struct hfd_http_request *held[3];
        struct tls_client known[3], late;
        int32_t first = 0;

        start(4);
        for (int i = 0; i < 3; i++) {
                known[i] = open_client();
                assert_true(says(&known[i], KNOWN, "hello"));
        }
        struct h2_client *h = h2_client_open(hfd_http_port(f.http), 0, 0);
        const nghttp2_nv token = h2_client_header("authorization", "known");
        for (int i = 0; i < 3; i++) {
                int32_t id = h2_client_ask_with(h, "GET", "/hold", &token, i == 0, NULL, 0);
                held[i] = http_fixture_take_held(&f);
                first = i == 0 ? id : first;
                if (i == 1) { /* the first one keeps the place, but only until its end */
                        assert_int_equal(tls_client_open(&late, hfd_http_port(f.http), NULL, NULL,
                                                         0),
                                         -1);
                        tls_client_close(&late);
                        http_fixture_respond(held[0], 200, "late");
                        assert_int_equal(h2_client_await(h, first)->code, 200);
                }
        }
        late = open_client();
        assert_true(tls_client_is_closed(&h->tls));
        assert_true(says(&late, KNOWN, "hello"));
        for (int i = 0; i < 3; i++) {
                hfd_http_request_unref(held[i]);
                tls_client_close(&known[i]);
        }
        h2_client_close(h);
        tls_client_close(&late);
}

/* A certificate makes its sender known as long as it verifies. */
static void test_a_reload_decides_whose_certificate_is_known(void **state) {
        struct x509_identity ca2 = x509_identity_make("ca-2", NULL, NULL, true, 3600);
        struct x509_identity ids[2] = {x509_identity_make("alice", NULL, &f.ca, false, 3600),
                                       x509_identity_make("bob", NULL, &ca2, false, 3600)};
        struct hf_status status = {0};
        struct tls_client c[4], late;
        int port;

        start(4);
        port = hfd_http_port(f.http);
        for (int i = 0; i < 2; i++) {
                c[i] = open_client();
                assert_true(says(&c[i], KNOWN, "hello"));
        }
        for (int i = 0; i < 2; i++) {
                assert_int_equal(tls_client_open(&c[2 + i], (uint16_t)port, NULL, &ids[i], 0), 0);
                assert_true(says(&c[2 + i], HELLO, "hello"));
        }
        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem, ca2.cert_pem,
                                         &status),
                         0);
        assert_true(says(&c[3], HELLO, "hello")); /* of two strangers this would be the older */
        assert_true(says(&c[2], HELLO, "hello"));
        late = open_client();
        assert_true(tls_client_is_closed(&c[2]));
        assert_true(says(&late, KNOWN, "hello"));
        assert_true(says(&c[3], HELLO, "hello"));
        for (int i = 0; i < 4; i++)
                tls_client_close(&c[i]);
        tls_client_close(&late);
        for (int i = 0; i < 2; i++)
                x509_identity_deinit(&ids[i]);
        x509_identity_deinit(&ca2);
}

/* Silent TCP connections take all places for handshakes. A client that comes later gets one. */
static void test_silent_connections_make_room(void **state) {
        int silent[4];
        struct tls_client kept, late;
        char in[16];

        start(16);
        kept = open_client();
        assert_true(says(&kept, KNOWN, "hello"));
        for (int i = 0; i < 4; i++)
                silent[i] = tls_client_dial(hfd_http_port(f.http), 0);
        /* Waits until the worker has accepted the connections. It iterates at least once for each
         * request. */
        for (int i = 0; i < 10000 && hfd_http_n_connections(f.http) < 5; i++)
                assert_true(says(&kept, KNOWN, "hello"));
        http_fixture_skip_time(&f, HF_NSEC_PER_SEC);
        assert_true(says(&kept, KNOWN, "hello"));
        late = open_client();
        assert_int_equal(recv(silent[0], in, sizeof in, 0), 0);
        assert_true(says(&late, KNOWN, "hello"));
        for (int i = 0; i < 4; i++)
                close(silent[i]);
        tls_client_close(&kept);
        tls_client_close(&late);
}

/* A shutdown waits for requests, but not for a stranger who does not finish one. */
static void test_a_drain_does_not_wait_for_strangers(void **state) {
        struct hfd_http_request *held;
        struct tls_client half, known;
        int silent;

        start(16);
        half = open_client();
        tls_client_puts(&half, "POST /forbidden HTTP/1.1\r\nHost: a\r\n");
        silent = tls_client_dial(hfd_http_port(f.http), 0);
        known = open_client();
        tls_client_puts(&known, "GET /hold HTTP/1.1\r\nHost: a\r\nAuthorization: known\r\n\r\n");
        held = http_fixture_take_held(&f);
        hfd_http_stop_accepting(f.http);
        http_fixture_skip_time(&f, 3 * HF_NSEC_PER_SEC);
        assert_true(tls_client_is_closed(&half));
        http_fixture_respond(held, 200, "served");
        hfd_http_request_unref(held);
        assert_non_null(tls_client_await(&known, "served"));
        assert_int_equal(hfd_http_wait_closed(f.http,
                                              hf_now(hf_clock_system()) + 20 * HF_NSEC_PER_SEC),
                         0);
        close(silent);
        tls_client_close(&half);
        tls_client_close(&known);
}

/* ---- the turns of a worker ---- */

enum { N_WAITING = 8, N_RESPONSES };

static struct hfd_http_request *waiting[N_RESPONSES]; /* the last one is a known sender's */
static uint64_t finished_in[N_RESPONSES];             /* iterations of the worker */
static atomic_int n_finished;
static atomic_uint n_waits[N_RESPONSES], n_unread[N_RESPONSES]; /* reports */

static void record_report(void *ctx, size_t n_bytes, bool waits) {
        size_t i = (size_t)((struct hfd_http_request **)ctx - waiting);

        atomic_fetch_add(waits ? &n_waits[i] : &n_unread[i], 1);
}

static void record_iteration(void *ctx, int code, size_t n_bytes) {
        *(uint64_t *)ctx = atomic_load(&f.http->workers[0].iterations);
        atomic_fetch_add(&n_finished, 1);
}

/* On the worker, so that all connections have something to send in the same iteration. */
static void respond_to_all(struct hfd_http_call *call) {
        for (int i = 0; i < N_RESPONSES; i++) {
                hfd_http_request_on_finished(waiting[i], record_iteration, &finished_in[i]);
                hfd_http_request_on_unsent(waiting[i], record_report, &waiting[i]);
                atomic_store(&n_waits[i], 0);
                atomic_store(&n_unread[i], 0);
                http_fixture_respond(waiting[i], 200, "late");
        }
}

/* A known sender is served at once, and then one stranger in each iteration. That a response waits
 * for this does not mean that its client does not read it. */
static void test_strangers_are_served_one_by_one(void **state) {
        struct tls_client clients[N_RESPONSES];
        struct hfd_http_call call = {.fn = respond_to_all};
        unsigned n = 0;

        start(64);
        atomic_store(&n_finished, 0);
        for (int i = 0; i < N_RESPONSES; i++) {
                clients[i] = open_client();
                tls_client_puts(&clients[i], i < N_WAITING ? "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"
                                                           : "GET /hold HTTP/1.1\r\nHost: a\r\n"
                                                             "Authorization: known\r\n\r\n");
                waiting[i] = http_fixture_take_held(&f);
        }
        assert_true(hfd_http_request_call(waiting[0], &call));
        PATIENCE_AWAIT(atomic_load(&n_finished) == N_RESPONSES);
        for (int i = 0; i < N_WAITING; i++) {
                assert_true(finished_in[N_WAITING] <= finished_in[i]);
                for (int k = 0; k < i; k++)
                        assert_true(finished_in[k] < finished_in[i]);
                n += atomic_load(&n_waits[i]);
        }
        assert_true(n >= N_WAITING - 1);
        assert_int_equal(atomic_load(&n_waits[N_WAITING]), 0);
        for (int i = 0; i < N_RESPONSES; i++) {
                assert_int_equal(atomic_load(&n_unread[i]), 0);
                hfd_http_request_unref(waiting[i]);
                assert_non_null(tls_client_await(&clients[i], "late"));
                tls_client_close(&clients[i]);
        }
}

enum { N_SLOW = 3, SLOW_BYTES = 32 << 20 };

/* On the worker. */
static void respond_at_length(struct hfd_http_call *call) {
        static const char zeros[SLOW_BYTES];
        struct hf__buf *body = hf__buf_copy(zeros, sizeof zeros);

        for (int i = 0; i < N_SLOW; i++) {
                hfd_http_request_on_unsent(waiting[i], record_report, &waiting[i]);
                atomic_store(&n_waits[i], 0);
                atomic_store(&n_unread[i], 0);
                hfd_http_request_reply(waiting[i], 200, "text/plain", NULL, 0, body);
        }
        hf__buf_unref(body);
}

/* A stranger that does not read is reported once, when it has had its turn. */
static void test_strangers_that_do_not_read_are_reported(void **state) {
        struct tls_client clients[N_SLOW];
        struct hfd_http_call call = {.fn = respond_at_length};

        start(64);
        for (int i = 0; i < N_SLOW; i++) {
                assert_int_equal(tls_client_open(&clients[i], hfd_http_port(f.http), NULL, NULL,
                                                 4096),
                                 0);
                tls_client_puts(&clients[i], "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n");
                waiting[i] = http_fixture_take_held(&f);
        }
        assert_true(hfd_http_request_call(waiting[0], &call));
        for (int i = 0; i < N_SLOW; i++)
                PATIENCE_AWAIT(atomic_load(&n_unread[i]) == 1);
        /* Whoever is served later has waited; a report comes at most once of each kind. */
        assert_true(atomic_load(&n_waits[0]) + atomic_load(&n_waits[1]) +
                            atomic_load(&n_waits[2]) >=
                    N_SLOW - 1);
        for (int i = 0; i < N_SLOW; i++) {
                tls_client_close(&clients[i]);
                hfd_http_request_unref(waiting[i]);
                assert_int_equal(atomic_load(&n_unread[i]), 1);
        }
}

/* With few descriptors the server lowers its maximum, instead of failing to accept. */
static void test_the_descriptor_limit_is_respected(void **state) {
        struct rlimit saved, low;
        struct tls_client known;
        int silent[100];

        assert_int_equal(getrlimit(RLIMIT_NOFILE, &saved), 0);
        low = (struct rlimit){.rlim_cur = 128, .rlim_max = saved.rlim_max};
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
        start(8000);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &saved), 0);
        known = open_client();
        assert_true(says(&known, KNOWN, "hello"));
        for (int i = 0; i < 100; i++)
                silent[i] = tls_client_dial(hfd_http_port(f.http), 0);
        assert_true(says(&known, KNOWN, "hello"));
        assert_true(hfd_http_n_connections(f.http) <= 64);
        for (int i = 0; i < 100; i++)
                if (silent[i] >= 0)
                        close(silent[i]);
        tls_client_close(&known);
}

/* ---- no descriptor left ---- */

/* What the server has logged about descriptors. */
static struct {
        pthread_mutex_t mu;
        int n_lines, n_closed; /* the lines say that n_closed connections were closed */
        hf_nsec last_at;       /* by the clock of the fixture */
} logged = {.mu = PTHREAD_MUTEX_INITIALIZER};

/* No line follows another one within ten seconds. */
static void record_line(void *ctx, enum hf_log_level level, const char *component,
                        const char *message) {
        hf_nsec now = hf_now(&f.clock);
        int n;

        if (sscanf(message, "closed %d connections: no file descriptor left", &n) != 1)
                return;
        pthread_mutex_lock(&logged.mu);
        assert(logged.n_lines == 0 || now - logged.last_at >= 10 * HF_NSEC_PER_SEC);
        logged.n_lines++;
        logged.n_closed += n;
        logged.last_at = now;
        pthread_mutex_unlock(&logged.mu);
}

/* Connects. The server has no descriptor for this connection, so it closes it at once. */
static void expect_closed_connection(void) {
        int fd = tls_client_dial(hfd_http_port(f.http), 0);
        char in[16];

        assert_true(fd >= 0);
        assert_true(recv(fd, in, sizeof in, 0) <= 0);
        close(fd);
}

/* How many closed connections were reported. */
static int n_reported(void) {
        pthread_mutex_lock(&logged.mu);
        int n = logged.n_closed;
        pthread_mutex_unlock(&logged.mu);
        return n;
}

/* Lets more than ten seconds of the server's clock pass. Returns how many closed connections were
 * reported by then; waits until they are n. */
static int await_report(struct tls_client *known, int n) {
        http_fixture_skip_time(&f, 11 * HF_NSEC_PER_SEC);
        /* The worker iterates at least once for many requests. */
        for (int i = 0; i < 10000 && n_reported() < n; i++)
                assert_true(says(known, KNOWN, "hello"));
        return n_reported();
}

static struct rlimit usual;

/* Allows the process one more descriptor. */
static void limit_descriptors(void) {
        int next = dup(0);
        const struct rlimit low = {.rlim_cur = (rlim_t)next + 1, .rlim_max = usual.rlim_max};

        close(next);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
}

static int setup_limited(void **state) {
        assert_int_equal(getrlimit(RLIMIT_NOFILE, &usual), 0);
        setup(state);
        f.host.log.write = record_line;
        return hf_metrics_new(&f.host.metrics);
}

static int teardown_limited(void **state) {
        struct hf_metrics *metrics = f.host.metrics;

        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        teardown(state);
        hf_metrics_free(metrics);
        return 0;
}

/* Without a free descriptor the server still closes connections that nobody could serve, because it
 * keeps one descriptor for that. It goes on to serve the others, and reports once in ten seconds
 * how many it has closed. */
static void test_without_descriptors_connections_are_closed_and_reported(void **state) {
        struct tls_client known, late;

        start(16);
        known = open_client();
        assert_true(says(&known, KNOWN, "hello"));
        limit_descriptors(); /* the test's end of a connection takes the last one */
        for (int i = 0; i < 3; i++)
                expect_closed_connection();
        assert_true(says(&known, KNOWN, "hello"));
        assert_int_equal(await_report(&known, 3), 3);
        expect_closed_connection();
        http_fixture_skip_time(&f, 2 * HF_NSEC_PER_SEC);
        for (int i = 0; i < 100; i++)
                assert_true(says(&known, KNOWN, "hello"));
        assert_int_equal(await_report(&known, 4), 4);
        assert_int_equal(setrlimit(RLIMIT_NOFILE, &usual), 0);
        assert_metric(f.host.metrics,
                      "holdfast_http_connections_refused_total{reason=\"descriptors\"} 4\n");
        late = open_client();
        assert_true(says(&late, KNOWN, "hello"));
        tls_client_close(&late);
        tls_client_close(&known);
}

/* ---- client certificates ---- */

/* What happens while OpenSSL verifies a client's certificates. The linker redirects
 * X509_verify_cert here. Only the last verification is counted, and each test makes one at a time.
 */
static atomic_int n_failures, n_checked;
static atomic_bool is_short; /* there is no memory for it */
static int (*own_verify_cb)(int ok, X509_STORE_CTX *store);

static int count_step(int ok, X509_STORE_CTX *store) {
        atomic_fetch_add(ok ? &n_checked : &n_failures, 1);
        return own_verify_cb ? own_verify_cb(ok, store) : ok;
}

int __real_X509_verify_cert(X509_STORE_CTX *store);
int __wrap_X509_verify_cert(X509_STORE_CTX *store);
int __wrap_X509_verify_cert(X509_STORE_CTX *store) {
        atomic_store(&n_failures, 0);
        atomic_store(&n_checked, 0);
        if (atomic_load(&is_short)) {
                X509_STORE_CTX_set_error(store, X509_V_ERR_OUT_OF_MEM);
                return -1;
        }
        own_verify_cb = X509_STORE_CTX_get_verify_cb(store);
        X509_STORE_CTX_set_verify_cb(store, count_step);
        return __real_X509_verify_cert(store);
}

/* A shortage is not the client's fault, so the client loses neither its certificate nor its place.
 */
static void test_a_shortage_of_memory_makes_nobody_a_stranger(void **state) {
        struct x509_identity id = x509_identity_make("alice", NULL, &f.ca, false, 3600);
        struct hf_status status = {0};
        struct tls_client c[4], late;

        start(4);
        for (int i = 0; i < 3; i++) {
                c[i] = open_client();
                assert_true(says(&c[i], KNOWN, "hello"));
        }
        assert_int_equal(tls_client_open(&c[3], hfd_http_port(f.http), NULL, &id, 0), 0);
        assert_true(says(&c[3], HELLO, "hello"));
        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem, f.ca.cert_pem,
                                         &status),
                         0);
        atomic_store(&is_short, true);
        assert_true(says(&c[3], HELLO, "HTTP/1.1 503"));
        assert_int_equal(tls_client_open(&late, hfd_http_port(f.http), NULL, NULL, 0), -1);
        atomic_store(&is_short, false);
        assert_true(says(&c[3], HELLO, "hello"));
        for (int i = 0; i < 4; i++)
                tls_client_close(&c[i]);
        tls_client_close(&late);
        x509_identity_deinit(&id);
}

static int connect_with_chain(const struct x509_identity *leaf, struct x509_identity *issuers,
                              int n_issuers) {
        SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
        int fd = tls_client_dial(hfd_http_port(f.http), 0);
        SSL *ssl;
        char in[512];
        int r;

        SSL_CTX_use_certificate(ctx, leaf->cert);
        SSL_CTX_use_PrivateKey(ctx, leaf->key);
        for (int i = 0; i < n_issuers; i++)
                SSL_CTX_add1_chain_cert(ctx, issuers[i].cert);
        ssl = SSL_new(ctx);
        SSL_set_fd(ssl, fd);
        r = SSL_connect(ssl);
        if (r == 1)
                r = SSL_write(ssl, HELLO, (int)strlen(HELLO)) > 0 &&
                                    SSL_read(ssl, in, sizeof in) > 0
                            ? 1
                            : -1;
        SSL_free(ssl);
        SSL_CTX_free(ctx);
        close(fd);
        return r == 1 ? 0 : -1;
}

static void test_long_certificate_chains_are_refused(void **state) {
        struct x509_identity issuers[12];
        struct x509_identity leaf = x509_identity_make("leaf", NULL, &f.ca, false, 3600);

        for (int i = 0; i < 12; i++)
                issuers[i] = x509_identity_make("issuer", NULL, NULL, true, 3600);
        start(16);
        assert_int_equal(connect_with_chain(&leaf, issuers, 7), 0);
        assert_int_equal(connect_with_chain(&leaf, issuers, 8), -1);
        assert_int_equal(connect_with_chain(&leaf, issuers, 12), -1);
        for (int i = 0; i < 12; i++)
                x509_identity_deinit(&issuers[i]);
        x509_identity_deinit(&leaf);
}

/* A certificate that is larger by n bytes. */
static void enlarge(struct x509_identity *identity, size_t n) {
        char *text = malloc(n + 1);
        X509_EXTENSION *extension;

        assert_non_null(text);
        memset(text, 'x', n);
        text[n] = '\0';
        extension = X509V3_EXT_conf_nid(NULL, NULL, NID_netscape_comment, text);
        free(text);
        assert_non_null(extension);
        assert_int_equal(X509_add_ext(identity->cert, extension, -1), 1);
        X509_EXTENSION_free(extension);
        assert_true(X509_sign(identity->cert, identity->key, EVP_sha256()) > 0);
}

static void test_large_certificate_chains_are_refused(void **state) {
        struct x509_identity issuers[3];
        struct x509_identity leaf = x509_identity_make("leaf", NULL, &f.ca, false, 3600);

        for (int i = 0; i < 3; i++) {
                issuers[i] = x509_identity_make("issuer", NULL, NULL, true, 3600);
                enlarge(&issuers[i], 12000);
        }
        start(16);
        assert_int_equal(connect_with_chain(&leaf, issuers, 2), 0);
        assert_int_equal(connect_with_chain(&leaf, issuers, 3), -1);
        for (int i = 0; i < 3; i++)
                x509_identity_deinit(&issuers[i]);
        x509_identity_deinit(&leaf);
}

/* All of these certificates have expired, and nobody knows the last one. The first fault is enough:
 * no further certificate and no signature is looked at. */
static void test_verification_ends_at_the_first_failure(void **state) {
        struct x509_identity issuers[6];

        issuers[5] = x509_identity_make("issuer 5", NULL, NULL, true, -60);
        for (int i = 5; i > 0; i--)
                issuers[i - 1] = x509_identity_make("issuer", NULL, &issuers[i], true, -60);
        start(16);
        for (int is_known = 0; is_known <= 1; is_known++) {
                struct x509_identity leaf =
                        x509_identity_make("leaf", NULL, is_known ? &f.ca : &issuers[0], false,
                                           is_known ? 3600 : -60);
                assert_int_equal(connect_with_chain(&leaf, issuers, 6), 0);
                assert_int_equal(atomic_load(&n_failures), is_known ? 0 : 1);
                assert_int_equal(atomic_load(&n_checked) > 0, is_known);
                x509_identity_deinit(&leaf);
        }
        for (int i = 0; i < 6; i++)
                x509_identity_deinit(&issuers[i]);
}

/* A certificate whose key is an RSA key of this size, with the exponent 2^exponent_bit + 1. Nobody
 * needs its private part. */
static void give_rsa_key(struct x509_identity *identity, int bits, int exponent_bit) {
        BIGNUM *n = BN_new(), *e = BN_new();
        OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
        EVP_PKEY *key = NULL;
        OSSL_PARAM *params;

        assert_int_equal(BN_rand(n, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD), 1);
        assert_int_equal(BN_set_word(e, 1), 1);
        assert_int_equal(BN_set_bit(e, exponent_bit), 1);
        assert_int_equal(OSSL_PARAM_BLD_push_BN(builder, "n", n), 1);
        assert_int_equal(OSSL_PARAM_BLD_push_BN(builder, "e", e), 1);
        params = OSSL_PARAM_BLD_to_param(builder);
        assert_int_equal(EVP_PKEY_fromdata_init(ctx), 1);
        assert_int_equal(EVP_PKEY_fromdata(ctx, &key, EVP_PKEY_PUBLIC_KEY, params), 1);
        assert_int_equal(X509_set_pubkey(identity->cert, key), 1);
        assert_true(X509_sign(identity->cert, identity->key, EVP_sha256()) > 0);
        OSSL_PARAM_free(params);
        OSSL_PARAM_BLD_free(builder);
        EVP_PKEY_CTX_free(ctx);
        EVP_PKEY_free(key);
        BN_free(n);
        BN_free(e);
}

static void test_large_keys_are_refused(void **state) {
        struct x509_identity issuer = x509_identity_make("issuer", NULL, NULL, true, 3600);
        struct x509_identity leaf = x509_identity_make("leaf", NULL, &f.ca, false, 3600);

        start(16);
        give_rsa_key(&issuer, 8192, 16);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), 0);
        give_rsa_key(&issuer, 16384, 16);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), -1);
        x509_identity_deinit(&issuer);
        x509_identity_deinit(&leaf);
}

/* A check with a long exponent takes as long as a signature. */
static void test_large_exponents_are_refused(void **state) {
        struct x509_identity issuer = x509_identity_make("issuer", NULL, NULL, true, 3600);
        struct x509_identity leaf = x509_identity_make("leaf", NULL, &f.ca, false, 3600);

        start(16);
        give_rsa_key(&issuer, 3072, 1);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), 0);
        give_rsa_key(&issuer, 3072, 30);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), 0);
        give_rsa_key(&issuer, 3072, 31);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), -1);
        give_rsa_key(&issuer, 3072, 3070);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), -1);
        x509_identity_deinit(&issuer);
        x509_identity_deinit(&leaf);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_address_loses_its_own_first),
                cmocka_unit_test(test_what_counts_as_one_address),
                cmocka_unit_test(test_an_ipv4_client_of_an_ipv6_listener_has_an_ipv4_address),
                cmocka_unit_test(test_sets_stay_consistent),
                cmocka_unit_test(test_strangers_have_an_account_of_their_own),
                cmocka_unit_test_setup_teardown(test_a_strangers_body_is_not_awaited, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_the_oldest_stranger_makes_room, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_known_senders_are_never_closed_for_others,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_refused_sender_is_a_stranger_again, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_requests_of_nobody_keep_no_place, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_shortage_of_memory_makes_nobody_a_stranger,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_reload_decides_whose_certificate_is_known,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_silent_connections_make_room, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_drain_does_not_wait_for_strangers, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_strangers_are_served_one_by_one, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_strangers_that_do_not_read_are_reported, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_what_others_keep_counts_for_strangers, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_the_descriptor_limit_is_respected, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_without_descriptors_connections_are_closed_and_reported, setup_limited,
                        teardown_limited),
                cmocka_unit_test_setup_teardown(test_large_certificate_chains_are_refused, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_verification_ends_at_the_first_failure, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_long_certificate_chains_are_refused, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_large_keys_are_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_large_exponents_are_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
