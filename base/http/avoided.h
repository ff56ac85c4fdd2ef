/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Addresses that a request avoids, because a connection to them was lost during its TLS handshake.
 * A host name may have several addresses. curl goes to the next one only if the TCP connection
 * fails. Thread: the engine's.
 */
#include <curl/curl.h>
#include <stdbool.h>

struct hf__exchange;
struct hf__avoided;

/* Call it after x has failed with `result`. Adds the address of its connection. True: x may begin
 * again. False: the failure has another cause, or there is nothing left to try. */
bool hf__avoided_add(struct hf__exchange *x, CURLcode result);
/* Call it when no address was left to try. Replaces the result and x->error_text by those of the
 * first connection. */
CURLcode hf__avoided_first_result(struct hf__exchange *x, CURLcode result);
/* Accepts NULL. */
void hf__avoided_free(struct hf__avoided *avoided);
/* CURLOPT_OPENSOCKETFUNCTION; ctx is the exchange. Refuses avoided addresses, so that curl goes to
 * the next one. The host's child processes do not inherit the socket. */
curl_socket_t hf__avoided_open_socket(void *ctx, curlsocktype purpose,
                                      struct curl_sockaddr *address);
