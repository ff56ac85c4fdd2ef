/* SPDX-License-Identifier: Apache-2.0 */
/* Certificate requests that openssl(1) makes: which are refused, and what issued certificates
 * contain. */
#undef NDEBUG
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/err.h>

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include "pki_dir.h"
#include "server/auth/files.h"
#include "server/auth/pki/pki_cert.h"
#include "server/auth/pki/pki_request.h"
#include "server/auth/write_file.h"

static void run(const char *command) { assert_true(pki_dir_says(pki_dir, command, "")); }

/* The caller frees it. */
static char *contents(const char *name) {
        char path[128], *text = NULL;

        (void)snprintf(path, sizeof path, "%s/%s", pki_dir, name);
        assert_int_equal(hfd_read_file(path, &text, NULL), 0);
        return text;
}

static void put(const char *name, const char *text) {
        char path[128];

        (void)snprintf(path, sizeof path, "%s/%s", pki_dir, name);
        assert_int_equal(hfd_write_file(path, text, 0600, NULL), 0);
}

/* Makes a request with a key of its own. arguments: of openssl req. The caller frees it. */
static char *make_request(const char *key, const char *arguments) {
        char line[512];

        (void)snprintf(line, sizeof line,
                       "openssl req -new -newkey %s -nodes -keyout key.pem -out request.pem %s "
                       "2>&1",
                       key, arguments);
        run(line);
        return contents("request.pem");
}

#define EC "ec -pkeyopt ec_paramgen_curve:P-256"

static void expect_fault(const char *pem, const char *fault) {
        assert_string_equal(hfd_pki_request_fault(pem, strlen(pem)), fault);
}

static void test_keys_of_all_usual_kinds_are_accepted(void **state) {
        static const char *const keys[] = {"rsa:2048",
                                           "rsa:2048 -pkeyopt rsa_keygen_pubexp:2147483647",
                                           "ec -pkeyopt ec_paramgen_curve:P-224",
                                           EC,
                                           "ec -pkeyopt ec_paramgen_curve:P-384",
                                           "ec -pkeyopt ec_paramgen_curve:P-521",
                                           "ed25519"};

        (void)state;
        for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
                char *pem = make_request(keys[i], "-subj /CN=x");
                expect_fault(pem, "");
                free(pem);
        }
}

static void test_weak_and_unusual_requests_are_refused(void **state) {
        char *pem = make_request("rsa:2048", "-md5 -subj /CN=x");

        (void)state;
        expect_fault(pem, "x509: cannot verify signature: insecure algorithm MD5-RSA");
        free(pem);
        pem = make_request("rsa:768", "-subj /CN=x");
        expect_fault(pem, "crypto/rsa: the key is insecure: it has less than 1024 bits");
        free(pem);
        pem = make_request("ed448", "-subj /CN=x");
        expect_fault(pem, "x509: cannot verify signature: algorithm unimplemented");
        free(pem);
        expect_fault("", "PEM block type must be CERTIFICATE REQUEST");
        expect_fault("-----BEGIN CERTIFICATE REQUEST-----\n",
                     "PEM block type must be CERTIFICATE REQUEST");
        expect_fault("-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n-----END CERTIFICATE "
                     "REQUEST-----\n",
                     "asn1: structure error: it is not a certificate request");
}

static void test_keys_that_go_refuses_are_refused(void **state) {
        static const char *const curves[] = {
                "ec_paramgen_curve:secp256k1",
                "ec_paramgen_curve:brainpoolP512r1",
                "ec_paramgen_curve:sect571r1",
                "ec_paramgen_curve:P-256 -pkeyopt ec_param_enc:explicit",
        };
        char *pem = make_request("rsa:2048 -pkeyopt rsa_keygen_pubexp:2147483649", "-subj /CN=x");

        (void)state;
        expect_fault(pem, "crypto/rsa: public exponent too large");
        free(pem);
        for (size_t i = 0; i < sizeof curves / sizeof curves[0]; i++) {
                char kind[100];
                (void)snprintf(kind, sizeof kind, "ec -pkeyopt %s", curves[i]);
                pem = make_request(kind, "-subj /CN=x");
                expect_fault(pem, "x509: unsupported elliptic curve");
                free(pem);
        }
}

static void test_every_damage_is_refused(void **state) {
        char *pem = make_request(EC, "-subj /CN=x");
        size_t n = strlen(pem);
        char *body = strchr(pem, '\n') + 1;

        (void)state;
        for (size_t cut = 0; cut < (size_t)(strstr(pem, "-----END") - pem); cut++)
                assert_string_not_equal(hfd_pki_request_fault(pem, cut), "");
        for (char *c = body; c < strstr(body, "=") && strncmp(c, "-----", 5) != 0; c++) {
                char was = *c;
                if (was == '\n')
                        continue;
                /* Changes the first of the six bits, because of the last character the others may
                 * mean nothing. */
                *c = was >= 'A' && was <= 'P' ? 'g' : 'A';
                assert_string_not_equal(hfd_pki_request_fault(pem, n), "");
                *c = was;
        }
        assert_string_equal(hfd_pki_request_fault(pem, n), "");
        free(pem);
}

/* Signs the request with its key, and frees both. The caller frees the PEM text. */
static char *sign_request(X509_REQ *request, EVP_PKEY *key) {
        BIO *bio = BIO_new(BIO_s_mem());
        char *data;

        assert_int_equal(X509_REQ_set_pubkey(request, key), 1);
        assert_true(X509_REQ_sign(request, key, EVP_sha256()) > 0);
        assert_int_equal(PEM_write_bio_X509_REQ(bio, request), 1);
        long n_data = BIO_get_mem_data(bio, &data);
        char *pem = strndup(data, (size_t)n_data);
        assert_non_null(pem);
        BIO_free(bio);
        X509_REQ_free(request);
        EVP_PKEY_free(key);
        return pem;
}

static void add_string(X509_REQ *request, const char *field, int type, const void *bytes,
                       size_t n) {
        assert_int_equal(X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request), field, type,
                                                    bytes, (int)n, -1, 0),
                         1);
}

/* Makes a request whose subject is one string, with bytes that openssl(1) does not write. */
static char *make_string(const char *field, int type, const void *bytes, size_t n) {
        X509_REQ *request = X509_REQ_new();

        add_string(request, field, type, bytes, n);
        return sign_request(request, EVP_EC_gen("P-256"));
}

/* Makes a request whose subject is one UniversalString. text: ASCII. */
static char *make_universal(const char *field, const char *text) {
        unsigned char wide[4 * 64] = {0};
        size_t n = strlen(text);

        assert_true(n <= sizeof wide / 4);
        for (size_t i = 0; i < n; i++)
                wide[4 * i + 3] = (unsigned char)text[i];
        return make_string(field, V_ASN1_UNIVERSALSTRING, wide, 4 * n);
}

/* Go's library reads an EC key only if it is written as a whole point. */
static void test_points_in_other_forms_are_refused(void **state) {
        static const char *const forms[] = {"uncompressed", "compressed", "hybrid"};

        (void)state;
        for (size_t i = 0; i < 3; i++) {
                EVP_PKEY *key = EVP_EC_gen("P-384");
                assert_int_equal(EVP_PKEY_set_utf8_string_param(
                                         key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, forms[i]),
                                 1);
                char *pem = sign_request(X509_REQ_new(), key);
                expect_fault(pem, i == 0 ? "" : "ecdsa: invalid uncompressed public key");
                free(pem);
        }
}

/* The configuration of a request whose strings have the types of the mask. */
static void put_config(const char *mask, const char *subject) {
        char config[200];

        (void)snprintf(config, sizeof config,
                       "[req]\ndistinguished_name=dn\nstring_mask=MASK:%s\nprompt=no\n[dn]\n%s\n",
                       mask, subject);
        put("config", config);
}

static void expect_subject_fault(const char *pem, const char *fault) {
        assert_string_equal(hfd_pki_request_subject_fault(pem, strlen(pem)), fault);
        /* Another signer may accept the request. */
        assert_string_equal(hfd_pki_request_fault(pem, strlen(pem)), "");
}

static void expect_config_fault(const char *mask, const char *subject, const char *fault) {
        put_config(mask, subject);
        char *pem = make_request(EC, "-config config");
        expect_subject_fault(pem, fault);
        free(pem);
}

/* Whoever approves a request by Go's libraries sees the last common name, and no UniversalString.
 */
static void test_a_subject_that_approvers_see_otherwise_is_refused(void **state) {
        static const char *const usual[] = {"0x2000", "0x800", "0x10", "0x4", "0x2"};
        static const char rare[] = "x509: unsupported string type in the subject";
        char *pem = make_request(EC, "-subj /CN=system:kube-controller-manager/O=dev/CN=bob");

        (void)state;
        expect_subject_fault(pem, "x509: the subject has more than one common name");
        free(pem);
        pem = make_request(EC, "-multivalue-rdn -subj /CN=system:admin+CN=bob");
        expect_subject_fault(pem, "x509: the subject has more than one common name");
        free(pem);
        for (size_t i = 0; i < sizeof usual / sizeof usual[0]; i++)
                expect_config_fault(usual[i], "O=dev\nCN=x", "");
        expect_config_fault("0x1", "O=1\nCN=2", "");
        for (size_t i = 0; i < 3; i++) {
                static const char *const fields[] = {"CN", "O", "L"};
                pem = make_universal(fields[i], "ops-admins");
                expect_subject_fault(pem, i < 2 ? rare : "");
                free(pem);
        }
        for (size_t i = 0; i < 4; i++) {
                static const struct {
                        int type;
                        const char *bytes;
                } odd[] = {{V_ASN1_PRINTABLESTRING, "a@b"},
                           {V_ASN1_IA5STRING, "a\xe9"},
                           {V_ASN1_NUMERICSTRING, "1a"},
                           {V_ASN1_BMPSTRING, "\xfd\xd0"}};
                pem = make_string("O", odd[i].type, odd[i].bytes, strlen(odd[i].bytes));
                expect_subject_fault(pem, rare);
                free(pem);
        }
}

static void expect_in(const char *arguments, bool in) {
        char *pem = make_request(EC, arguments);

        assert_int_equal(hfd_pki_request_in(pem, strlen(pem), "system:masters"), in);
        free(pem);
}

static void test_an_organisation_cannot_hide(void **state) {
        (void)state;
        expect_in("-subj /CN=x", false);
        expect_in("-subj /O=dev/CN=system:masters", false);
        expect_in("-subj /O=system:masters2/CN=x", false);
        expect_in("-subj /O=system:masters/CN=x", true);
        expect_in("-subj /O=a/O=b/CN=x/O=system:masters", true);
        expect_in("-multivalue-rdn -subj /CN=x+O=system:masters", true);
        /* The other types of strings: BMP, T61, Universal. */
        for (size_t i = 0; i < 2; i++) {
                static const char *const masks[] = {"0x800", "0x4"};
                put_config(masks[i], "O=system:masters\nCN=x");
                expect_in("-config config", true);
        }
        char *pem = make_universal("O", "system:masters");
        assert_int_equal(hfd_pki_request_in(pem, strlen(pem), "system:masters"), 1);
        free(pem);
        assert_int_equal(hfd_pki_request_in("none", 4, "system:masters"), 0);
}

/* Issues a certificate from request.pem as issued.pem. */
static void issue(int64_t now, int64_t seconds) {
        char *ca = contents("ca.pem"), *key = contents("ca.key"),
             *request = contents("request.pem");
        struct hfd_pki_issue wanted = {.ca_cert_pem = ca,
                                       .ca_key_pem = key,
                                       .request_pem = request,
                                       .n_request = strlen(request),
                                       .digital_signature = true,
                                       .now = now,
                                       .seconds = seconds};
        const char *fault;
        char *pem = NULL;

        assert_int_equal(hfd_pki_issue(&wanted, &pem, &fault), 0);
        put("issued.pem", pem);
        assert_string_equal(hfd_pki_certificates_fault(pem, strlen(pem)), "");
        free(pem);
        free(ca);
        free(key);
        free(request);
}

/* Makes a CA, and a request with extensions of many kinds, in the files of the directory. */
static void make_ca_and_request(void) {
        char *key = NULL, *ca = NULL;

        assert_int_equal(hfd_pki_key_make(&key), 0);
        assert_int_equal(hfd_pki_ca_make(key, &ca), 0);
        put("ca.key", key);
        put("ca.pem", ca);
        free(key);
        free(ca);
        put("config",
            "[req]\ndistinguished_name=dn\nprompt=no\nreq_extensions=ext\n[dn]\nO=dev\nCN=x\n"
            "[ext]\nbasicConstraints=critical,CA:TRUE\nextendedKeyUsage=serverAuth\n"
            "subjectAltName=DNS:a.example,IP:192.0.2.1,URI:urn:x,email:a@b,dirName:dn,"
            "otherName:1.2.3.4;UTF8:hidden\n");
        free(make_request(EC, "-config config"));
}

static int64_t issued_until(void) {
        char *pem = contents("issued.pem");
        int64_t until = hfd_pki_valid_until(pem);

        free(pem);
        return until;
}

static void test_the_certificate_has_what_the_request_may_decide(void **state) {
        static const char show[] = "openssl x509 -in issued.pem -noout -text";

        make_ca_and_request();
        issue(time(NULL), 600);
        assert_true(pki_dir_says(pki_dir,
                                 "openssl verify -purpose sslclient -CAfile ca.pem issued.pem",
                                 "issued.pem: OK"));
        assert_true(pki_dir_says(pki_dir, show, "Subject: O = dev, CN = x"));
        assert_true(pki_dir_says(pki_dir, show, "CA:FALSE"));
        assert_true(pki_dir_says(pki_dir, show, "TLS Web Client Authentication\n"));
        assert_true(pki_dir_says(pki_dir, show,
                                 "DNS:a.example, IP Address:192.0.2.1, URI:urn:x, email:a@b\n"));
}

static void test_the_subject_has_what_kubernetes_copies(void **state) {
        (void)state;
        make_ca_and_request();
        free(make_request(EC, "-subj /C=DE/ST=s/L=l/street=r/postalCode=p/O=a/O=b/OU=u/CN=x/"
                              "serialNumber=1/1.3.6.1.4.1.57683.2=uid/title=t"));
        issue(time(NULL), 600);
        assert_true(
                pki_dir_says(pki_dir, "openssl x509 -in issued.pem -noout -subject",
                             "subject=C = DE, ST = s, L = l, street = r, postalCode = p, O = a, "
                             "O = b, OU = u, CN = x, serialNumber = 1\n"));
}

/* The certificate could not be used with it: this server refuses such a one, too. */
static void test_a_string_that_go_cannot_read_is_not_copied(void **state) {
        static const unsigned char wide[] = {0, 0, 0, 'l'};
        X509_REQ *request = X509_REQ_new();

        (void)state;
        make_ca_and_request();
        add_string(request, "L", V_ASN1_UNIVERSALSTRING, wide, sizeof wide);
        add_string(request, "CN", V_ASN1_UTF8STRING, "x", 1);
        char *pem = sign_request(request, EVP_EC_gen("P-256"));
        put("request.pem", pem);
        free(pem);
        issue(time(NULL), 600);
        assert_true(pki_dir_says(pki_dir, "openssl x509 -in issued.pem -noout -subject",
                                 "subject=CN = x\n"));
}

/* Attributes of one set stay in one set. */
static void test_the_sets_of_a_subject_are_kept(void **state) {
        (void)state;
        make_ca_and_request();
        free(make_request(EC, "-multivalue-rdn -subj /title=t+O=a+O=b/title=u/O=c+title=v/CN=x"));
        issue(time(NULL), 600);
        assert_true(pki_dir_says(pki_dir, "openssl x509 -in issued.pem -noout -subject",
                                 "subject=O = a + O = b, O = c, CN = x\n"));
}

/* Text around the block is ignored, and so are a carriage return and blanks at the ends of lines.
 */
static void test_the_first_block_is_the_request(void **state) {
        char *pem = make_request(EC, "-subj /O=first/CN=x"), *other, text[4096];
        size_t n = 0;

        other = make_request(EC, "-subj /O=other/CN=x");
        n += (size_t)snprintf(text, sizeof text, "-----END \nsome text\n");
        for (const char *c = pem; *c; c++)
                n += (size_t)snprintf(text + n, sizeof text - n, *c == '\n' ? "\t \r\n" : "%c", *c);
        (void)snprintf(text + n, sizeof text - n, "text\n%s", other);
        expect_fault(text, "");
        assert_int_equal(hfd_pki_request_in(text, strlen(text), "first"), 1);
        assert_int_equal(hfd_pki_request_in(text, strlen(text), "other"), 0);
        free(pem);
        free(other);
}

/* Go skips the first block and reads the second one. OpenSSL reads the first one: its certificate
 * would be another one than the approver has seen. */
static void test_a_block_that_go_skips_is_refused(void **state) {
        static const char none[] = "PEM block type must be CERTIFICATE REQUEST";
        char *hidden = make_request(EC, "-subj /O=hidden/CN=x"), *shown, text[4096], filler[255];
        char *first = strchr(hidden, '\n') + 1, *end = strstr(hidden, "\n-----END");
        int n_begin = (int)(first - hidden), n_base64 = (int)(end - first);

        shown = make_request(EC, "-subj /O=shown/CN=x");
        memset(filler, 'x', sizeof filler - 1);
        filler[sizeof filler - 1] = '\0';
        for (int i = 0; i < 6; i++) {
                const char *before = "", *headers = "", *after = "";
                if (i == 0)
                        headers = "X: y\n?\n\n";
                else if (i == 1)
                        before = "\xef\xbb\xbf";
                else if (i == 2)
                        before = filler;
                else if (i == 3)
                        after = "\x01";
                else if (i == 4)
                        after = "-";
                (void)snprintf(text, sizeof text, "%s%.*s%s%.*s%s%s%s", before, n_begin, hidden,
                               headers, n_base64, first, after, end, shown);
                expect_fault(text, i == 5 ? "" : none);
                assert_int_equal(hfd_pki_request_in(text, strlen(text), "hidden"), i == 5);
        }
        free(hidden);
        free(shown);
}

/* ---- alternative names ---- */

static void test_names_that_go_refuses_are_refused(void **state) {
        static const char malformed[] = "x509: invalid subject alternative names";
        static const struct {
                const char *der, *fault;
        } cases[] = {
                {"3000", ""},
                {"3003820161", ""},
                {"3003820180", "x509: SAN dNSName is malformed"},
                {"3003810180", "x509: SAN rfc822Name is malformed"},
                {"3003860180", "x509: SAN uniformResourceIdentifier is malformed"},
                {"30068704c0000201", ""},
                {"3003870101", "x509: cannot parse IP address: its length is not 4 or 16"},
                {"30820161", malformed}, /* a length without its bytes */
                {"0500", malformed},
                /* Go skips a text in parts, which OpenSSL would copy. */
                {"3005a203160161", malformed},
        };

        (void)state;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char arguments[128];
                (void)snprintf(arguments, sizeof arguments,
                               "-subj /CN=x -addext subjectAltName=DER:%s", cases[i].der);
                char *pem = make_request(EC, arguments);
                expect_fault(pem, cases[i].fault);
                free(pem);
        }
}

static X509_EXTENSION *make_name(const char *name) {
        X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, name);

        assert_non_null(extension);
        return extension;
}

/* Makes a request for certificates with these alternative names, each in an extension of its own.
 * attribute: the one that has the extensions. */
static char *make_names(int attribute, const char *const *names, size_t n) {
        X509_EXTENSIONS *extensions = sk_X509_EXTENSION_new_null();
        X509_REQ *request = X509_REQ_new();

        for (size_t i = 0; i < n; i++)
                assert_true(sk_X509_EXTENSION_push(extensions, make_name(names[i])) > 0);
        assert_int_equal(X509_REQ_add_extensions_nid(request, extensions, attribute), 1);
        sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
        return sign_request(request, EVP_EC_gen("P-256"));
}

static void test_names_that_an_approver_does_not_see_are_not_copied(void **state) {
        static const char *const names[] = {"DNS:a.example", "DNS:b.example"};
        char *pem = make_names(NID_ext_req, names, 2);

        (void)state;
        expect_fault(pem, "x509: certificate request contains duplicate requested extensions");
        free(pem);
        make_ca_and_request();
        pem = make_names(NID_ms_ext_req, names, 1);
        expect_fault(pem, "");
        put("request.pem", pem);
        free(pem);
        issue(time(NULL), 600);
        pem = contents("issued.pem");
        BIO *bio = BIO_new_mem_buf(pem, -1);
        X509 *cert = PEM_read_bio_X509(bio, NULL, NULL, NULL);
        assert_non_null(cert);
        assert_int_equal(X509_get_ext_by_NID(cert, NID_subject_alt_name, -1), -1);
        X509_free(cert);
        BIO_free(bio);
        free(pem);
}

/* Writes the header of an element in front of n bytes. long_form: its length in a byte more than
 * DER allows. Returns the new number of bytes. */
static size_t wrap(unsigned char *bytes, size_t n, unsigned char tag, bool long_form) {
        unsigned char header[4] = {tag, (unsigned char)n};
        size_t n_header = 2;

        if (n >= 128 || long_form) {
                header[1] = n < 256 ? 0x81 : 0x82;
                header[2] = (unsigned char)(n < 256 ? n : n >> 8);
                header[3] = (unsigned char)n;
                n_header = n < 256 ? 3 : 4;
        }
        memmove(bytes + n_header, bytes, n);
        memcpy(bytes, header, n_header);
        return n_header + n;
}

/* Appends bytes. Returns the new number of bytes. */
static size_t append(unsigned char *bytes, size_t n, const void *more, size_t n_more) {
        memcpy(bytes + n, more, n_more);
        return n + n_more;
}

/* Appends an attribute whose value is a set of one value. kind: the last byte of its name. which:
 * as in make_malformed. */
static size_t append_attribute(unsigned char *bytes, size_t n, unsigned char kind,
                               const unsigned char *value, size_t n_value, int which) {
        const unsigned char name[] = {6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 9, kind};
        unsigned char set[128], attribute[128];
        size_t n_set = append(set, 0, value, n_value);

        n_set = wrap(set, n_set, kind == 14 ? 0x30 : 0x0c, which == 2);
        n_set = wrap(set, n_set, which == 4 ? 0x11 : 0x31, which == 1);
        size_t n_attribute = append(attribute, 0, name, sizeof name);
        n_attribute = append(attribute, n_attribute, set, n_set);
        return append(bytes, n, attribute, wrap(attribute, n_attribute, 0x30, which == 3));
}

/*
 * Makes a request with two attributes, which have no order. The second one has an alternative name.
 * It has one length in a form that is not DER: 1 = of the set, 2 = of the value, 3 = of the
 * attribute, 0 = none. Or an element is not marked as constructed: 4 = the set, 5 = the list of
 * attributes.
 */
static char *make_malformed(int which) {
        static const unsigned char names[] = {0x30, 22,   6,   3,    0x55, 0x1d, 0x11, 4,
                                              15,   0x30, 13,  0x82, 11,   'h',  'i',  'd',
                                              'd',  'e',  'n', '.',  'e',  'x',  'a',  'm'},
                                   password[60] = {'p'};
        unsigned char bytes[512], signature[128], attributes[256], *der = NULL;
        EVP_PKEY *key = EVP_EC_gen("P-256");
        EVP_MD_CTX *signer = EVP_MD_CTX_new();
        size_t n, n_attributes, n_signature = sizeof signature - 16;
        BIO *bio = BIO_new(BIO_s_mem());
        char *data;

        n_attributes = append_attribute(attributes, 0, 7, password, sizeof password, 0);
        n_attributes = append_attribute(attributes, n_attributes, 14, names, sizeof names, which);
        n_attributes = wrap(attributes, n_attributes, which == 5 ? 0x80 : 0xa0, false);
        /* version 0, an empty subject, the key, the attributes */
        n = append(bytes, 0, "\x02\x01\x00\x30\x00", 5);
        int n_key = i2d_PUBKEY(key, &der);
        n = append(bytes, n, der, (size_t)n_key);
        n = wrap(bytes, append(bytes, n, attributes, n_attributes), 0x30, false);
        OPENSSL_free(der);
        assert_int_equal(EVP_DigestSignInit(signer, NULL, EVP_sha256(), NULL, key), 1);
        assert_int_equal(EVP_DigestSign(signer, signature + 1, &n_signature, bytes, n), 1);
        signature[0] = 0; /* unused bits */
        n_signature = wrap(signature, n_signature + 1, 3, false);
        n = append(bytes, n, "\x30\x0a\x06\x08\x2a\x86\x48\xce\x3d\x04\x03\x02", 12);
        n = wrap(bytes, append(bytes, n, signature, n_signature), 0x30, false);
        assert_true(PEM_write_bio(bio, PEM_STRING_X509_REQ, "", bytes, (long)n) > 0);
        long n_data = BIO_get_mem_data(bio, &data);
        char *pem = strndup(data, (size_t)n_data);
        BIO_free(bio);
        EVP_MD_CTX_free(signer);
        EVP_PKEY_free(key);
        return pem;
}

/* Go skips an attribute that is not in DER, and OpenSSL reads it. */
static void test_a_request_that_is_not_in_der_is_refused(void **state) {
        for (int which = 0; which <= 5; which++) {
                char *pem = make_malformed(which);
                expect_fault(pem,
                             which == 0 ? "" : "asn1: syntax error: the request is not in DER");
                free(pem);
        }
}

static void test_the_certificate_does_not_outlive_its_ca(void **state) {
        int64_t now = time(NULL);

        make_ca_and_request();
        char *ca = contents("ca.pem");
        issue(now, 600);
        assert_int_equal(issued_until(), now + 600);
        issue(now, INT64_C(86400) * 365);
        assert_int_equal(issued_until(), now + INT64_C(86400) * 365 - 300);
        issue(now, INT64_C(86400) * 365 * 20); /* the CA has ten years */
        assert_int_equal(issued_until(), hfd_pki_valid_until(ca));
        free(ca);
}

static void test_nothing_is_issued_by_a_ca_that_has_expired_or_from_no_request(void **state) {
        make_ca_and_request();
        char *key = contents("ca.key"), *ca = contents("ca.pem"),
             *request = contents("request.pem"), *pem = NULL;
        struct hfd_pki_issue late = {.ca_cert_pem = ca,
                                     .ca_key_pem = key,
                                     .request_pem = request,
                                     .n_request = strlen(request),
                                     .now = hfd_pki_valid_until(ca) + 1,
                                     .seconds = 600};
        const char *fault;
        assert_int_equal(hfd_pki_issue(&late, &pem, &fault), HF_E_UNAVAILABLE);
        late.now = time(NULL);
        late.request_pem = "none";
        late.n_request = 4;
        assert_int_equal(hfd_pki_issue(&late, &pem, &fault), HF_E_INVALID);
        assert_string_equal(fault, "PEM block type must be CERTIFICATE REQUEST");
        char *odd = make_universal("O", "ops");
        late.request_pem = odd;
        late.n_request = strlen(odd);
        assert_int_equal(hfd_pki_issue(&late, &pem, &fault), HF_E_INVALID);
        assert_string_equal(fault, "x509: unsupported string type in the subject");
        free(odd);
        assert_string_not_equal(hfd_pki_certificates_fault(request, strlen(request)), "");
        assert_string_not_equal(hfd_pki_certificates_fault(key, strlen(key)), "");
        assert_string_not_equal(hfd_pki_certificates_fault("", 0), "");
        free(request);
        free(key);
        free(ca);
}

/* ---- without memory ---- */

/* Allocations of OpenSSL until one fails; negative = none fails. */
static int allocations_left = -1;

static bool fails(void) { return allocations_left >= 0 && allocations_left-- == 0; }

static void *allocate(size_t n, const char *file, int line) { return fails() ? NULL : malloc(n); }

static void *reallocate(void *block, size_t n, const char *file, int line) {
        return fails() ? NULL : realloc(block, n);
}

static void release(void *block, const char *file, int line) { free(block); }

static void test_a_shortage_leaves_no_error_in_the_queue(void **state) {
        make_ca_and_request();
        issue(time(NULL), 600);
        char *pem = contents("issued.pem"), *request = contents("request.pem");
        int n_shortages = 0;

        for (bool fails_later = true; fails_later; n_shortages++) {
                allocations_left = n_shortages;
                const char *fault = hfd_pki_certificates_fault(pem, strlen(pem));
                /* Without memory the certificate is not refused. */
                assert_true(allocations_left >= 0 || !fault || !*fault);
                assert_true(ERR_peek_error() == 0);
                (void)hfd_pki_request_fault(request, strlen(request));
                assert_true(ERR_peek_error() == 0);
                fails_later = allocations_left < 0;
                allocations_left = -1;
        }
        assert_true(n_shortages > 2);
        free(pem);
        free(request);
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_keys_of_all_usual_kinds_are_accepted),
                cmocka_unit_test(test_weak_and_unusual_requests_are_refused),
                cmocka_unit_test(test_keys_that_go_refuses_are_refused),
                cmocka_unit_test(test_points_in_other_forms_are_refused),
                cmocka_unit_test(test_every_damage_is_refused),
                cmocka_unit_test(test_a_subject_that_approvers_see_otherwise_is_refused),
                cmocka_unit_test(test_an_organisation_cannot_hide),
                cmocka_unit_test(test_the_certificate_has_what_the_request_may_decide),
                cmocka_unit_test(test_the_subject_has_what_kubernetes_copies),
                cmocka_unit_test(test_a_string_that_go_cannot_read_is_not_copied),
                cmocka_unit_test(test_the_sets_of_a_subject_are_kept),
                cmocka_unit_test(test_the_first_block_is_the_request),
                cmocka_unit_test(test_a_block_that_go_skips_is_refused),
                cmocka_unit_test(test_names_that_go_refuses_are_refused),
                cmocka_unit_test(test_names_that_an_approver_does_not_see_are_not_copied),
                cmocka_unit_test(test_a_request_that_is_not_in_der_is_refused),
                cmocka_unit_test(test_the_certificate_does_not_outlive_its_ca),
                cmocka_unit_test(
                        test_nothing_is_issued_by_a_ca_that_has_expired_or_from_no_request),
                cmocka_unit_test(test_a_shortage_leaves_no_error_in_the_queue),
        };
        assert_int_equal(CRYPTO_set_mem_functions(allocate, reallocate, release), 1);
        return cmocka_run_group_tests(tests, pki_dir_make, pki_dir_remove);
}
