/* SPDX-License-Identifier: Apache-2.0 */
/* The pure parts of calls to other servers: URLs, the messages of failures, the table of services.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/outbound/failure_text.h"
#include "server/outbound/https_url.h"
#include "server/outbound/service_resolver.h"
#include "server/outbound/status_text.h"
#include "text_asserts.h"

static void test_urls_are_taken_apart(void **state) {
        static const char *const good[][4] = {
                {"https://a.b:8443/x?y", "a.b", "8443", "/x?y"},
                {"HTTPS://a", "a", "443", ""},
                {"https://[::1]:9/", "::1", "9", "/"},
                {"https://a?b", "a", "443", "?b"},
        };
        static const char *const bad[] = {"http://a",
                                          "https://",
                                          "https:///x",
                                          "https://u@a/",
                                          "https://a:/",
                                          "https://a:0/",
                                          "https://a:65536/",
                                          "https://a:x/",
                                          "https://[::1/",
                                          "https://a b/",
                                          ""};
        struct hfd_https_url url;

        for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
                assert_true(hfd_https_url_parse(good[i][0], &url));
                assert_string_equal(url.host, good[i][1]);
                assert_string_equal(url.port, good[i][2]);
                assert_string_equal(url.rest, good[i][3]);
        }
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
                if (hfd_https_url_parse(bad[i], &url))
                        fail_msg("accepted %s", bad[i]);
}

/* As path.Join does for Kubernetes' client. */
static void test_the_path_of_a_url_is_cleaned(void **state) {
        static const char *const cases[][2] = {
                {"https://a", "https://a/"},
                {"https://a/", "https://a/"},
                {"https://a:1/b/", "https://a:1/b"},
                {"https://[::1]:1//b/./c//", "https://[::1]:1/b/c"},
                {"https://a/b/../../c", "https://a/c"},
                {"https://a/..", "https://a/"},
        };

        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
                char *url = NULL;
                assert_int_equal(hfd_https_url_clean(cases[i][0], &url), 0);
                assert_string_equal(url, cases[i][1]);
                free(url);
        }
}

static void check_text(struct hfd_outbound_failure failure, const char *expected) {
        struct hf__strbuf text = {0};

        failure.method = "POST";
        if (!failure.url)
                failure.url = "https://hook.ns.svc:443/x";
        failure.detail = failure.detail ? failure.detail : "what curl says";
        hfd_outbound_failure_text(&failure, &text);
        assert_int_equal(text.error, 0);
        assert_string_equal(text.data, expected);
        hf__strbuf_done(&text);
}

static void test_failures_have_the_words_of_kubernetes(void **state) {
        check_text((struct hfd_outbound_failure){.end = HFD_OUTBOUND_UNREACHABLE,
                                                 .connect_to = "[::1]:9443",
                                                 .os_error = EHOSTUNREACH},
                   "Post \"https://hook.ns.svc:443/x\": dial tcp [::1]:9443: connect: no route to "
                   "host");
        check_text((struct hfd_outbound_failure){.end = HFD_OUTBOUND_UNREACHABLE,
                                                 .no_such_host = true},
                   "Post \"https://hook.ns.svc:443/x\": dial tcp: lookup hook.ns.svc: no such "
                   "host");
        check_text((struct hfd_outbound_failure){.end = HFD_OUTBOUND_UNREACHABLE},
                   "Post \"https://hook.ns.svc:443/x\": dial tcp: what curl says");
        check_text((struct hfd_outbound_failure){.end = HFD_OUTBOUND_UNTRUSTED, .verify_error = 10},
                   "Post \"https://hook.ns.svc:443/x\": tls: failed to verify certificate: x509: "
                   "certificate has expired or is not yet valid");
        check_text((struct hfd_outbound_failure){.end = HFD_OUTBOUND_UNTRUSTED},
                   "Post \"https://hook.ns.svc:443/x\": tls: what curl says");
        check_text((struct hfd_outbound_failure){.end = HFD_OUTBOUND_CANCELED},
                   "Post \"https://hook.ns.svc:443/x\": context canceled");
}

static void check_status(int code, const char *body, size_t n, const char *expected) {
        struct hf__strbuf text = {0};

        hfd_outbound_status_text(code, body, n, &text);
        assert_int_equal(text.error, 0);
        assert_string_equal(text.data, expected);
        hf__strbuf_done(&text);
}

#define ON_SERVER(shown)                                                                           \
        "an error on the server (\"" shown "\") has prevented the request from succeeding"

static void test_a_status_code_has_the_words_of_kubernetes(void **state) {
        static const char spaced[] = " \r\n no\tbackend \n", with_nul[] = "no\0backend";

        check_status(404, "x", 1, "the server could not find the requested resource");
        check_status(418, "x", 1,
                     "the server responded with the status code 418 but did not return more "
                     "information");
        check_status(413, "too large", 9,
                     "the server responded with the status code 413 but did not return more "
                     "information");
        /* Only the server can explain these. */
        check_status(403, " denied\nby the proxy ", 21, "denied by the proxy");
        check_status(403, "{\"a\":1}", 7, "unknown");
        check_status(403, "{", 1, "unknown");
        check_status(415, "no JSON", 7, "no JSON");
        check_status(406, "YAML only", 9, "YAML only");
        check_status(406, "", 0,
                     "the server was unable to respond with a content type that the client "
                     "supports");
        check_status(500, spaced, sizeof spaced - 1, ON_SERVER("no\\tbackend"));
        check_status(502, "", 0, ON_SERVER(""));
        check_status(502, " \n", 2, ON_SERVER(""));
        check_status(502, " {\"a\":1}", 8, ON_SERVER("unknown"));
        /* A NUL makes the body no text, wherever it is. */
        check_status(502, with_nul, sizeof with_nul - 1, ON_SERVER("unknown"));
        check_status(502, with_nul, 3, ON_SERVER("unknown"));
}

static void check_service(const char *table, const char *name, unsigned port, const char *path,
                          const char *url, const char *connect_to) {
        struct hfd_service_resolver *resolver;
        struct hfd_service_address address;
        struct hf_status status;

        assert_int_equal(hfd_service_resolver_new(table, &resolver, &status), 0);
        assert_int_equal(hfd_service_resolve(resolver, "ns", name, port, path, &address), 0);
        assert_string_equal(address.url, url);
        if (connect_to)
                assert_string_equal(address.connect_to, connect_to);
        else
                assert_null(address.connect_to);
        hfd_service_address_done(&address);
        hfd_service_resolver_free(resolver);
}

static void test_services_are_found_in_the_table(void **state) {
        static const char TABLE[] = "ns/a:443=127.0.0.1:1,ns/a=127.0.0.1:2,,ns/b=[::1],*=x.example";

        check_service("", "a", 443, "/p", "https://a.ns.svc:443/p", NULL);
        check_service(TABLE, "a", 443, "p", "https://a.ns.svc:443/p", "127.0.0.1:1");
        check_service(TABLE, "a", 8443, NULL, "https://a.ns.svc:8443/", "127.0.0.1:2");
        check_service(TABLE, "b", 8443, "", "https://b.ns.svc:8443/", "[::1]:8443");
        check_service(TABLE, "c", 9, "/", "https://c.ns.svc:9/", "x.example:9");
        check_service(TABLE, "c", 9, "/p/q/", "https://c.ns.svc:9/p/q", "x.example:9");
}

static void test_malformed_tables_are_refused(void **state) {
        static const char *const bad[] =
                {"a",         "a=b",        "ns/a",          "ns/a=",   "ns/a=:1",
                 "/a=b:1",    "ns/=b:1",    "NS/a=b:1",      "ns/a=b:", "*=",
                 "ns/a=[::1", "ns/a:x=b:1", "ns/a:0443=b:1", "=b:1",    "ns/a=b:1,ns/a=c:1"};
        struct hfd_service_resolver *resolver;
        struct hf_status status;

        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
                if (hfd_service_resolver_new(bad[i], &resolver, &status) != HF_E_INVALID)
                        fail_msg("accepted %s", bad[i]);
                assert_in(status.message, "is not NAMESPACE/NAME[:PORT]=HOST[:PORT]");
        }
}

int main(void) {
        const struct CMUnitTest tests[] = {
                cmocka_unit_test(test_urls_are_taken_apart),
                cmocka_unit_test(test_the_path_of_a_url_is_cleaned),
                cmocka_unit_test(test_failures_have_the_words_of_kubernetes),
                cmocka_unit_test(test_a_status_code_has_the_words_of_kubernetes),
                cmocka_unit_test(test_services_are_found_in_the_table),
                cmocka_unit_test(test_malformed_tables_are_refused),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
