/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the certificates at start and on reloads.
 *
 * Invariant: the server's members change all together or not at all. If one file cannot be read, a
 * reload keeps the whole previous set. Whether a key and a certificate match is checked by the HTTP
 * server, which serves its previous set if they do not (hfd_http_reload).
 */
#include "server/certificates.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "server/auth/files.h"
#include "server/server.h"

/* A set of certificates that is being read. */
struct certificates {
        struct hfd_pki pki;
        char *cert, *key, *client_ca;
};

/* Overwrites the key, so that it does not remain in freed memory. */
static void free_key(char *key) {
        if (key)
                explicit_bzero(key, strlen(key));
        free(key);
}

static void free_set(struct certificates *set) {
        free(set->cert);
        free_key(set->key);
        free(set->client_ca);
        hfd_pki_done(&set->pki);
}

/* Reads the file at path. If path is "", the flag was not given: copies the generated PEM text. */
static int read_or_copy(const char *path, const char *generated, char **ret_text,
                        struct hf_status *reterr_status) {
        if (path[0])
                return hfd_read_file(path, ret_text, reterr_status);
        *ret_text = strdup(generated);
        return *ret_text ? 0 : hf_fail(reterr_status, -ENOMEM, "out of memory");
}

int hfd_certificates_read(struct hfd_server *server, struct hf_status *reterr_status) {
        const struct hfd_config *config = server->config;
        const char *const names[] = {config->bind_address, server->advertised,
                                     server->identity.host, NULL};
        struct certificates set = {0};

        int r = hfd_pki_load_or_make(config->cert_dir, names, server->stop, &set.pki,
                                     reterr_status);
        if (r == 0)
                r = read_or_copy(config->tls_cert_file, set.pki.server_cert_pem, &set.cert,
                                 reterr_status);
        if (r == 0)
                r = read_or_copy(config->tls_key_file, set.pki.server_key_pem, &set.key,
                                 reterr_status);
        if (r == 0)
                r = read_or_copy(config->client_ca_file, set.pki.ca_pem, &set.client_ca,
                                 reterr_status);
        if (r != 0) {
                free_set(&set);
                return r;
        }
        hfd_certificates_done(server);
        server->pki = set.pki;
        server->server_cert_pem = set.cert;
        server->server_key_pem = set.key;
        server->client_ca_pem = set.client_ca;
        return 0;
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
