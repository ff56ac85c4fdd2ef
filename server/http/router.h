/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The router: finds the handler of a path. A route is an exact path ("/" is one, too), or a prefix
 * that ends in '/'; the longest match wins.
 *
 * Threads: one thread adds the routes before the server starts. The router is immutable afterwards,
 * so that any thread may look paths up without a lock.
 */
#include "server/http/http.h"

struct hfd_router;

int hfd_router_new(struct hfd_router **ret_router);            /* 0 or -ENOMEM */
struct hfd_router *hfd_router_free(struct hfd_router *router); /* accepts NULL, returns NULL */
/* path is copied and begins with '/'. 0, HF_E_EXISTS, -EINVAL or -ENOMEM. The handler takes over
 * the request's reference, as http_request.h describes. */
int hfd_router_add(struct hfd_router *router, const char *path, hfd_http_handler handler,
                   void *ctx);
/* 0 or HF_E_NOT_FOUND. */
int hfd_router_find(const struct hfd_router *router, const char *path,
                    hfd_http_handler *ret_handler, void **ret_ctx);
