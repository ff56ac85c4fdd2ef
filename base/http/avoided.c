/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The second and later tries of a request to a host name that has several addresses.
 *
 * The kernel may accept a connection for a server that is being stopped and exits before the TLS
 * handshake. Nothing was sent then, so the request begins again. This time it refuses the sockets
 * that curl opens for the address that failed. When all addresses have been refused, the request
 * ends with the error of its first connection.
 *
 * Invariant: a request begins again only if nothing of it was sent.
 */
#include "base/http/avoided.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/http/engine_private.h"
#include "base/http/exchange.h"

#define MAX_ADDRESSES 8

struct hf__avoided {
        char addresses[MAX_ADDRESSES][INET6_ADDRSTRLEN];
        size_t n;
        /* of the first connection */
        CURLcode result;
        char error_text[CURL_ERROR_SIZE];
};

static bool contains_address(const struct hf__avoided *avoided, const char *address) {
        for (size_t i = 0; avoided && i < avoided->n; i++)
                if (strcmp(avoided->addresses[i], address) == 0)
                        return true;
        return false;
}

/* Whether the connection ended before or during the TLS handshake. A server's certificate that does
 * not verify counts too, because another address may be another server. */
static bool is_lost_handshake(const struct hf__exchange *x, CURLcode result) {
        if (x->may_have_sent || x->forced_outcome != 0 || !x->easy)
                return false;
        return result == CURLE_SSL_CONNECT_ERROR || result == CURLE_RECV_ERROR ||
               result == CURLE_SEND_ERROR || result == CURLE_PEER_FAILED_VERIFICATION;
}

bool hf__avoided_add(struct hf__exchange *x, CURLcode result) {
        char *address = NULL;

        hf__engine_assert_thread(x->engine);
        if (!is_lost_handshake(x, result) ||
            curl_easy_getinfo(x->easy, CURLINFO_PRIMARY_IP, &address) != CURLE_OK || !address ||
            !address[0] || strlen(address) >= INET6_ADDRSTRLEN ||
            contains_address(x->avoided, address))
                return false;
        if (!x->avoided) {
                x->avoided = calloc(1, sizeof *x->avoided);
                if (!x->avoided)
                        return false;
                x->avoided->result = result;
                strcpy(x->avoided->error_text, x->error_text);
        }
        if (x->avoided->n == MAX_ADDRESSES)
                return false;
        strcpy(x->avoided->addresses[x->avoided->n++], address);
        return true;
}

CURLcode hf__avoided_first_result(struct hf__exchange *x, CURLcode result) {
        if (!x->avoided || result != CURLE_COULDNT_CONNECT)
                return result;
        strcpy(x->error_text, x->avoided->error_text);
        return x->avoided->result;
}

void hf__avoided_free(struct hf__avoided *avoided) { free(avoided); }

curl_socket_t hf__avoided_open_socket(void *ctx, curlsocktype purpose,
                                      struct curl_sockaddr *address) {
        const struct hf__exchange *x = ctx;
        char text[INET6_ADDRSTRLEN] = "";

        hf__engine_assert_thread(x->engine);
        if (x->avoided && address->family == AF_INET)
                (void)inet_ntop(AF_INET, &((struct sockaddr_in *)&address->addr)->sin_addr, text,
                                sizeof text);
        else if (x->avoided && address->family == AF_INET6)
                (void)inet_ntop(AF_INET6, &((struct sockaddr_in6 *)&address->addr)->sin6_addr, text,
                                sizeof text);
        if (contains_address(x->avoided, text))
                return CURL_SOCKET_BAD;
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}
