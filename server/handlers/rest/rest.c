/* SPDX-License-Identifier: Apache-2.0 */
/*
 * From HTTP to the registry and back:
 *
 *      hfd_rest_handle -> handle_resource -> serve_resource:
 *              fill_request, then hfd_registry_serve (a watch: hfd_rest_watch)
 *                                        ... on_done -> hfd_rest_respond
 *
 * If the body of a write exceeds HFD_LARGE_BODY, serve_resource runs on a thread of the pool.
 * Reviews, requests for tokens and reports (component_status.h) are not stored: serve_resource
 * handles them without hfd_registry_serve.
 *
 * handle_resource creates the struct hfd_rest_request, which keeps everything that the registry
 * borrows: the HTTP request with its body, the fence (holdfast/fence.h), the options. on_done
 * responds and frees the struct. rest_watch.c handles watches, and rest_list.c sends large lists.
 *
 * Invariant: exactly one response is sent for each request. A request that fill_request refuses
 * gets its response at once and never reaches the registry.
 */
#include "server/handlers/rest/rest.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/filters/audited.h"
#include "server/filters/authorization.h"
#include "server/filters/request_context.h"
#include "server/handlers/documents/documents.h"
#include "server/handlers/negotiation.h"
#include "server/handlers/rest/remote_group.h"
#include "server/handlers/rest/rest_body.h"
#include "server/handlers/rest/rest_list.h"
#include "server/handlers/rest/rest_watch.h"
#include "server/handlers/reviews/component_status.h"
#include "server/handlers/reviews/review.h"
#include "server/handlers/reviews/token_request.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/large_work.h"
#include "server/registry/list/read.h"
#include "server/registry/unstored.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/custom/custom_table.h"
#include "server/resources/rows/resource_table.h"
#include "server/service_accounts/service_accounts.h"

#define FENCE_HEADER "holdfast-fence" /* HF_FENCE_HEADER, in lower case */

/* ---- responses ---- */

static void send_response(struct hfd_rest_request *rest, const struct hfd_response *response) {
        bool failed = response->status.error != 0;
        const struct hfd_admission_notes *notes = &rest->request.notes;

        hfd_audited_annotations(rest->http_request, notes->annotations.data, notes->annotations.n);
        hfd_rest_respond(rest->http_request, &rest->request, response,
                         failed ? NULL : rest->request.options.strict.lines.data);
        hfd_rest_free(rest);
}

/* A large response that is to become protobuf. A struct hfd_response is large itself, because it
 * has room for a message, so it is not a member of every request. */
struct large_response {
        struct hfd_work_task task; /* must be first */
        struct hfd_rest_request *rest;
        struct hfd_response response;
};

static enum hfd_work_result respond_step(struct hfd_work_task *task) {
        struct large_response *large = (struct large_response *)task;

        send_response(large->rest, &large->response);
        hfd_response_done(&large->response);
        free(large);
        return HFD_WORK_DONE;
}

/* Converts and sends a large response on the pool of threads. False: the pool has stopped, or
 * memory is exhausted. */
static bool respond_on_pool(struct hfd_rest_request *rest, const struct hfd_response *response) {
        struct large_response *large = malloc(sizeof *large);

        if (!large)
                return false;
        *large = (struct large_response){.task = {.step = respond_step,
                                                  .owner = rest->request.owner,
                                                  .long_step = true},
                                         .rest = rest,
                                         .response = *response};
        hf__buf_ref(large->response.body);
        if (hfd_work_submit(rest->registry->work, &large->task))
                return true;
        hfd_response_done(&large->response);
        free(large);
        return false;
}

/* The registry calls this once, when it has handled the request. Thread: any. */
static void on_done(struct hfd_request *request, const struct hfd_response *response) {
        struct hfd_rest_request *rest = (struct hfd_rest_request *)request;

        if (request->list_body) {
                hfd_rest_list_send(rest, request->list_body);
                return;
        }
        bool is_large = request->protobuf && response->body && response->body->n > HFD_LARGE_BODY;
        if (!is_large || !respond_on_pool(rest, response))
                send_response(rest, response);
}

/* ---- a request for a resource ---- */

static bool set_verb(struct hfd_request *request, const char *verb) {
        static const struct {
                const char *name;
                enum hfd_verb verb;
        } verbs[] = {{"get", HFD_GET},
                     {"list", HFD_LIST},
                     {"watch", HFD_WATCH},
                     {"create", HFD_CREATE},
                     {"update", HFD_UPDATE},
                     {"patch", HFD_PATCH},
                     {"delete", HFD_DELETE_OBJECT},
                     {"deletecollection", HFD_DELETE_COLLECTION}};

        for (size_t i = 0; i < sizeof verbs / sizeof verbs[0]; i++)
                if (strcmp(verbs[i].name, verb) == 0) {
                        request->verb = verbs[i].verb;
                        return true;
                }
        return false;
}

/* Whether the server has such a path, for any verb. An object of a namespaced resource has a path
 * in its namespace only. The collection also has one without a namespace, with two exceptions: the
 * collection of a review has none, and that of custom resources has one only for the verbs that may
 * span namespaces. A review has no name, unless it is a report. */
static bool is_path_served(const struct hfd_request *request, const struct hfd_request_info *info) {
        const struct hfd_resource *resource = request->resource;

        if (resource->is_review && *info->name && !resource->is_report)
                return false;
        if (!resource->namespaced)
                return !*info->ns;
        if (*info->ns)
                return true;
        return !*info->name && !resource->is_review &&
               (!resource->custom || strcmp(info->verb, "list") == 0 ||
                strcmp(info->verb, "watch") == 0);
}

/*
 * Whether the path allows the verb:
 *
 *  - A token, a binding and an eviction can only be created, in a namespace.
 *  - A report can only be read, and a review can only be created.
 *  - Only a list or a watch may span namespaces.
 *  - Every other subresource can only be read, updated or patched.
 *  - A create has no name in its path; an update or a patch needs one.
 */
static bool is_verb_allowed(const struct hfd_request *request,
                            const struct hfd_request_info *info) {
        if (request->subresource == HFD_SUB_TOKEN || request->subresource == HFD_SUB_BINDING ||
            request->subresource == HFD_SUB_EVICTION)
                return request->verb == HFD_CREATE && *info->ns;
        bool may_span_namespaces = request->verb == HFD_LIST || request->verb == HFD_WATCH;

        if (request->resource->is_report)
                return request->verb == HFD_GET || request->verb == HFD_LIST;
        if (request->resource->is_review && request->verb != HFD_CREATE)
                return false;
        if (request->resource->namespaced && !*info->ns && !may_span_namespaces)
                return false;
        if (request->subresource != HFD_SUB_NONE)
                return request->verb == HFD_GET || request->verb == HFD_UPDATE ||
                       request->verb == HFD_PATCH;
        if (request->verb == HFD_CREATE)
                return !*info->name;
        if (request->verb == HFD_UPDATE || request->verb == HFD_PATCH)
                return *info->name;
        return true;
}

/* Sets resource, subresource, verb and names. False: response is the error (404, 405). */
static bool resolve_request_info(struct hfd_rest_request *rest, const struct hfd_request_info *info,
                                 struct hfd_response *response) {
        struct hfd_request *request = &rest->request;

        request->resource = hfd_custom_table_find(hfd_cacher_table(rest->registry->cacher),
                                                  info->group, info->version, info->resource);
        request->part_of = request->resource;
        if (!request->resource || !is_path_served(request, info) ||
            !hfd_resource_subresource(request->resource, info->subresource,
                                      &request->subresource)) {
                hfd_response_no_such_resource(response);
                return false;
        }
        /* A HEAD is authorized as a read, and then refused: in Kubernetes no path of a built-in
         * resource has a route for this method. Custom resources have no routes in Kubernetes. One
         * handler serves all their paths by the verb, and a HEAD has the verb of a read. */
        if ((strcmp(hfd_http_request_method(rest->http_request), "HEAD") == 0 &&
             !request->resource->custom) ||
            !set_verb(request, info->verb) || !is_verb_allowed(request, info)) {
                hfd_response_not_allowed(response);
                return false;
        }
        assert(strlen(info->ns) < sizeof request->ns && strlen(info->name) < sizeof request->name);
        (void)stpcpy(request->ns, info->ns);
        (void)stpcpy(request->name, info->name);
        if (hfd_resource_of_part(request->subresource)) /* the kind of the body */
                request->resource = hfd_resource_of_part(request->subresource);
        return true;
}

/* text: the value of FENCE_HEADER. False: response is the error (400, 500). */
static bool parse_fence(struct hfd_rest_request *rest, const char *text,
                        struct hfd_response *response) {
        rest->fence = malloc(sizeof *rest->fence);
        if (!rest->fence) {
                hfd_response_no_memory(response);
                return false;
        }
        if (hf_fence_parse(text, strlen(text), rest->fence) != 0) {
                hfd_response_bad_request(response,
                                         "the header " HF_FENCE_HEADER
                                         " is malformed: expected namespace/name;term;identity or "
                                         "namespace/name;term,namespace/name;term;identity");
                return false;
        }
        rest->request.fence = rest->fence;
        return true;
}

/* A client's timeout counts from the arrival of the request, which may have waited for its seats
 * since; the server's own limits count from now. */
static hf_nsec arrival_of(const struct hfd_rest_request *rest) {
        hf_nsec received = hfd_http_request_received_at(rest->http_request);

        return received > 0 ? received : hfd_registry_now(rest->registry);
}

/* The client may shorten the deadlines of a request that arrived at `arrived`, and whose handling
 * began at `began`. As in Kubernetes, 0 does not change them. timeout_s shortens only the deadline
 * of a deletecollection. The deadline of a watch stays: there timeout_s is the time after which the
 * watch ends cleanly. */
static void shorten_deadline(struct hfd_request *request, hf_nsec began, hf_nsec arrived) {
        const struct hfd_options *o = &request->options;
        hf_nsec seconds = o->timeout_s * HF_NSEC_PER_SEC;

        if (request->verb == HFD_WATCH)
                return;
        request->longest_deadline = began + HFD_REGISTRY_ADMISSION_DEADLINE;
        if (o->timeout > 0 && o->timeout < request->longest_deadline - arrived)
                request->longest_deadline = arrived + o->timeout;
        if (o->timeout > 0 && o->timeout < request->deadline - arrived)
                request->deadline = arrived + o->timeout;
        if (request->verb == HFD_DELETE_COLLECTION && seconds > 0 &&
            seconds < request->deadline - arrived)
                request->deadline = arrived + seconds;
}

/*
 * Checks the path, the headers and the query, and converts a body of another format to JSON. The
 * registry parses and validates the object. A client sees only the first failure, so the order of
 * the checks matters. False: response is the error.
 */
static bool fill_request(struct hfd_rest_request *rest, const struct hfd_request_info *info,
                         struct hfd_response *response) {
        struct hfd_http_request *http_request = rest->http_request;
        struct hfd_request *request = &rest->request;
        const char *fence = hfd_http_request_header(http_request, FENCE_HEADER);
        hf_nsec began = hfd_registry_now(rest->registry);

        if (!resolve_request_info(rest, info, response)) {
                if (!request->resource)
                        hfd_remote_group_refuse(rest->registry->cacher, info->group, info->version,
                                                response);
                return false;
        }
        bool is_delete =
                request->verb == HFD_DELETE_OBJECT || request->verb == HFD_DELETE_COLLECTION;
        bool is_patch = request->verb == HFD_PATCH;
        request->body = hfd_http_request_body(http_request, &request->n_body);
        request->agent = hfd_http_request_header(http_request, "user-agent");
        request->deadline = began + (request->verb == HFD_DELETE_COLLECTION
                                             ? HFD_REGISTRY_DELETE_COLLECTION_DEADLINE
                                             : HFD_REGISTRY_DEADLINE);
        if (!hfd_negotiate_format(request, hfd_http_request_header(http_request, "accept"),
                                  response))
                return false;
        /* The body of a delete is optional. */
        bool has_body = request->verb == HFD_CREATE || request->verb == HFD_UPDATE ||
                        (is_delete && request->n_body > 0);
        if (has_body && !hfd_rest_body_decode(rest, is_delete, response))
                return false;
        if (is_patch &&
            !hfd_negotiate_patch(request, hfd_http_request_header(http_request, "content-type"),
                                 response))
                return false;
        if (is_patch && request->patch == HFD_PATCH_APPLY &&
            !hfd_rest_body_decode_apply(rest, response))
                return false;
        /* Only writes are fenced; a read ignores the header. */
        if (fence && (has_body || is_delete || is_patch) && !parse_fence(rest, fence, response))
                return false;
        if (!hfd_options_parse(request, hfd_http_request_query(http_request), response))
                return false;
        shorten_deadline(request, began, arrival_of(rest));
        return true;
}

/* Takes ownership of rest. */
static void serve_review(struct hfd_rest_request *rest) {
        const struct hfd_request_context *request_context = hfd_request_context(rest->http_request);
        const struct hfd_review_context context = {.authorizer = request_context->authorizer,
                                                   .auth = request_context->auth,
                                                   .requester = request_context->requester,
                                                   .resource = rest->request.resource,
                                                   .ns = rest->request.ns};
        struct hfd_response response = {0};

        assert(context.requester); /* the filters keep it for each write; a review is a create */
        hfd_review(&context, rest->request.body, rest->request.n_body, &response);
        hfd_rest_respond(rest->http_request, &rest->request, &response, NULL);
        hfd_response_done(&response);
        hfd_rest_free(rest);
}

/* Takes ownership of rest. */
static void serve_report(struct hfd_rest_request *rest) {
        struct hfd_response response = {0};

        hfd_component_status(rest->registry, &rest->request, &response);
        hfd_rest_respond(rest->http_request, &rest->request, &response, NULL);
        hfd_response_done(&response);
        hfd_rest_free(rest);
}

static void on_token(void *ctx, const struct hfd_response *response) {
        struct hfd_rest_request *rest = ctx;

        hfd_rest_respond(rest->http_request, &rest->request, response, NULL);
        hfd_rest_free(rest);
}

/* Takes ownership of rest. */
static void serve_token(struct hfd_rest_request *rest) {
        const struct hfd_request_context *context = hfd_request_context(rest->http_request);
        const struct hfd_token_request request = {.registry = rest->registry,
                                                  .accounts = context->service_accounts,
                                                  .ns = rest->request.ns,
                                                  .account = rest->request.name,
                                                  .deadline = rest->request.deadline,
                                                  .owner = rest->request.owner,
                                                  .done = on_token,
                                                  .ctx = rest};

        hfd_token_request_serve(&request, rest->request.body, rest->request.n_body);
}

/* ---- admission of objects that are not stored ---- */

/* Takes ownership of rest. */
static void serve_unstored(struct hfd_rest_request *rest) {
        if (rest->request.subresource == HFD_SUB_TOKEN)
                serve_token(rest);
        else
                serve_review(rest);
}

static void refuse_request(struct hfd_rest_request *rest, const struct hfd_response *response) {
        hfd_rest_respond(rest->http_request, &rest->request, response, NULL);
        hfd_rest_free(rest);
}

/* Plug-ins may have changed the object, which becomes the body. Thread: any. */
static void on_admitted(struct hfd_request *request, struct hf__json *object,
                        const struct hfd_response *refusal) {
        struct hfd_rest_request *rest = (struct hfd_rest_request *)request;
        const struct hfd_admission_notes *notes = &request->notes;
        struct hf__strbuf body = {0};
        struct hfd_response response = {0};

        hfd_audited_annotations(rest->http_request, notes->annotations.data, notes->annotations.n);
        if (refusal) {
                refuse_request(rest, refusal);
                return;
        }
        hf__json_print(object, &body);
        hf__json_free(object);
        hf__strbuf_done(&rest->translated);
        rest->translated = body;
        request->body = body.data;
        request->n_body = body.n;
        if (body.error == 0) {
                serve_unstored(rest);
                return;
        }
        hfd_response_no_memory(&response);
        refuse_request(rest, &response);
        hfd_response_done(&response);
}

/* Reviews and requests for tokens pass admission, too. Takes ownership of rest. */
static void admit_unstored(struct hfd_rest_request *rest) {
        struct hfd_request *request = &rest->request;
        struct hfd_response response = {0};
        struct hf__json *object = NULL;
        enum hfd_admit admit = hfd_unstored_is_asked(rest->registry, request, &response);

        if (admit == HFD_ADMIT_SKIP) {
                serve_unstored(rest);
                return;
        }
        if (admit == HFD_ADMIT_ASK)
                object = hfd_review_parse(request->resource, request->body, request->n_body,
                                          &response);
        if (object) {
                hfd_unstored_admit(rest->registry, request, object, on_admitted);
                return;
        }
        refuse_request(rest, &response);
        hfd_response_done(&response);
}

/* Passes the request to the registry, or responds. Takes ownership of rest. */
static void serve_resource(struct hfd_rest_request *rest) {
        struct hfd_response response = {0};

        bool filled = fill_request(rest, hfd_request_info(rest->http_request), &response);
        if (filled && rest->request.verb == HFD_LIST && !rest->request.resource->is_report &&
            !hfd_rest_list_prepare(rest)) {
                hfd_response_no_memory(&response);
                filled = false;
        }
        if (!filled) {
                hfd_rest_respond(rest->http_request, NULL, &response, NULL);
                hfd_response_done(&response);
                hfd_rest_free(rest);
                return;
        }
        if (hfd_request_info(rest->http_request)->mutating && rest->request.n_body > 0)
                hfd_audited_request(rest->http_request, rest->request.body, rest->request.n_body);
        if (rest->request.resource->is_report)
                serve_report(rest);
        else if (rest->request.subresource == HFD_SUB_TOKEN || rest->request.resource->is_review)
                admit_unstored(rest);
        else if (rest->request.verb == HFD_WATCH)
                hfd_rest_watch(rest);
        else
                hfd_registry_serve(rest->registry, &rest->request);
}

/* ---- large bodies ---- */

/* Responds that the pool does not take the request, or that the request is abandoned, and frees
 * rest. r: as for hfd_large_work_refuse. */
static void refuse_large(struct hfd_rest_request *rest, int r) {
        struct hfd_response response = {0};

        hfd_large_work_refuse(r, &response);
        hfd_rest_respond(rest->http_request, NULL, &response, NULL);
        hfd_response_done(&response);
        hfd_rest_free(rest);
}

/* `abandoned` only saves work, so it is read relaxed: a response that comes too late is dropped. */
static enum hfd_work_result serve_step(struct hfd_work_task *task) {
        struct hfd_rest_request *rest =
                (struct hfd_rest_request *)((char *)task - offsetof(struct hfd_rest_request, task));

        rest->request.on_pool = true;
        if (hfd_work_is_cancelled(rest->registry->work, task) ||
            atomic_load_explicit(rest->request.abandoned, memory_order_relaxed))
                refuse_large(rest, HF_E_CANCELED);
        else
                serve_resource(rest);
        return HFD_WORK_DONE;
}

/*
 * Decodes and serves a request with a large body on the pool of threads, because the worker's other
 * connections would wait.
 */
static void serve_on_pool(struct hfd_rest_request *rest) {
        int r;

        rest->task = (struct hfd_work_task){.step = serve_step, .owner = rest->request.owner};
        r = hfd_large_work_submit(rest->registry, &rest->task, true);
        if (r != 0)
                refuse_large(rest, r);
}

/* ---- reads ---- */

static void continue_reads(struct hfd_http_call *call) {
        const struct hfd_rest_request *first =
                (struct hfd_rest_request *)((char *)call - offsetof(struct hfd_rest_request, call));

        hfd_consistent_reads_call_ready_here(first->request.read_space);
}

/* Makes the worker of the first request continue all of the reads. False: the worker will not. */
static bool pass_reads(struct hfd_consistent_read *reads) {
        struct hfd_rest_request *first =
                (struct hfd_rest_request *)((struct hfd_read *)reads)->request;

        first->call.fn = continue_reads;
        return hfd_http_request_call(first->http_request, &first->call);
}

/* Clears the struct. Of the names, which are large, it clears only the first byte. */
static void clear_rest(struct hfd_rest_request *rest) {
        struct hfd_request *request = &rest->request;
        const size_t begin = offsetof(struct hfd_rest_request, request.ns),
                     end = offsetof(struct hfd_rest_request, request.only_uid);

        _Static_assert(offsetof(struct hfd_request, only_uid) - offsetof(struct hfd_request, ns) ==
                               sizeof request->ns + sizeof request->name,
                       "only names are between them");
        memset(rest, 0, begin);
        request->ns[0] = request->name[0] = '\0';
        memset((char *)rest + end, 0, sizeof *rest - end);
}

/* Consumes the caller's reference to the HTTP request. */
static void handle_resource(struct hfd_registry *registry, struct hfd_http_request *http_request,
                            const struct hfd_request_info *info) {
        bool is_get = strcmp(info->verb, "get") == 0;
        size_t n = sizeof(struct hfd_rest_request), n_body;
        struct hfd_rest_request *rest =
                hfd_http_request_allocate(http_request, is_get ? n + sizeof(struct hfd_read) : n);

        if (!rest) {
                struct hfd_response response = {0};
                hfd_response_no_memory(&response);
                hfd_rest_respond(http_request, NULL, &response, NULL);
                hfd_response_done(&response);
                hfd_http_request_unref(http_request);
                return;
        }
        clear_rest(rest);
        rest->request.done = on_done;
        rest->registry = registry;
        rest->http_request = http_request;
        if (is_get) {
                rest->request.read_space = rest + 1; /* allocated above, together with rest */
                rest->request.pass_reads = pass_reads;
                rest->request.thread = hfd_http_request_worker(http_request);
        }
        struct hfd_request_context *context = hfd_request_context(http_request);
        rest->unsent = context->accounts;
        rest->user = context->user;
        rest->request.owner = hfd_work_owner(context->user);
        rest->request.abandoned = &context->departure.gone;
        rest->request.departure = &context->departure;
        rest->request.authorizer = context->authorizer;
        rest->request.requester = context->requester;
        rest->attributes = hfd_request_attributes(context);
        rest->sender = context->sender;
        rest->n_named_groups = context->n_named_groups;
        rest->impersonation_mode = context->impersonation_mode;
        rest->credential = context->credential;
        if (rest->credential)
                rest->account_watches = hfd_service_accounts_watches(context->service_accounts);
        (void)hfd_http_request_body(http_request, &n_body);
        if (n_body > HFD_LARGE_BODY && info->mutating)
                serve_on_pool(rest);
        else
                serve_resource(rest);
}

void hfd_rest_handle(void *ctx, struct hfd_http_request *http_request) {
        const struct hfd_request_info *info = hfd_request_info(http_request);

        assert(ctx && info);
        if (info->is_resource)
                handle_resource(ctx, http_request, info);
        else if (!hfd_remote_group_handle(ctx, http_request))
                hfd_documents_handle(hfd_cacher_table(((struct hfd_registry *)ctx)->cacher),
                                     http_request);
}
