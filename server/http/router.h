/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The router: which handler answers a path. Exact paths, and prefixes that end in '/'; the longest
 * wins. Filled before the server starts, immutable afterwards. Pure look-up, no lock.
 */
#include "server/http/http.h"

struct hfd_router;

int hfd_router_new(struct hfd_router **ret_router);
struct hfd_router *hfd_router_free(struct hfd_router *router);
/* path is copied. HF_E_EXISTS. The handler gets the request's reference, as in http.h. */
int hfd_router_add(struct hfd_router *router, const char *path, hfd_http_handler handler,
                   void *ctx);
/* 0, or HF_E_NOT_FOUND. */
int hfd_router_find(struct hfd_router *router, const char *path, hfd_http_handler *ret_handler,
                    void **ret_ctx);
