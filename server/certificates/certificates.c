/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the certificates at start and on reloads.
 *
 * Invariant: the server's members change all together or not at all. If one file cannot be read, a
 * reload keeps the whole previous set. Files of flags are checked here, where the message can name
 * the flag and the path; the HTTP server checks all certificates again (hfd_http_reload).
 */
#include "server/certificates/certificates.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/files.h"
#include "server/auth/pki/admin_kubeconfig.h"
#include "server/auth/pki/pki_cert.h"
#include "server/certificates/account_keys.h"
#include "server/certificates/certificate_expiry.h"
#include "server/certificates/cluster_ca.h"
#include "server/jwt/key_set.h"
#include "server/process/flag_files.h"
#include "server/server.h"

#define CONTEXT_MAX 224 /* bytes of the name of a context, with its NUL */

/* A set of certificates that is being read. */
struct certificates {
        struct hfd_pki pki;
        char *cert, *key, *client_ca;
};

/* The file of a certificate may contain its key, too. */
static void free_set(struct certificates *set) {
        hfd_secret_free(set->cert);
        hfd_secret_free(set->key);
        hfd_secret_free(set->client_ca);
        hfd_pki_done(&set->pki);
}

/* Loads or makes the generated certificates. Without a directory they are made only once, because
 * clients must find the same CA after a reload. */
static int load_generated(struct hfd_server *server, struct hfd_pki *ret_pki,
                          struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const char *const names[] = {config->bind_address, server->advertised,
                                     server->identity.host, NULL};

        if (config->cert_dir[0])
                return hfd_flag_result("cert-dir",
                                       hfd_pki_load_or_make(config->cert_dir, names, server->stop,
                                                            ret_pki, reterr_status),
                                       reterr_status);
        return server->pki.ca_pem ? hfd_pki_copy(&server->pki, ret_pki, reterr_status)
                                  : hfd_pki_make(names, ret_pki, reterr_status);
}

/* Reads and checks the file. If the flag was not given, copies the generated PEM text. */
static int read_or_copy(const struct hfd_flag_pem *file, const char *generated, char **ret_text,
                        struct hf_status *reterr_status) {
        if (file->path[0])
                return hfd_flag_read_pem(file, ret_text, reterr_status);
        *ret_text = strdup(generated);
        return *ret_text ? 0 : hf_fail(reterr_status, -ENOMEM, "out of memory");
}

/* Puts the CA of this instance into its identity Lease, so that other instances of this CA put this
 * instance into their kubeconfigs. If a flag names a certificate or a CA, the instance stays out of
 * the kubeconfigs: clients that trust only this CA may not be able to use it. */
static void note_ca(struct hfd_server *server) {
        const struct hfd_config *config = server->config;
        char fingerprint[HFD_PKI_FINGERPRINT_MAX] = "";

        static_assert(HFD_PEERS_CA_MAX >= HFD_PKI_FINGERPRINT_MAX, "a fingerprint fits");
        (void)hfd_pki_fingerprint(server->pki.ca_pem, fingerprint);
        hfd_peers_set_ca(server->peers, fingerprint,
                         !config->tls_cert_file[0] && !config->client_ca_file[0]);
}

int hfd_certificates_read(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const struct hfd_flag_pem cert = {"tls-cert-file", config->tls_cert_file, HFD_PEM_CHAIN};
        const struct hfd_flag_pem key = {"tls-private-key-file", config->tls_key_file, HFD_PEM_KEY};
        const struct hfd_flag_pem client_ca = {"client-ca-file", config->client_ca_file,
                                               HFD_PEM_CA};
        struct certificates set = {0};
        int r = load_generated(server, &set.pki, reterr_status);

        if (r == 0)
                r = read_or_copy(&cert, set.pki.server_cert_pem, &set.cert, reterr_status);
        if (r == 0)
                r = read_or_copy(&key, set.pki.server_key_pem, &set.key, reterr_status);
        if (r == 0 && cert.path[0])
                r = hfd_flag_check_pair(&cert, set.cert, &key, set.key, reterr_status);
        if (r == 0)
                r = read_or_copy(&client_ca, set.pki.ca_pem, &set.client_ca, reterr_status);
        /* A reload: the HTTP server first, because it checks the set once more. */
        if (r == 0 && server->http)
                r = hfd_http_reload(server->http, set.cert, set.key, set.client_ca, reterr_status);
        if (r == 0 &&
            hfd_cluster_ca_publish(server->cluster_ca, &set.pki, set.cert, set.client_ca) != 0)
                r = hf_fail(reterr_status, -ENOMEM, "out of memory");
        if (r != 0) {
                free_set(&set);
                return r;
        }
        hfd_certificates_done(server);
        server->pki = set.pki;
        server->server_cert_pem = set.cert;
        server->server_key_pem = set.key;
        server->client_ca_pem = set.client_ca;
        note_ca(server);
        hfd_certificate_expiry_note(server);
        return 0;
}

int hfd_certificates_read_account_keys(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_jwt_key_set *keys;
        int r = hfd_account_keys_read(server->config, server->pki.account_key_pem, &keys,
                                      reterr_status);

        if (r != 0)
                return r;
        hfd_service_accounts_set_keys(server->service_accounts, keys);
        hfd_jwt_key_set_unref(keys);
        return 0;
}

/* Names the contexts of the other instances: holdfast-<instance>, or holdfast-<instance>-<host> if
 * two in the list have the same name. Returns the number of contexts. The list may have two
 * processes of one host and name, of which one has just ended: only the first gets a context. */
static size_t name_contexts(const struct hfd_peer_list *list,
                            char names[HFD_PEERS_MAX][CONTEXT_MAX],
                            struct hfd_admin_server servers[HFD_PEERS_MAX]) {
        size_t n = 0;

        for (size_t i = 0; i < list->n; i++) {
                const struct hfd_peer *peer = &list->peers[i];
                bool taken = false, shared = false;
                for (size_t k = 0; k < list->n; k++)
                        shared = shared ||
                                 (k != i && strcmp(list->peers[k].instance, peer->instance) == 0);
                (void)snprintf(names[n], CONTEXT_MAX, "holdfast-%s%s%s", peer->instance,
                               shared ? "-" : "", shared ? peer->host : "");
                for (size_t k = 0; k < n; k++)
                        taken = taken || strcmp(names[k], names[n]) == 0;
                servers[n] = (struct hfd_admin_server){.url = peer->url, .context = names[n]};
                if (!taken)
                        n++;
        }
        return n;
}

static int write_kubeconfig(struct hfd_server *server, const struct hfd_peer_list *list,
                            struct hf_status *reterr_status) {
        char names[HFD_PEERS_MAX][CONTEXT_MAX];
        struct hfd_admin_server servers[HFD_PEERS_MAX];
        struct hfd_admin_servers others = {.servers = servers,
                                           .n = name_contexts(list, names, servers)};
        int r = hfd_admin_kubeconfig_write(&server->pki, server->config->admin_kubeconfig,
                                           server->identity.endpoint, &others, reterr_status);

        atomic_store(&server->kubeconfig_failed, r != 0);
        if (r == 0)
                server->kubeconfig_peers = *list;
        return hfd_flag_result("write-kubeconfig", r, reterr_status);
}

int hfd_certificates_write_kubeconfig(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_peer_list list;

        hfd_peers_list(server->peers, &list);
        return write_kubeconfig(server, &list, reterr_status);
}

int hfd_certificates_update_kubeconfig(struct hfd_server *server, struct hf_status *reterr_status) {
        struct hfd_peer_list list;

        hfd_peers_list(server->peers, &list);
        if (!atomic_load(&server->kubeconfig_failed) &&
            memcmp(&list, &server->kubeconfig_peers, sizeof list) == 0)
                return 0;
        return write_kubeconfig(server, &list, reterr_status);
}

void hfd_certificates_done(struct hfd_server *server) {
        struct certificates set = {.pki = server->pki,
                                   .cert = server->server_cert_pem,
                                   .key = server->server_key_pem,
                                   .client_ca = server->client_ca_pem};

        free_set(&set);
        server->pki = (struct hfd_pki){0};
        server->server_cert_pem = NULL;
        server->server_key_pem = NULL;
        server->client_ca_pem = NULL;
}
