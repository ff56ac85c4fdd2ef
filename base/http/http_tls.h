/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * TLS settings of HTTP requests: CA, client certificate and key. They are prepared once and shared
 * by all requests that use them. Immutable after hf__http_tls_new. Thread: any, because the
 * reference count is atomic.
 */
#include <stdatomic.h>
#include <stdbool.h>

struct hf__http_tls {
        atomic_int refs;
        /* immutable; the PEM texts are wiped before they are freed */
        char *ca_pem;      /* owned; NULL = the system's CAs */
        char *cert_pem;    /* owned; NULL = no client certificate */
        char *key_pem;     /* owned; NULL = no client certificate */
        char *server_name; /* owned; NULL = the URL's host */
        bool insecure;     /* accepts any server certificate */
};

/* All texts are copied. Each may be NULL, but certificate and key must be given together. */
struct hf__http_tls_config {
        const char *ca_pem, *cert_pem, *key_pem;
        const char *server_name; /* the name in the server's certificate; NULL = the URL's host */
        bool insecure;           /* accepts any server certificate */
};

/* 0, -EINVAL, -ENOMEM. The caller owns one reference. */
int hf__http_tls_new(const struct hf__http_tls_config *config, struct hf__http_tls **ret_tls);
struct hf__http_tls *hf__http_tls_ref(struct hf__http_tls *tls);   /* accepts NULL */
struct hf__http_tls *hf__http_tls_unref(struct hf__http_tls *tls); /* accepts NULL, returns NULL */
