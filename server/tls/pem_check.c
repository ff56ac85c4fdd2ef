/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks PEM texts (pem_check.h).
 *
 * Invariant: nothing is accepted here that a later use refuses. So each text is used in a context
 * of its own, with the functions that the TLS server and the client of etcd call.
 */
#include "server/tls/pem_check.h"

#include <assert.h>
#include <errno.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "server/tls/pem.h"
#include "server/tls/reasons.h"

static bool use_pem(SSL_CTX *ctx, enum hfd_pem_kind kind, const char *pem) {
        switch (kind) {
        case HFD_PEM_CHAIN: return hfd_pem_use_chain(ctx, pem);
        case HFD_PEM_KEY: return hfd_pem_use_key(ctx, pem);
        case HFD_PEM_CA: return hfd_pem_trust(ctx, pem, false);
        }
        return false;
}

int hfd_pem_check(enum hfd_pem_kind kind, const char *name, const char *pem,
                  struct hf_status *reterr_status) {
        static const struct {
                const char *fault, *remedy;
        } texts[] = {
                [HFD_PEM_CHAIN] = {"has no usable certificate",
                                   "it must be a PEM file that begins with the certificate"},
                [HFD_PEM_KEY] = {"has no usable key",
                                 "it must be a PEM file with an unencrypted private key"},
                [HFD_PEM_CA] = {"has no usable certificate",
                                "it must be a PEM file of one or more CA certificates"},
        };
        ERR_clear_error();
        SSL_CTX *ctx = SSL_CTX_new(TLS_method());
        if (!ctx) {
                ERR_clear_error();
                return hf_fail(reterr_status, -ENOMEM, "%s: out of memory", name);
        }
        int r = 0;
        if (!use_pem(ctx, kind, pem)) {
                const char *reason = hfd_tls_reason(ERR_peek_last_error());
                r = hf_fail(reterr_status, HF_E_INVALID, "%s %s (%s): %s", name, texts[kind].fault,
                            reason ? reason : "OpenSSL gives no reason", texts[kind].remedy);
        }
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return r;
}

bool hfd_pem_is_pair(const char *cert_pem, const char *key_pem) {
        ERR_clear_error();
        assert(cert_pem && key_pem);
        SSL_CTX *ctx = SSL_CTX_new(TLS_method());
        /* The context takes a key of another type beside the certificate. Only the last call
         * notices that. */
        bool ok = ctx && hfd_pem_use_chain(ctx, cert_pem) && hfd_pem_use_key(ctx, key_pem) &&
                  SSL_CTX_check_private_key(ctx) == 1;
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return ok;
}
