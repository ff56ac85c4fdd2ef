/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API client: requests to, and watches on, a Kubernetes API server. It is asynchronous, and one
 * interface over several implementations: the REST client below, the loopback client inside
 * holdfastd, and the client that an elector gives to a leader's controllers.
 *
 * Guarantees: every request that was started gets exactly one response, and every watch that was
 * started ends exactly once. Bodies are JSON, in the bytes that the server sent.
 *
 * Thread: any, for every function here. Callbacks run on a thread of the implementation, and may
 * run before the function that starts the request has returned. A callback must not block: it posts
 * to its owner (an eventfd, a queue) and returns.
 *
 * Errors: as in <holdfast/error.h>. When a function that takes a callback returns an error, it
 * never calls that callback.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

/* Opaque. Made by a constructor of an implementation, freed by hf_client_free. */
struct hf_client;

/* A resource type, as in the paths of the Kubernetes API. All three strings are borrowed. */
struct hf_resource {
        const char *group;   /* "coordination.k8s.io"; "" = the core group */
        const char *version; /* "v1" */
        const char *plural;  /* "leases" */
};

enum hf_verb {
        HF_VERB_GET,
        HF_VERB_LIST,
        HF_VERB_CREATE,
        HF_VERB_UPDATE,
        HF_VERB_DELETE,
        /* Deletes what hf_request.query selects; hf_request.name is ignored. The response is the
         * list of the deleted objects, or a Status. */
        HF_VERB_DELETE_COLLECTION
};

/* Requests of different lanes share no connection, so that the renewal of a Lease never waits
 * behind a large list. */
enum hf_lane {
        HF_LANE_DEFAULT = 0,
        HF_LANE_LEASE = 1, /* for electors: a response is never delayed by a Retry-After */
        HF_LANE_WATCH = 2
};

/* A request. Zero is the default of every optional member. The strings, the body and the fence are
 * copied before hf_client_request returns. */
struct hf_request {
        enum hf_verb verb;
        struct hf_resource resource;
        /* NULL or "" = cluster scope; for a list, all namespaces */
        const char *ns;
        /* the object's name: required for get, update and delete */
        const char *name;
        /* for get and update: "status", "finalize"; NULL = the object itself */
        const char *subresource;
        /* further query parameters, already encoded: "labelSelector=a%3Db"; NULL = none */
        const char *query;
        /* create and update: the object, required. delete: DeleteOptions, or NULL */
        const void *body;
        size_t n_body; /* bytes */
        /* the leader's fence, for writes; NULL = unfenced */
        const struct hf_fence *fence;
        /* boot time; 0 = the client's default timeout from now */
        hf_nsec deadline;
        enum hf_lane lane;
};

/* A response. It and what it points to are borrowed until the callback returns. */
struct hf_response {
        int error;        /* 0, an hf_error or -errno */
        const char *body; /* the object, the list or the Status; may be NULL */
        size_t n_body;    /* bytes */
        /* The server confirms that it compared the request's fence with the current leader. */
        bool fence_echoed;
        struct hf_status status; /* set when error != 0 */
};
typedef void (*hf_response_fn)(void *ctx, const struct hf_response *response);

/*
 * Starts a request; `done` gets its one response. Never blocks.
 *
 * 0: `done` comes. -EINVAL (a required member is missing), -ENOMEM, HF_E_CLOSED (the client is
 * stopped): `done` never comes. A refusal that needs no server, such as HF_E_NOT_LEADER of a
 * leader's client, comes through `done`.
 *
 * *ret_id (may be NULL) is for hf_client_cancel. It is written before this function returns, which
 * may be after `done` was called: it must not be in memory that `done` frees.
 */
int hf_client_request(struct hf_client *client, const struct hf_request *request,
                      hf_response_fn done, void *ctx, uint64_t *ret_id);
/*
 * Asks for the end of a request: its `done` comes soon, with HF_E_CANCELED unless the response was
 * there already. A cancelled write may have happened, or may still happen. An id whose request has
 * ended is ignored. Never blocks.
 */
void hf_client_cancel(struct hf_client *client, uint64_t id);

enum hf_event_type { HF_EVENT_ADDED, HF_EVENT_MODIFIED, HF_EVENT_DELETED, HF_EVENT_BOOKMARK };

/* A watch event. It and what it points to are borrowed until the callback returns. */
struct hf_event {
        enum hf_event_type type;
        const char *object;           /* JSON; not NUL-terminated */
        size_t n_object;              /* bytes */
        const char *resource_version; /* of the object */
};

/* What to watch. Zero is the default of every optional member; everything is copied. */
struct hf_watch_spec {
        struct hf_resource resource;
        const char *ns;    /* NULL or "" = all namespaces */
        const char *name;  /* watch this one object; NULL = the collection */
        const char *query; /* as in hf_request */
        /* The events after this resourceVersion; NULL or "" = first an ADDED for each object that
         * exists, then the events. */
        const char *resource_version;
        bool bookmarks; /* ask for BOOKMARK events */
        enum hf_lane lane;
};
typedef void (*hf_event_fn)(void *ctx, const struct hf_event *event);
/*
 * The end of a watch: called exactly once, after the last event. error: 0 (the server ended the
 * stream; watch again from the last resourceVersion), HF_E_GONE (that version is too old; list
 * again), HF_E_CANCELED, or another failure. status is borrowed, and may be NULL.
 */
typedef void (*hf_watch_end_fn)(void *ctx, int error, const struct hf_status *status);

/*
 * Starts a watch. Never blocks. 0: on_end comes, once. Errors and *ret_id (for
 * hf_client_watch_cancel) are as for hf_client_request. The events of a watch come one at a time
 * and in the server's order.
 */
int hf_client_watch(struct hf_client *client, const struct hf_watch_spec *spec,
                    hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx, uint64_t *ret_id);
/* Asks for the end of a watch: on_end comes soon, with HF_E_CANCELED unless the watch ended before.
 * An id whose watch has ended is ignored. Never blocks. */
void hf_client_watch_cancel(struct hf_client *client, uint64_t id);

/*
 * Frees the client. Cancels all requests and watches under way, and blocks until their callbacks
 * have returned. No other thread may be in a function with this client, and it must not be called
 * from a callback. Accepts NULL; returns NULL.
 */
struct hf_client *hf_client_free(struct hf_client *client);

/*
 * The blocking form of hf_client_request, for controllers. Blocks until the response is there, or
 * until `token` fires (its own deadline included): then it cancels the request and returns
 * HF_E_CANCELED, and a write may have happened. Must not be called from a callback.
 *
 * On success *ret_body (may be NULL) is malloc'ed and NUL-terminated, and the caller frees it;
 * *ret_n (may be NULL) is its length without the NUL. Returns 0, the response's error, or -EINVAL
 * or -ENOMEM when no request could be started; reterr_status (may be NULL) is set on every failure.
 */
int hf_client_do(struct hf_client *client, const struct hf_request *request,
                 struct hf_cancel *token, char **ret_body, size_t *ret_n,
                 struct hf_status *reterr_status);

/* ---- the REST client: any Kubernetes API server over HTTP ---- */

/*
 * Configuration of the REST client. Zero is the default of every member but size and server.
 * Everything is copied.
 *
 * Retries: when the server asks for a pause with Retry-After, the client waits and sends the
 * request again, up to 10 times and within the request's deadline: after 429 and 503 any request,
 * after another 5xx but 504 only reads, in HF_LANE_LEASE nothing. If it still fails, the response
 * has hf_status.retry_after_s. After a 401 the client reads the token file again, and sends the
 * request again if the token is another. It sends no other write twice.
 */
struct hf_rest_config {
        size_t size;        /* sizeof(struct hf_rest_config) */
        const char *server; /* required: "https://127.0.0.1:6443" */
        const char *ca_pem; /* PEM text, not a path; NULL = the system's CAs */
        /* client certificate and key, both or neither: PEM text */
        const char *cert_pem, *key_pem;
        const char *bearer_token; /* NULL = none */
        const char *server_name;  /* to verify in the certificate; NULL = the URL's host */
        bool insecure;            /* do not verify the server; not together with ca_pem */
        const char *user_agent;   /* NULL = "holdfast" */
        hf_nsec timeout;          /* default for requests without a deadline; 0 = 30 s */
        /* Path of a file with a bearer token, used instead of bearer_token. Requests have it read
         * again when the last reading is a minute old, and after a 401. NULL = none. */
        const char *token_file;
};
/*
 * Makes a client with one thread ("hf-rest"), which runs all callbacks; hf_client_free joins it.
 * `host` is borrowed. Blocks for the file system when there is a token file, never for the network:
 * it does not connect. 0, -errno, or HF_E_INVALID with the reason in reterr_status (may be NULL).
 */
int hf_rest_client_new(const struct hf_host *host, const struct hf_rest_config *config,
                       struct hf_client **ret_client, struct hf_status *reterr_status);
/*
 * Makes a REST client from the current context of a kubeconfig file (YAML or JSON; certificates and
 * tokens inline or as files). Refuses what it does not support, such as exec and auth-provider
 * entries, with a message that names it.
 *
 * path NULL = the files of $KUBECONFIG, merged as kubectl merges them (the first file that defines
 * a name wins), else ~/.kube/config. HF_E_NOT_FOUND: path is NULL, and there is no such file or
 * setting. Otherwise as hf_rest_client_new. Blocks for the file system.
 */
int hf_rest_client_from_kubeconfig(const struct hf_host *host, const char *path,
                                   struct hf_client **ret_client, struct hf_status *reterr_status);

/* Configuration of a client in a pod. Zero is the default of every member but size. */
struct hf_in_cluster_config {
        size_t size; /* sizeof(struct hf_in_cluster_config) */
        /* of the files token, ca.crt and namespace; NULL =
         * /var/run/secrets/kubernetes.io/serviceaccount */
        const char *directory;
        const char *user_agent; /* NULL = "holdfast" */
        hf_nsec timeout;        /* default for requests without a deadline; 0 = 30 s */
};
/*
 * Makes a REST client for a program in a pod: the server is that of KUBERNETES_SERVICE_HOST and
 * KUBERNETES_SERVICE_PORT, the CA and the token are the service account's. The token file is read
 * again as described above. config may be NULL. ret_ns (may be NULL, else HF_NAME_MAX + 1 bytes)
 * gets the pod's namespace. HF_E_NOT_FOUND: the process does not run in a pod. Otherwise as
 * hf_rest_client_new. Blocks for the file system.
 */
int hf_rest_client_in_cluster(const struct hf_host *host, const struct hf_in_cluster_config *config,
                              struct hf_client **ret_client, char *ret_ns,
                              struct hf_status *reterr_status);
