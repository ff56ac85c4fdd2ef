/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The CA that is published in every namespace, and the CA that signs for clients.
 *
 * Invariants. Only certificates are published, and never the text of a file as it is: the file of a
 * certificate may contain its key. The key of the CA is read for each signature and overwritten
 * afterwards, so that it is in memory only while it is used, unless the CA has no directory. A
 * certificate is issued only by the CA that this server trusts for its clients (or, if another CA
 * was put into --cert-dir, will trust from its next reload on): nobody would accept a certificate
 * of another one.
 */
#include "server/certificates/cluster_ca.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/thread.h"
#include "server/auth/pki/pki.h"
#include "server/auth/pki/pki_cert.h"
#include "server/auth/pki/pki_request.h"

struct hfd_cluster_ca {
        const struct hfd_config *config; /* borrowed; immutable */
        pthread_mutex_t mu;
        char *root;            /* owned; PEM; guarded by mu; NULL = nothing is published yet */
        struct hfd_pki_ca own; /* owned; guarded by mu; the CA, if it is in memory only */
};

struct hfd_cluster_ca *hfd_cluster_ca_new(const struct hfd_config *config) {
        struct hfd_cluster_ca *ca = calloc(1, sizeof *ca);

        if (!ca || hf__mutex_init(&ca->mu) != 0) {
                free(ca);
                return NULL;
        }
        ca->config = config;
        return ca;
}

struct hfd_cluster_ca *hfd_cluster_ca_free(struct hfd_cluster_ca *ca) {
        if (!ca)
                return NULL;
        assert(!ca->own.cert_pem == !ca->own.key_pem); /* a signature needs both */
        pthread_mutex_destroy(&ca->mu);
        free(ca->root);
        hfd_pki_ca_done(&ca->own);
        free(ca);
        return NULL;
}

/* ---- the CA of the server ---- */

/* The certificates after the first one; NULL = there are none. Borrowed. */
static const char *rest_of_chain(const char *chain) {
        static const char begin[] = "-----BEGIN CERTIFICATE-----";
        const char *first = strstr(chain, begin);

        return first ? strstr(first + strlen(begin), begin) : NULL;
}

static bool is_from(const char *ca_pem, const char *cert_pem) {
        struct hfd_pki_description description;

        return hfd_pki_describe(ca_pem, cert_pem, &description) == 0 && description.from_ca;
}

/* Returns the certificates by which clients can verify `serving`. If the CA of this server has
 * issued it, that is this CA. If the CA of the clients has issued it, or the next certificate of
 * its chain, that is the CA of the clients. A certificate that was given by flags may come from a
 * CA that this server does not know. Then the result is the rest of its chain or, without one, the
 * certificate itself. chain: the certificates in the text `serving`. The result is borrowed. */
static const char *find_root(const struct hfd_pki *own, const char *serving, const char *chain,
                             const char *client_ca) {
        const char *rest = rest_of_chain(chain);

        if (strcmp(serving, own->server_cert_pem) == 0 || is_from(own->ca_pem, serving))
                return own->ca_pem;
        if (is_from(client_ca, serving) || (rest && is_from(client_ca, rest)))
                return client_ca;
        return rest ? rest : chain;
}

/* Copies the certificates of find_root. 0 or -ENOMEM. */
static int copy_root(const struct hfd_pki *own, const char *serving, const char *client_ca,
                     char **ret_root) {
        HF__CLEANUP(hf__free_cleanup) char *chain = NULL;
        int r = hfd_pki_certificates(serving, &chain);

        return r == 0 ? hfd_pki_certificates(find_root(own, serving, chain, client_ca), ret_root)
                      : r;
}

/* key NULL: the key is in a file, or nothing is published yet. Then *ret_ca is empty. 0 or
 * -ENOMEM. */
static int copy_own(const char *cert, const char *key, struct hfd_pki_ca *ret_ca) {
        *ret_ca = (struct hfd_pki_ca){0};
        if (!key)
                return 0;
        *ret_ca = (struct hfd_pki_ca){.cert_pem = strdup(cert), .key_pem = strdup(key)};
        if (ret_ca->cert_pem && ret_ca->key_pem)
                return 0;
        hfd_pki_ca_done(ret_ca);
        return -ENOMEM;
}

int hfd_cluster_ca_publish(struct hfd_cluster_ca *ca, const struct hfd_pki *own,
                           const char *serving, const char *client_ca) {
        assert(own->ca_pem && own->server_cert_pem);
        char *root = NULL;
        struct hfd_pki_ca new_own;

        if (copy_root(own, serving, client_ca, &root) != 0 ||
            copy_own(own->ca_pem, own->ca_key_pem, &new_own) != 0) {
                free(root);
                return -ENOMEM;
        }
        pthread_mutex_lock(&ca->mu);
        char *old = ca->root;
        assert(!ca->own.cert_pem == !ca->own.key_pem);
        struct hfd_pki_ca old_own = ca->own;
        ca->root = root;
        ca->own = new_own;
        pthread_mutex_unlock(&ca->mu);
        free(old);
        hfd_pki_ca_done(&old_own);
        return 0;
}

static char *get_root(void *ctx) {
        struct hfd_cluster_ca *ca = ctx;

        pthread_mutex_lock(&ca->mu);
        char *root = strdup(ca->root ? ca->root : "");
        pthread_mutex_unlock(&ca->mu);
        return root;
}

/* ---- the CA of clients ---- */

/* Why this server has no key to sign with, by its configuration; NULL = it may have one. */
static const char *missing_key(const struct hfd_config *config) {
        return config->client_ca_file[0]
                       ? "this server does not have the key of the CA in --client-ca-file"
                       : NULL;
}

/* The CA with its key, for one signature. *ret_ca must be zeroed. 0, HF_E_NOT_FOUND, or another
 * error of hfd_pki_ca_read. The caller frees *ret_ca, also after an error: a CA without a key may
 * be in it. */
static int get_ca(struct hfd_cluster_ca *ca, struct hfd_pki_ca *ret_ca,
                  struct hf_status *reterr_status) {
        const char *missing = missing_key(ca->config), *directory = ca->config->cert_dir;
        int r;

        if (missing)
                return hf_fail(reterr_status, HF_E_NOT_FOUND, "%s", missing);
        if (directory[0]) {
                r = hfd_pki_ca_read(directory, ret_ca, reterr_status);
                if (r == 0 && !ret_ca->key_pem)
                        r = hf_fail(reterr_status, HF_E_NOT_FOUND, "there is no ca.key in %.200s",
                                    directory);
                return r;
        }
        pthread_mutex_lock(&ca->mu);
        r = copy_own(ca->own.cert_pem, ca->own.key_pem, ret_ca);
        pthread_mutex_unlock(&ca->mu);
        if (r != 0)
                return hf_fail(reterr_status, r, "out of memory");
        return ret_ca->key_pem
                       ? 0
                       : hf_fail(reterr_status, HF_E_NOT_FOUND, "this server has no CA of its own");
}

static bool has_usage(const struct hfd_signing *signing, const char *usage) {
        for (size_t i = 0; i < signing->n_usages; i++)
                if (strcmp(signing->usages[i], usage) == 0)
                        return true;
        return false;
}

static int sign_request(void *ctx, const struct hfd_signing *signing, char **ret_pem,
                        struct hf_status *reterr_status) {
        struct hfd_cluster_ca *ca = ctx;
        struct hfd_pki_ca signer = {0};
        const char *fault = NULL;
        int r = get_ca(ca, &signer, reterr_status);

        if (r == HF_E_INVALID)
                r = HF_E_UNAVAILABLE; /* it is the CA that is invalid, and not the request */

        if (r == 0) {
                struct hfd_pki_issue issue = {.ca_cert_pem = signer.cert_pem,
                                              .ca_key_pem = signer.key_pem,
                                              .request_pem = signing->request,
                                              .n_request = signing->n_request,
                                              .digital_signature =
                                                      has_usage(signing, "digital signature"),
                                              .key_encipherment =
                                                      has_usage(signing, "key encipherment"),
                                              .now = signing->now,
                                              .seconds = signing->seconds};
                r = hfd_pki_issue(&issue, ret_pem, &fault);
                if (r == HF_E_INVALID)
                        (void)hf_fail(reterr_status, r, "%s", fault);
                else if (r == HF_E_UNAVAILABLE)
                        (void)hf_fail(reterr_status, r, "the CA has expired or cannot be used");
                else if (r != 0)
                        (void)hf_fail(reterr_status, r, "%s", hf_strerror(r));
        }
        hfd_pki_ca_done(&signer);
        return r;
}

struct hfd_cluster_ca_functions hfd_cluster_ca_functions(struct hfd_cluster_ca *ca) {
        return (struct hfd_cluster_ca_functions){.root = get_root,
                                                 .sign = sign_request,
                                                 .valid_until = hfd_pki_valid_until,
                                                 .ctx = ca};
}
