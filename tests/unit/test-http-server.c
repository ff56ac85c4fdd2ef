/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server as a whole: TLS, connections and their limits, stopping. */
#undef NDEBUG
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include <openssl/sha.h>

#include "base/buf.h"
#include "h2_client.h"
#include "http_fixture.h"

static struct http_fixture f;

static int setup(void **state) {
        http_fixture_start(&f);
        return 0;
}

static int teardown(void **state) {
        http_fixture_stop(&f);
        return 0;
}

static bool says(struct tls_client *c, const char *request, const char *text) {
        tls_client_puts(c, request);
        return tls_client_await(c, text) != NULL;
}

#define HELLO      "GET /hello HTTP/1.1\r\nHost: a\r\n\r\n"
#define PEER       "GET /peer HTTP/1.1\r\nHost: a\r\n\r\n"
#define CREDENTIAL "GET /credential HTTP/1.1\r\nHost: a\r\n\r\n"
#define HOLD       "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"

static void expect(const struct x509_identity *id, const char *request, const char *text) {
        struct tls_client c;

        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, id, 0), 0);
        if (!says(&c, request, text))
                fail_msg("expected %s", text);
        tls_client_close(&c);
}

static void expect_peer(const struct x509_identity *id, const char *text) {
        expect(id, PEER, text);
}

static void test_client_certificates_are_verified(void **state) {
        struct x509_identity good = x509_identity_make("alice", "ops", &f.ca, false, 3600);
        struct x509_identity expired = x509_identity_make("bob", "ops", &f.ca, false, -60);
        struct x509_identity other_ca = x509_identity_make("test-ca", NULL, NULL, true, 3600);
        struct x509_identity foreign =
                x509_identity_make("mallory", "system:masters", &other_ca, false, 3600);
        struct x509_identity self = x509_identity_make("self", NULL, NULL, false, 3600);

        expect_peer(NULL, "none  -");
        expect_peer(&good, "verified alice ops");
        expect_peer(&expired, "bad bob ops");
        expect_peer(&foreign, "bad mallory system:masters");
        expect_peer(&self, "bad self -");
        x509_identity_deinit(&good);
        x509_identity_deinit(&expired);
        x509_identity_deinit(&other_ca);
        x509_identity_deinit(&foreign);
        x509_identity_deinit(&self);
}

/* As in Go's library, the extended usages decide, in the handshake and when the certificate is
 * verified again. */
static void test_a_certificate_must_be_for_clients(void **state) {
        static const struct {
                const char *usages, *extended, *text;
        } cases[] = {{"critical,keyEncipherment,dataEncipherment", "serverAuth,clientAuth",
                      "verified alice"},
                     {"critical,keyEncipherment", NULL, "verified alice"},
                     {"digitalSignature", "anyExtendedKeyUsage", "verified alice"},
                     {"digitalSignature", "serverAuth", "bad alice"},
                     {"keyEncipherment", "serverAuth", "bad alice"}};
        struct hf_status status = {0};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct x509_identity id = x509_identity_make("alice", NULL, &f.ca, false, 3600);
                struct tls_client c;
                x509_identity_add_extension(&id, NID_key_usage, cases[i].usages, &f.ca);
                if (cases[i].extended)
                        x509_identity_add_extension(&id, NID_ext_key_usage, cases[i].extended,
                                                    &f.ca);
                assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, &id, 0), 0);
                for (int again = 0; again <= 1; again++) {
                        if (!says(&c, PEER, cases[i].text))
                                fail_msg("case %zu, again %d", i, again);
                        tls_client_drop(&c, c.n_in);
                        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem,
                                                         f.server.key_pem, f.ca.cert_pem, &status),
                                         0);
                }
                tls_client_close(&c);
                x509_identity_deinit(&id);
        }
}

/* As in Go's library, the extended usages of a CA count, too. */
static void test_a_ca_must_be_for_clients(void **state) {
        static const struct {
                const char *extended, *text;
        } cases[] = {{"anyExtendedKeyUsage", "verified alice"},
                     {"serverAuth,anyExtendedKeyUsage", "verified alice"},
                     {"clientAuth", "verified alice"},
                     {"serverAuth", "bad alice"}};
        struct hf_status status = {0};

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                struct x509_identity middle = x509_identity_make("middle", NULL, &f.ca, true, 3600);
                x509_identity_add_extension(&middle, NID_ext_key_usage, cases[i].extended, &f.ca);
                struct x509_identity id = x509_identity_make("alice", NULL, &middle, false, 3600);
                assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem,
                                                 middle.cert_pem, &status),
                                 0);
                expect_peer(&id, cases[i].text);
                x509_identity_deinit(&id);
                x509_identity_deinit(&middle);
        }
}

/* As in Go's library. */
static void test_the_last_common_name_is_the_user(void **state) {
        struct x509_identity two = x509_identity_make("system:admin", "ops", &f.ca, false, 3600);

        x509_identity_add_name(&two, "CN", "bob", &f.ca);
        expect_peer(&two, "verified bob ops");
        x509_identity_deinit(&two);
}

/* Programs in Go refuse such a certificate, wherever in its subject the string is. */
static void test_a_subject_that_go_cannot_read_is_refused(void **state) {
        static const unsigned char wide[] = {0, 0, 0, 'x'};
        static const struct {
                const char *field;
                int type;
                const void *bytes;
                int n;
        } odd[] = {{"O", V_ASN1_UNIVERSALSTRING, wide, sizeof wide},
                   {"L", V_ASN1_UNIVERSALSTRING, wide, sizeof wide},
                   {"O", V_ASN1_PRINTABLESTRING, "a@b", 3},
                   {"O", V_ASN1_IA5STRING, "\xe9", 1}};

        for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
                struct x509_identity id = x509_identity_make("alice", "ops", &f.ca, false, 3600);
                X509_NAME *subject = X509_get_subject_name(id.cert);
                assert_int_equal(X509_NAME_add_entry_by_txt(subject, odd[i].field, odd[i].type,
                                                            odd[i].bytes, odd[i].n, -1, 0),
                                 1);
                x509_identity_add_name(&id, "L", "here", &f.ca); /* signs it again */
                expect_peer(&id, "bad alice ops");
                x509_identity_deinit(&id);
        }
}

#define UID "1.3.6.1.4.1.57683.2"

static void test_a_certificate_has_a_uid_and_a_fingerprint(void **state) {
        struct x509_identity id = x509_identity_make("alice", "ops", &f.ca, false, 3600),
                             no_name = x509_identity_make(NULL, "ops", &f.ca, false, 3600);
        unsigned char *der = NULL, digest[32];
        char text[128] = "uid=u-1 fingerprint=";

        x509_identity_add_name(&id, UID, "u-1", &f.ca);
        int n = i2d_X509(id.cert, &der);
        assert_true(n > 0);
        SHA256(der, (size_t)n, digest);
        OPENSSL_free(der);
        for (size_t i = 0; i < sizeof digest; i++)
                (void)snprintf(text + strlen(text), 3, "%02x", digest[i]);
        expect_peer(&id, "verified alice ops");
        expect(&id, CREDENTIAL, text);
        /* Kubernetes does not accept several uids, or an empty one. */
        x509_identity_add_name(&id, UID, "u-2", &f.ca);
        expect_peer(&id, "bad alice ops");
        x509_identity_add_name(&no_name, UID, "", &f.ca);
        expect_peer(&no_name, "verified  ops"); /* it is nobody's certificate */
        x509_identity_add_name(&no_name, "CN", "bob", &f.ca);
        expect_peer(&no_name, "bad bob ops");
        x509_identity_deinit(&no_name);
        x509_identity_deinit(&id);
}

static void test_tls_below_1_2_is_refused(void **state) {
        static const int versions[] = {TLS1_1_VERSION, TLS1_2_VERSION, TLS1_3_VERSION};

        for (int i = 0; i < 3; i++) {
                SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
                SSL *ssl;
                int fd = tls_client_dial(hfd_http_port(f.http), 0);

                SSL_CTX_set_cipher_list(ctx, "ALL:@SECLEVEL=0");
                SSL_CTX_set_min_proto_version(ctx, versions[i]);
                SSL_CTX_set_max_proto_version(ctx, versions[i]);
                ssl = SSL_new(ctx);
                SSL_set_fd(ssl, fd);
                assert_int_equal(SSL_connect(ssl) == 1, i > 0);
                if (i > 0)
                        assert_int_equal(SSL_SESSION_has_ticket(SSL_get_session(ssl)), 0);
                SSL_free(ssl);
                SSL_CTX_free(ctx);
                close(fd);
        }
}

static void test_garbage_instead_of_tls_ends_the_connection(void **state) {
        int fd = tls_client_dial(hfd_http_port(f.http), 0);
        char in[256];

        assert_int_equal(send(fd, HELLO, strlen(HELLO), 0), strlen(HELLO));
        while (recv(fd, in, sizeof in, 0) > 0)
                ;
        close(fd);
        expect_peer(NULL, "none");
}

/*
 * Time limits, with a clock that is ahead: a connection that never sends anything, and an idle
 * HTTP/2 connection.
 */
static void test_silent_connections_are_closed(void **state) {
        int fd = tls_client_dial(hfd_http_port(f.http), 0);
        struct tls_client c;
        char in[16];

        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), "h2", NULL, 0), 0);
        tls_client_puts(&c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        tls_client_send(&c, "\0\0\0\4\0\0\0\0\0", 9);
        assert_true(tls_client_read(&c)); /* its SETTINGS: the connection is open */
        expect_peer(NULL, "none");
        expect_peer(NULL, "none"); /* both workers have seen all events before */
        http_fixture_skip_time(&f, 11 * HF_NSEC_PER_SEC);
        assert_int_equal(recv(fd, in, sizeof in, 0), 0);
        http_fixture_skip_time(&f, 80 * HF_NSEC_PER_SEC);
        assert_true(tls_client_is_closed(&c));
        tls_client_close(&c);
        close(fd);
}

static void test_reload_changes_new_handshakes(void **state) {
        struct x509_identity ca2 = x509_identity_make("ca-2", NULL, NULL, true, 3600);
        struct x509_identity server2 = x509_identity_make("server-2", NULL, &ca2, false, 3600);
        struct x509_identity client2 = x509_identity_make("alice", NULL, &ca2, false, 3600);
        struct hf_status status = {0};
        struct tls_client before, after;
        char name[64];

        assert_int_equal(tls_client_open(&before, hfd_http_port(f.http), NULL, NULL, 0), 0);
        expect_peer(&client2, "bad");
        assert_int_equal(hfd_http_reload(f.http, server2.cert_pem, f.server.key_pem, NULL, &status),
                         HF_E_INVALID);
        assert_non_null(strstr(status.message, "key"));
        assert_int_equal(hfd_http_reload(f.http, server2.cert_pem, server2.key_pem, ca2.cert_pem,
                                         &status),
                         0);
        assert_true(says(&before, HELLO, "hello"));
        expect_peer(&client2, "verified alice");
        assert_int_equal(tls_client_open(&after, hfd_http_port(f.http), NULL, NULL, 0), 0);
        X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(after.ssl)),
                                  NID_commonName, name, sizeof name);
        assert_string_equal(name, "server-2");
        tls_client_close(&before);
        tls_client_close(&after);
        x509_identity_deinit(&ca2);
        x509_identity_deinit(&server2);
        x509_identity_deinit(&client2);
}

/* As in Kubernetes, which verifies the certificate anew for each request. */
static void test_a_reload_verifies_the_clients_of_open_connections(void **state) {
        struct x509_identity ca2 = x509_identity_make("ca-2", NULL, NULL, true, 3600);
        struct x509_identity id = x509_identity_make("alice", "ops", &f.ca, false, 3600);
        const char *const cas[] = {f.ca.cert_pem, ca2.cert_pem, NULL, f.ca.cert_pem};
        static const char *const texts[] = {"verified alice", "bad alice", "bad alice",
                                            "verified alice"};
        struct hf_status status = {0};
        struct tls_client c;

        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, &id, 0), 0);
        for (size_t i = 0; i < sizeof cas / sizeof cas[0]; i++) {
                assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem,
                                                 cas[i], &status),
                                 0);
                assert_true(says(&c, PEER, texts[i]));
                tls_client_drop(&c, c.n_in);
        }
        tls_client_close(&c);
        x509_identity_deinit(&id);
        x509_identity_deinit(&ca2);
}

/* As in Go, each certificate of the file is trusted by itself. */
static void test_a_ca_may_be_below_another_one(void **state) {
        struct x509_identity middle = x509_identity_make("middle", NULL, &f.ca, true, 3600);
        struct x509_identity id = x509_identity_make("alice", "ops", &middle, false, 3600);
        struct hf_status status = {0};
        struct tls_client c;

        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, &id, 0), 0);
        assert_true(says(&c, PEER, "bad alice ops")); /* it does not send the one in between */
        tls_client_drop(&c, c.n_in);
        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem,
                                         middle.cert_pem, &status),
                         0);
        assert_true(says(&c, PEER, "verified alice ops"));
        expect_peer(&id, "verified alice ops");
        tls_client_close(&c);
        x509_identity_deinit(&id);
        x509_identity_deinit(&middle);
}

/* The CA comes after the client. A certificate that names no user is never good. */
static void test_a_reload_can_add_the_ca_of_an_open_connection(void **state) {
        struct x509_identity ca2 = x509_identity_make("ca-2", NULL, NULL, true, 3600);
        struct x509_identity ids[2] = {x509_identity_make("alice", "ops", &ca2, false, 3600),
                                       x509_identity_make("alice", "ops", &ca2, false, 3600)};
        static const char *const after[] = {"verified alice ops", "bad alice ops"};
        struct hf_status status = {0};
        struct tls_client c[2];

        x509_identity_add_name(&ids[1], UID, "u-1", &ca2);
        x509_identity_add_name(&ids[1], UID, "u-2", &ca2);
        for (int i = 0; i < 2; i++) {
                assert_int_equal(tls_client_open(&c[i], hfd_http_port(f.http), NULL, &ids[i], 0),
                                 0);
                assert_true(says(&c[i], PEER, "bad alice ops"));
                tls_client_drop(&c[i], c[i].n_in);
        }
        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem, ca2.cert_pem,
                                         &status),
                         0);
        for (int i = 0; i < 2; i++) {
                assert_true(says(&c[i], PEER, after[i]));
                tls_client_close(&c[i]);
                x509_identity_deinit(&ids[i]);
        }
        x509_identity_deinit(&ca2);
}

/* OpenSSL's security level forbids short keys in the handshake, and so it does later. Every level
 * but 0 forbids a key as short as this one. */
static void test_a_weak_ca_verifies_nobody(void **state) {
        struct x509_identity weak = x509_identity_make("weak", NULL, NULL, true, 3600);
        struct hf_status status = {0};
        struct tls_client c;

        EVP_PKEY_free(weak.key);
        weak.key = EVP_RSA_gen(512);
        assert_int_equal(X509_set_pubkey(weak.cert, weak.key), 1);
        assert_int_equal(X509_NAME_add_entry_by_txt(X509_get_issuer_name(weak.cert), "L",
                                                    MBSTRING_ASC, (const uint8_t *)"here", -1, -1,
                                                    0),
                         1);
        x509_identity_add_name(&weak, "L", "here", NULL); /* signs it again */
        struct x509_identity id = x509_identity_make("alice", "ops", &weak, false, 3600);
        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, &id, 0), 0);
        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem, weak.cert_pem,
                                         &status),
                         0);
        expect_peer(&id, "bad alice ops");
        assert_true(says(&c, PEER, "bad alice ops"));
        tls_client_close(&c);
        x509_identity_deinit(&id);
        x509_identity_deinit(&weak);
}

/* The CA expires first here. */
static void test_a_certificate_is_valid_as_long_as_its_chain(void **state) {
        struct x509_identity id = x509_identity_make("alice", "ops", &f.ca, false, 7200);
        char text[64];
        struct tm tm;

        assert_int_equal(ASN1_TIME_to_tm(X509_get0_notAfter(f.ca.cert), &tm), 1);
        (void)snprintf(text, sizeof text, "expires=%lld.", (long long)timegm(&tm));
        expect(&id, CREDENTIAL, text);
        x509_identity_deinit(&id);
}

/* Whether the peer's certificate counts as valid until the end of this one. */
static bool expires_with(struct tls_client *c, const X509 *cert) {
        char text[64];
        struct tm tm;

        assert_int_equal(ASN1_TIME_to_tm(X509_get0_notAfter(cert), &tm), 1);
        (void)snprintf(text, sizeof text, "expires=%lld.", (long long)timegm(&tm));
        bool found = says(c, CREDENTIAL, text);
        tls_client_drop(c, c->n_in);
        return found;
}

/* A renewed CA has the name and the key of the old one. Open connections do not end with the old
 * one. */
static void test_a_renewed_ca_extends_open_connections(void **state) {
        struct x509_identity id = x509_identity_make("alice", "ops", &f.ca, false, 7200);
        X509 *renewed = X509_dup(f.ca.cert);
        BIO *bio = BIO_new(BIO_s_mem());
        struct hf_status status = {0};
        struct tls_client c;
        char *pem;

        assert_true(renewed && bio);
        assert_non_null(X509_gmtime_adj(X509_getm_notAfter(renewed), 9000));
        assert_true(X509_sign(renewed, f.ca.key, EVP_sha256()) > 0);
        assert_int_equal(PEM_write_bio_X509(bio, renewed), 1);
        assert_int_equal(BIO_write(bio, "", 1), 1);
        (void)BIO_get_mem_data(bio, &pem);
        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, &id, 0), 0);
        assert_true(expires_with(&c, f.ca.cert));
        assert_int_equal(hfd_http_reload(f.http, f.server.cert_pem, f.server.key_pem, pem, &status),
                         0);
        assert_true(expires_with(&c, id.cert));
        tls_client_close(&c);
        x509_identity_deinit(&id);
        X509_free(renewed);
        BIO_free(bio);
}

static void test_http1_requests_finish_after_accepting_stops(void **state) {
        struct tls_client idle, busy, streaming;
        struct hfd_http_request *held, *stream;
        int fd;

        assert_int_equal(tls_client_open(&idle, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_int_equal(tls_client_open(&busy, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_int_equal(tls_client_open(&streaming, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_true(says(&idle, HELLO, "hello"));
        tls_client_puts(&busy, HOLD);
        held = http_fixture_take_held(&f);
        tls_client_puts(&streaming, HOLD);
        stream = http_fixture_take_held(&f);
        hfd_http_request_stream(stream, 200, "text/plain", NULL, 0);
        assert_non_null(tls_client_await(&streaming, "\r\n\r\n"));
        hfd_http_stop_accepting(f.http);
        fd = tls_client_dial(hfd_http_port(f.http), 0);
        assert_int_equal(fd, -1);
        assert_true(tls_client_is_closed(&idle));
        assert_int_equal(hfd_http_wait_closed(f.http, hf_now(hf_clock_system())), HF_E_TIMEOUT);
        http_fixture_respond(held, 200, "done");
        hfd_http_request_unref(held);
        assert_non_null(tls_client_await(&busy, "connection: close\r\n"));
        assert_non_null(tls_client_await(&busy, "done"));
        assert_true(tls_client_is_closed(&busy));
        hfd_http_request_end(stream);
        hfd_http_request_unref(stream);
        assert_non_null(tls_client_await(&streaming, "0\r\n\r\n"));
        assert_true(tls_client_is_closed(&streaming));
        tls_client_close(&idle);
        tls_client_close(&busy);
        tls_client_close(&streaming);
        assert_int_equal(hfd_http_wait_closed(f.http, HF_NSEC_NEVER), 0);
}

/* Like the fixture's handler, and /stop stops accepting. */
static void handle_stop(void *ctx, struct hfd_http_request *request) {
        if (strcmp(hfd_http_request_path(request), "/stop") != 0) {
                http_fixture_handle(ctx, request);
                return;
        }
        hfd_http_stop_accepting(f.http);
        http_fixture_respond(request, 200, "stopped");
        hfd_http_request_unref(request);
}

/* The worker has not noticed the stop yet when it writes the head of the response. */
static void test_a_response_just_after_accepting_stops_closes_the_connection(void **state) {
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};
        struct hfd_http *mine = f.http;
        struct tls_client client;

        config.handler = handle_stop;
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
        assert_int_equal(tls_client_open(&client, hfd_http_port(f.http), NULL, NULL, 0), 0);
        tls_client_puts(&client, "GET /stop HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_non_null(tls_client_await(&client, "connection: close\r\n"));
        assert_non_null(tls_client_await(&client, "stopped"));
        assert_true(tls_client_is_closed(&client));
        tls_client_close(&client);
        assert_int_equal(hfd_http_wait_closed(f.http, HF_NSEC_NEVER), 0);
        hfd_http_free(f.http);
        f.http = mine;
}

static void test_a_response_may_close_the_connection(void **state) {
        const struct hfd_header headers[] = {{"connection", "close"}};
        struct hfd_http_request *held;
        struct tls_client client;

        assert_int_equal(tls_client_open(&client, hfd_http_port(f.http), NULL, NULL, 0), 0);
        tls_client_puts(&client, HOLD);
        held = http_fixture_take_held(&f);
        hfd_http_request_reply(held, 429, "text/plain", headers, 1, NULL);
        hfd_http_request_unref(held);
        assert_non_null(tls_client_await(&client, "connection: close\r\n"));
        assert_true(tls_client_is_closed(&client));
        tls_client_close(&client);
}

static void test_http2_requests_finish_after_accepting_stops(void **state) {
        struct h2_client *client = h2_client_open(hfd_http_port(f.http), 0, 0);
        int32_t id = h2_client_ask(client, "GET", "/hold", NULL);
        struct hfd_http_request *held = http_fixture_take_held(&f);

        hfd_http_stop_accepting(f.http);
        while (client->goaway_first < 0)
                assert_true(h2_client_iteration(client));
        assert_int_equal(client->goaway_first, INT32_MAX); /* a notice */
        while (client->goaway_last != id)
                assert_true(h2_client_iteration(client));
        assert_false(h2_client_stream_of(client, id)->closed);
        http_fixture_respond(held, 200, "done");
        hfd_http_request_unref(held);
        assert_int_equal(h2_client_await(client, id)->code, 200);
        assert_int_equal(h2_client_stream_of(client, id)->error_code, NGHTTP2_NO_ERROR);
        while (h2_client_iteration(client)) /* until the server closes */
                ;
        h2_client_close(client);
}

static void test_the_server_can_be_freed_with_requests_under_way(void **state) {
        struct hf__buf *piece = hf__buf_copy("x", 1);
        struct tls_client c[4];
        struct hfd_http_request *held[4];

        for (int i = 0; i < 4; i++) {
                assert_int_equal(tls_client_open(&c[i], hfd_http_port(f.http), NULL, NULL, 0), 0);
                tls_client_puts(&c[i], HOLD);
                held[i] = http_fixture_take_held(&f);
        }
        hfd_http_request_stream(held[0], 200, "text/plain", NULL, 0);
        f.http = hfd_http_free(f.http);
        assert_int_equal(f.n_gone, 4);
        assert_int_equal(f.n_finished, 4);
        assert_int_equal(hfd_http_request_push(held[0], piece), -EPIPE);
        http_fixture_respond(held[1], 200, "late");
        assert_string_equal(hfd_http_request_path(held[2]), "/hold");
        for (int i = 0; i < 4; i++) {
                hfd_http_request_unref(held[i]);
                tls_client_close(&c[i]);
        }
        hf__buf_unref(piece);
}

static void test_a_server_that_never_started_can_be_freed(void **state) {
        /* setup() starts the server that teardown() frees. This one is only created and freed. */
        struct hfd_http_config config = http_fixture_config(&f);
        struct hfd_http *http;
        struct hf_status status = {0};

        assert_int_equal(hfd_http_new(&f.host, &config, &http, &status), 0);
        assert_true(hfd_http_port(http) > 0);
        config.port = hfd_http_port(http);
        assert_int_equal(hfd_http_new(&f.host, &config, &(struct hfd_http *){NULL}, &status),
                         HF_E_BUSY);
        assert_null(hfd_http_free(http));
        config = http_fixture_config(&f);
        config.bind_address = "not an address";
        assert_int_equal(hfd_http_new(&f.host, &config, &http, &status), HF_E_INVALID);
        config = http_fixture_config(&f);
        config.cert_pem = "rubbish";
        assert_int_equal(hfd_http_new(&f.host, &config, &http, &status), HF_E_INVALID);
        assert_non_null(strstr(status.message, "certificate"));
}

static void test_an_inherited_listener_keeps_listening(void **state) {
        struct sockaddr_in to = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};
        struct hfd_http *mine = f.http;
        int fd = socket(AF_INET, SOCK_STREAM, 0), ours, later;
        uint16_t port;

        assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof to), 0);
        config.listen_fd = fd;
        /* it does not listen */
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), HF_E_INVALID);
        assert_int_equal(listen(fd, 8), 0);
        ours = dup(fd); /* the service manager's copy */
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
        port = hfd_http_port(f.http);
        expect_peer(NULL, "none");
        hfd_http_stop_accepting(f.http);
        hfd_http_free(f.http);
        f.http = mine;
        later = tls_client_dial(port, 0); /* it waits in the backlog for the next instance */
        assert_true(later >= 0);
        close(later);
        close(ours);
}

static void test_connections_beyond_the_limit_are_closed(void **state) {
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};
        struct hfd_http *mine = f.http;
        struct tls_client a, b, c;

        config.max_connections = 2;
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
        assert_int_equal(tls_client_open(&a, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_int_equal(tls_client_open(&b, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_true(says(&a, HELLO, "hello"));
        assert_true(says(&b, HELLO, "hello"));
        assert_int_equal(tls_client_open(&c, hfd_http_port(f.http), NULL, NULL, 0), -1);
        a.n_in = b.n_in = 0;
        assert_true(says(&a, HELLO, "hello"));
        assert_true(says(&b, HELLO, "hello"));
        assert_int_equal(hfd_http_n_connections(f.http), 2);
        tls_client_close(&a);
        tls_client_close(&b);
        tls_client_close(&c);
        hfd_http_free(f.http);
        f.http = mine;
}

/*
 * Clients without a completed handshake use all places for handshakes. Connected clients are still
 * served, and new clients are served again when the others have gone.
 */
static void test_handshakes_beyond_the_limit_are_closed(void **state) {
        struct hfd_http_config config = http_fixture_config(&f);
        struct hf_status status = {0};
        struct hfd_http *mine = f.http;
        struct tls_client kept, refused, late;
        int strangers[4], surplus;
        char in[16];

        config.n_workers = 1; /* one worker accepts the sockets in the order of their connections */
        config.max_connections = 16;
        assert_int_equal(hfd_http_new(&f.host, &config, &f.http, &status), 0);
        assert_int_equal(hfd_http_start(f.http), 0);
        assert_int_equal(tls_client_open(&kept, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_true(says(&kept, HELLO, "hello")); /* its handshake is over for the server too */
        for (int i = 0; i < 4; i++)
                strangers[i] = tls_client_dial(hfd_http_port(f.http), 0);
        surplus = tls_client_dial(hfd_http_port(f.http), 0);
        assert_int_equal(recv(surplus, in, sizeof in, 0), 0);
        assert_int_equal(tls_client_open(&refused, hfd_http_port(f.http), NULL, NULL, 0), -1);
        kept.n_in = 0;
        assert_true(says(&kept, HELLO, "hello")); /* the worker has closed them */
        assert_int_equal(hfd_http_n_connections(f.http), 5);
        for (int i = 0; i < 4; i++) {
                assert_int_equal(recv(strangers[i], in, sizeof in, MSG_DONTWAIT), -1);
                assert_int_equal(errno, EAGAIN);
                close(strangers[i]);
        }
        /* In each round the worker iterates at least once. */
        for (int i = 0; i < 10000 && (i == 0 || hfd_http_n_connections(f.http) > 1); i++) {
                kept.n_in = 0;
                assert_true(says(&kept, HELLO, "hello"));
        }
        assert_int_equal(tls_client_open(&late, hfd_http_port(f.http), NULL, NULL, 0), 0);
        assert_true(says(&late, HELLO, "hello"));
        assert_int_equal(hfd_http_n_connections(f.http), 2);
        tls_client_close(&kept);
        tls_client_close(&refused);
        tls_client_close(&late);
        close(surplus);
        hfd_http_free(f.http);
        f.http = mine;
}

/*
 * Threads write to streams whose peers come and go. Nothing is lost or used after its end (the
 * sanitizers check this).
 */
struct pusher {
        pthread_t thread;
        struct hfd_http_request *request;
};

static void *push_all(void *ctx) {
        struct pusher *p = ctx;
        struct hf__buf *piece = hf__buf_copy("event\n", 6);
        int r = 0;

        hfd_http_request_stream(p->request, 200, "text/plain", NULL, 0);
        for (int i = 0; i < 500 && r == 0; i++)
                r = hfd_http_request_push(p->request, piece);
        hfd_http_request_end(p->request);
        hfd_http_request_unref(p->request);
        hf__buf_unref(piece);
        return NULL;
}

static void test_streams_are_written_while_peers_leave(void **state) {
        struct pusher pushers[32];
        struct tls_client c[32];

        for (int i = 0; i < 32; i++) {
                assert_int_equal(tls_client_open(&c[i], hfd_http_port(f.http), NULL, NULL, 0), 0);
                tls_client_puts(&c[i], HOLD);
                pushers[i].request = http_fixture_take_held(&f);
                assert_int_equal(pthread_create(&pushers[i].thread, NULL, push_all, &pushers[i]),
                                 0);
                if (i % 2)
                        tls_client_close(&c[i]);
        }
        for (int i = 0; i < 32; i += 2) {
                assert_non_null(tls_client_await(&c[i], "0\r\n\r\n"));
                tls_client_close(&c[i]);
        }
        for (int i = 0; i < 32; i++)
                pthread_join(pushers[i].thread, NULL);
        http_fixture_await(&f, &f.n_finished, 32);
}

static void test_idle_workers_still_iterate(void **state) {
        uint64_t first = hfd_http_iterations(f.http);
        int fds[2];

        /*
         * Without work each worker iterates once a second. The test waits on a pipe to which nobody
         * writes.
         */
        assert_int_equal(pipe(fds), 0);
        for (int i = 0; i < TLS_CLIENT_WAIT_S * 10 && hfd_http_iterations(f.http) == first; i++) {
                struct timeval tenth = {.tv_usec = 100000};
                fd_set set;

                FD_ZERO(&set);
                FD_SET(fds[0], &set);
                select(fds[0] + 1, &set, NULL, NULL, &tenth);
        }
        assert_true(hfd_http_iterations(f.http) > first);
        close(fds[0]);
        close(fds[1]);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_client_certificates_are_verified, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_certificate_has_a_uid_and_a_fingerprint,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_subject_that_go_cannot_read_is_refused,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_certificate_must_be_for_clients, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_ca_must_be_for_clients, setup, teardown),
                cmocka_unit_test_setup_teardown(test_the_last_common_name_is_the_user, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_tls_below_1_2_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_garbage_instead_of_tls_ends_the_connection,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_silent_connections_are_closed, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_reload_verifies_the_clients_of_open_connections, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_weak_ca_verifies_nobody, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_ca_may_be_below_another_one, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_reload_can_add_the_ca_of_an_open_connection,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_certificate_is_valid_as_long_as_its_chain,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_renewed_ca_extends_open_connections, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_reload_changes_new_handshakes, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_http1_requests_finish_after_accepting_stops,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_response_just_after_accepting_stops_closes_the_connection, setup,
                        teardown),
                cmocka_unit_test_setup_teardown(test_a_response_may_close_the_connection, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_http2_requests_finish_after_accepting_stops,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_the_server_can_be_freed_with_requests_under_way, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_server_that_never_started_can_be_freed,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_inherited_listener_keeps_listening, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_connections_beyond_the_limit_are_closed, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_handshakes_beyond_the_limit_are_closed, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_streams_are_written_while_peers_leave, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_idle_workers_still_iterate, setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
