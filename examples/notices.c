/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A control plane of its own: a kind, Notice, and the controller that makes it work. The controller
 * keeps spec.copies ConfigMaps with the text of each Notice, and the status says how many there
 * are. The text of a deleted Notice is first written into the ConfigMap "archive" of its namespace;
 * a finalizer keeps the Notice until then. The garbage collector deletes its copies.
 * docs/embedding.md explains it.
 *
 *      cc notices.c $(pkg-config --cflags --libs libholdfast libcurl libcjson) -o notices
 *      ./notices IDENTITY [--unfenced] [KUBECONFIG]
 *
 * The controller's fenced writes need holdfastd. With --unfenced any Kubernetes API server will do.
 */
#include <cjson/cJSON.h>
#include <curl/curl.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/operator.h>

#define COPIES_MAX 16 /* the maximum in the definition below */

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

/* A ConfigMap with this label and one value, as text. NULL: out of memory. */
static char *configmap(const char *label, const char *key, const char *value) {
        cJSON *object = cJSON_CreateObject(), *meta = cJSON_AddObjectToObject(object, "metadata");

        cJSON_AddStringToObject(object, "apiVersion", "v1");
        cJSON_AddStringToObject(object, "kind", "ConfigMap");
        cJSON_AddStringToObject(cJSON_AddObjectToObject(meta, "labels"), "notice", label);
        cJSON_AddStringToObject(cJSON_AddObjectToObject(object, "data"), key, value);
        char *text = cJSON_PrintUnformatted(object);
        cJSON_Delete(object);
        return text;
}

/* The spec of a Notice. The caller frees *ret_text, a copy. */
static int read_spec(const struct hf_operator_work *work, char **ret_text, int *ret_copies) {
        cJSON *object = cJSON_Parse(hf_operator_object(work, NULL));
        const cJSON *spec = cJSON_GetObjectItemCaseSensitive(object, "spec");
        const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(spec, "text"));

        *ret_copies = (int)cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(spec, "copies"));
        *ret_text = text ? strdup(text) : NULL;
        cJSON_Delete(object);
        return *ret_text ? 0 : -ENOMEM;
}

/* Writes one copy, or deletes it if the Notice wants fewer. HF_E_EXISTS: an object that is not the
 * Notice's has that name. */
static int do_copy(struct hf_operator_work *work, int i, int n_copies, const char *text) {
        char name[HF_NAME_MAX + 16];

        (void)snprintf(name, sizeof name, "%s-%d", hf_operator_name(work), i);
        if (i >= n_copies)
                return hf_operator_delete(work, configmaps, name);
        char *body = configmap("copy", "text", text);
        int r = body ? hf_operator_upsert(work, configmaps, name, body) : -ENOMEM;
        free(body);
        return r;
}

/* Reports in the status whether the copies are there. result: 0, or why one could not be
 * written. */
static int report(struct hf_operator_work *work, int result, int n_copies) {
        struct hf_condition ready = {.size = sizeof ready,
                                     .type = "Ready",
                                     .status = "True",
                                     .reason = "Copied"};
        char status[40], message[sizeof hf_operator_status(work)->message];

        if (result == 0) {
                (void)snprintf(status, sizeof status, "{\"copies\":%d}", n_copies);
                return hf_operator_report(work, status, &ready);
        }
        (void)snprintf(message, sizeof message, "%s", hf_operator_status(work)->message);
        hf_operator_event(work, HF_RECORDER_WARNING, "NotCopied", "%s", message);
        ready.status = "False";
        ready.reason = "NotCopied";
        ready.message = message;
        return hf_operator_report(work, NULL, &ready);
}

static int reconcile(void *ctx, struct hf_operator_work *work, hf_nsec *ret_again) {
        char *text = NULL;
        int n_copies = 0;

        int r = read_spec(work, &text, &n_copies);
        for (int i = 0; i < COPIES_MAX && r == 0; i++)
                r = do_copy(work, i, n_copies, text);
        free(text);
        if (r != 0 && r != HF_E_EXISTS) /* the reconciler is called again for this object */
                return r;
        int reported = report(work, r, n_copies);
        return r != 0 ? r : reported;
}

/* Archives the text of a deleted Notice. */
static int finalize(void *ctx, struct hf_operator_work *work) {
        char *text = NULL, *body = NULL;
        int n_copies = 0;

        int r = read_spec(work, &text, &n_copies);
        if (r == 0) {
                body = configmap("archive", hf_operator_name(work), text);
                r = body ? hf_operator_merge(work, configmaps, "archive", body) : -ENOMEM;
        }
        if (r == 0)
                hf_operator_event(work, HF_RECORDER_NORMAL, "Archived",
                                  "the text is in the ConfigMap archive");
        free(body);
        free(text);
        return r;
}

/* Contends for the Lease, and leads, until SIGTERM. */
static int work_until_term(const struct hf_host *host, const struct hf_operator_config *config,
                           const sigset_t *mask, struct hf_status *status) {
        struct hf_operator *op = NULL;
        int number;

        int r = hf_operator_new(host, config, &op, status);
        if (r == 0)
                r = hf_operator_start(op, status);
        if (r == 0) {
                (void)sigwait(mask, &number);
                r = hf_operator_stop(op, status);
        }
        if (r == HF_E_STUCK) /* one of our functions still runs: nothing may be freed */
                _Exit(70);
        hf_operator_free(op);
        return r;
}

int main(int argc, char **argv) {
        const int unfenced = argc > 2 && strcmp(argv[2], "--unfenced") == 0;
        const struct hf_host host = {.size = sizeof host};
        const struct hf_operator_owned copies = {.size = sizeof copies,
                                                 .resource = configmaps,
                                                 .query = "labelSelector=notice%3Dcopy"};
        struct hf_operator_config config = {.size = sizeof config,
                                            .name = "notices",
                                            .ns = "default",
                                            .identity = argv[argc > 1],
                                            .resource = notices,
                                            .kind = "Notice",
                                            .finalizer = "example.com/archive",
                                            .owned = &copies,
                                            .n_owned = 1,
                                            .n_workers = 4,
                                            .timing = {.lease_duration = 6 * HF_NSEC_PER_SEC,
                                                       .renew_deadline = 3 * HF_NSEC_PER_SEC,
                                                       .retry_period = 1 * HF_NSEC_PER_SEC},
                                            .unfenced = unfenced,
                                            .reconcile = reconcile,
                                            .finalize = finalize};
        struct hf_status status = {0};
        char text[sizeof definition];
        sigset_t mask;

        if (argc < 2) {
                fprintf(stderr, "usage: notices IDENTITY [--unfenced] [KUBECONFIG]\n");
                return 2;
        }
        /* In C the definition is easier to read with ' in place of ". */
        for (size_t i = 0; i < sizeof text; i++)
                text[i] = (char)(definition[i] == '\'' ? '"' : definition[i]);
        config.definition = text;
        sigemptyset(&mask);
        sigaddset(&mask, SIGTERM);
        sigprocmask(SIG_BLOCK, &mask, NULL);
        signal(SIGPIPE, SIG_IGN);
        curl_global_init(CURL_GLOBAL_ALL);
        int r = hf_rest_client_from_kubeconfig(&host, argv[unfenced ? 3 : 2], &config.client,
                                               &status);
        if (r == 0)
                r = work_until_term(&host, &config, &mask, &status);
        if (r != 0)
                fprintf(stderr, "notices: %s %s\n", hf_strerror(r), status.message);
        hf_client_free(config.client);
        curl_global_cleanup();
        return r != 0;
}
