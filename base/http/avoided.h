/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Addresses that are avoided. A host name may have several addresses. curl goes to the next one
 * only if the TCP connection fails. So a request avoids addresses whose connection was lost during
 * the TLS handshake, or whose certificate was refused. And new connections of all requests avoid
 * addresses that were silent: a request that was sent there, or waited for a connection there, has
 * timed out without a byte in return. Thread: the engine's.
 */
#include <arpa/inet.h>
#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct hf__exchange;
struct hf__http_engine;
struct hf__avoided;

#define HF__AVOIDED_ADDRESS_MAX (INET6_ADDRSTRLEN + sizeof " 65535")

/* The addresses that were silent, as "address port". Zero = none. */
struct hf__silent_addresses {
        char list[8][HF__AVOIDED_ADDRESS_MAX]; /* the oldest first */
        size_t n;
};

/* Call it after x has failed with `result`. Adds the address of its connection. True: x may begin
 * again. False: the failure has another cause, the address is unknown or was added before, x avoids
 * 8 addresses already, or there is no memory. */
bool hf__avoided_add(struct hf__exchange *x, CURLcode result);
/* Call it with the descriptor of a connection that was silent: a request that was sent on it, or
 * waited for it, has timed out without a byte in return. Adds its peer, if the connection is open.
 */
void hf__avoided_add_silent(struct hf__http_engine *engine, int fd);
/* Call it after x has failed with `result`. Adds the address of x's connection if the time limit
 * has passed before curl could send on it. */
void hf__avoided_add_late(struct hf__exchange *x, CURLcode result);
/*
 * Call it after x has failed with `result`, before the address of this failure is added. If x got
 * no connection, because all other addresses refused or did not respond, addresses that were silent
 * are no longer avoided: they may serve again. True: x may begin again.
 */
bool hf__avoided_forget_silent(struct hf__exchange *x, CURLcode result);
/* Call it when x does not begin again. If x has avoided addresses, and no other address accepted a
 * connection, returns the result of the first connection and replaces x->error_text by its text.
 * Otherwise returns `result`. */
CURLcode hf__avoided_first_result(struct hf__exchange *x, CURLcode result);
/* Accepts NULL. */
void hf__avoided_free(struct hf__avoided *avoided);
/* CURLOPT_OPENSOCKETFUNCTION; ctx is the exchange. Refuses avoided addresses, so that curl goes to
 * the next one. Child processes of the host program do not inherit the socket. */
curl_socket_t hf__avoided_open_socket(void *ctx, curlsocktype purpose,
                                      struct curl_sockaddr *address);
