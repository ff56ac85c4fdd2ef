/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Kubeconfig files, read into what the REST client needs: its current context's server and
 * credentials.
 */
#include <holdfast/client.h>

struct hf__kubeconfig {
        struct hf_rest_config rest; /* its texts are the ones below */
        char *server, *ca_pem, *cert_pem, *key_pem, *bearer_token, *token_file,
                *server_name; /* owned */
};

/*
 * source names the text in messages; relative paths inside are relative to dir ("" = the working
 * directory). 0, -errno, HF_E_INVALID, HF_E_NOT_FOUND, HF_E_UNAVAILABLE; with words.
 */
int hf__kubeconfig_parse(const char *text, size_t n, const char *dir, const char *source,
                         struct hf__kubeconfig *ret_config, struct hf_status *reterr_status);
/* path NULL = the files of $KUBECONFIG, which are merged, else ~/.kube/config. */
int hf__kubeconfig_load(const char *path, struct hf__kubeconfig *ret_config,
                        struct hf_status *reterr_status);
void hf__kubeconfig_done(struct hf__kubeconfig *config); /* wipes the secrets */
