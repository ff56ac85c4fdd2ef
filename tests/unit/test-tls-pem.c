/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates and keys from PEM text. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/pem.h>

#include "server/auth/pki/pki_cert.h"
#include "server/tls/pem.h"
#include "server/tls/pem_check.h"

#define BROKEN_CERT "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

struct fixture {
        char *key, *cert; /* of one CA */
        SSL_CTX *ctx;
};

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        assert_int_equal(hfd_pki_key_make(&f->key), 0);
        assert_int_equal(hfd_pki_ca_make(f->key, &f->cert), 0);
        f->ctx = SSL_CTX_new(TLS_server_method());
        assert_non_null(f->ctx);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        SSL_CTX_free(f->ctx);
        free(f->key);
        free(f->cert);
        free(f);
        return 0;
}

/* Asserts that both functions accept the certificates, or that both refuse them and leave an error
 * in OpenSSL's queue. */
static void expect_both(struct fixture *f, const char *pem, bool accepted) {
        assert_int_equal(hfd_pem_trust(f->ctx, pem, true), accepted);
        assert_int_equal(ERR_peek_error() == 0, accepted);
        ERR_clear_error();
        assert_int_equal(hfd_pem_use_chain(f->ctx, pem), accepted);
        assert_int_equal(ERR_peek_error() == 0, accepted);
        ERR_clear_error();
}

static void test_certificates_and_other_text_are_read(void **state) {
        struct fixture *f = *state;
        char text[8192];

        (void)snprintf(text, sizeof text, "a comment\n%s%s\nanother\n%s", f->key, f->cert, f->cert);
        expect_both(f, text, true);
        assert_true(hfd_pem_use_key(f->ctx, text));
        assert_int_equal(ERR_peek_error(), 0);
}

static void test_a_text_without_certificates_is_refused(void **state) {
        struct fixture *f = *state;

        expect_both(f, "", false);
        expect_both(f, f->key, false);
        assert_false(hfd_pem_use_key(f->ctx, f->cert));
        ERR_clear_error();
        assert_false(hfd_pem_trust(f->ctx, NULL, false));
        assert_false(hfd_pem_use_chain(f->ctx, NULL));
        assert_false(hfd_pem_use_key(f->ctx, NULL));
}

/* If it were accepted, a damaged bundle would silently lose the certificates behind the damage. */
static void test_a_broken_certificate_behind_a_good_one_is_refused(void **state) {
        struct fixture *f = *state;
        char text[8192];

        (void)snprintf(text, sizeof text, "%s" BROKEN_CERT, f->cert);
        expect_both(f, text, false);
        (void)snprintf(text, sizeof text, "%s-----BEGIN CERTIFICATE-----\nMIIB", f->cert);
        expect_both(f, text, false);
}

static void test_an_encrypted_key_is_refused_without_a_prompt(void **state) {
        struct fixture *f = *state;
        EVP_PKEY *key = hfd_pem_read_key(f->key);
        BIO *bio = BIO_new(BIO_s_mem());
        char secret[] = "secret", text[4096] = "";

        assert_non_null(key);
        assert_int_equal(PEM_write_bio_PKCS8PrivateKey(bio, key, EVP_aes_128_cbc(), secret, 6, NULL,
                                                       NULL),
                         1);
        assert_true(BIO_read(bio, text, sizeof text - 1) > 0);
        assert_null(hfd_pem_read_key(text));
        assert_true(ERR_peek_error() != 0);
        ERR_clear_error();
        BIO_free(bio);
        EVP_PKEY_free(key);
}

static void expect_fault(enum hfd_pem_kind kind, const char *pem, const char *fault) {
        struct hf_status status = {0};

        assert_int_equal(hfd_pem_check(kind, "/some/file", pem, &status), HF_E_INVALID);
        assert_int_equal(ERR_peek_error(), 0);
        if (strncmp(status.message, "/some/file has no usable ", 25) != 0 ||
            !strstr(status.message, fault))
                fail_msg("%s", status.message);
}

static void test_a_check_names_the_file_the_reason_and_the_remedy(void **state) {
        struct fixture *f = *state;

        assert_int_equal(hfd_pem_check(HFD_PEM_CHAIN, "a", f->cert, NULL), 0);
        assert_int_equal(hfd_pem_check(HFD_PEM_CA, "a", f->cert, NULL), 0);
        assert_int_equal(hfd_pem_check(HFD_PEM_KEY, "a", f->key, NULL), 0);
        expect_fault(HFD_PEM_CHAIN, f->key, "certificate (no start line): it must be");
        expect_fault(HFD_PEM_CA, "", "one or more CA certificates");
        expect_fault(HFD_PEM_KEY, f->cert, "unencrypted private key");
        expect_fault(HFD_PEM_CHAIN, BROKEN_CERT, "begins with the certificate");
}

static void test_a_pair_is_one_key_and_its_certificate(void **state) {
        struct fixture *f = *state;
        char *other = NULL;

        assert_true(hfd_pem_is_pair(f->cert, f->key));
        assert_int_equal(hfd_pki_key_make(&other), 0);
        assert_false(hfd_pem_is_pair(f->cert, other));
        assert_int_equal(ERR_peek_error(), 0);
        free(other);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_certificates_and_other_text_are_read, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_a_text_without_certificates_is_refused, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_broken_certificate_behind_a_good_one_is_refused, setup, teardown),
                cmocka_unit_test_setup_teardown(test_an_encrypted_key_is_refused_without_a_prompt,
                                                setup, teardown),
                cmocka_unit_test_setup_teardown(
                        test_a_check_names_the_file_the_reason_and_the_remedy, setup, teardown),
                cmocka_unit_test_setup_teardown(test_a_pair_is_one_key_and_its_certificate, setup,
                                                teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
