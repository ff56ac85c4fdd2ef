/* SPDX-License-Identifier: Apache-2.0 */
/* What clients that have not authenticated themselves can hold, and for how long. */
#undef NDEBUG
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <openssl/core_names.h>
#include <openssl/param_build.h>

#include "http_fixture.h"
#include "server/http/limits/account.h"
#include "server/http/limits/strangers.h"

static struct http_fixture f;
static struct hfd_http *default_http;

#define HELLO "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
#define KNOWN "GET /hello HTTP/1.1\r\nHost: a\r\nAuthorization: known\r\n\r\n"

/* A sender with the header "authorization" is known. Nobody may use /forbidden. */
static enum hfd_http_verdict decide(void *ctx, struct hfd_http_request *request) {
        if (strcmp(hfd_http_request_path(request), "/forbidden") == 0) {
                hfd_http_request_reply(request, 403, "text/plain", NULL, 0, NULL);
                return HFD_HTTP_REFUSED;
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
        hfd_account_set_known(&account, &good);
        assert_int_equal(account.known, HFD_ACCOUNT_STRANGER_FREE);
        assert_int_equal(hfd_account_change(&account, &good, 0, (size_t)3 << 20), 0);
        for (size_t i = 0; i <= n; i++)
                (void)hfd_account_change(&account, &shares[i], shares[i].n, 0);
        assert_int_equal(account.strangers, 0);
}

/* ---- the server ---- */

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

/* ---- client certificates ---- */

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
        assert_int_equal(connect_with_chain(&leaf, issuers, 3), 0);
        assert_int_equal(connect_with_chain(&leaf, issuers, 12), -1);
        for (int i = 0; i < 12; i++)
                x509_identity_deinit(&issuers[i]);
        x509_identity_deinit(&leaf);
}

/* A certificate whose key is an RSA key of this size. Nobody needs its private part. */
static void give_rsa_key(struct x509_identity *identity, int bits) {
        BIGNUM *n = BN_new(), *e = BN_new();
        OSSL_PARAM_BLD *builder = OSSL_PARAM_BLD_new();
        EVP_PKEY_CTX *ctx = EVP_PKEY_CTX_new_from_name(NULL, "RSA", NULL);
        EVP_PKEY *key = NULL;
        OSSL_PARAM *params;

        assert_int_equal(BN_rand(n, bits, BN_RAND_TOP_ONE, BN_RAND_BOTTOM_ODD), 1);
        assert_int_equal(BN_set_word(e, 65537), 1);
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
        give_rsa_key(&issuer, 8192);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), 0);
        give_rsa_key(&issuer, 16384);
        assert_int_equal(connect_with_chain(&leaf, &issuer, 1), -1);
        x509_identity_deinit(&issuer);
        x509_identity_deinit(&leaf);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_an_address_loses_its_own_first),
                cmocka_unit_test(test_what_counts_as_one_address),
                cmocka_unit_test(test_sets_stay_consistent),
                cmocka_unit_test(test_strangers_have_an_account_of_their_own),
                cmocka_unit_test_setup_teardown(test_a_strangers_body_is_not_awaited, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_the_oldest_stranger_makes_room, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_known_senders_are_never_closed_for_others,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_silent_connections_make_room, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_drain_does_not_wait_for_strangers, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_the_descriptor_limit_is_respected, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_long_certificate_chains_are_refused, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_large_keys_are_refused, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
