/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control plane of its own: a kind, Notice, and the controller that makes it work. Of each Notice
 * there are spec.copies ConfigMaps with its text; status says how many. A Notice that is deleted is
 * first written into the ConfigMap "archive" of its namespace: a finalizer keeps it until then. The
 * garbage collector deletes its copies. docs/embedding.md explains it.
 *
 *      cc notices.c $(pkg-config --cflags --libs libholdfast libcurl libcjson) -o notices
 *      ./notices IDENTITY [--unfenced] [KUBECONFIG]
 *
 * Fenced, it needs holdfastd. With --unfenced it works with any Kubernetes API server.
 */
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/condition.h>
#include <holdfast/definition.h>
#include <holdfast/finalizer.h>
#include <holdfast/owned.h>
#include <holdfast/owner.h>
#include <holdfast/reconciler.h>
#include <holdfast/recorder.h>
#include <holdfast/upsert.h>

#define COPIES_MAX 16
#define FINALIZER  "example.com/archive"

static const char definition[] =
        "{'apiVersion':'apiextensions.k8s.io/v1','kind':'CustomResourceDefinition',"
        "'metadata':{'name':'notices.example.com'},'spec':{'group':'example.com',"
        "'scope':'Namespaced','names':{'plural':'notices','singular':'notice','kind':'Notice',"
        "'listKind':'NoticeList'},'versions':[{'name':'v1','served':true,'storage':true,"
        "'subresources':{'status':{}},'additionalPrinterColumns':[{'name':'Copies',"
        "'type':'integer','jsonPath':'.status.copies'},{'name':'Ready','type':'string',"
        "'jsonPath':'.status.conditions[?(@.type==\\\"Ready\\\")].status'}],"
        "'schema':{'openAPIV3Schema':{'type':'object','required':['spec'],'properties':{"
        "'spec':{'type':'object','required':['text'],'properties':{'text':{'type':'string',"
        "'maxLength':1000},'copies':{'type':'integer','minimum':0,'maximum':16,'default':1}}},"
        "'status':{'type':'object','x-kubernetes-preserve-unknown-fields':true}}}}}]}}";

static const struct hf_resource notices = {"example.com", "v1", "notices"};
static const struct hf_resource configmaps = {"", "v1", "configmaps"};
static struct hf_informer *all_notices, *all_copies;
static const char *identity;
static bool unfenced;

/* A Notice that is being reconciled. */
struct notice {
        struct hf_term *term;
        struct hf_recorder *recorder;
        char ns[HF_NAME_MAX + 1], name[HF_NAME_MAX + 1];
        char *object; /* JSON of n bytes */
        size_t n;
        cJSON *json;
        const char *text;
        int copies;
        struct hf_status status; /* of the last request */
};

static cJSON *at(const cJSON *object, const char *a, const char *b) {
        return cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, a), b);
}

/* {"metadata":{...},"data":{key: value}} as text. NULL: out of memory. */
static char *configmap(const char *name, const char *label, const char *key, const char *value) {
        cJSON *object = cJSON_CreateObject(), *meta = cJSON_AddObjectToObject(object, "metadata");

        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "ConfigMap");
        cJSON_AddStringToObject(meta, "name", name);
        cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "labels"), "notice", label);
        cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "data"), key, value);
        char *text = cJSON_PrintUnformatted(object);
        cJSON_Delete(object);
        return text;
}

static struct hf_request request_for(const struct notice *notice, struct hf_resource resource,
                                     const char *name, const char *body) {
        return (struct hf_request){.size = sizeof(struct hf_request),
                                   .resource = resource,
                                   .ns = notice->ns,
                                   .name = name,
                                   .body = body,
                                   .n_body = body ? strlen(body) : 0};
}

/* Brings one copy to its state. HF_E_EXISTS: an object that is not the Notice's has its name. */
static int do_copy(struct notice *notice, int i) {
        struct hf_client *client = hf_term_client(notice->term);
        struct hf_cancel *abort = hf_term_abort(notice->term);
        char name[HF_NAME_MAX + 16], *body = NULL;
        int r;

        (void)snprintf(name, sizeof name, "%s-%d", notice->name, i);
        if (i < notice->copies) {
                body = configmap(name, "copy", "text", notice->text);
                const struct hf_request desired = request_for(notice, configmaps, name, body);
                r = body ? hf_owned_upsert(client, &desired, notice->object, notice->n, abort, NULL,
                                           &notice->status)
                         : -ENOMEM;
        } else {
                const struct hf_request named = request_for(notice, configmaps, name, NULL);
                r = hf_informer_get(all_copies, notice->ns, name, &body, NULL);
                if (r == 0)
                        r = hf_owned_delete(client, &named, notice->object, notice->n, abort,
                                            &notice->status);
                if (r == HF_E_NOT_FOUND)
                        r = 0;
        }
        free(body);
        return r;
}

/* Writes the status if it differs: result is that of the copies. */
static int report(struct notice *notice, int result) {
        const double generation = cJSON_GetNumberValue(at(notice->json, "metadata", "generation"));
        const struct hf_condition ready = {.size = sizeof ready,
                                           .type = "Ready",
                                           .status = result == 0 ? "True" : "False",
                                           .reason = result == 0 ? "Copied" : "NotCopied",
                                           .message = result == 0 ? "" : notice->status.message,
                                           .observed_generation = (int64_t)generation};
        cJSON *status = cJSON_GetObjectItemCaseSensitive(notice->json, "status");
        char *text, *body = NULL;

        if (!status)
                status = cJSON_AddObjectToObject(notice->json, "status");
        if (result == 0) {
                cJSON_DeleteItemFromObjectCaseSensitive(status, "copies");
                cJSON_AddNumberToObject(status, "copies", notice->copies);
        }
        text = cJSON_PrintUnformatted(notice->json);
        int r = text ? hf_condition_set(hf_term_host(notice->term), text, strlen(text), &ready,
                                        &body, NULL)
                     : -ENOMEM;
        free(text);
        if (r != 0)
                return r;
        struct hf_request request = request_for(notice, notices, notice->name, body);
        request.subresource = "status";
        r = hf_upsert(hf_term_client(notice->term), &request, hf_term_abort(notice->term), NULL,
                      NULL, &notice->status);
        free(body);
        return r;
}

static int put_finalizer(struct notice *notice, bool present) {
        char *body = NULL;
        int r = hf_finalizer_set(notice->object, notice->n, FINALIZER, present, &body, NULL);

        if (r != 0)
                return r;
        struct hf_request request = request_for(notice, notices, notice->name, body);
        request.verb = HF_VERB_UPDATE;
        r = hf_client_do(hf_term_client(notice->term), &request, hf_term_abort(notice->term), NULL,
                         NULL, &notice->status);
        free(body);
        return r;
}

/* Archives the text of a deleted Notice, and then removes the finalizer. */
static int archive(struct notice *notice) {
        char *body = configmap("archive", "archive", notice->name, notice->text);
        const struct hf_request request = request_for(notice, configmaps, "archive", body);

        int r = body ? hf_upsert(hf_term_client(notice->term), &request,
                                 hf_term_abort(notice->term), NULL, NULL, &notice->status)
                     : -ENOMEM;
        free(body);
        if (r != 0)
                return r;
        hf_recorder_event(notice->recorder, notice->object, notice->n, HF_RECORDER_NORMAL,
                          "Archived", "the text is in the ConfigMap archive");
        return put_finalizer(notice, false);
}

static int do_copies(struct notice *notice) {
        int r = 0;

        for (int i = 0; i < COPIES_MAX && r == 0; i++)
                r = do_copy(notice, i);
        if (r != 0 && r != HF_E_EXISTS) /* the reconciler retries the key */
                return r;
        if (r == HF_E_EXISTS)
                hf_recorder_event(notice->recorder, notice->object, notice->n, HF_RECORDER_WARNING,
                                  "NotCopied", "%s", notice->status.message);
        int reported = report(notice, r);
        return r != 0 ? r : reported;
}

/* Brings one Notice to its state. It has its finalizer before it has copies. */
static int reconcile(void *ctx, struct hf_term *term, const char *key, hf_nsec *ret_again) {
        struct notice notice = {.term = term, .recorder = ctx};
        bool has_finalizer = false, is_deleted = false;

        int r = hf_key_split(key, notice.ns, notice.name);
        if (r == 0)
                r = hf_informer_get(all_notices, notice.ns, notice.name, &notice.object, &notice.n);
        if (r == HF_E_NOT_FOUND)
                return 0;
        if (r == 0)
                r = hf_finalizer_check(notice.object, notice.n, FINALIZER, &has_finalizer,
                                       &is_deleted);
        notice.json = cJSON_ParseWithLength(notice.object, notice.n);
        notice.text = cJSON_GetStringValue(at(notice.json, "spec", "text"));
        notice.copies = (int)cJSON_GetNumberValue(at(notice.json, "spec", "copies"));
        if (r == 0 && is_deleted)
                r = has_finalizer ? archive(&notice) : 0;
        else if (r == 0)
                r = has_finalizer ? do_copies(&notice) : put_finalizer(&notice, true);
        cJSON_Delete(notice.json);
        free(notice.object);
        return r;
}

/* A change of a copy is work for its Notice. */
static int map_copy(void *ctx, struct hf_workqueue *queue, enum hf_event_type type, const char *ns,
                    const char *name, const char *object, size_t n) {
        char owner[HF_NAME_MAX + 1], key[HF_KEY_MAX];

        int r = hf_owner_name(object, n, notices.group, "Notice", owner);
        if (r != 0)
                return r;
        (void)snprintf(key, sizeof key, "%s/%s", ns, owner);
        return hf_workqueue_add(queue, key);
}

static int run(struct hf_term *term, void *ctx) {
        const struct hf_recorder_config recorded = {.size = sizeof recorded,
                                                    .client = hf_term_client(term),
                                                    .component = "notices",
                                                    .instance = identity};
        const size_t size = sizeof(struct hf_reconciler_source);
        const struct hf_reconciler_source sources[] = {{.size = size, .informer = all_notices},
                                                       {.size = size,
                                                        .informer = all_copies,
                                                        .map = map_copy}};
        struct hf_reconciler reconciler = {.size = sizeof reconciler,
                                           .name = "notices",
                                           .sources = sources,
                                           .n_sources = 2,
                                           .n_workers = 4,
                                           .reconcile = reconcile};
        struct hf_status status = {0};
        struct hf_recorder *recorder = NULL;
        char text[sizeof definition];

        /* The text above has ' for ", to be readable in C. */
        for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)(definition[i] == '\'' ? '"' : definition[i]);
        int r = hf_definition_establish(hf_term_client(term), text, strlen(text),
                                        hf_term_drain(term), &status);
        if (r == HF_E_CANCELED)
                return 0;
        if (r != 0)
                fprintf(stderr, "notices: %s\n", status.message);
        if (r == 0)
                r = hf_recorder_new(hf_term_host(term), &recorded, &recorder);
        reconciler.ctx = recorder;
        if (r == 0)
                r = hf_reconciler_run(&reconciler, term);
        hf_recorder_free(recorder);
        return r;
}

/* On every instance, so that a standby is warm. */
static int start_informers(const struct hf_host *host, struct hf_client *client) {
        const size_t size = sizeof(struct hf_informer_config);
        const struct hf_informer_config of_notices = {.size = size,
                                                      .client = client,
                                                      .resource = notices};
        const struct hf_informer_config of_copies = {.size = size,
                                                     .client = client,
                                                     .resource = configmaps,
                                                     .query = "labelSelector=notice%3Dcopy"};
        int r = hf_informer_new(host, &of_notices, &all_notices);

        if (r == 0)
                r = hf_informer_new(host, &of_copies, &all_copies);
        if (r == 0)
                r = hf_informer_start(all_notices);
        return r == 0 ? hf_informer_start(all_copies) : r;
}

/* Contends for the Lease, and leads, until SIGTERM. */
static int lead(const struct hf_host *host, struct hf_client *client, const sigset_t *mask,
                struct hf_status *status) {
        const struct hf_controller controller = {.size = sizeof controller,
                                                 .name = "notices",
                                                 .run = run};
        const struct hf_elector_config config = {.size = sizeof config,
                                                 .client = client,
                                                 .ns = "default",
                                                 .name = "notices",
                                                 .identity = identity,
                                                 .unfenced = unfenced,
                                                 .timing = {.lease_duration = 6 * HF_NSEC_PER_SEC,
                                                            .renew_deadline = 3 * HF_NSEC_PER_SEC,
                                                            .retry_period = 1 * HF_NSEC_PER_SEC},
                                                 .controllers = &controller,
                                                 .n_controllers = 1};
        struct hf_electors *electors = NULL;
        int number, r = hf_electors_new(host, &electors);

        if (r == 0)
                r = hf_electors_add(electors, &config, NULL, status);
        if (r == 0)
                r = hf_electors_start(electors, status);
        if (r == 0) {
                (void)sigwait(mask, &number);
                r = hf_electors_stop(electors, status);
        }
        if (r != HF_E_STUCK) /* a stuck controller still uses them */
                hf_electors_free(electors);
        return r;
}

int main(int argc, char **argv) {
        const struct hf_host host = {.size = sizeof host};
        struct hf_client *client = NULL;
        struct hf_status status = {0};
        sigset_t mask;

        if (argc < 2) {
                fprintf(stderr, "usage: notices IDENTITY [--unfenced] [KUBECONFIG]\n");
                return 2;
        }
        identity = argv[1];
        unfenced = argc > 2 && strcmp(argv[2], "--unfenced") == 0;
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        int r = hf_rest_client_from_kubeconfig(&host, argv[unfenced ? 3 : 2], &client, &status);
        if (r == 0)
                r = start_informers(&host, client);
        if (r == 0)
                r = lead(&host, client, &mask, &status);
        if (r != 0)
                fprintf(stderr, "notices: %s %s\n", hf_strerror(r), status.message);
        if (r == HF_E_STUCK)
                _Exit(70);
        hf_informer_free(all_notices);
        hf_informer_free(all_copies);
        hf_client_free(client);
        curl_global_cleanup();
        return r != 0;
}
