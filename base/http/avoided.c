/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Chooses the address to which a request goes, if its host name has several.
 *
 * The kernel may accept a connection for a server that is being stopped and exits before the TLS
 * handshake. Nothing was sent then, so the request begins again. This time it refuses the sockets
 * that curl opens for the address that failed. When all addresses have been refused, the request
 * ends with the error of its first connection.
 *
 * The kernel also accepts connections for a server that hangs or is stopped by a signal. A request
 * then waits until its time is over, and the next one would go to the same address. So that address
 * is left out until no other one can be reached, or 8 others have been silent since. (A machine
 * that is gone accepts no connection. Then curl itself tries the next address in time, because it
 * divides the time limit for opening a connection between the addresses.)
 *
 * Invariant: a request begins again only if nothing of it was sent.
 */
#include "base/http/avoided.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/http/engine_private.h"
#include "base/http/exchange.h"

#define MAX_ADDRESSES 8

struct hf__avoided {
        char addresses[MAX_ADDRESSES][INET6_ADDRSTRLEN];
        size_t n;
        /* of the first connection that was lost */
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

/* ---- addresses that were silent ---- */

/* Writes the address to `ip` and, with its port, to `text`. Both are "" if it is no IP address. */
static void print_address(const struct sockaddr *address, char ip[INET6_ADDRSTRLEN],
                          char text[HF__AVOIDED_ADDRESS_MAX]) {
        const void *number = NULL;
        in_port_t port = 0;

        ip[0] = text[0] = '\0';
        if (address->sa_family == AF_INET) {
                number = &((const struct sockaddr_in *)address)->sin_addr;
                port = ((const struct sockaddr_in *)address)->sin_port;
        } else if (address->sa_family == AF_INET6) {
                number = &((const struct sockaddr_in6 *)address)->sin6_addr;
                port = ((const struct sockaddr_in6 *)address)->sin6_port;
        }
        if (number && inet_ntop(address->sa_family, number, ip, INET6_ADDRSTRLEN))
                (void)snprintf(text, HF__AVOIDED_ADDRESS_MAX, "%s %u", ip, ntohs(port));
}

static bool was_silent(const struct hf__silent_addresses *silent, const char *text) {
        for (size_t i = 0; i < silent->n; i++)
                if (strcmp(silent->list[i], text) == 0)
                        return true;
        return false;
}

static void add_silent(struct hf__silent_addresses *silent, const char *text) {
        const size_t max = sizeof silent->list / sizeof silent->list[0];

        if (!text[0] || was_silent(silent, text))
                return;
        if (silent->n == max)
                memmove(silent->list[0], silent->list[1], --silent->n * sizeof silent->list[0]);
        strcpy(silent->list[silent->n++], text);
}

void hf__avoided_add_silent(struct hf__http_engine *engine, int fd) {
        char ip[INET6_ADDRSTRLEN], text[HF__AVOIDED_ADDRESS_MAX];
        struct sockaddr_storage peer;
        socklen_t n = sizeof peer;

        hf__engine_assert_thread(engine);
        if (getpeername(fd, (struct sockaddr *)&peer, &n) < 0)
                return;
        print_address((const struct sockaddr *)&peer, ip, text);
        add_silent(&engine->silent, text);
}

void hf__avoided_add_late(struct hf__exchange *x, CURLcode result) {
        char *ip = NULL, text[HF__AVOIDED_ADDRESS_MAX];
        long port = 0;

        hf__engine_assert_thread(x->engine);
        if (result != CURLE_OPERATION_TIMEDOUT || x->may_have_sent || !x->easy ||
            curl_easy_getinfo(x->easy, CURLINFO_PRIMARY_IP, &ip) != CURLE_OK || !ip || !ip[0] ||
            strlen(ip) >= INET6_ADDRSTRLEN ||
            curl_easy_getinfo(x->easy, CURLINFO_PRIMARY_PORT, &port) != CURLE_OK)
                return;
        (void)snprintf(text, sizeof text, "%s %u", ip, (unsigned)port & 0xffff);
        add_silent(&x->engine->silent, text);
}

bool hf__avoided_forget_silent(struct hf__exchange *x, CURLcode result) {
        hf__engine_assert_thread(x->engine);
        bool is_late = result == CURLE_OPERATION_TIMEDOUT;
        if ((result != CURLE_COULDNT_CONNECT && !is_late) || x->may_have_sent ||
            !x->left_out_silent)
                return false;
        x->engine->silent.n = 0;
        if (is_late)
                return false; /* x's time to connect is over, but not that of later requests */
        x->left_out_silent = false;
        x->takes_silent = true;
        return true;
}

curl_socket_t hf__avoided_open_socket(void *ctx, curlsocktype purpose,
                                      struct curl_sockaddr *address) {
        char ip[INET6_ADDRSTRLEN], text[HF__AVOIDED_ADDRESS_MAX];
        struct hf__exchange *x = ctx;

        hf__engine_assert_thread(x->engine);
        print_address(&address->addr, ip, text);
        if (contains_address(x->avoided, ip))
                return CURL_SOCKET_BAD;
        if (!x->takes_silent && was_silent(&x->engine->silent, text)) {
                x->left_out_silent = true;
                return CURL_SOCKET_BAD;
        }
        return socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
}
