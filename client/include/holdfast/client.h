/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API client: sends requests to a Kubernetes API server and watches its objects. It is
 * asynchronous. Several implementations share this interface: the REST client and the client for an
 * event loop (both below), the loopback client inside holdfastd, and the client that an elector
 * gives to the controllers of a leader.
 *
 * Guarantees: every started request gets exactly one response, and every started watch ends exactly
 * once. Bodies are passed on byte for byte as the server sent them: usually JSON.
 *
 * Thread: any, for every function here. Callbacks run on a thread of the implementation, or on the
 * calling thread if a request is refused at once; possibly before the function that starts the
 * request has returned. So do not hold a lock that a callback takes. A callback must not block: it
 * should pass the result to its owner (with an eventfd or a queue) and return.
 *
 * Errors: as in <holdfast/error.h>. When a function that takes a callback returns an error, it
 * never calls that callback.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <holdfast/api.h>
#include <holdfast/cancel.h>
#include <holdfast/error.h>
#include <holdfast/fence.h>
#include <holdfast/host.h>

#ifdef __cplusplus
extern "C" {
#endif

struct hf_loop; /* <holdfast/loop.h> */

/* Opaque. Created by a constructor of an implementation, freed by hf_client_free. */
struct hf_client;

/* A resource type, as in the paths of the Kubernetes API. All three strings are borrowed. Frozen:
 * these three are what Kubernetes names a resource by. */
struct hf_resource {
        const char *group;   /* "coordination.k8s.io"; NULL or "" = the core group */
        const char *version; /* "v1" */
        const char *plural;  /* "leases" */
};

enum hf_verb {
        HF_VERB_GET,
        HF_VERB_LIST,
        HF_VERB_CREATE,
        HF_VERB_UPDATE,
        HF_VERB_DELETE,
        /* Deletes the objects that hf_request.query selects; hf_request.name is ignored. The
         * response body is the list of the deleted objects, or a Status. After any failure some of
         * them may have been deleted. */
        HF_VERB_DELETE_COLLECTION,
        /* Changes the object by the patch in hf_request.body, whose kind is hf_request.patch. */
        HF_VERB_PATCH
};

/* The kinds of patches, as in Kubernetes. */
enum hf_patch {
        HF_PATCH_MERGE = 0, /* JSON merge patch, RFC 7396 */
        HF_PATCH_JSON,      /* a list of operations, RFC 6902 */
        HF_PATCH_STRATEGIC, /* strategic merge patch, for the built-in kinds */
        /* Server-side apply: creates the object if it does not exist. hf_request.query needs
         * fieldManager=NAME. The loopback client inside holdfastd refuses it. */
        HF_PATCH_APPLY
};

/* Requests of different lanes never share a connection of the REST client, so that the renewal of a
 * Lease does not wait behind a large list. */
enum hf_lane {
        HF_LANE_DEFAULT = 0,
        HF_LANE_LEASE = 1, /* for electors: the client does not wait for Retry-After */
        HF_LANE_WATCH = 2
};

/* A request. Zero is the default of every optional member. The strings, the body and the fence are
 * copied before hf_client_request returns. */
struct hf_request {
        size_t size; /* sizeof(struct hf_request) */
        enum hf_verb verb;
        struct hf_resource resource;
        /* NULL or "" = cluster scope; for a list, all namespaces */
        const char *ns;
        /* the object's name: required for get, update, patch and delete */
        const char *name;
        /* for get, update and patch: "status", "finalize"; NULL = the object itself */
        const char *subresource;
        /* further query parameters, already encoded: "labelSelector=a%3Db"; NULL = none */
        const char *query;
        /* create and update: the object; patch: the patch; required. delete, deletecollection:
         * DeleteOptions, or NULL */
        const void *body;
        size_t n_body; /* bytes */
        /* the leader's fence, for writes; NULL = unfenced */
        const struct hf_fence *fence;
        /* on the boot-time clock; 0 = now plus the client's default timeout */
        hf_nsec deadline;
        enum hf_lane lane;
        enum hf_patch patch; /* for HF_VERB_PATCH */
};

/* A response. The struct and everything it points to are borrowed until the callback returns. */
struct hf_response {
        size_t size;      /* sizeof(struct hf_response) of the client that made it */
        int error;        /* 0, an hf_error or -errno */
        const char *body; /* the object, the list or the Status; may be NULL */
        size_t n_body;    /* bytes */
        /* Whether the server confirmed that it compared the request's fence with the current
         * leader. */
        bool fence_echoed;
        struct hf_status status; /* set when error != 0 */
        /* Only when error != 0: nothing of the request was sent, apart from tries that a server has
         * refused, or earlier tries of a read. So a write was certainly not applied, even if error
         * is HF_E_TIMEOUT or HF_E_CANCELED. An implementation that does not know leaves this
         * member false. */
        bool not_sent;
};
typedef void (*hf_response_fn)(void *ctx, const struct hf_response *response);

/*
 * Starts a request. Calls `done` once with the response. Never blocks.
 *
 * Returns 0 if `done` was or will be called. Otherwise `done` is never called: -EINVAL
 * (request->size is wrong, a required member is missing, or a member is not valid), another -errno,
 * HF_E_CLOSED (the client is stopped). An error that is known without asking the server, such as
 * HF_E_NOT_LEADER from a leader's client, is still reported through `done`.
 *
 * *ret_id (may be NULL) is for hf_client_cancel; 0: the request has ended already. It is written
 * before this function returns, but possibly after `done` was called. It must therefore not be in
 * memory that `done` frees.
 */
HF_MUST_CHECK int hf_client_request(struct hf_client *client, const struct hf_request *request,
                                    hf_response_fn done, void *ctx, uint64_t *ret_id);
/* Cancels a request. Its `done` is called soon, with HF_E_CANCELED unless the request ends for
 * another reason first. A canceled write may have been applied, or may still be applied. Ignores
 * the id of a request that has ended. Never blocks. */
void hf_client_cancel(struct hf_client *client, uint64_t id);

enum hf_event_type { HF_EVENT_ADDED, HF_EVENT_MODIFIED, HF_EVENT_DELETED, HF_EVENT_BOOKMARK };

/* A watch event. The struct and everything it points to are borrowed until the callback returns.
 * Frozen: an event of Kubernetes is a type and an object. */
struct hf_event {
        enum hf_event_type type;
        const char *object;           /* JSON; not NUL-terminated */
        size_t n_object;              /* bytes */
        const char *resource_version; /* the object's */
};

/* What to watch. Zero is the default of every optional member; everything is copied. */
struct hf_watch_spec {
        size_t size; /* sizeof(struct hf_watch_spec) */
        struct hf_resource resource;
        const char *ns;    /* NULL or "" = all namespaces */
        const char *name;  /* watch this one object; NULL = the collection */
        const char *query; /* as in hf_request */
        /* Deliver the events after this resourceVersion. NULL or "": first deliver an ADDED for
         * each object that exists, then all later events. */
        const char *resource_version;
        bool bookmarks; /* ask for BOOKMARK events */
        enum hf_lane lane;
};
typedef void (*hf_event_fn)(void *ctx, const struct hf_event *event);
/* Called exactly once when a watch ends, after its last event. error: 0 (the server ended the
 * stream; watch again from the last resourceVersion), HF_E_GONE (that version is too old; list
 * again), HF_E_CANCELED, or another failure. status is borrowed, and may be NULL. */
typedef void (*hf_watch_end_fn)(void *ctx, int error, const struct hf_status *status);

/* Starts a watch. Never blocks. Returns 0 if on_end was or will be called. Errors and *ret_id (for
 * hf_client_watch_cancel) are as for hf_client_request. The events of a watch are delivered one at
 * a time, in the order in which the server sent them. */
HF_MUST_CHECK int hf_client_watch(struct hf_client *client, const struct hf_watch_spec *spec,
                                  hf_event_fn on_event, hf_watch_end_fn on_end, void *ctx,
                                  uint64_t *ret_id);
/* Cancels a watch. on_end is called soon, with HF_E_CANCELED unless the watch ends for another
 * reason first. Ignores the id of a watch that has ended. Never blocks. */
void hf_client_watch_cancel(struct hf_client *client, uint64_t id);

/* Frees the client. Cancels all of its requests and watches, and blocks until their callbacks have
 * returned. No other thread may be in a function with this client. Must not be called from a
 * callback. Accepts NULL; returns NULL. */
struct hf_client *hf_client_free(struct hf_client *client);

/*
 * The blocking form of hf_client_request, for controllers. Blocks until the response has arrived,
 * or until `token` fires or reaches its deadline. If the token is first, the function cancels the
 * request and returns HF_E_CANCELED; a write may still have been applied. Must not be called from a
 * callback.
 *
 * On success *ret_body (may be NULL) is malloc'ed and NUL-terminated, and the caller frees it;
 * *ret_n (may be NULL) is its length without the NUL. Returns 0, the error of the response,
 * HF_E_CANCELED, or an error of hf_client_request when no request could be started. reterr_status
 * (may be NULL) is set on every failure.
 */
HF_MUST_CHECK int hf_client_do(struct hf_client *client, const struct hf_request *request,
                               struct hf_cancel *token, char **ret_body, size_t *ret_n,
                               struct hf_status *reterr_status);

/*
 * Creates a client whose callbacks run in `loop`. It passes its requests on to `inner`. Both are
 * borrowed. If more than 64 MiB of a watch's events wait for the loop, the watch ends with
 * HF_E_TOO_LARGE. Do not call functions that block the loop's thread, such as hf_client_do, with
 * this client. Returns 0 or -errno.
 *
 * hf_client_free of this client may only be called on the loop's thread. It waits until `inner` has
 * canceled the requests, which does not take long. Then it calls hf_loop_dispatch until all
 * callbacks of this client have been called. hf_loop_dispatch also calls other functions that are
 * queued in the loop. If a callback starts a request or a watch with this client meanwhile, it gets
 * HF_E_CLOSED.
 */
HF_MUST_CHECK int hf_loop_client_new(struct hf_loop *loop, struct hf_client *inner,
                                     struct hf_client **ret_client);

/* ---- the REST client: any Kubernetes API server over HTTP ---- */

#define HF_REST_SERVERS_MAX 16 /* servers of one client */

/*
 * Configuration of the REST client. Zero is the default of every member except size and server. All
 * strings are copied.
 *
 * Retries: when a response has a Retry-After, the client waits and sends the request again, up to
 * 10 times and only within the request's deadline. After 429 it retries any request; after 5xx
 * codes except 504 it retries reads. It never does this in HF_LANE_LEASE. If the request still
 * fails, the response has hf_status.retry_after_s. After a 401 the client reads the token file
 * again, and repeats the request if the token has changed. Apart from 429 and 401, it repeats a
 * write at the same server only after a 503 that proves that nothing was written.
 *
 * What a failed write means: a 503 to a write is HF_E_TIMEOUT, an unknown outcome, because a proxy
 * may send one after it has forwarded the write. Only a 503 with the cause NotApplied in its
 * Status, as holdfastd sends it, is HF_E_UNAVAILABLE, and the client sends the write again. (For a
 * deletecollection neither holds: the cause may concern one of its deletes.) Other 5xx codes and
 * 408 are unknown outcomes too. A 429 is HF_E_TOO_MANY from any server or proxy: a limit on
 * requests refuses them before they are forwarded or processed. All this assumes that no proxy
 * sends a write twice: otherwise any response may belong to the second copy.
 */
struct hf_rest_config {
        size_t size;        /* sizeof(struct hf_rest_config) */
        const char *server; /* required: "https://127.0.0.1:6443" */
        const char *ca_pem; /* PEM text, not a path; NULL = the system's CAs */
        /* client certificate and key, both or neither: PEM text */
        const char *cert_pem, *key_pem;
        const char *bearer_token; /* NULL = none */
        const char *server_name;  /* the name to verify; NULL = the host of the URL */
        bool insecure;            /* do not verify the server; invalid together with ca_pem */
        const char *user_agent;   /* NULL = "holdfast" */
        hf_nsec timeout;          /* default for requests without a deadline; 0 = 30 s */
        /* Path of a file with a bearer token, used instead of bearer_token. NULL = none. The client
         * reads it again after a 401 (at most once a second), and when a request finds that the
         * last reading is a minute old. */
        const char *token_file;
        /*
         * Further instances of the same API server: n_other_servers URLs, which like `server` are
         * all https or all http. Each may serve any request. A request usually begins at the server
         * that responded last; after a 429, 502, 503 or 504 later requests begin at the next one.
         * If the server cannot be reached, refuses the connection or our certificate, has a
         * certificate that we refuse, or breaks the connection before the request was sent, the
         * request goes to the next server at once, within its deadline. A read does so also after
         * 502 and 503, and when its connection breaks later. A request in HF_LANE_LEASE does so
         * also after 429. A write that may have been processed is not sent to a second server.
         */
        const char *const *other_servers;
        size_t n_other_servers; /* less than HF_REST_SERVERS_MAX */
};
/*
 * Creates a client with one thread ("hf-rest"), which runs all callbacks; hf_client_free joins it.
 * `host` is borrowed. May block on the file system to read a token file, but never on the network,
 * because it does not connect yet. Returns 0, -errno, or HF_E_INVALID with the reason in
 * reterr_status (may be NULL).
 */
HF_MUST_CHECK int hf_rest_client_new(const struct hf_host *host,
                                     const struct hf_rest_config *config,
                                     struct hf_client **ret_client,
                                     struct hf_status *reterr_status);
/*
 * Creates a REST client from the current context of a kubeconfig file (YAML or JSON; certificates
 * and tokens inline or as files). The cluster's extension holdfast.dev/servers, {"servers": [URL,
 * ...]}, names the other servers. Refuses settings that it does not support, such as exec and
 * auth-provider, with a message that names the setting.
 *
 * path NULL = the files of $KUBECONFIG, merged as kubectl merges them (the first file that defines
 * a name wins), else ~/.kube/config. Returns HF_E_NOT_FOUND if path is NULL and there is no such
 * file or setting; HF_E_UNAVAILABLE if a file is YAML and libyaml is missing; HF_E_TOO_LARGE if a
 * file is too large as JSON; otherwise as hf_rest_client_new. Blocks on the file system.
 */
HF_MUST_CHECK int hf_rest_client_from_kubeconfig(const struct hf_host *host, const char *path,
                                                 struct hf_client **ret_client,
                                                 struct hf_status *reterr_status);

/* Configuration of a client in a pod. Zero is the default of every member except size. */
struct hf_in_cluster_config {
        size_t size; /* sizeof(struct hf_in_cluster_config) */
        /* The directory of the files token, ca.crt and namespace; NULL =
         * /var/run/secrets/kubernetes.io/serviceaccount */
        const char *directory;
        const char *user_agent; /* NULL = "holdfast" */
        hf_nsec timeout;        /* default for requests without a deadline; 0 = 30 s */
};
/*
 * Creates a REST client for a program in a pod. The server's address is taken from
 * KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT, the CA and the token from the pod's service
 * account. The token file is read again as described above. config may be NULL. The pod's namespace
 * is written to ret_ns (HF_NAME_MAX + 1 bytes; may be NULL).
 *
 * Returns HF_E_NOT_FOUND if the process does not run in a pod; otherwise as hf_rest_client_new.
 * Blocks on the file system.
 */
HF_MUST_CHECK int hf_rest_client_in_cluster(const struct hf_host *host,
                                            const struct hf_in_cluster_config *config,
                                            struct hf_client **ret_client, char *ret_ns,
                                            struct hf_status *reterr_status);

#ifdef __cplusplus
}
#endif
