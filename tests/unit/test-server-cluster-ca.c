/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates by which clients recognise the server, which every namespace gets. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "server/auth/pki/pki.h"
#include "server/certificates/cluster_ca.h"

struct fixture {
        struct hfd_config config;
        struct hfd_pki own, other; /* of this server, and of a CA that it does not know */
        struct hfd_cluster_ca *ca;
        char text[16384];
};

static int setup(void **state) {
        struct fixture *f = calloc(1, sizeof *f);

        assert_non_null(f);
        assert_int_equal(hfd_pki_make(NULL, &f->own, NULL), 0);
        assert_int_equal(hfd_pki_make(NULL, &f->other, NULL), 0);
        f->ca = hfd_cluster_ca_new(&f->config);
        assert_non_null(f->ca);
        *state = f;
        return 0;
}

static int teardown(void **state) {
        struct fixture *f = *state;

        hfd_cluster_ca_free(f->ca);
        hfd_pki_done(&f->other);
        hfd_pki_done(&f->own);
        free(f);
        return 0;
}

static void expect_published(struct fixture *f, const struct hfd_pki *own, const char *serving,
                             const char *client_ca, const char *expected) {
        const struct hfd_cluster_ca_functions functions = hfd_cluster_ca_functions(f->ca);

        assert_int_equal(hfd_cluster_ca_publish(f->ca, own, serving, client_ca), 0);
        char *root = functions.root(functions.ctx);
        assert_string_equal(root, expected);
        free(root);
}

static void test_the_ca_of_the_certificate_is_published(void **state) {
        struct fixture *f = *state;
        const struct hfd_pki *own = &f->own, *other = &f->other;

        expect_published(f, own, own->server_cert_pem, own->ca_pem, own->ca_pem);
        expect_published(f, own, other->server_cert_pem, other->ca_pem, other->ca_pem);
        expect_published(f, own, other->server_cert_pem, own->ca_pem, other->server_cert_pem);
        (void)snprintf(f->text, sizeof f->text, "%s%s", other->server_cert_pem, other->ca_pem);
        expect_published(f, own, f->text, own->ca_pem, other->ca_pem);
}

/* Servers often have a certificate and its key in one file, which two flags name. All users may
 * read what is published. */
static void test_of_a_file_only_the_certificates_are_published(void **state) {
        struct fixture *f = *state;
        const struct hfd_pki *own = &f->own, *other = &f->other;
        struct hfd_pki with_key = *own;

        (void)snprintf(f->text, sizeof f->text, "a note\n%s%s", other->server_cert_pem,
                       other->server_key_pem);
        expect_published(f, own, f->text, own->ca_pem, other->server_cert_pem);
        (void)snprintf(f->text, sizeof f->text, "%s%s", other->server_key_pem,
                       other->server_cert_pem);
        expect_published(f, own, f->text, own->ca_pem, other->server_cert_pem);
        (void)snprintf(f->text, sizeof f->text, "%s%s-----BEGIN CERTIFICATE-----\n%s",
                       other->server_cert_pem, other->ca_pem, other->server_key_pem);
        expect_published(f, own, f->text, own->ca_pem, other->ca_pem);
        (void)snprintf(f->text, sizeof f->text, "%s%s", other->ca_pem, other->ca_key_pem);
        expect_published(f, own, other->server_cert_pem, f->text, other->ca_pem);
        (void)snprintf(f->text, sizeof f->text, "%s%s", own->ca_pem, own->ca_key_pem);
        with_key.ca_pem = f->text;
        expect_published(f, &with_key, own->server_cert_pem, other->ca_pem, own->ca_pem);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_the_ca_of_the_certificate_is_published, setup,
                                                teardown),
                cmocka_unit_test_setup_teardown(test_of_a_file_only_the_certificates_are_published,
                                                setup, teardown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
