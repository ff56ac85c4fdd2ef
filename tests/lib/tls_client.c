/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See tls_client.h. It uses OpenSSL only, none of the server's code, so that an error of the server
 * cannot cancel out.
 */
#include "tls_client.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#define SPACE ((size_t)4 << 20)

int tls_client_dial(uint16_t port, int rcvbuf) {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons(port),
                                 .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        struct timeval wait = {.tv_sec = TLS_CLIENT_WAIT_S};
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        assert(fd >= 0);
        if (rcvbuf)
                setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &rcvbuf, sizeof rcvbuf);
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
        if (connect(fd, (struct sockaddr *)&to, sizeof to) != 0) {
                close(fd);
                return -1;
        }
        return fd;
}

static void set_alpn(SSL *ssl, const char *alpn) {
        unsigned char wire[32];

        wire[0] = (unsigned char)strlen(alpn);
        memcpy(wire + 1, alpn, wire[0]);
        SSL_set_alpn_protos(ssl, wire, wire[0] + 1u);
}

int tls_client_open(struct tls_client *client, uint16_t port, const char *alpn,
                    const struct x509_identity *identity, int rcvbuf) {
        *client = (struct tls_client){.fd = tls_client_dial(port, rcvbuf)};
        if (client->fd < 0)
                return -1;
        client->ctx = SSL_CTX_new(TLS_client_method());
        if (identity) {
                SSL_CTX_use_certificate(client->ctx, identity->cert);
                SSL_CTX_use_PrivateKey(client->ctx, identity->key);
        }
        client->ssl = SSL_new(client->ctx);
        SSL_set_fd(client->ssl, client->fd);
        if (alpn)
                set_alpn(client->ssl, alpn);
        client->in = malloc(SPACE);
        assert(client->in);
        client->in[0] = '\0';
        return SSL_connect(client->ssl) == 1 ? 0 : -1;
}

void tls_client_close(struct tls_client *client) {
        SSL_free(client->ssl);
        SSL_CTX_free(client->ctx);
        if (client->fd >= 0)
                close(client->fd);
        free(client->in);
        *client = (struct tls_client){.fd = -1};
}

void tls_client_send(struct tls_client *client, const void *data, size_t n) {
        const char *at = data;

        while (n > 0) {
                int sent = SSL_write(client->ssl, at, (int)n);
                if (sent <= 0)
                        return;
                at += sent;
                n -= (size_t)sent;
        }
}

void tls_client_puts(struct tls_client *client, const char *text) {
        tls_client_send(client, text, strlen(text));
}

bool tls_client_read(struct tls_client *client) {
        assert(client->n_in + 1 < SPACE);
        int n = SSL_read(client->ssl, client->in + client->n_in, (int)(SPACE - client->n_in - 1));
        if (n <= 0)
                return false;
        client->n_in += (size_t)n;
        client->in[client->n_in] = '\0';
        return true;
}

char *tls_client_await(struct tls_client *client, const char *text) {
        char *at;

        while (!(at = memmem(client->in, client->n_in, text, strlen(text))))
                if (!tls_client_read(client))
                        return NULL;
        return at;
}

void tls_client_drop(struct tls_client *client, size_t n) {
        assert(n <= client->n_in);
        memmove(client->in, client->in + n, client->n_in - n + 1);
        client->n_in -= n;
}

/* If SSL_read still wants more after the wait, the server has not closed the connection. */
bool tls_client_is_closed(struct tls_client *client) {
        do
                client->n_in = 0;
        while (tls_client_read(client));
        return SSL_get_error(client->ssl, -1) != SSL_ERROR_WANT_READ;
}
