/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loads the certificates from the certificate directory and creates those that are missing.
 *
 * All writes happen under an exclusive lock on <cert-dir>/.lock. If several processes start at the
 * same time, one of them creates the CA, and the others find it. hfd_pki_check and hfd_pki_ca_read
 * only read, without the lock.
 *
 * Invariants:
 * - After a crash at any point the next start can complete the directory. A file appears as
 *   a whole, by rename, and all keys are written and synced before a certificate is written. So at
 *   worst there are keys without certificates.
 * - Everything is made before anything is written. Then the keys are written together, and after
 *   them the certificates. So the process waits for two groups of files, not for one file after the
 *   other.
 * - A renewal keeps the key, so that certificate and key always match.
 * - A malformed file, or a certificate that does not match its key, is reported and never
 *   overwritten, because the user must have put it there. Only a serving or admin certificate that
 *   a new one can replace (HFD_PKI_RENEW) is renewed.
 */
#include "server/auth/pki/pki.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/descriptor.h"
#include "server/auth/files.h"
#include "server/auth/pki/pki_cert.h"
#include "server/auth/trusted_path.h"
#include "server/auth/write_file.h"

#define LOCK_TIMEOUT (30 * HF_NSEC_PER_SEC)

#define KEYS_MAX  4 /* of the CA, the server, the administrator and the account tokens */
#define CERTS_MAX 3

/* The files to write. Paths and texts are borrowed from the pairs. */
struct made {
        struct hfd_new_file keys[KEYS_MAX], certs[CERTS_MAX];
        size_t n_keys, n_certs;
};

/* The parameters that most functions below need. */
struct directory {
        const char *path;
        struct made *made; /* NULL = make no file: the texts of missing files stay NULL */
        bool *would_make;  /* set if a file would be made; may be NULL */
        struct hf_status *reterr_status;
};

/* One certificate and its key, as files and as text. */
struct pair {
        char cert_path[PATH_MAX], key_path[PATH_MAX];
        char *cert, *key; /* owned; NULL = there is no such file, and none was made */
};

static void pair_cleanup(struct pair *pair) {
        free(pair->cert);
        hfd_secret_free(pair->key);
}

static int fail_openssl(const struct directory *dir, int error, const char *path) {
        if (error == -ENOMEM)
                return hf_fail(dir->reterr_status, error, "cannot create %s: out of memory", path);
        return hf_fail(dir->reterr_status, error, "cannot create %s: OpenSSL failed", path);
}

/* Reports a file that is not usable. fault: the reason. The message leaves the decision to the
 * user, because only the user can know which file of the pair is right. */
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

/* Makes the pair's key, and notes that it must be written. */
static int make_key(const struct directory *dir, struct pair *pair) {
        int r = hfd_pki_key_make(&pair->key);

        if (r != 0)
                return fail_openssl(dir, r, pair->key_path);
        assert(dir->made->n_keys < KEYS_MAX);
        dir->made->keys[dir->made->n_keys++] =
                (struct hfd_new_file){.path = pair->key_path, .text = pair->key, .mode = 0600};
        return 0;
}

/* Called in place of making a file. */
static int note_lack(const struct directory *dir) {
        if (dir->would_make)
                *dir->would_make = true;
        return 0;
}

/* Checks the key if it exists. Makes it if neither the key nor the certificate exists, and files
 * are made at all. A certificate without its key is an error. */
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
        return dir->made ? make_key(dir, pair) : note_lack(dir);
}

/* Takes a new certificate, whose text the pair owns from now on, and notes that it must be
 * written. */
static int take_cert(const struct directory *dir, struct pair *pair, char *cert) {
        assert(pair->key && cert && dir->made->n_certs < CERTS_MAX);
        free(pair->cert);
        pair->cert = cert;
        dir->made->certs[dir->made->n_certs++] =
                (struct hfd_new_file){.path = pair->cert_path, .text = cert, .mode = 0644};
        return 0;
}

/* Writes the files that were made: first the keys. */
static int write_made(const struct directory *dir) {
        int r = hfd_write_files(dir->made->keys, dir->made->n_keys, dir->reterr_status);

        return r == 0 ? hfd_write_files(dir->made->certs, dir->made->n_certs, dir->reterr_status)
                      : r;
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
        if (!dir->made)
                return note_lack(dir);
        r = hfd_pki_ca_make(ca->key, &cert);
        return r == 0 ? take_cert(dir, ca, cert) : fail_openssl(dir, r, ca->cert_path);
}

/* Loads, creates or renews a certificate that the CA issues (a leaf). names: the names of a serving
 * certificate. NULL: a client certificate of the user common_name in the group organisation. */
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
        /* hfd_pki_check may find no CA, which the start would make. The start would then renew the
         * certificate, unless it is malformed or does not match its key. This is checked here, with
         * the certificate itself in place of the CA. */
        const char *issuer = ca->cert ? ca->cert : leaf->cert;
        enum hfd_pki_verdict verdict =
                leaf->cert ? hfd_pki_leaf_check(issuer, leaf->cert, leaf->key, names, &fault)
                           : HFD_PKI_RENEW;
        if (verdict == HFD_PKI_USABLE)
                return 0;
        if (verdict == HFD_PKI_INVALID)
                return fail_unusable(dir, leaf->cert_path, fault, leaf);
        if (!ca->key && ca->cert)
                return hf_fail(dir->reterr_status, HF_E_INVALID,
                               "%s must be created (%s), but the CA's key %s is missing: restore "
                               "it, or provide that certificate",
                               leaf->cert_path, fault, ca->key_path);
        if (!dir->made)
                return note_lack(dir);
        struct hfd_pki_leaf wanted = {.ca_cert_pem = ca->cert,
                                      .ca_key_pem = ca->key,
                                      .key_pem = leaf->key,
                                      .common_name = common_name,
                                      .organisation = organisation,
                                      .names = names,
                                      .previous_pem = names ? leaf->cert : NULL};
        r = hfd_pki_leaf_make(&wanted, &cert);
        return r == 0 ? take_cert(dir, leaf, cert) : fail_openssl(dir, r, leaf->cert_path);
}

/* Makes the directory and locks it. Closing the descriptor releases the lock. */
static int lock_directory(const struct directory *dir, struct hf_cancel *token, int *ret_lock) {
        char lock_path[PATH_MAX];
        int r = hfd_make_dir(dir->path, dir->reterr_status);

        if (r != 0)
                return r;
        int n_path = snprintf(lock_path, sizeof lock_path, "%s/.lock", dir->path);
        if (n_path < 0 || (size_t)n_path >= sizeof lock_path)
                return hf_fail(dir->reterr_status, -ENAMETOOLONG,
                               "certificate directory %.200s: %s", dir->path,
                               strerror(ENAMETOOLONG));
        return hfd_await_lock(lock_path, LOCK_TIMEOUT, token, ret_lock, dir->reterr_status);
}

/* Loads or makes the key that signs tokens, which has no certificate. An unusable key is not
 * replaced: only the user knows whether tokens that it has signed are in use. */
static int load_account_key(const struct directory *dir, struct pair *account) {
        int r = read_pair(dir, "sa", account);
        const char *fault = r == 0 && account->key ? hfd_pki_key_fault(account->key) : "";

        if (fault[0])
                return hf_fail(dir->reterr_status, HF_E_INVALID,
                               "%s is not usable: %s; put the right file there, or remove it to "
                               "have it created again, which makes all tokens of service accounts "
                               "invalid",
                               account->key_path, fault);
        if (r != 0 || account->key)
                return r;
        return dir->made ? make_key(dir, account) : note_lack(dir);
}

/* The files of the directory. */
struct contents {
        struct pair ca, server, admin;
        struct pair account; /* sa.key, without a certificate */
};

static void contents_cleanup(struct contents *contents) {
        pair_cleanup(&contents->ca);
        pair_cleanup(&contents->server);
        pair_cleanup(&contents->admin);
        pair_cleanup(&contents->account);
}

/* Loads or makes everything. names as for hfd_pki_load_or_make. */
static int load_contents(const struct directory *dir, const char *const *names,
                         struct contents *contents) {
        struct pair *ca = &contents->ca;
        const char *all[HFD_PKI_NAMES_MAX + 1];
        int r = hfd_pki_names(names, all, dir->reterr_status);

        if (r == 0)
                r = load_ca(dir, ca);
        if (r == 0)
                r = load_leaf(dir, ca, "server", "holdfastd", NULL, all, &contents->server);
        if (r == 0)
                r = load_leaf(dir, ca, "admin", "holdfast-admin", "system:masters", NULL,
                              &contents->admin);
        return r == 0 ? load_account_key(dir, &contents->account) : r;
}

int hfd_pki_load_or_make(const char *cert_dir, const char *const *names, struct hf_cancel *token,
                         struct hfd_pki *ret_pki, struct hf_status *reterr_status) {
        struct made made = {.n_keys = 0};
        const struct directory dir = {.path = cert_dir,
                                      .made = &made,
                                      .reterr_status = reterr_status};
        HF__CLEANUP(contents_cleanup) struct contents all = {0};
        HF__CLEANUP(hf__close_cleanup) int lock = -1;
        int r = lock_directory(&dir, token, &lock);

        /* The lock is held until this function returns. */
        if (r == 0)
                r = load_contents(&dir, names, &all);
        if (r == 0)
                r = write_made(&dir);
        if (r != 0)
                return r;
        *ret_pki = (struct hfd_pki){.ca_pem = all.ca.cert,
                                    .server_cert_pem = all.server.cert,
                                    .server_key_pem = all.server.key,
                                    .admin_cert_pem = all.admin.cert,
                                    .admin_key_pem = all.admin.key,
                                    .account_key_pem = all.account.key};
        /* *ret_pki owns them now. */
        all.ca.cert = all.server.cert = all.server.key = all.admin.cert = all.admin.key =
                all.account.key = NULL;
        return 0;
}

/* Whether the start could lock the directory and make what is missing. fd: the directory, or the
 * last one on its path that exists. */
static int check_writable(const struct directory *dir, int fd) {
        /* hfd_trusted_open has checked that a missing directory can be made. The files in its
         * parent do not matter. */
        if (faccessat(AT_FDCWD, dir->path, F_OK, AT_EACCESS) != 0)
                return 0;
        bool has_lock = faccessat(fd, ".lock", F_OK, AT_EACCESS) == 0;
        if (has_lock && faccessat(fd, ".lock", R_OK | W_OK, AT_EACCESS) != 0)
                return hf_fail(dir->reterr_status, -errno, "cannot open lock file %s/.lock: %s",
                               dir->path, strerror(errno));
        if ((!has_lock || *dir->would_make) && faccessat(fd, ".", W_OK | X_OK, AT_EACCESS) != 0)
                return hf_fail(dir->reterr_status, -errno, "cannot write to directory %s: %s",
                               dir->path, strerror(errno));
        return 0;
}

int hfd_pki_check(const char *cert_dir, const char *const *names, struct hf_status *reterr_status) {
        bool would_make = false;
        const struct directory dir = {.path = cert_dir,
                                      .would_make = &would_make,
                                      .reterr_status = reterr_status};
        HF__CLEANUP(contents_cleanup) struct contents all = {0};
        HF__CLEANUP(hf__close_cleanup) int fd = -1;

        int r = hfd_trusted_open(cert_dir, HFD_TRUSTED_FUTURE_DIRECTORY, &fd, reterr_status);
        if (r == 0)
                r = load_contents(&dir, names, &all);
        return r == 0 ? check_writable(&dir, fd) : r;
}

/* ---- the CA alone ---- */

/* Moves the texts of the pair to *ret_ca. */
static void take_ca(struct pair *pair, struct hfd_pki_ca *ret_ca) {
        *ret_ca = (struct hfd_pki_ca){.cert_pem = pair->cert, .key_pem = pair->key};
        pair->cert = pair->key = NULL;
}

int hfd_pki_ca_init(const char *cert_dir, struct hf_cancel *token, struct hfd_pki_ca *ret_ca,
                    struct hf_status *reterr_status) {
        struct made made = {.n_keys = 0};
        const struct directory dir = {.path = cert_dir,
                                      .made = &made,
                                      .reterr_status = reterr_status};
        HF__CLEANUP(pair_cleanup) struct pair found = {0};
        HF__CLEANUP(pair_cleanup) struct pair ca = {0};
        HF__CLEANUP(hf__close_cleanup) int lock = -1;
        int r = lock_directory(&dir, token, &lock);

        if (r == 0)
                r = read_pair(&dir, "ca", &found);
        if (r == 0 && found.cert)
                r = hf_fail(reterr_status, HF_E_EXISTS,
                            "%s exists, and a CA is not replaced: holdfastd pki show lists it",
                            found.cert_path);
        if (r == 0)
                r = load_ca(&dir, &ca);
        if (r == 0)
                r = write_made(&dir);
        if (r == 0)
                take_ca(&ca, ret_ca);
        return r;
}

int hfd_pki_ca_read(const char *cert_dir, struct hfd_pki_ca *ret_ca,
                    struct hf_status *reterr_status) {
        const struct directory dir = {.path = cert_dir, .reterr_status = reterr_status};
        HF__CLEANUP(pair_cleanup) struct pair ca = {0};
        int r = read_pair(&dir, "ca", &ca);

        if (r == 0 && !ca.cert)
                r = hf_fail(reterr_status, HF_E_NOT_FOUND,
                            "there is no CA in %s: holdfastd pki init or the first start makes one",
                            cert_dir);
        if (r == 0)
                r = check_ca(&dir, &ca);
        if (r == 0)
                take_ca(&ca, ret_ca);
        return r;
}

/* Fails if the directory has another CA than ca. A key without a certificate counts as a CA too,
 * because a crash may have left it. */
static int check_same_ca(const struct directory *dir, const struct pair *here,
                         const struct hfd_pki_ca *ca) {
        char one[HFD_PKI_FINGERPRINT_MAX], other[HFD_PKI_FINGERPRINT_MAX];
        bool same = !here->key || hfd_pki_ca_fault(ca->cert_pem, here->key)[0] == '\0';

        if (here->cert)
                same = hfd_pki_fingerprint(here->cert, one) &&
                       hfd_pki_fingerprint(ca->cert_pem, other) && strcmp(one, other) == 0;
        if (same)
                return 0;
        return hf_fail(dir->reterr_status, HF_E_EXISTS,
                       "another CA is in %s: to join, stop the instances that use it, remove %s "
                       "and %s, and join again; the kubeconfigs and certificates of that CA are "
                       "then of no use any more",
                       dir->path, here->cert_path, here->key_path);
}

int hfd_pki_ca_join(const char *cert_dir, const struct hfd_pki_ca *ca, struct hf_cancel *token,
                    bool *ret_joined, struct hf_status *reterr_status) {
        const struct directory dir = {.path = cert_dir, .reterr_status = reterr_status};
        HF__CLEANUP(pair_cleanup) struct pair here = {0};
        HF__CLEANUP(hf__close_cleanup) int lock = -1;
        int r = lock_directory(&dir, token, &lock);

        assert(ca->cert_pem && ca->key_pem);
        if (r == 0)
                r = read_pair(&dir, "ca", &here);
        if (r == 0 && here.cert)
                r = check_ca(&dir, &here);
        else if (r == 0 && here.key)
                r = ensure_key(&dir, &here);
        if (r == 0)
                r = check_same_ca(&dir, &here, ca);
        if (r != 0)
                return r;
        if (!here.key)
                r = hfd_write_file(here.key_path, ca->key_pem, 0600, reterr_status);
        if (r == 0 && !here.cert)
                r = hfd_write_file(here.cert_path, ca->cert_pem, 0644, reterr_status);
        if (r == 0)
                *ret_joined = !here.key || !here.cert;
        return r;
}
