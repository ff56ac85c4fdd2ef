/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* Reads kubeconfig files into the configuration of a REST client: the server and the credentials of
 * the current context. Blocks on the file system. Thread: any. */
#include <holdfast/client.h>

struct hf__kubeconfig {
        struct hf_rest_config rest; /* its texts are borrowed from the members below */
        /* owned; NULL = not given */
        char *server, *ca_pem, *cert_pem, *key_pem, *bearer_token, *token_file, *server_name;
        char **other_servers; /* owned, with the texts; rest.n_other_servers of them */
};

/*
 * Parses a kubeconfig from n bytes of text. `source` names the text in messages. Relative paths in
 * the text are relative to `dir` ("" = the working directory). Returns 0, -errno, HF_E_INVALID,
 * HF_E_TOO_LARGE, or HF_E_UNAVAILABLE (it is YAML, and libyaml is missing), with the reason in
 * reterr_status. The caller frees *ret_config with hf__kubeconfig_done.
 */
int hf__kubeconfig_parse(const char *text, size_t n, const char *dir, const char *source,
                         struct hf__kubeconfig *ret_config, struct hf_status *reterr_status);
/* Reads the file at `path`; NULL = the files of $KUBECONFIG, merged, else ~/.kube/config. Returns
 * the results above, or HF_E_NOT_FOUND: path is NULL, and there is no such file or setting. */
int hf__kubeconfig_load(const char *path, struct hf__kubeconfig *ret_config,
                        struct hf_status *reterr_status);
/* Frees all texts, and wipes the PEM texts and the token. Accepts a zeroed struct. */
void hf__kubeconfig_done(struct hf__kubeconfig *config);
