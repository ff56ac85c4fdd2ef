/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the store that the command line names.
 *
 * Invariant: the texts of the files are overwritten before their memory is freed: once the store
 * has its own copies, or could not be created. The file of the certificate may contain the key,
 * too.
 */
#include "server/store/configured_store.h"

#include "server/auth/files.h"
#include "server/process/flag_files.h"
#include "server/storage/etcd/store.h"
#include "server/storage/memory/store.h"
#include "server/storage/sqlite/store.h"

enum { CA, CERT, KEY, N_FILES };

int hfd_configured_etcd_new(const struct hf_host *host, const struct hfd_config *config,
                            const char *const *endpoints, struct hfd_store **ret_store,
                            struct hf_status *reterr_status) {
        const struct hfd_flag_pem files[N_FILES] =
                {[CA] = {"etcd-cafile", config->etcd_ca_file, HFD_PEM_CA},
                 [CERT] = {"etcd-certfile", config->etcd_cert_file, HFD_PEM_CHAIN},
                 [KEY] = {"etcd-keyfile", config->etcd_key_file, HFD_PEM_KEY}};
        char *pem[N_FILES] = {NULL};
        int r = 0;

        for (int i = 0; i < N_FILES && r == 0; i++)
                r = hfd_flag_read_pem(&files[i], &pem[i], reterr_status);
        if (r == 0 && pem[CERT])
                r = hfd_flag_check_pair(&files[CERT], pem[CERT], &files[KEY], pem[KEY],
                                        reterr_status);
        if (r == 0) {
                struct hfd_etcd_config etcd = {.endpoints = endpoints,
                                               .ca_pem = pem[CA],
                                               .cert_pem = pem[CERT],
                                               .key_pem = pem[KEY]};
                r = hfd_etcd_store_new(host, &etcd, ret_store, reterr_status);
        }
        for (int i = 0; i < N_FILES; i++)
                hfd_secret_free(pem[i]);
        return r;
}

int hfd_configured_store_new(const struct hf_host *host, const struct hfd_config *config,
                             struct hfd_store **ret_store, struct hf_status *reterr_status) {
        if (hfd_config_is_in_memory(config)) {
                int r = hfd_memory_store_new(host, ret_store);
                return r == 0 ? 0 : hf_fail(reterr_status, r, "%s", hf_strerror(r));
        }
        /* Only the server makes the file: `holdfastd release` must not make one by a mistake. */
        if (config->n_etcd_servers == 0) {
                int r = hfd_sqlite_store_new(host, config->store_file,
                                             config->command == HFD_COMMAND_SERVE, ret_store,
                                             reterr_status);
                return hfd_flag_result("store", r, reterr_status);
        }
        int r = hfd_configured_etcd_new(host, config, (const char *const *)config->etcd_servers,
                                        ret_store, reterr_status);
        return hfd_flag_result("etcd-servers", r, reterr_status);
}
