/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the certificates from the certificate directory and creates those that are missing.
 *
 * All of this happens under an exclusive lock on <cert-dir>/.lock. If several processes start at
 * once, one of them creates the CA and the others find it.
 *
 * Invariants:
 * - After a crash at any point the next start can complete the directory. A file appears as
 *   a whole, by rename, and a key is written before its certificate. So at worst there is a key
 *   without a certificate.
 * - A renewal keeps the key, so that certificate and key always match.
 * - A certificate that does not match its key, and a file that is malformed, is reported and never
 *   overwritten, because the user must have put it there. Only a serving or admin certificate that
 *   a new one can replace (pki_cert.h) is renewed.
 */
#include "server/auth/pki.h"

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/auth/files.h"
#include "server/auth/pki_cert.h"

#define LOCK_TIMEOUT (30 * HF_NSEC_PER_SEC)
#define MAX_NAMES    64
#define CLEANUP(fn)  __attribute__((cleanup(fn)))

static void fd_cleanup(int *fd) {
        if (*fd >= 0)
                (void)close(*fd);
}

/* The parameters that all functions below need. */
struct directory {
        const char *path;
        struct hf_status *reterr_status;
};

/* One certificate and its key, as files and as text. */
struct pair {
        char cert_path[PATH_MAX], key_path[PATH_MAX];
        char *cert, *key; /* owned; NULL = no such file */
};

/* Overwrites the key, so that it does not remain in freed memory. */
static void free_key(char *key) {
        if (key)
                explicit_bzero(key, strlen(key));
        free(key);
}

static void pair_cleanup(struct pair *pair) {
        free(pair->cert);
        free_key(pair->key);
}

static int fail_openssl(const struct directory *dir, int error, const char *path) {
        if (error == -ENOMEM)
                return hf_fail(dir->reterr_status, error, "cannot create %s: out of memory", path);
        return hf_fail(dir->reterr_status, error, "cannot create %s: OpenSSL failed", path);
}

/* Reports a file that is not usable. fault: the reason. Only the user can decide which file of the
 * pair is right. */
static int fail_unusable(const struct directory *dir, const char *path, const char *fault,
                         const struct pair *pair) {
        return hf_fail(dir->reterr_status, HF_E_INVALID,
                       "%s is not usable: %s; put the right file there, or remove %s and "
                       "%s to have both created again",
                       path, fault, pair->cert_path, pair->key_path);
}

/* If the file does not exist, returns 0, and *ret_text stays NULL. */
static int read_if_exists(const struct directory *dir, const char *path, char **ret_text) {
        int r = hfd_read_file(path, ret_text, dir->reterr_status);
        return r == HF_E_NOT_FOUND ? 0 : r;
}

static int read_pair(const struct directory *dir, const char *name, struct pair *pair) {
        int n_cert =
                snprintf(pair->cert_path, sizeof pair->cert_path, "%s/%s.crt", dir->path, name);
        int n_key = snprintf(pair->key_path, sizeof pair->key_path, "%s/%s.key", dir->path, name);
        if (n_cert < 0 || n_key < 0 || (size_t)n_cert >= PATH_MAX || (size_t)n_key >= PATH_MAX)
                return hf_fail(dir->reterr_status, -ENAMETOOLONG,
                               "certificate directory %.200s: %s", dir->path,
                               strerror(ENAMETOOLONG));
        int r = read_if_exists(dir, pair->cert_path, &pair->cert);
        if (r == 0)
                r = read_if_exists(dir, pair->key_path, &pair->key);
        return r;
}

/* Checks the key if it exists. Creates it if neither the key nor the certificate exists. */
static int ensure_key(const struct directory *dir, struct pair *pair) {
        if (pair->key) {
                const char *fault = hfd_pki_key_fault(pair->key);
                return fault[0] ? fail_unusable(dir, pair->key_path, fault, pair) : 0;
        }
        if (pair->cert)
                return hf_fail(dir->reterr_status, HF_E_INVALID,
                               "%s is missing, but %s exists: put the key there, or remove the "
                               "certificate to have both created again",
                               pair->key_path, pair->cert_path);
        int r = hfd_pki_key_make(&pair->key);
        return r == 0 ? hfd_write_file(pair->key_path, pair->key, 0600, dir->reterr_status)
                      : fail_openssl(dir, r, pair->key_path);
}

/* Writes a new certificate. The pair owns its text from now on. The key must be on disk already. */
static int store_cert(const struct directory *dir, struct pair *pair, char *cert) {
        assert(pair->key && cert);
        free(pair->cert);
        pair->cert = cert;
        return hfd_write_file(pair->cert_path, cert, 0644, dir->reterr_status);
}

/* The CA's key may be missing, because the user may keep it elsewhere. Then no certificate can be
 * issued, and only existing ones are used. */
static int check_ca(const struct directory *dir, const struct pair *ca) {
        const char *fault = hfd_pki_ca_fault(ca->cert, NULL);

        if (fault[0])
                return fail_unusable(dir, ca->cert_path, fault, ca);
        fault = ca->key ? hfd_pki_key_fault(ca->key) : "";
        if (fault[0])
                return fail_unusable(dir, ca->key_path, fault, ca);
        fault = hfd_pki_ca_fault(ca->cert, ca->key);
        return fault[0] ? fail_unusable(dir, ca->cert_path, fault, ca) : 0;
}

static int load_ca(const struct directory *dir, struct pair *ca) {
        char *cert = NULL;
        int r = read_pair(dir, "ca", ca);

        if (r != 0)
                return r;
        if (ca->cert)
                return check_ca(dir, ca);
        r = ensure_key(dir, ca);
        if (r != 0)
                return r;
        r = hfd_pki_ca_make(ca->key, &cert);
        return r == 0 ? store_cert(dir, ca, cert) : fail_openssl(dir, r, ca->cert_path);
}

/* Loads, creates or renews a certificate that the CA issues (a leaf). names: the names in a serving
 * certificate. NULL: it is a client certificate of the user common_name in the group organisation.
 */
static int load_leaf(const struct directory *dir, const struct pair *ca, const char *name,
                     const char *common_name, const char *organisation, const char *const *names,
                     struct pair *leaf) {
        const char *fault = "it is missing";
        char *cert = NULL;
        int r = read_pair(dir, name, leaf);
        if (r == 0)
                r = ensure_key(dir, leaf);
        if (r != 0)
                return r;
        enum hfd_pki_verdict verdict =
                leaf->cert ? hfd_pki_leaf_check(ca->cert, leaf->cert, leaf->key, names, &fault)
                           : HFD_PKI_RENEW;
        if (verdict == HFD_PKI_USABLE)
                return 0;
        if (verdict == HFD_PKI_INVALID)
                return fail_unusable(dir, leaf->cert_path, fault, leaf);
        if (!ca->key)
                return hf_fail(dir->reterr_status, HF_E_INVALID,
                               "%s must be created (%s), but the CA's key %s is missing: restore "
                               "it, or provide that certificate",
                               leaf->cert_path, fault, ca->key_path);
        struct hfd_pki_leaf wanted = {.ca_cert_pem = ca->cert,
                                      .ca_key_pem = ca->key,
                                      .key_pem = leaf->key,
                                      .common_name = common_name,
                                      .organisation = organisation,
                                      .names = names,
                                      .previous_pem = names ? leaf->cert : NULL};
        r = hfd_pki_leaf_make(&wanted, &cert);
        return r == 0 ? store_cert(dir, leaf, cert) : fail_openssl(dir, r, leaf->cert_path);
}

int hfd_pki_load_or_make(const char *cert_dir, const char *const *names, struct hf_cancel *token,
                         struct hfd_pki *ret_pki, struct hf_status *reterr_status) {
        /* Every serving certificate has these names, for clients on the same machine. */
        static const char *const always[] = {"localhost", "127.0.0.1", "::1"};
        const size_t n_always = sizeof always / sizeof always[0];
        const struct directory dir = {.path = cert_dir, .reterr_status = reterr_status};
        CLEANUP(pair_cleanup) struct pair ca = {0};
        CLEANUP(pair_cleanup) struct pair server = {0};
        CLEANUP(pair_cleanup) struct pair admin = {0};
        CLEANUP(fd_cleanup) int lock = -1;
        const char *all[MAX_NAMES + 1];
        char lock_path[PATH_MAX];
        size_t n = 0;

        for (; n < n_always; n++)
                all[n] = always[n];
        for (; names && *names; names++) {
                if (n == MAX_NAMES)
                        return hf_fail(reterr_status, HF_E_TOO_LARGE,
                                       "more than %zu names for the serving certificate",
                                       MAX_NAMES - n_always);
                all[n++] = *names;
        }
        all[n] = NULL;

        int r = hfd_make_dir(cert_dir, reterr_status);
        if (r != 0)
                return r;
        int n_path = snprintf(lock_path, sizeof lock_path, "%s/.lock", cert_dir);
        if (n_path < 0 || (size_t)n_path >= sizeof lock_path)
                return hf_fail(reterr_status, -ENAMETOOLONG, "certificate directory %.200s: %s",
                               cert_dir, strerror(ENAMETOOLONG));
        /* The lock is held until this function returns: closing the descriptor releases it. */
        r = hfd_await_lock(lock_path, LOCK_TIMEOUT, token, &lock, reterr_status);
        if (r == 0)
                r = load_ca(&dir, &ca);
        if (r == 0)
                r = load_leaf(&dir, &ca, "server", "holdfastd", NULL, all, &server);
        if (r == 0)
                r = load_leaf(&dir, &ca, "admin", "holdfast-admin", "system:masters", NULL, &admin);
        if (r != 0)
                return r;
        *ret_pki = (struct hfd_pki){.ca_pem = ca.cert,
                                    .server_cert_pem = server.cert,
                                    .server_key_pem = server.key,
                                    .admin_cert_pem = admin.cert,
                                    .admin_key_pem = admin.key};
        ca.cert = server.cert = server.key = admin.cert = admin.key =
                NULL; /* *ret_pki owns them now */
        return 0;
}

void hfd_pki_done(struct hfd_pki *pki) {
        free(pki->ca_pem);
        free(pki->server_cert_pem);
        free_key(pki->server_key_pem);
        free(pki->admin_cert_pem);
        free_key(pki->admin_key_pem);
        *pki = (struct hfd_pki){0};
}
