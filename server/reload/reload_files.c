/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The work of a reload: reads the files again, and puts their contents into use.
 *
 * Invariant: certificates, tokens, keys and the audit policy are reloaded independently, because a
 * mistake in one file must not keep a revoked token or an old certificate in use. A failure of one
 * of them ends the reload only if the process is ending.
 */
#include "server/reload/reload_files.h"

#include "server/certificates/certificates.h"
#include "server/reload/object_encryption.h"
#include "server/server.h"

static void log_reload(struct hfd_server *server, const char *what, int r,
                       const struct hf_status *status) {
        if (r == HF_E_CANCELED)
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd",
                       "reload: canceled because the server stops: %s", status->message);
        /* Only the keys of the store fail with this error, and the new keys are in use already. */
        else if (r == HF_E_TIMEOUT)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd", "reload: %s", status->message);
        else if (r != 0)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
                       "reload: %s; keeping the previous %s", status->message, what);
        else
                hf_log(&server->host.log, HF_LOG_NOTICE, "holdfastd", "%s reloaded", what);
}

/* Reads the certificates and puts them into use. 0 or an error, after which the previous ones stay
 * in use. */
static int reload_certificates(struct hfd_server *server) {
        struct hf_status status = {0};
        int r = hfd_certificates_read(server, &status);

        log_reload(server, "certificates", r, &status);
        /* Clients get a renewed admin certificate from the kubeconfig. */
        if (r == 0) {
                int error = hfd_certificates_write_kubeconfig(server, &status);
                if (error != 0)
                        log_reload(server, "kubeconfig", error, &status);
        }
        return r;
}

static void reload_tokens(struct hfd_server *server) {
        struct hf_status status = {0};

        log_reload(server, "tokens", hfd_auth_reload(server->auth, &status), &status);
}

static void reload_account_keys(struct hfd_server *server) {
        struct hf_status status = {0};
        int r = hfd_certificates_read_account_keys(server, &status);

        log_reload(server, "keys of service accounts", r, &status);
}

static void reload_store_keys(struct hfd_server *server) {
        struct hf_status status = {0};
        int r = hfd_object_encryption_reload(server, &status);

        log_reload(server, "keys of the store", r, &status);
}

static void reload_audit_policy(struct hfd_server *server) {
        struct hf_status status = {0};

        log_reload(server, "audit policy", hfd_audit_reload(server->audit, &status), &status);
}

void hfd_reload_files(void *ctx) {
        struct hfd_server *server = ctx;

        if (reload_certificates(server) == HF_E_CANCELED)
                return;
        reload_tokens(server);
        reload_account_keys(server);
        if (server->config->encryption_config[0])
                reload_store_keys(server);
        if (server->audit)
                reload_audit_policy(server);
}

void hfd_reload_kubeconfig(void *ctx) {
        struct hfd_server *server = ctx;
        struct hf_status status = {0};

        if (hfd_certificates_update_kubeconfig(server, &status) != 0)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
                       "other instances are not in the kubeconfig: %s", status.message);
}
