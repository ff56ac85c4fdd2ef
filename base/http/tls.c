/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/http/engine_private.h"

static int copy_pem(const char *pem, struct curl_blob *blob) {
        if (!pem)
                return 0;
        blob->data = strdup(pem);
        blob->len = strlen(pem);
        blob->flags = CURL_BLOB_NOCOPY; /* the exchange holds the reference */
        return blob->data ? 0 : -ENOMEM;
}

int hf__http_tls_new(const struct hf__http_tls_config *config, struct hf__http_tls **ret_tls) {
        if (!config || !config->cert_pem != !config->key_pem)
                return -EINVAL;
        struct hf__http_tls *tls = calloc(1, sizeof *tls);
        if (!tls)
                return -ENOMEM;
        atomic_init(&tls->refs, 1);
        tls->insecure = config->insecure;
        if (copy_pem(config->ca_pem, &tls->ca) < 0 || copy_pem(config->cert_pem, &tls->cert) < 0 ||
            copy_pem(config->key_pem, &tls->key) < 0 ||
            (config->server_name && !(tls->server_name = strdup(config->server_name)))) {
                hf__http_tls_unref(tls);
                return -ENOMEM;
        }
        *ret_tls = tls;
        return 0;
}

struct hf__http_tls *hf__http_tls_ref(struct hf__http_tls *tls) {
        if (tls)
                atomic_fetch_add_explicit(&tls->refs, 1, memory_order_relaxed);
        return tls;
}

struct hf__http_tls *hf__http_tls_unref(struct hf__http_tls *tls) {
        if (!tls || atomic_fetch_sub_explicit(&tls->refs, 1, memory_order_acq_rel) != 1)
                return NULL;
        free(tls->ca.data);
        free(tls->cert.data);
        if (tls->key.data)
                explicit_bzero(tls->key.data, tls->key.len);
        free(tls->key.data);
        free(tls->server_name);
        free(tls);
        return NULL;
}

CURLcode hf__http_tls_apply(struct hf__http_tls *tls, CURL *easy) {
        CURLcode code = CURLE_OK;

        if (tls->ca.data) {
                code = curl_easy_setopt(easy, CURLOPT_CAINFO_BLOB, &tls->ca);
                if (!code) /* else the system's directory of CAs is trusted as well */
                        code = curl_easy_setopt(easy, CURLOPT_CAPATH, NULL);
        }
        if (!code && tls->cert.data) {
                code = curl_easy_setopt(easy, CURLOPT_SSLCERT_BLOB, &tls->cert);
                if (!code)
                        code = curl_easy_setopt(easy, CURLOPT_SSLKEY_BLOB, &tls->key);
        }
        if (!code && tls->insecure) {
                code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, 0L);
                if (!code)
                        code = curl_easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, 0L);
        }
        return code;
}
