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

void hfd_reload_files(void *ctx) {
        struct hfd_server *server = ctx;
        struct hf_status status = {0};

        int r = hfd_certificates_read(server, &status);
        if (r == 0)
                r = hfd_http_reload(server->http, server->server_cert_pem, server->server_key_pem,
                                    server->client_ca_pem, &status);
        /* Clients get a renewed admin certificate from the kubeconfig. */
        if (r == 0)
                r = hfd_certificates_write_kubeconfig(server, &status);
        log_reload(server, "certificates", r, &status);
        if (r == HF_E_CANCELED)
                return;
        r = hfd_auth_reload(server->auth, &status);
        log_reload(server, "tokens", r, &status);
        r = hfd_certificates_read_account_keys(server, &status);
        log_reload(server, "keys of service accounts", r, &status);
        if (server->config->encryption_config[0])
                log_reload(server, "keys of the store",
                           hfd_object_encryption_reload(server, &status), &status);
        if (!server->audit)
                return;
        r = hfd_audit_reload(server->audit, &status);
        log_reload(server, "audit policy", r, &status);
}

void hfd_reload_kubeconfig(void *ctx) {
        struct hfd_server *server = ctx;
        struct hf_status status = {0};

        if (hfd_certificates_update_kubeconfig(server, &status) != 0)
                hf_log(&server->host.log, HF_LOG_ERROR, "holdfastd",
                       "other instances are not in the kubeconfig: %s", status.message);
}
