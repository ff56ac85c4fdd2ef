/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the objects in the store (object_encryption.h).
 *
 * Invariant: the store gets new keys before the cache is filled again. So when a reload has
 * succeeded, every value in the cache was decrypted with the new keys, and it is known which
 * objects are still stored under an old key. A client can then write such an object unchanged to
 * encrypt it anew.
 */
#include "server/reload/object_encryption.h"

#include "server/encryption/encrypted_store.h"
#include "server/encryption/encryption_config.h"
#include "server/process/flag_files.h"
#include "server/server.h"

/* How long a reload waits until the cache is filled again. */
#define REFILL_TIMEOUT (60 * HF_NSEC_PER_SEC)

static int read_file(struct hfd_server *server, struct hfd_encryption **ret_encryption,
                     struct hf_status *reterr_status) {
        int r = hfd_encryption_read(server->config->encryption_config, ret_encryption,
                                    reterr_status);

        return hfd_flag_result("encryption-provider-config", r, reterr_status);
}

int hfd_object_encryption_start(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_encryption *encryption = NULL;
        struct hfd_store *store = NULL;

        if (!server->config->encryption_config[0])
                return 0;
        int r = read_file(server, &encryption, reterr_status);
        if (r != 0)
                return r;
        r = hfd_encrypted_store_new(server->store, server->config->etcd_prefix, encryption,
                                    hfd_random_bytes, &store);
        (void)hfd_encryption_unref(encryption);
        if (r != 0)
                return hf_fail(reterr_status, r, "cannot encrypt the store: %s", hf_strerror(r));
        server->store = store;
        return 0;
}

/* Fills the cache again, because it does not know which objects are stored under old keys. */
static int refill_cacher(struct hfd_server *server, struct hf_cancel *token,
                         struct hf_status *reterr_status) {
        hf_cancel_set_deadline(token, hfd_server_now(server) + REFILL_TIMEOUT);
        int r = hfd_cacher_refill(server->cacher, token);
        if (r == HF_E_CANCELED && !hf_cancel_fired(server->stop))
                r = HF_E_TIMEOUT;
        return r == 0 ? 0
                      : hf_fail(reterr_status, r,
                                "the new keys of the store are in use, but the cache is not filled "
                                "again yet");
}

int hfd_object_encryption_reload(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_encryption *encryption = NULL;
        struct hf_cancel *token = NULL;

        if (!server->config->encryption_config[0])
                return 0;
        int r = read_file(server, &encryption, reterr_status);
        if (r == 0) {
                r = hf_cancel_new(server->stop, hf_host_clock(&server->host), &token);
                if (r != 0)
                        (void)hf_fail(reterr_status, r, "%s", hf_strerror(r));
        }
        if (r == 0 && hfd_encrypted_store_set(server->store, encryption))
                server->must_refill = true;
        /* If the last reload has not waited long enough, this one waits again. The cache may be
         * full by now, but filling it once more does no harm. */
        if (r == 0 && server->must_refill)
                r = refill_cacher(server, token, reterr_status);
        if (r == 0)
                server->must_refill = false;
        hf_cancel_unref(token);
        (void)hfd_encryption_unref(encryption);
        return r;
}
