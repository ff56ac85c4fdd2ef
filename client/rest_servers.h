/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The servers of a REST client, and the order in which a request tries them.
 *
 * All servers are instances of one API server, so each can serve every request. A request begins
 * at the server `current`. When that server fails, `current` moves to the next one, so `current` is
 * usually the server that responded last. The request that failed may go to the next server that it
 * has not tried yet; rest_servers.c has the rules.
 *
 * Thread: any. The list is immutable. `current` is atomic, and only says where to begin: no other
 * memory depends on it, so all accesses are relaxed. A route belongs to one request.
 */
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/client.h>

struct hf__http_result;

struct hf__rest_servers {
        char **urls; /* owned; "https://host:port/prefix", without a slash at the end */
        size_t n;
        size_t max_url;        /* length of the longest, in bytes */
        bool over_tls;         /* all of them or none */
        atomic_size_t current; /* index of the server at which requests begin */
};

/* Checks `first` and the n_others other URLs, and copies them to *servers, which is all zero
 * before. 0, -ENOMEM, or HF_E_INVALID with the reason in reterr_status. The caller calls
 * hf__rest_servers_done in any case. */
int hf__rest_servers_init(struct hf__rest_servers *servers, const char *first,
                          const char *const *others, size_t n_others,
                          struct hf_status *reterr_status);
void hf__rest_servers_done(struct hf__rest_servers *servers);

/* The way of one request through the servers. */
struct hf__rest_route {
        size_t at;      /* index of the server that is tried */
        unsigned tried; /* one bit per server */
};

/* Begins at the server `current`, and forgets which servers were tried. */
void hf__rest_route_begin(struct hf__rest_route *route, struct hf__rest_servers *servers);
/* Goes to a server that the route has not tried. False: there is none. */
bool hf__rest_route_next(struct hf__rest_route *route, struct hf__rest_servers *servers);
/* Returns how long a try may wait for a connection, so that time is left for the servers that were
 * not tried. Returns 0, for no limit, if this is the last server or no time is left. left: time
 * from the start of the try until the deadline of a request, or until the response header of a
 * watch is due. */
hf_nsec hf__rest_route_connect_timeout(const struct hf__rest_route *route,
                                       const struct hf__rest_servers *servers, hf_nsec left);

/*
 * Call it when a try has failed. If the result shows that the server does not serve now, later
 * requests begin at another one. Returns whether the request may go to the next server at once.
 * left: time until the request's deadline; more than 0 for a watch, as each try has a new deadline.
 */
bool hf__rest_route_failed(const struct hf__rest_route *route, struct hf__rest_servers *servers,
                           const struct hf__http_result *result, bool is_write, enum hf_lane lane,
                           hf_nsec left);
/* Writes `method`, a space, the server's URL and `path` to `what`, which has room for them. */
void hf__rest_route_print(const struct hf__rest_route *route,
                          const struct hf__rest_servers *servers, const char *method,
                          const char *path, char *what);
