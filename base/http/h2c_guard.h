/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The guard of clear-text HTTP/2 (h2c): decides which request may open a connection and which must
 * share one. Only libcurl before 8.0 needs it; h2c_guard.c explains why and how. Thread: the
 * engine's.
 */
#include <stdbool.h>

struct hf__exchange;
struct hf__http_engine;
struct hf__http_request;
struct hf__pool;

/* Whether the guard applies to a request. */
bool hf__h2c_guard_applies(const struct hf__http_engine *engine,
                           const struct hf__http_request *request);
/* Adds x to one of the pool's lists. true: x must wait until another request has opened a
 * connection. false: no other request is opening a connection to x's origin, so x opens one. */
bool hf__h2c_guard_enter(struct hf__exchange *x, struct hf__pool *pool);
/* Call it when curl has a connection for x and has sent nothing yet. true: x got a new connection
 * where it expected a reused one, or the other way round, and must restart. */
bool hf__h2c_guard_must_restart(struct hf__exchange *x);
/* Removes x from its list, if it is in one. */
void hf__h2c_guard_leave(struct hf__exchange *x);
/* Ends the wait for the first requests that may have been sent: their connections can probably be
 * shared now. Call it after bytes were received on a connection of the pool. */
void hf__h2c_guard_on_received(struct hf__pool *pool);
/* Starts the held requests. Call it when pool->h2c_changed is set. */
void hf__h2c_guard_start_held(struct hf__pool *pool);
