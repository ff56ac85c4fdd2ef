/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API client: calls and watches on a Kubernetes API server, asynchronous, over one port with
 * several implementations (loopback inside holdfastd, REST over HTTP, and the leader's gated and
 * fenced client around either).
 *
 * Thread: any. A callback may run on any thread of the implementation, also before the starting
 * function returns; it must not block. Every started call is answered exactly once. Bodies are
 * JSON.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

struct hf_client;

struct hf_resource {
        const char *group;   /* "" = the core group */
        const char *version; /* "v1" */
        const char *plural;  /* "leases" */
};

/* HF_VERB_DELETE_COLLECTION: name is not set, query selects; the reply is the list of what was
 * deleted, or a Status. */
enum hf_verb {
        HF_VERB_GET,
        HF_VERB_LIST,
        HF_VERB_CREATE,
        HF_VERB_UPDATE,
        HF_VERB_DELETE,
        HF_VERB_DELETE_COLLECTION
};
enum hf_lane {
        HF_LANE_DEFAULT = 0,
        HF_LANE_LEASE = 1,
        HF_LANE_WATCH = 2
}; /* lanes share no connection */

struct hf_request {
        enum hf_verb verb;
        struct hf_resource resource;
        const char *ns;          /* NULL or "" = cluster scope, or all namespaces for a list */
        const char *name;        /* get, update, delete */
        const char *subresource; /* get, update: "status", "finalize"; NULL = the object itself */
        const char *query; /* further query parameters, already encoded ("labelSelector=a%3Db");
                              NULL = none */
        const void *body;  /* create, update: the object; delete: DeleteOptions or NULL. Copied
                              before the call returns */
        size_t n_body;
        const struct hf_fence *fence; /* NULL = unfenced; copied */
        hf_nsec deadline;             /* boot time; 0 = the client's default timeout from now */
        enum hf_lane lane;
};

struct hf_response {
        int error;        /* 0, hf_error or -errno */
        const char *body; /* the object, list or Status; borrowed until the callback returns; may be
                             NULL */
        size_t n_body;
        bool fence_echoed;       /* the server says it compared the fence that was sent */
        struct hf_status status; /* filled when error != 0 */
};
typedef void (*hf_response_fn)(void *ctx, const struct hf_response *reply);

/*
 * Starts a call. 0, -EINVAL, -ENOMEM, HF_E_CLOSED: then done is never called. ret_id (may be NULL)
 * is for hf_client_cancel; it is written before this returns, which may be after done was called:
 * it must not lie in what done frees. Refusals that need no server (the gate's HF_E_NOT_LEADER)
 * come through done like any other.
 */
int hf_client_request(struct hf_client *client, const struct hf_request *request,
                      hf_response_fn done, void *ctx, uint64_t *ret_id);
/* The call's done comes soon with HF_E_CANCELED unless it is answered already; a write may still
 * happen. Never blocks. */
void hf_client_cancel(struct hf_client *client, uint64_t id);

enum hf_event_type { HF_EVENT_ADDED, HF_EVENT_MODIFIED, HF_EVENT_DELETED, HF_EVENT_BOOKMARK };

struct hf_event {
        enum hf_event_type type;
        const char *object; /* JSON; borrowed until the callback returns */
        size_t n_object;
        const char *resource_version; /* of the object; borrowed */
};

struct hf_watch_spec {
        struct hf_resource resource;
        const char *ns;               /* NULL or "" = all namespaces */
        const char *name;             /* NULL = the collection, else one object only */
        const char *query;            /* as in hf_request */
        const char *resource_version; /* events after it; NULL or "" = begin with ADDED for all that
                                         is there */
        bool bookmarks;
        enum hf_lane lane;
};
typedef void (*hf_event_fn)(void *ctx, const struct hf_event *event);
/* Called once, last: HF_E_GONE (list again), 0 (the server ended it, start again), HF_E_CANCELED or
 * another failure. */
typedef void (*hf_watch_end_fn)(void *ctx, int error, const struct hf_status *status);

/* Returns and sets ret_id as hf_client_request does; 0: on_end comes, once. */
int hf_client_watch(struct hf_client *client, const struct hf_watch_spec *spec,
                    hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);
void hf_client_watch_cancel(struct hf_client *client,
                            uint64_t id); /* on_end comes soon with HF_E_CANCELED. Never blocks */

/* Frees the client: everything under way is cancelled and its callbacks have returned. Not from a
 * callback. Accepts NULL. */
struct hf_client *hf_client_free(struct hf_client *client);

/*
 * The blocking form, for controllers: waits for the answer, until token fires (the call is then
 * cancelled and HF_E_CANCELED comes back; a write may have happened). ret_body (may be NULL) is
 * malloc'ed, NUL-terminated, the caller frees it; it is set whenever the server answered success.
 * Not from a callback.
 */
int hf_client_do(struct hf_client *client, const struct hf_request *request,
                 struct hf_cancel *token, char **ret_body, size_t *ret_n,
                 struct hf_status *reterr_status);

/* ---- the REST client: any Kubernetes API server over HTTP ---- */

/*
 * What the server asks for with Retry-After is done here, up to 10 times within the call's
 * deadline: after 429 and 503 for any call, after 5xx other than 504 for reads only, in the lane
 * HF_LANE_LEASE never. What is left comes back with hf_status.retry_after_s. A 401 has the token
 * file read again, and the call sent again if there is another token. No other write is ever sent
 * twice.
 */
struct hf_rest_config {
        size_t size;
        const char *server;             /* "https://127.0.0.1:6443" */
        const char *ca_pem;             /* PEM text; NULL = the system's */
        const char *cert_pem, *key_pem; /* client certificate; NULL = none */
        const char *bearer_token;       /* NULL = none */
        const char *server_name;        /* NULL = the URL's host */
        bool insecure;                  /* skip verification */
        const char *user_agent;         /* NULL = "holdfast" */
        hf_nsec timeout;                /* default for calls; 0 = 30 s */
        /* A file with a bearer token, read again by requests after a minute and upon 401; comes
         * before bearer_token. NULL = none */
        const char *token_file;
};
/* Everything is copied. 0, -errno, HF_E_INVALID with reterr_status saying what is wrong. */
int hf_rest_client_new(const struct hf_host *host, const struct hf_rest_config *config,
                       struct hf_client **ret_client, struct hf_status *reterr_status);
/*
 * From a kubeconfig file (YAML or JSON; the current context; certificates and tokens inline or by
 * file). An exec or auth-provider entry is refused with a line that says so. path NULL = the files
 * of $KUBECONFIG, merged (the first that has a name decides), else ~/.kube/config. HF_E_NOT_FOUND:
 * there is none.
 */
int hf_rest_client_from_kubeconfig(const struct hf_host *host, const char *path,
                                   struct hf_client **ret_client, struct hf_status *reterr_status);

struct hf_in_cluster_config {
        size_t size;
        const char *directory;  /* of the files token, ca.crt, namespace; NULL =
                                   /var/run/secrets/kubernetes.io/serviceaccount */
        const char *user_agent; /* NULL = "holdfast" */
        hf_nsec timeout;        /* default for calls; 0 = 30 s */
};
/*
 * From what a pod finds: the server of KUBERNETES_SERVICE_HOST and _PORT, the service account's CA
 * and token (read again as above). config may be NULL. ret_ns (may be NULL; HF_NAME_MAX + 1 bytes)
 * gets the pod's namespace. HF_E_NOT_FOUND: this is no pod.
 */
int hf_rest_client_in_cluster(const struct hf_host *host, const struct hf_in_cluster_config *config,
                              struct hf_client **ret_client, char *ret_ns,
                              struct hf_status *reterr_status);
