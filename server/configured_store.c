/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creates the store that the command line names.
 *
 * Invariant: the private key is overwritten before its memory is freed: once the store has its own
 * copy, or could not be created.
 */
#include "server/configured_store.h"

#include <stdlib.h>
#include <string.h>

#include "server/auth/files.h"
#include "server/storage/etcd/store.h"
#include "server/storage/sqlite/store.h"

enum { CA, CERT, KEY, N_FILES };

int hfd_configured_store_new(const struct hf_host *host, const struct hfd_config *config,
                             struct hfd_store **ret_store, struct hf_status *reterr_status) {
        const char *const paths[N_FILES] = {[CA] = config->etcd_ca_file,
                                            [CERT] = config->etcd_cert_file,
                                            [KEY] = config->etcd_key_file};
        char *pem[N_FILES] = {NULL};
        int r = 0;

        /* `release` must not leave an empty file where it was given a wrong name. */
        if (config->n_etcd_servers == 0)
                return hfd_sqlite_store_new(host, config->store_file,
                                            config->command == HFD_COMMAND_SERVE, ret_store,
                                            reterr_status);
        for (int i = 0; i < N_FILES && r == 0; i++)
                if (paths[i][0])
                        r = hfd_read_file(paths[i], &pem[i], reterr_status);
        if (r == 0) {
                struct hfd_etcd_config etcd = {.endpoints =
                                                       (const char *const *)config->etcd_servers,
                                               .ca_pem = pem[CA],
                                               .cert_pem = pem[CERT],
                                               .key_pem = pem[KEY]};
                r = hfd_etcd_store_new(host, &etcd, ret_store, reterr_status);
        }
        if (pem[KEY])
                explicit_bzero(pem[KEY], strlen(pem[KEY]));
        for (int i = 0; i < N_FILES; i++)
                free(pem[i]);
        return r;
}
