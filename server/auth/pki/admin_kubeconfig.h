/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The administrator's kubeconfig: the URLs of this server and of others, the CA, and the admin
 * certificate with its key, all inline. Blocks on files. Thread: any, but one at a time for one
 * path.
 */
#include <stddef.h>

#include <holdfast/error.h>

struct hfd_pki;

/* Another server of the same CA. Both texts are borrowed. */
struct hfd_admin_server {
        const char *url;
        const char *context; /* the name of its context and its cluster; unique, not "holdfast" */
};
struct hfd_admin_servers {
        const struct hfd_admin_server *servers;
        size_t n;
};

/* Checks whether the kubeconfig may be at path: whether nobody but root and the user of this
 * process can replace a file there (trusted_path.h). 0, HF_E_INVALID or -errno; the message names
 * the directory or path. */
int hfd_admin_kubeconfig_check(const char *path, struct hf_status *reterr_status);

/* Writes the kubeconfig (JSON, which is YAML too) with mode 0600. An existing file is replaced as a
 * whole. The new file gets the owner and group of the old one, as far as this process may set them,
 * unless others may add files to the directory. The context "holdfast" is for server_url. The other
 * servers are in the extension holdfast.dev/servers of its cluster, for libholdfast, and in
 * contexts of their own, for kubectl. others may be NULL. 0, -errno, or HF_E_INVALID as
 * hfd_admin_kubeconfig_check; the message names the directory or path. */
int hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path, const char *server_url,
                               const struct hfd_admin_servers *others,
                               struct hf_status *reterr_status);
