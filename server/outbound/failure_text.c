/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the texts of failed calls (failure_text.h).
 *
 * Invariant: where the cause is known, the text is that of Go's HTTP client. kube-apiserver shows
 * this text in the message about a failed webhook, so people search for it and programs compare it.
 * Exceptions: the texts lack what is not known here, which is the names and the dates in a
 * certificate, the DNS server, and the address of a host (the texts show its name instead); each
 * broken connection is "EOF", even one that was reset; and Go's client has no text for a response
 * that is too large or for lack of memory. Other unknown causes are in the words of libcurl.
 */
#include "server/outbound/failure_text.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

#include "server/outbound/https_url.h"

/* Go writes the method of an error as a word: Post. */
static void add_method(const char *method, struct hf__strbuf *text) {
        for (size_t i = 0; method[i]; i++)
                hf__strbuf_putc(text, (char)(i == 0 ? toupper((unsigned char)method[i])
                                                    : tolower((unsigned char)method[i])));
}

static void add_system_error(int error, struct hf__strbuf *text) {
        const char *name = strerrordesc_np(error);

        if (!name || !name[0])
                name = "Unknown error";
        hf__strbuf_putc(text, (char)tolower((unsigned char)name[0]));
        hf__strbuf_puts(text, name + 1);
}

static void add_unreachable(const struct hfd_outbound_failure *failure, struct hf__strbuf *text) {
        char host[HFD_HTTPS_HOST_MAX], port[6];
        struct hfd_https_url url;
        bool known = hfd_https_url_parse(failure->url, &url);

        if (known && failure->connect_to) {
                known = hfd_host_port_parse(failure->connect_to, strlen(failure->connect_to), host,
                                            port);
        } else if (known) {
                (void)strcpy(host, url.host);
                (void)strcpy(port, url.port);
        }
        if (!known || (failure->os_error == 0 && !failure->no_such_host)) {
                hf__strbuf_printf(text, "dial tcp: %s", failure->detail);
                return;
        }
        if (failure->no_such_host) {
                hf__strbuf_printf(text, "dial tcp: lookup %s: no such host", host);
                return;
        }
        hf__strbuf_printf(text,
                          strchr(host, ':') ? "dial tcp [%s]:%s: connect: "
                                            : "dial tcp %s:%s: connect: ",
                          host, port);
        add_system_error(failure->os_error, text);
}

/* The numbers are OpenSSL's. */
static void add_untrusted(const struct hfd_outbound_failure *failure, struct hf__strbuf *text) {
        struct hfd_https_url url;

        switch (failure->verify_error) {
        case 2:  /* UNABLE_TO_GET_ISSUER_CERT */
        case 7:  /* CERT_SIGNATURE_FAILURE */
        case 18: /* DEPTH_ZERO_SELF_SIGNED_CERT */
        case 19: /* SELF_SIGNED_CERT_IN_CHAIN */
        case 20: /* UNABLE_TO_GET_ISSUER_CERT_LOCALLY */
        case 21: /* UNABLE_TO_VERIFY_LEAF_SIGNATURE */
                hf__strbuf_puts(text, "tls: failed to verify certificate: x509: certificate signed "
                                      "by unknown authority");
                return;
        case 9:  /* CERT_NOT_YET_VALID */
        case 10: /* CERT_HAS_EXPIRED */
                hf__strbuf_puts(text, "tls: failed to verify certificate: x509: certificate has "
                                      "expired or is not yet valid");
                return;
        default: break;
        }
        if (strstr(failure->detail, "subject name") && hfd_https_url_parse(failure->url, &url))
                hf__strbuf_printf(text,
                                  "tls: failed to verify certificate: x509: certificate is not "
                                  "valid for %s",
                                  url.host);
        else
                hf__strbuf_printf(text, "tls: %s", failure->detail);
}

void hfd_outbound_failure_text(const struct hfd_outbound_failure *failure,
                               struct hf__strbuf *text) {
        assert(failure->end != HFD_OUTBOUND_ANSWERED);
        add_method(failure->method, text);
        hf__strbuf_puts(text, " \"");
        hf__strbuf_puts(text, failure->url);
        hf__strbuf_puts(text, "\": ");
        switch (failure->end) {
        case HFD_OUTBOUND_UNREACHABLE: add_unreachable(failure, text); break;
        case HFD_OUTBOUND_UNTRUSTED: add_untrusted(failure, text); break;
        case HFD_OUTBOUND_TIMED_OUT: hf__strbuf_puts(text, "context deadline exceeded"); break;
        case HFD_OUTBOUND_BROKEN: hf__strbuf_puts(text, "EOF"); break;
        case HFD_OUTBOUND_TOO_LARGE: hf__strbuf_puts(text, "the response is too large"); break;
        case HFD_OUTBOUND_CANCELED: hf__strbuf_puts(text, "context canceled"); break;
        case HFD_OUTBOUND_NO_MEMORY: hf__strbuf_puts(text, "out of memory"); break;
        case HFD_OUTBOUND_ANSWERED:
        case HFD_OUTBOUND_INVALID:
        case HFD_OUTBOUND_LOCAL: hf__strbuf_puts(text, failure->detail); break;
        }
}
