/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS settings of HTTP requests.
 *
 * curl gets pointers to the PEM texts, not copies. So the texts never change, and every exchange
 * holds a reference as long as a curl handle has options that point to them.
 */
#include "base/http/http_tls.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"

HF__CLEANUP_DEFINE(tls_cleanup, struct hf__http_tls *, hf__http_tls_unref)

/* 0 or -ENOMEM. */
static int copy_text(const char *text, char **ret_copy) {
        if (!text)
                return 0;
        *ret_copy = strdup(text);
        return *ret_copy ? 0 : -ENOMEM;
}

static void wipe_free(char *text) {
        if (text)
                explicit_bzero(text, strlen(text));
        free(text);
}

int hf__http_tls_new(const struct hf__http_tls_config *config, struct hf__http_tls **ret_tls) {
        if (!config || !config->cert_pem != !config->key_pem)
                return -EINVAL;
        HF__CLEANUP(tls_cleanup) struct hf__http_tls *tls = calloc(1, sizeof *tls);
        if (!tls)
                return -ENOMEM;
        atomic_init(&tls->refs, 1);
        tls->insecure = config->insecure;
        int r = copy_text(config->ca_pem, &tls->ca_pem);
        if (r == 0)
                r = copy_text(config->cert_pem, &tls->cert_pem);
        if (r == 0)
                r = copy_text(config->key_pem, &tls->key_pem);
        if (r == 0)
                r = copy_text(config->server_name, &tls->server_name);
        if (r != 0)
                return r;
        *ret_tls = HF__TAKE(tls);
        return 0;
}

struct hf__http_tls *hf__http_tls_ref(struct hf__http_tls *tls) {
        if (!tls)
                return NULL;
        /* Relaxed: the caller has a reference already, which keeps tls alive. */
        int previous = atomic_fetch_add_explicit(&tls->refs, 1, memory_order_relaxed);
        assert(previous > 0);
        (void)previous;
        return tls;
}

struct hf__http_tls *hf__http_tls_unref(struct hf__http_tls *tls) {
        if (!tls)
                return NULL;
        /* Acquire and release: all uses on other threads happen before the free. */
        int previous = atomic_fetch_sub_explicit(&tls->refs, 1, memory_order_acq_rel);
        assert(previous > 0);
        if (previous > 1)
                return NULL;
        /* A file of certificates may contain the key too. */
        wipe_free(tls->ca_pem);
        wipe_free(tls->cert_pem);
        wipe_free(tls->key_pem);
        free(tls->server_name);
        free(tls);
        return NULL;
}
