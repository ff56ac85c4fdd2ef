/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The certificates that Holdfast creates itself, in the directory --cert-dir or in memory only: a
 * CA, a serving certificate and an admin client certificate. The same directory has the key that
 * signs the tokens of service accounts.
 *
 * Files: ca.crt, ca.key, server.crt, server.key, admin.crt, admin.key, sa.key. New keys are P-256,
 * and their files have mode 0600. Instances that share the directory share the CA: the first
 * instance creates it while it holds a lock file, and the others find it. Existing valid files are
 * used. A serving or admin certificate is renewed if it has expired or will expire within 30 days,
 * if another CA has issued it, or if a name is missing from it. A renewal needs the CA's key.
 *
 * Threads: any thread that serves no requests, because functions with cert_dir block on files, and
 * those with a token wait up to 30 s for the lock. Only one thread at a time may call a function
 * with a token for the same directory, because the lock excludes other processes only (files.h).
 */
#include <stdbool.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>

struct hfd_pki {
        /* owned; NUL-terminated PEM text */
        char *ca_pem, *server_cert_pem, *server_key_pem, *admin_cert_pem, *admin_key_pem;
        char *account_key_pem; /* signs the tokens of service accounts */
        char *ca_key_pem;      /* NULL = it is read from the directory when it is used */
};

/*
 * Loads the certificates and creates those that are missing. names: DNS names and IP addresses for
 * the serving certificate; the array ends with NULL, or is NULL. localhost, 127.0.0.1 and ::1 are
 * always in the certificate. A name that is neither a DNS name nor an IP address is left out.
 *
 * 0, -errno, HF_E_INVALID (a file or the directory is not usable), HF_E_TOO_LARGE (too many names,
 * or a file exceeds 1 MiB), HF_E_BUSY (another process held the lock for 30 s) or HF_E_CANCELED
 * (token fired during that wait). The message names the cause and, where there is one, the file.
 * *ret_pki is set on success only; the caller frees it with hfd_pki_done.
 */
int hfd_pki_load_or_make(const char *cert_dir, const char *const *names, struct hf_cancel *token,
                         struct hfd_pki *ret_pki, struct hf_status *reterr_status);
/*
 * Checks whether hfd_pki_load_or_make would succeed, as far as that is known without the lock.
 * Creates and changes nothing. Returns what that function would return, but never HF_E_BUSY or
 * HF_E_CANCELED.
 */
int hfd_pki_check(const char *cert_dir, const char *const *names, struct hf_status *reterr_status);

/*
 * The CA of a directory alone, for `holdfastd pki` and for signing the certificates that clients
 * request. All texts are owned and NUL-terminated PEM; free them with hfd_pki_ca_done, which
 * accepts a zeroed struct. Outputs are set on success only.
 */
struct hfd_pki_ca {
        char *cert_pem;
        char *key_pem; /* NULL = the key is kept elsewhere */
};
/* Makes the CA in cert_dir, which need not exist. A ca.key without a ca.crt, which a crash may have
 * left, becomes the CA's key. HF_E_EXISTS: there is a ca.crt already. Other errors as
 * hfd_pki_load_or_make. */
int hfd_pki_ca_init(const char *cert_dir, struct hf_cancel *token, struct hfd_pki_ca *ret_ca,
                    struct hf_status *reterr_status);
/* Reads the CA of cert_dir. HF_E_NOT_FOUND: there is none. Other errors as hfd_pki_check. */
int hfd_pki_ca_read(const char *cert_dir, struct hfd_pki_ca *ret_ca,
                    struct hf_status *reterr_status);
/*
 * Installs ca, together with its key, as the CA of cert_dir. The directory need not exist.
 * *ret_joined: false = it had this CA and its key already, and nothing was written. HF_E_EXISTS:
 * another CA is there, and the message says what to remove. Other errors as hfd_pki_load_or_make.
 */
int hfd_pki_ca_join(const char *cert_dir, const struct hfd_pki_ca *ca, struct hf_cancel *token,
                    bool *ret_joined, struct hf_status *reterr_status);
/* Takes the certificate and the key of a CA from one text, in any order, and checks them. Further
 * certificates in the text stay after the first one. name: what the text is, for messages. 0,
 * HF_E_INVALID (also for a CA that has expired) or -ENOMEM. Reads no file. */
int hfd_pki_ca_parse(const char *pem, const char *name, struct hfd_pki_ca *ret_ca,
                     struct hf_status *reterr_status);
void hfd_pki_ca_done(struct hfd_pki_ca *ca);

/* Makes a CA and certificates in memory only, with the key of the CA. They are not renewed. names:
 * as for hfd_pki_load_or_make. 0, -ENOMEM, -EIO (OpenSSL failed) or HF_E_TOO_LARGE (names). */
int hfd_pki_make(const char *const *names, struct hfd_pki *ret_pki,
                 struct hf_status *reterr_status);
/* Copies a set of certificates. 0 or -ENOMEM. */
int hfd_pki_copy(const struct hfd_pki *pki, struct hfd_pki *ret_copy,
                 struct hf_status *reterr_status);
/* Overwrites the keys, frees everything, and sets *pki to {0}, which it also accepts. */
void hfd_pki_done(struct hfd_pki *pki);
