/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The administrator's kubeconfig: how to reach this server, its CA, and the admin certificate with
 * its key, all inline. Blocks on files. Thread: any, but one at a time for one path.
 */
#include <holdfast/error.h>

struct hfd_pki;

/* Writes the kubeconfig (JSON, which is YAML too) with mode 0600. An existing file is replaced as a
 * whole. 0 or -errno; the message names path. */
int hfd_admin_kubeconfig_write(const struct hfd_pki *pki, const char *path, const char *server_url,
                               struct hf_status *reterr_status);
