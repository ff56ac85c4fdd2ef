/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The router. There are only a few routes, so they are in an array that is searched linearly.
 *
 * Invariant: the routes are sorted by length, longest first, so that the first match is the
 * longest.
 */
#include "server/http/router.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct route {
        char *path; /* owned */
        size_t n;   /* its length, never 0 */
        hfd_http_handler handler;
        void *ctx;
};

struct hfd_router {
        struct route *routes; /* owned */
        size_t n_routes;
        /* For each second byte of a path, the first route that may match the path. So a look-up
         * skips most routes. */
        size_t first[256];
};

int hfd_router_new(struct hfd_router **ret_router) {
        struct hfd_router *router = calloc(1, sizeof *router);

        if (!router)
                return -ENOMEM;
        *ret_router = router;
        return 0;
}

struct hfd_router *hfd_router_free(struct hfd_router *router) {
        if (!router)
                return NULL;
        for (size_t i = 0; i < router->n_routes; i++)
                free(router->routes[i].path);
        free(router->routes);
        free(router);
        return NULL;
}

/* Fills in `first`. The route "/" has no second byte. It is the shortest and so the last; each
 * search may end there. */
static void find_firsts(struct hfd_router *router) {
        for (size_t c = 0; c < 256; c++) {
                size_t i = 0;

                while (i < router->n_routes && router->routes[i].n > 1 &&
                       (unsigned char)router->routes[i].path[1] != c)
                        i++;
                router->first[c] = i;
        }
}

int hfd_router_add(struct hfd_router *router, const char *path, hfd_http_handler handler,
                   void *ctx) {
        size_t n, at = 0;
        struct route *routes;
        char *copy;

        if (!router || !path || path[0] != '/' || !handler)
                return -EINVAL;
        n = strlen(path);
        for (size_t i = 0; i < router->n_routes; i++)
                if (strcmp(router->routes[i].path, path) == 0)
                        return HF_E_EXISTS;
        routes = realloc(router->routes, (router->n_routes + 1) * sizeof *routes);
        if (!routes)
                return -ENOMEM;
        router->routes = routes;
        copy = strdup(path);
        if (!copy)
                return -ENOMEM;
        while (at < router->n_routes && routes[at].n >= n) /* after routes of the same length */
                at++;
        memmove(routes + at + 1, routes + at, (router->n_routes - at) * sizeof *routes);
        routes[at] = (struct route){.path = copy, .n = n, .handler = handler, .ctx = ctx};
        router->n_routes++;
        find_firsts(router);
        return 0;
}

int hfd_router_find(const struct hfd_router *router, const char *path,
                    hfd_http_handler *ret_handler, void **ret_ctx) {
        size_t n = strlen(path);
        unsigned char second = (unsigned char)path[n > 0]; /* of an empty path, its NUL */

        for (size_t i = router->first[second]; i < router->n_routes; i++) {
                const struct route *route = &router->routes[i];
                bool is_prefix = route->n > 1 && route->path[route->n - 1] == '/';

                /* The last byte is compared for speed: each request comes here. */
                if (route->n > n || (!is_prefix && route->n != n) ||
                    route->path[route->n - 1] != path[route->n - 1] ||
                    memcmp(route->path, path, route->n) != 0)
                        continue;
                *ret_handler = route->handler;
                *ret_ctx = route->ctx;
                return 0;
        }
        return HF_E_NOT_FOUND;
}
