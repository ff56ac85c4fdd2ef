/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The self-made certificates: a CA, a serving certificate and an admin client certificate, under
 * --cert-dir.
 *
 * Files: ca.crt, ca.key (0600), server.crt, server.key, admin.crt, admin.key. Instances that share
 * the directory share the CA: the first creator wins under a lock file, which death frees; what
 * exists and is valid is used, an expired or soon expiring serving certificate is made anew from
 * the CA. Keys are P-256. Uses OpenSSL's X509 interface, which is why it is one of the two doors to
 * OpenSSL beside server/http. Blocks on files: for start-up and reload only.
 */
#include <holdfast/cancel.h>
#include <holdfast/error.h>

struct hfd_pki {
        char *ca_pem, *server_cert_pem, *server_key_pem, *admin_cert_pem,
                *admin_key_pem; /* owned; NUL-terminated */
};

/*
 * names: NULL-terminated DNS names and IP addresses for the serving certificate (localhost,
 * 127.0.0.1 and ::1 are always in); what is neither is left out. A message names the file or
 * directory that is at fault; HF_E_BUSY: the lock was held for 30 s; HF_E_CANCELED: token fired
 * while it was held.
 */
int hfd_pki_load_or_make(const char *cert_dir, const char *const *names, struct hf_cancel *token,
                         struct hfd_pki *ret_pki, struct hf_status *reterr_status);
void hfd_pki_done(struct hfd_pki *pki);

/* Writes a kubeconfig (JSON is YAML) with everything inline, mode 0600, atomically by rename. */
int hfd_pki_write_kubeconfig(const struct hfd_pki *pki, const char *path, const char *server_url,
                             struct hf_status *reterr_status);
/* Reads a whole file (at most 1 MiB) into malloc'ed, NUL-terminated text; the message names path
 * and cause. HF_E_NOT_FOUND, HF_E_TOO_LARGE, -errno. */
int hfd_read_file(const char *path, char **ret_text, struct hf_status *reterr_status);
