/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keys and tokens are overwritten before their memory is freed. This program replaces free and
 * realloc, and looks for a marker in each block that is freed, also by OpenSSL and cJSON. The
 * marker is a part of the secret.
 *
 * Sanitizers and valgrind have their own free, so there these tests are skipped.
 */
#undef NDEBUG
#include <assert.h>
#include <malloc.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/http/http_tls.h"
#include "base/strbuf.h"
#include "client/kubeconfig.h"
#include "http_engine_fixture.h"
#include "server/auth/files.h"
#include "server/auth/pki/admin_kubeconfig.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"
#include "server/auth/tokens.h"
#include "server/auth/write_file.h"
#include "server/certificates/certificates.h"
#include "server/server.h"
#include "server/store/configured_store.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#ifdef SANITIZED
int main(void) { return 77; }
#else

static char marker[64]; /* "" = nothing is looked for */
static _Atomic int n_leaks;

void __libc_free(void *block);
void *__libc_malloc(size_t n);

static void inspect(void *block) {
        size_t n = strlen(marker);
        if (block && n > 0 && memmem(block, malloc_usable_size(block), marker, n))
                atomic_fetch_add(&n_leaks, 1);
}

void free(void *block) {
        inspect(block);
        __libc_free(block);
}

/* Always moves the block, as realloc may. */
void *realloc(void *block, size_t n) {
        void *moved = __libc_malloc(n);
        size_t n_old = block ? malloc_usable_size(block) : 0;
        if (moved && block) {
                memcpy(moved, block, n_old < n ? n_old : n);
                free(block);
        }
        return moved;
}

static char dir[64];

static int make_dir(void **state) {
        strcpy(dir, "/tmp/secrets-XXXXXX");
        marker[0] = '\0';
        return mkdtemp(dir) ? 0 : -1;
}

static int remove_dir(void **state) {
        char command[128];
        snprintf(command, sizeof command, "rm -rf '%s'", dir);
        return system(command);
}

static const char *in_dir(const char *name) {
        static char path[128];
        snprintf(path, sizeof path, "%s/%s", dir, name);
        return path;
}

static void look_for(const char *text, size_t n) {
        assert(n > 0 && n < sizeof marker);
        memcpy(marker, text, n);
        marker[n] = '\0';
        atomic_store(&n_leaks, 0);
}

static void expect_no_leaks(void) {
        marker[0] = '\0';
        assert_int_equal(atomic_load(&n_leaks), 0);
}

/* False under valgrind, which has its own free. */
static bool is_free_replaced(void) {
        look_for("find-me", 7);
        char *block = realloc(strdup("please find-me"), 4096);
        if (block)
                explicit_bzero(block, 4096);
        free(block);
        marker[0] = '\0';
        return atomic_load(&n_leaks) == 1;
}

/* Shows that the search itself works. */
static void test_a_block_that_is_not_overwritten_is_found(void **state) {
        look_for("find-me", 7);
        char *block = strdup("please find-me");
        free(block);
        assert_int_equal(atomic_load(&n_leaks), 1);
        block = strdup("please find-me");
        block = realloc(block, 4096);
        assert_non_null(block);
        assert_int_equal(atomic_load(&n_leaks), 2);
        if (block)
                explicit_bzero(block, 15);
        free(block);
        assert_int_equal(atomic_load(&n_leaks), 2);
        marker[0] = '\0';
}

static void load(struct hfd_pki *pki) {
        const char *names[] = {"one.example", NULL};
        struct hf_status status = {0};
        if (hfd_pki_load_or_make(dir, names, hf_cancel_never(), pki, &status) != 0)
                fail_msg("%s", status.message);
}

/* The second line of a key in PEM form. */
static void look_for_key(const char *name) {
        static char pem[4096];
        FILE *file = fopen(in_dir(name), "r");
        assert_non_null(file);
        size_t n = fread(pem, 1, sizeof pem - 1, file);
        fclose(file);
        pem[n] = '\0';
        char *line = strchr(pem, '\n');
        assert_non_null(line);
        /* The beginning of a key of this kind is the same for all keys. */
        look_for(line + 25, 38);
}

static void test_no_copy_of_a_private_key_remains(void **state) {
        static const char *const names[] = {"ca.key", "server.key", "admin.key"};
        struct hfd_pki pki = {0};
        load(&pki);
        hfd_pki_done(&pki);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
                look_for_key(names[i]);
                load(&pki);
                struct hf_status status = {0};
                assert_int_equal(hfd_admin_kubeconfig_write(&pki, in_dir("kubeconfig"),
                                                            "https://127.0.0.1:1", NULL, &status),
                                 0);
                hfd_pki_done(&pki);
                expect_no_leaks();
        }
}

/* The test cannot know a new key, but it knows the bytes before the key in its first line. */
static void test_no_copy_of_a_new_key_remains(void **state) {
        static const char before[] = "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg";
        struct hfd_pki pki = {0};
        look_for(before, strlen(before));
        load(&pki);
        hfd_pki_done(&pki);
        expect_no_leaks();
}

static void test_no_copy_of_a_token_remains(void **state) {
        struct hfd_tokens *tokens = NULL;
        struct hf_status status = {0};
        const char *text = "secret-token,someone,1,\"a,b\"\n";
        assert_int_equal(hfd_write_file(in_dir("tokens"), text, 0600, NULL), 0);
        look_for("secret-token", 12);
        assert_int_equal(hfd_tokens_load(in_dir("tokens"), 1, &tokens, &status), 0);
        hfd_tokens_free(tokens);
        expect_no_leaks();
        /* The token is overwritten even if a later line is bad. */
        assert_int_equal(hfd_write_file(in_dir("tokens"), "secret-token,someone,1\nbad\n", 0600,
                                        NULL),
                         0);
        look_for("secret-token", 12);
        assert_int_equal(hfd_tokens_load(in_dir("tokens"), 1, &tokens, &status), HF_E_INVALID);
        expect_no_leaks();
}

#define KUBECONFIG_HEAD                                                                            \
        "{\"current-context\":\"m\",\"contexts\":[{\"name\":\"m\",\"context\":{\"cluster\":"       \
        "\"c\",\"user\":\"u\"}}],\"clusters\":[{\"name\":\"c\",\"cluster\":{\"server\":"           \
        "\"https://127.0.0.1:1\"}}],\"users\":[{\"name\":\"u\",\"user\":{"

static void test_no_copy_of_a_secret_in_a_kubeconfig_remains(void **state) {
        struct hf__kubeconfig config;
        struct hf_status status = {0};
        /* A token; a key in base64 that is not text, so that reading it fails ("secret-key",
         * NUL). */
        const char *good = KUBECONFIG_HEAD "\"token\":\"secret-token\"}}]}";
        const char *bad = KUBECONFIG_HEAD "\"client-key-data\":\"c2VjcmV0LWtleQA=\"}}]}";
        /* Invalid base64 behind the key; the key in the file of the certificate. */
        const char *worse = KUBECONFIG_HEAD "\"client-key-data\":\"c2VjcmV0LWtleQ00!\"}}]}";
        const char *combined =
                KUBECONFIG_HEAD "\"client-certificate-data\":\"c2VjcmV0LWtleQ==\"}}]}";
        look_for("secret-token", 12);
        assert_int_equal(hf__kubeconfig_parse(good, strlen(good), "/", "good", &config, &status),
                         0);
        hf__kubeconfig_done(&config);
        expect_no_leaks();
        look_for("secret-key", 10);
        assert_int_equal(hf__kubeconfig_parse(bad, strlen(bad), "/", "bad", &config, &status),
                         HF_E_INVALID);
        expect_no_leaks();
        look_for("secret-key", 10);
        assert_int_equal(hf__kubeconfig_parse(worse, strlen(worse), "/", "bad", &config, &status),
                         HF_E_INVALID);
        expect_no_leaks();
        look_for("secret-key", 10);
        assert_int_equal(hf__kubeconfig_parse(combined, strlen(combined), "/", "good", &config,
                                              &status),
                         0);
        assert_string_equal(config.cert_pem, "secret-key");
        hf__kubeconfig_done(&config);
        expect_no_leaks();
}

/* The text of the certificate may be of a file that contains the key, too. */
static void test_no_copy_of_a_key_in_the_settings_of_a_client_remains(void **state) {
        const struct hf__http_tls_config configs[] = {
                {.ca_pem = "certificate, secret-key"},
                {.cert_pem = "certificate, secret-key", .key_pem = "key"},
                {.cert_pem = "certificate", .key_pem = "secret-key"},
        };

        for (size_t i = 0; i < sizeof configs / sizeof *configs; i++) {
                struct hf__http_tls *tls = NULL;
                look_for("secret-key", 10);
                assert_int_equal(hf__http_tls_new(&configs[i], &tls), 0);
                hf__http_tls_unref(tls);
                expect_no_leaks();
        }
}

static void write_pem(char path[128], const char *name, const char *before, const char *pem) {
        char text[4096];

        (void)snprintf(path, 128, "%s", in_dir(name));
        (void)snprintf(text, sizeof text, "%s%s", before, pem);
        assert_int_equal(hfd_write_file(path, text, 0600, NULL), 0);
}

/* The line before each certificate stands for a key. OpenSSL skips it. */
static void test_no_copy_of_what_is_beside_a_certificate_of_etcds_client_remains(void **state) {
        static const char *const endpoints[] = {"ftp://127.0.0.1:1", NULL};
        const struct hf_host host = {.size = sizeof host};
        char ca_file[128], cert_file[128], key_file[128];
        char *key = NULL, *cert = NULL;
        struct hf_status status = {0};
        struct hfd_store *store = NULL;

        assert_int_equal(hfd_pki_key_make(&key), 0);
        assert_int_equal(hfd_pki_ca_make(key, &cert), 0);
        write_pem(ca_file, "ca", "secret-key\n", cert);
        write_pem(cert_file, "cert", "secret-key\n", cert);
        write_pem(key_file, "key", "", key);
        const struct hfd_config config = {.etcd_ca_file = ca_file,
                                          .etcd_cert_file = cert_file,
                                          .etcd_key_file = key_file};
        look_for("secret-key", 10);
        assert_int_equal(hfd_configured_etcd_new(&host, &config, endpoints, &store, &status),
                         HF_E_INVALID);
        expect_no_leaks();
        if (!strstr(status.message, "http://"))
                fail_msg("%s", status.message); /* the files were good */
        free(key);
        free(cert);
}

static void test_no_copy_of_what_is_beside_a_certificate_of_the_server_remains(void **state) {
        static struct hfd_server server;

        server.server_cert_pem = strdup("certificate, secret-key");
        server.client_ca_pem = strdup("certificate, secret-key");
        assert_true(server.server_cert_pem && server.client_ca_pem);
        look_for("secret-key", 10);
        hfd_certificates_done(&server);
        expect_no_leaks();
}

static void test_no_copy_of_a_secret_text_that_has_grown_remains(void **state) {
        struct hf__strbuf text = {.secret = true};
        look_for("secret-text", 11);
        for (int i = 0; i < 1000; i++)
                hf__strbuf_puts(&text, "secret-text,");
        assert_int_equal(text.error, 0);
        hf__strbuf_done(&text);
        expect_no_leaks();
}

/* No server listens, so libcurl sends nothing: it does not overwrite the buffers that it sends. */
static void test_the_header_of_a_request(void **state) {
        struct http_engine_fixture fixture;
        struct http_engine_response response;
        char url[128];
        const char *headers[] = {"Authorization: Bearer secret-token"};
        http_engine_fixture_start(&fixture);
        http_engine_response_init(&response);
        struct hf__http_request request =
                http_engine_fixture_request(&fixture, &response, "/", url, sizeof url);
        request.url = "http://127.0.0.1:1/";
        request.headers = headers;
        request.n_headers = 1;
        look_for("secret-token", 12);
        http_engine_fixture_do(&fixture, &request, &response);
        assert_int_equal(response.outcome, HF_E_UNAVAILABLE);
        fixture.engine = hf__http_engine_free(fixture.engine);
        expect_no_leaks();
        http_engine_response_deinit(&response);
        http_engine_fixture_stop(&fixture);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_a_block_that_is_not_overwritten_is_found),
                cmocka_unit_test_setup_teardown(test_no_copy_of_a_private_key_remains, make_dir,
                                                remove_dir),
                cmocka_unit_test_setup_teardown(test_no_copy_of_a_new_key_remains, make_dir,
                                                remove_dir),
                cmocka_unit_test_setup_teardown(test_no_copy_of_a_token_remains, make_dir,
                                                remove_dir),
                cmocka_unit_test(test_no_copy_of_a_secret_in_a_kubeconfig_remains),
                cmocka_unit_test(test_no_copy_of_a_key_in_the_settings_of_a_client_remains),
                cmocka_unit_test_setup_teardown(
                        test_no_copy_of_what_is_beside_a_certificate_of_etcds_client_remains,
                        make_dir, remove_dir),
                cmocka_unit_test(
                        test_no_copy_of_what_is_beside_a_certificate_of_the_server_remains),
                cmocka_unit_test(test_no_copy_of_a_secret_text_that_has_grown_remains),
                cmocka_unit_test(test_the_header_of_a_request),
        };
        if (!is_free_replaced())
                return 77; /* skipped */
        return cmocka_run_group_tests(tests, NULL, NULL);
}
#endif
