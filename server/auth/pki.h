/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The certificates that Holdfast creates itself: a CA, a serving certificate and an admin client
 * certificate, in the directory --cert-dir.
 *
 * Files: ca.crt, ca.key, server.crt, server.key, admin.crt, admin.key; new keys are P-256 and have
 * mode 0600. Instances that share the directory share the CA: the first one creates it under a lock
 * file, and the others find it. Existing valid files are used. A serving or admin certificate is
 * renewed if it has expired or will expire within 30 days, if another CA has issued it, or if a
 * name is missing; that needs the CA's key.
 *
 * Threads: any. Blocks on files, and up to 30 s on the lock, so it is for the start and reloads
 * only.
 */
#include <holdfast/cancel.h>
#include <holdfast/error.h>

struct hfd_pki {
        /* owned; NUL-terminated PEM text */
        char *ca_pem, *server_cert_pem, *server_key_pem, *admin_cert_pem, *admin_key_pem;
};

/*
 * Loads the certificates and creates those that are missing. names: NULL-terminated DNS names and
 * IP addresses for the serving certificate. localhost, 127.0.0.1 and ::1 are always in it. Names
 * that are neither a DNS name nor an IP address are left out. 0, -errno, HF_E_INVALID (a file or
 * the directory is not usable), HF_E_TOO_LARGE (too many names, or a file exceeds 1 MiB), HF_E_BUSY
 * (another process held the lock for 30 s) or HF_E_CANCELED (token fired during that wait). The
 * message names the cause and, where there is one, the file. ret_pki is set on success only; free
 * it with hfd_pki_done.
 */
int hfd_pki_load_or_make(const char *cert_dir, const char *const *names, struct hf_cancel *token,
                         struct hfd_pki *ret_pki, struct hf_status *reterr_status);
/* Overwrites the keys and frees everything. Accepts a zeroed pki and leaves a zeroed one. */
void hfd_pki_done(struct hfd_pki *pki);
