/* SPDX-License-Identifier: Apache-2.0 */
/* The CA that one host hands over to another. */
#undef NDEBUG
#include <assert.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/strbuf.h"
#include "pki_dir.h"
#include "server/auth/files.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"

static char here[96], there[96];
static struct hf_status status;

static int make_dirs(void **state) {
        int r = pki_dir_make(state);

        snprintf(here, sizeof here, "%s/here/pki", pki_dir);
        snprintf(there, sizeof there, "%s/there/pki", pki_dir);
        status = (struct hf_status){0};
        return r;
}

static const char *in(const char *dir, const char *name) {
        static char path[160];
        snprintf(path, sizeof path, "%s/%s", dir, name);
        return path;
}

static bool shell_says(const char *line, const char *expected) {
        return pki_dir_says(pki_dir, line, expected);
}

static void expect_refused(int r, int expected, const char *reason) {
        assert_int_equal(r, expected);
        if (!strstr(status.message, reason) || strchr(status.message, '\n'))
                fail_msg("wanted one line with \"%s\": %s", reason, status.message);
}

static struct hfd_pki_ca make_ca(const char *dir) {
        struct hfd_pki_ca ca;
        assert_int_equal(hfd_pki_ca_init(dir, hf_cancel_never(), &ca, &status), 0);
        return ca;
}

static int join(const char *dir, const struct hfd_pki_ca *ca, bool *ret_joined) {
        return hfd_pki_ca_join(dir, ca, hf_cancel_never(), ret_joined, &status);
}

static int parse(const char *cert, const char *key, struct hfd_pki_ca *ret_ca) {
        struct hf__strbuf text = {0};
        hf__strbuf_printf(&text, "a note\n%s\n%s", cert, key);
        int r = hfd_pki_ca_parse(text.data, "the file", ret_ca, &status);
        hf__strbuf_done(&text);
        return r;
}

static void test_a_ca_is_made_once(void **state) {
        struct hfd_pki_ca ca = make_ca(here), again;
        struct hfd_pki pki = {0};
        struct stat st;

        assert_int_equal(stat(in(here, "ca.key"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(access(in(here, "server.crt"), F_OK), -1);
        expect_refused(hfd_pki_ca_init(here, hf_cancel_never(), &again, &status), HF_E_EXISTS,
                       in(here, "ca.crt"));
        /* the first start uses it */
        assert_int_equal(hfd_pki_load_or_make(here, NULL, hf_cancel_never(), &pki, &status), 0);
        assert_string_equal(pki.ca_pem, ca.cert_pem);
        hfd_pki_done(&pki);
        hfd_pki_ca_done(&ca);
}

static void test_the_second_host_joins_and_issues_from_the_same_ca(void **state) {
        struct hfd_pki_ca ca = make_ca(here), copy;
        struct hfd_pki pki = {0};
        struct stat st;
        bool joined = false;

        assert_int_equal(parse(ca.key_pem, ca.cert_pem, &copy), 0); /* in any order */
        assert_string_equal(copy.cert_pem, ca.cert_pem);
        assert_string_equal(copy.key_pem, ca.key_pem);
        assert_int_equal(join(there, &copy, &joined), 0);
        assert_true(joined);
        assert_int_equal(stat(in(there, "ca.key"), &st), 0);
        assert_int_equal(st.st_mode & 0777, 0600);
        assert_int_equal(hfd_pki_load_or_make(there, NULL, hf_cancel_never(), &pki, &status), 0);
        assert_true(shell_says("openssl verify -CAfile here/pki/ca.crt there/pki/server.crt "
                               "there/pki/admin.crt",
                               "admin.crt: OK"));
        assert_int_equal(join(there, &copy, &joined), 0);
        assert_false(joined);
        /* a host that has only the certificate gets the key */
        assert_int_equal(unlink(in(there, "ca.key")), 0);
        assert_int_equal(join(there, &copy, &joined), 0);
        assert_true(joined);
        assert_int_equal(access(in(there, "ca.key"), F_OK), 0);
        hfd_pki_done(&pki);
        hfd_pki_ca_done(&copy);
        hfd_pki_ca_done(&ca);
}

static void test_another_ca_is_not_replaced(void **state) {
        struct hfd_pki_ca ca = make_ca(here), other = make_ca(there);
        struct hfd_pki pki = {0};
        bool joined = false;
        char *text = NULL;

        assert_int_equal(hfd_pki_load_or_make(there, NULL, hf_cancel_never(), &pki, &status), 0);
        expect_refused(join(there, &ca, &joined), HF_E_EXISTS, in(there, "ca.crt"));
        expect_refused(join(there, &ca, &joined), HF_E_EXISTS, in(there, "ca.key"));
        assert_int_equal(unlink(in(there, "ca.crt")), 0); /* the key alone is left of it */
        expect_refused(join(there, &ca, &joined), HF_E_EXISTS, in(there, "ca.key"));
        assert_int_equal(hfd_read_file(in(there, "ca.key"), &text, NULL), 0);
        assert_string_equal(text, other.key_pem);
        assert_int_equal(access(in(there, "ca.crt"), F_OK), -1);
        /* the advice in the message works: after it the join succeeds and makes the certificates */
        assert_int_equal(unlink(in(there, "ca.key")), 0);
        assert_int_equal(join(there, &ca, &joined), 0);
        hfd_pki_done(&pki);
        assert_int_equal(hfd_pki_load_or_make(there, NULL, hf_cancel_never(), &pki, &status), 0);
        assert_true(shell_says("openssl verify -CAfile here/pki/ca.crt there/pki/server.crt "
                               "there/pki/admin.crt",
                               "admin.crt: OK"));
        free(text);
        hfd_pki_done(&pki);
        hfd_pki_ca_done(&other);
        hfd_pki_ca_done(&ca);
}

static void test_what_is_no_ca_with_its_key_is_refused(void **state) {
        struct hfd_pki_ca ca = make_ca(here), other = make_ca(there), parsed;
        struct hfd_pki pki = {0};

        assert_int_equal(hfd_pki_load_or_make(here, NULL, hf_cancel_never(), &pki, &status), 0);
        expect_refused(parse("", ca.key_pem, &parsed), HF_E_INVALID, "no certificate");
        expect_refused(parse(ca.cert_pem, "", &parsed), HF_E_INVALID, "no private key");
        expect_refused(parse(ca.key_pem, ca.key_pem, &parsed), HF_E_INVALID, "no certificate");
        expect_refused(parse(ca.cert_pem, other.key_pem, &parsed), HF_E_INVALID,
                       "another certificate");
        expect_refused(parse(pki.server_cert_pem, pki.server_key_pem, &parsed), HF_E_INVALID,
                       "not a CA certificate");
        expect_refused(parse("-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----",
                             ca.key_pem, &parsed),
                       HF_E_INVALID, "not a certificate");
        expect_refused(parse("-----BEGIN CERTIFICATE-----\n", "", &parsed), HF_E_INVALID,
                       "no certificate");
        expect_refused(hfd_pki_ca_read(in(pki_dir, "nowhere"), &parsed, &status), HF_E_NOT_FOUND,
                       "no CA in");
        hfd_pki_done(&pki);
        hfd_pki_ca_done(&other);
        hfd_pki_ca_done(&ca);
}

/* The text is that of a block which a paste has cut, followed by the key. All users may read the
 * file of the certificate. */
static void test_no_key_is_taken_for_a_part_of_a_certificate(void **state) {
        static const char cut[] = "-----BEGIN CERTIFICATE-----\nMIIB\n",
                          other_end[] = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END X-----\n";
        struct hfd_pki_ca ca = make_ca(here), parsed;
        struct hf__strbuf text = {0};

        hf__strbuf_printf(&text, "%s%s%s%s", ca.cert_pem, cut, ca.key_pem, ca.key_pem);
        expect_refused(hfd_pki_ca_parse(text.data, "the file", &parsed, &status), HF_E_INVALID,
                       "no private key");
        hf__strbuf_done(&text);
        hf__strbuf_printf(&text, "%s%s%s", ca.cert_pem, other_end, ca.key_pem);
        expect_refused(hfd_pki_ca_parse(text.data, "the file", &parsed, &status), HF_E_INVALID,
                       "no private key");
        hf__strbuf_done(&text);
        /* a second certificate, with a text on its last line */
        hf__strbuf_printf(&text, "%s%s%.*s MIIB\n", ca.key_pem, ca.cert_pem,
                          (int)strlen(ca.cert_pem) - 1, ca.cert_pem);
        assert_int_equal(hfd_pki_ca_parse(text.data, "the file", &parsed, &status), 0);
        assert_string_equal(parsed.cert_pem, ca.cert_pem);
        hfd_pki_ca_done(&parsed);
        hf__strbuf_done(&text);
        /* white space there belongs to no block */
        hf__strbuf_printf(&text, "%s%.*s \t\r\n", ca.key_pem, (int)strlen(ca.cert_pem) - 1,
                          ca.cert_pem);
        assert_int_equal(hfd_pki_ca_parse(text.data, "the file", &parsed, &status), 0);
        assert_string_equal(parsed.cert_pem, ca.cert_pem);
        hfd_pki_ca_done(&parsed);
        hf__strbuf_done(&text);
        hfd_pki_ca_done(&ca);
}

static void test_a_description_agrees_with_openssl(void **state) {
        const char *names[] = {"node-1.example", "192.0.2.7", NULL};
        struct hfd_pki_ca ca = make_ca(here), other = make_ca(there);
        struct hfd_pki_description d;
        struct hfd_pki pki = {0};

        assert_int_equal(hfd_pki_load_or_make(here, names, hf_cancel_never(), &pki, &status), 0);
        assert_int_equal(hfd_pki_describe(ca.cert_pem, pki.server_cert_pem, &d), 0);
        assert_string_equal(d.subject, "CN=holdfastd");
        assert_string_equal(d.issuer, "CN=holdfast-ca");
        assert_string_equal(d.names, "localhost, 127.0.0.1, ::1, node-1.example, 192.0.2.7");
        assert_true(d.from_ca);
        assert_true(d.valid_until == hfd_pki_valid_until(pki.server_cert_pem));
        assert_true(shell_says("openssl x509 -in here/pki/server.crt -noout -fingerprint -sha256 "
                               "| sed 's/.*=/sha256:/; s/\\([0-9A-F]\\):/\\1/g' "
                               "| sed 's/sha256//' | tr A-F a-f",
                               d.fingerprint + strlen("sha256:")));
        assert_int_equal(hfd_pki_describe(other.cert_pem, pki.admin_cert_pem, &d), 0);
        assert_string_equal(d.subject, "CN=holdfast-admin,O=system:masters");
        assert_string_equal(d.names, "");
        assert_false(d.from_ca); /* the names of the two CAs are the same, their keys are not */
        assert_int_equal(strlen(d.issuer_key_id), 40);
        struct hfd_pki_description of_ca;
        assert_int_equal(hfd_pki_describe(ca.cert_pem, ca.cert_pem, &of_ca), 0);
        assert_string_equal(of_ca.key_id, d.issuer_key_id);
        assert_int_equal(hfd_pki_describe(ca.cert_pem, "x", &d), HF_E_INVALID);
        hfd_pki_done(&pki);
        hfd_pki_ca_done(&other);
        hfd_pki_ca_done(&ca);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test_setup_teardown(test_a_ca_is_made_once, make_dirs, pki_dir_remove),
                cmocka_unit_test_setup_teardown(
                        test_the_second_host_joins_and_issues_from_the_same_ca, make_dirs,
                        pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_another_ca_is_not_replaced, make_dirs,
                                                pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_what_is_no_ca_with_its_key_is_refused,
                                                make_dirs, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_no_key_is_taken_for_a_part_of_a_certificate,
                                                make_dirs, pki_dir_remove),
                cmocka_unit_test_setup_teardown(test_a_description_agrees_with_openssl, make_dirs,
                                                pki_dir_remove),
        };
        return cmocka_run_group_tests(tests, NULL, NULL);
}
