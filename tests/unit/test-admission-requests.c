/* SPDX-License-Identifier: Apache-2.0 */
/* Writes that webhooks and policies decide about, in a server whose store is faulty and whose pool
 * of threads is busy. No webhook is called. */
#undef NDEBUG
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "api_core_request.h"
#include "base/arena.h"
#include "base/departure.h"
#include "base/json.h"
#include "base/json_index.h"
#include "base/strbuf.h"
#include "faulty_api_fixture.h"
#include "patience.h"
#include "server/admission/admission.h"
#include "server/admission/policy/policy_plugin.h"
#include "server/admission/webhooks/webhook.h"
#include "server/admission/webhooks/webhooks.h"
#include "server/outbound/outbound.h"
#include "server/pool/work_pool.h"
#include "server/registry/base/admit.h"
#include "server/resources/custom/rules/values/rule_value.h"
#include "server/resources/rows/resource_table.h"

struct admission {
        struct faulty_api_fixture *f;
        struct hfd_admission_chain chain;
        struct hfd_webhooks *webhooks[2];
        struct hfd_policy_plugin *policies[2]; /* mutating, validating */
};

static int set_up(void **state) {
        struct admission *it = calloc(1, sizeof *it);
        void *fixture;

        assert_non_null(it);
        assert_int_equal(faulty_api_fixture_set_up(&fixture), 0);
        it->f = fixture;
        const struct hfd_webhooks_config config = {.cacher = it->f->cacher,
                                                   .pool = it->f->registry->work,
                                                   .max_calls = 1};
        struct hfd_admission_plugin plugin;
        for (int i = 0; i < 2; i++) {
                assert_int_equal(hfd_policy_plugin_new(&it->f->host, it->f->cacher,
                                                       it->f->registry->work, i == 0,
                                                       &it->policies[i]),
                                 0);
                plugin = hfd_policy_plugin_of_chain(it->policies[i]);
                hfd_admission_chain_add(&it->chain, &plugin);
                assert_int_equal(hfd_webhooks_new(&it->f->host, &config, i == 0, &it->webhooks[i]),
                                 0);
                plugin = hfd_webhooks_plugin(it->webhooks[i]);
                hfd_admission_chain_add(&it->chain, &plugin);
        }
        it->chain.cacher = it->f->cacher;
        it->f->registry->admission = &it->chain;
        *state = it;
        return 0;
}

static int tear_down(void **state) {
        struct admission *it = *state;
        void *fixture = it->f;

        assert_int_equal(faulty_api_fixture_tear_down(&fixture), 0);
        for (int i = 0; i < 2; i++) {
                hfd_webhooks_free(it->webhooks[i]);
                hfd_policy_plugin_free(it->policies[i]);
        }
        free(it);
        return 0;
}

/* Sends a request from inside the process. name: of the object of an update. departure: of the
 * client; NULL: it never leaves. Returns the code, or 0 if the message is wrong. */
static int send_for(struct hf__departure *departure, struct admission *it, enum hfd_verb verb,
                    const char *group, const char *plural, const char *ns, const char *name,
                    const char *body, const char *message) {
        struct api_core_request request = {
                .request = {.verb = verb,
                            .resource = hfd_resource_find(group, "v1", plural),
                            .in_process = true,
                            .departure = departure,
                            .body = body,
                            .n_body = strlen(body)}};

        if (!request.request.resource)
                request.request.resource = hfd_resource_find(group, "v1alpha1", plural);
        (void)snprintf(request.request.ns, sizeof request.request.ns, "%s", ns);
        (void)snprintf(request.request.name, sizeof request.request.name, "%s", name);
        (void)api_core_request_run(it->f->registry, &request);
        int code = request.response.status.http_code;
        if (message && !strstr(request.response.status.message, message)) {
                print_message("%s\n", request.response.status.message);
                code = 0;
        }
        hfd_admission_notes_done(&request.request.notes);
        api_response_deinit(&request.response);
        return code;
}

static int create_for(struct hf__departure *departure, struct admission *it, const char *group,
                      const char *plural, const char *ns, const char *body, const char *message) {
        return send_for(departure, it, HFD_CREATE, group, plural, ns, "", body, message);
}

static int create(struct admission *it, const char *group, const char *plural, const char *ns,
                  const char *body, const char *message) {
        return create_for(NULL, it, group, plural, ns, body, message);
}

/* Creates a configuration of admission, and waits until it is in force. */
static void configure(struct admission *it, const char *plural, const char *body) {
        assert_int_equal(create(it, HFD_ADMISSION_GROUP, plural, "", body, NULL), 201);
}

/* A consistent read shows that the cacher has all configurations. */
static void refresh(struct admission *it) {
        assert_int_equal(faulty_api_fixture_request(it->f, HF_VERB_LIST, NULL, NULL, NULL), 0);
        for (size_t i = 0; i < it->chain.n_plugins; i++)
                assert_int_equal(it->chain.plugins[i].refresh(it->chain.plugins[i].ctx), 0);
        atomic_store(&it->chain.ready, true);
}

static void test_a_namespace_of_another_instance_is_known(void **state) {
        struct admission *it = *state;
        const char *map = "{\"metadata\":{\"name\":\"a\"}}";

        configure(it, "validatingadmissionpolicies",
                  "{\"metadata\":{\"name\":\"no\"},\"spec\":{\"matchConstraints\":{"
                  "\"resourceRules\":[{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],"
                  "\"operations\":[\"CREATE\"],\"resources\":[\"configmaps\"]}]},"
                  "\"validations\":[{\"expression\":\"namespaceObject.metadata.name != 'guarded'\","
                  "\"message\":\"it is guarded\"}]}}");
        configure(it, "validatingadmissionpolicybindings",
                  "{\"metadata\":{\"name\":\"no\"},\"spec\":{\"policyName\":\"no\","
                  "\"validationActions\":[\"Deny\"],\"matchResources\":{\"namespaceSelector\":{"
                  "\"matchLabels\":{\"guard\":\"on\"}}}}}");
        refresh(it);
        faulty_store_drop_events_for_good(&it->f->store);
        faulty_api_fixture_put(it->f, "/registry/namespaces/guarded",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"guarded\",\"labels\":{\"guard\":\"on\"}}}");
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        assert_int_equal(create(it, "", "configmaps", "guarded", map, "it is guarded"), 422);
        assert_int_equal(create(it, "", "configmaps", "free", map, NULL), 201);
        assert_int_equal(create(it, "", "configmaps", "none", map, "namespaces \"none\" not found"),
                         404);
}

/* ---- before the configuration is known ---- */

static bool wants_all(void *ctx, const struct hfd_admission_attributes *of) { return true; }

static void refuse_all(void *ctx, struct hfd_admission *a) {
        struct hfd_response response = {0};

        hfd_response_status(&response, HF_E_FORBIDDEN, 403, "Forbidden", "the plug-in says no",
                            NULL);
        hfd_admission_refuse(a, &response);
}

/* Sends a create of a client. Returns as send_for. */
static int create_as_client(struct admission *it, const char *group, const char *plural,
                            const char *message) {
        static const struct hfd_requester client = {.subject = {.name = "someone"}};
        static const char body[] = "{\"metadata\":{\"name\":\"a\"}}";
        struct api_core_request request = {
                .request = {.verb = HFD_CREATE,
                            .resource = hfd_resource_find(group, "v1", plural),
                            .ns = "free",
                            .requester = &client,
                            .body = body,
                            .n_body = sizeof body - 1}};

        (void)api_core_request_run(it->f->registry, &request);
        int code = request.response.status.http_code;
        if (!strstr(request.response.status.message, message)) {
                print_message("%s\n", request.response.status.message);
                code = 0;
        }
        hfd_admission_notes_done(&request.request.notes);
        api_response_deinit(&request.response);
        return code;
}

/* A plug-in in C has no configuration, so it is asked about whatever is written so early. */
static void test_a_plugin_without_configuration_is_asked_from_the_beginning(void **state) {
        const struct hfd_admission_plugin plugin = {.name = "no",
                                                    .wants = wants_all,
                                                    .validate = refuse_all};
        struct admission *it = *state;
        const char *a = "{\"metadata\":{\"name\":\"a\"}}", *no = "the plug-in says no";

        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        assert_int_equal(create_as_client(it, "coordination.k8s.io", "leases", ""), 201);
        hfd_admission_chain_add(&it->chain, &plugin);
        assert_int_equal(create_as_client(it, "", "configmaps", "is not yet known"), 503);
        assert_int_equal(create_as_client(it, "coordination.k8s.io", "leases", no), 403);
        assert_int_equal(create(it, "", "configmaps", "free", a, no), 403);
}

/* ---- the namespace ---- */

/* How often a Namespace was parsed. */
static atomic_int n_parsed;

struct hf__json *__real_hfd_object_parse(const struct hfd_object *object);
struct hf__json *__wrap_hfd_object_parse(const struct hfd_object *object);
struct hf__json *__wrap_hfd_object_parse(const struct hfd_object *object) {
        atomic_fetch_add(&n_parsed, object->resource == hfd_resource_namespaces());
        return __real_hfd_object_parse(object);
}

#define SELECTING(name)                                                                            \
        "{\"name\":\"" name ".example.com\",\"admissionReviewVersions\":[\"v1\"],"                 \
        "\"sideEffects\":\"None\",\"clientConfig\":{\"url\":\"https://127.0.0.1:1/\"},"            \
        "\"namespaceSelector\":{\"matchLabels\":{\"guard\":\"on\"}},\"rules\":[{\"apiGroups\":["   \
        "\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],\"resources\":["               \
        "\"configmaps\"]}]}"

/* Selectors read the labels that the cached Namespace keeps: it is not parsed for each of them. */
static void test_selectors_do_not_parse_the_namespace(void **state) {
        struct admission *it = *state;

        configure(it, "validatingwebhookconfigurations",
                  "{\"metadata\":{\"name\":\"v\"},\"webhooks\":[" SELECTING("a") "," SELECTING(
                          "b") "," SELECTING("c") "]}");
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\",\"labels\":{\"guard\":\"off\"}}}");
        atomic_store(&n_parsed, 0);
        assert_int_equal(create(it, "", "configmaps", "free", "{\"metadata\":{\"name\":\"a\"}}",
                                NULL),
                         201);
        assert_int_equal(atomic_load(&n_parsed), 0);
}

/* A workspace with n labels. */
static char *workspace(const char *name, int n) {
        struct hf__strbuf out = {0};

        hf__strbuf_printf(&out, "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"a\":\"b\"", name);
        for (int i = 0; i < n; i++)
                hf__strbuf_printf(&out, ",\"l%d\":\"x\"", i);
        hf__strbuf_puts(&out, "}}}");
        assert_int_equal(out.error, 0);
        return out.data;
}

/* How often the labels of a large object were put into an index. */
static atomic_int n_indexed;

int __real_hf__json_index_init(struct hf__json_index *index, const struct hf__json *container,
                               const char *key);
int __wrap_hf__json_index_init(struct hf__json_index *index, const struct hf__json *container,
                               const char *key);
int __wrap_hf__json_index_init(struct hf__json_index *index, const struct hf__json *container,
                               const char *key) {
        atomic_fetch_add(&n_indexed, hf__json_get(container, "l499") != NULL);
        return __real_hf__json_index_init(index, container, key);
}

#define BY_LABELS                                                                                  \
        "\"objectSelector\":{\"matchLabels\":{\"none\":\"x\"}},"                                   \
        "\"namespaceSelector\":{\"matchLabels\":{\"none\":\"x\"}}"
#define FOR_WORKSPACES                                                                             \
        "{\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],\"operations\":[\"*\"],"                   \
        "\"resources\":[\"workspaces\",\"configmaps\"]}"
#define LABELED(name)                                                                              \
        "{\"metadata\":{\"name\":\"" name "\"},\"webhooks\":[{\"name\":\"a.example.com\","         \
        "\"admissionReviewVersions\":[\"v1\"],\"sideEffects\":\"None\",\"clientConfig\":{"         \
        "\"url\":\"https://127.0.0.1:1/\"}," BY_LABELS ",\"rules\":[" FOR_WORKSPACES "]}]}"
#define LABELED_POLICY(name, does)                                                                 \
        "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"matchConstraints\":{" BY_LABELS         \
        ",\"resourceRules\":[" FOR_WORKSPACES "]}," does "}}"
#define BOUND(name) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"policyName\":\"" name "\""

static void configure_by_labels(struct admission *it, const char *const *bodies) {
        static const char *const plurals[] = {"mutatingadmissionpolicies",
                                              "mutatingadmissionpolicybindings",
                                              "mutatingwebhookconfigurations",
                                              "validatingadmissionpolicies",
                                              "validatingadmissionpolicybindings",
                                              "validatingwebhookconfigurations"};

        for (size_t i = 0; i < sizeof plurals / sizeof plurals[0]; i++)
                configure(it, plurals[i], bodies[i]);
}

#define BY_ALL(name)                                                                               \
        {                                                                                          \
                LABELED_POLICY(name,                                                               \
                               "\"reinvocationPolicy\":\"Never\",\"mutations\":[{\"patchType\":"   \
                               "\"ApplyConfiguration\",\"applyConfiguration\":{\"expression\":"    \
                               "\"Object{}\"}}]"),                                                 \
                        BOUND(name) "}}", LABELED(name),                                           \
                        LABELED_POLICY(name, "\"validations\":[{\"expression\":\"true\"}]"),       \
                        BOUND(name) ",\"validationActions\":[\"Deny\"]}}", LABELED(name)           \
        }

/* How often the labels are indexed for three requests: for those of a new object, for the old ones
 * of an update, and for those of the Namespace. */
struct n_indexed {
        int new, old, ns;
};

static struct n_indexed count_indexed(struct admission *it, const char *name) {
        char *labeled = workspace(name, 500), *plain = workspace(name, 0), map[100];
        struct n_indexed n;

        atomic_store(&n_indexed, 0);
        assert_int_equal(create(it, "tenancy.holdfast.dev", "workspaces", "", labeled, NULL), 201);
        n.new = atomic_exchange(&n_indexed, 0);
        assert_int_equal(send_for(NULL, it, HFD_UPDATE, "tenancy.holdfast.dev", "workspaces", "",
                                  name, plain, NULL),
                         200);
        n.old = atomic_exchange(&n_indexed, 0);
        /* Only if the object is selected the Namespace is looked at. */
        (void)snprintf(map, sizeof map,
                       "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"none\":\"x\"}}}", name);
        assert_int_equal(create(it, "", "configmaps", "labeled", map, NULL), 201);
        n.ns = atomic_exchange(&n_indexed, 0);
        free(labeled);
        free(plain);
        return n;
}

/* However many webhooks and policies select by them. */
static void test_the_labels_of_a_request_are_indexed_once(void **state) {
        static const char *const first[] = BY_ALL("a"), *const second[] = BY_ALL("b"),
                                 *const third[] = BY_ALL("c");
        struct admission *it = *state;
        char *ns = workspace("labeled", 500);

        configure_by_labels(it, first);
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/labeled", ns);
        const struct n_indexed one = count_indexed(it, "one");
        assert_in_range(one.new, 4, 100); /* once for each plug-in */
        assert_in_range(one.old, 4, 100);
        assert_in_range(one.ns, 4, 100);
        configure_by_labels(it, second);
        configure_by_labels(it, third);
        refresh(it);
        const struct n_indexed three = count_indexed(it, "two");
        assert_int_equal(three.new, one.new);
        assert_int_equal(three.old, one.old);
        assert_int_equal(three.ns, one.ns);
        free(ns);
}

/* ---- annotations ---- */

/* How many long values were kept for annotations. */
enum { LONG_VALUE = 10240 }; /* the longest */
static atomic_int n_long_values;

void __real_hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n);
void __wrap_hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n);
void __wrap_hf__strbuf_add(struct hf__strbuf *s, const void *data, size_t n) {
        atomic_fetch_add(&n_long_values, n == LONG_VALUE);
        __real_hf__strbuf_add(s, data, n);
}

/* An annotation of more than 64 KiB is dropped, so no more of its values need to be kept, however
 * many params make one. */
static void test_values_of_an_annotation_that_is_too_long_are_not_kept(void **state) {
        enum { N_PARAMS = 40, FIT = HFD_ADMISSION_ANNOTATIONS_MAX / LONG_VALUE };
        struct admission *it = *state;
        char key[100], params[200];
        struct hf__strbuf body = {0};

        configure(it, "validatingadmissionpolicies",
                  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"paramKind\":{\"apiVersion\":\"v1\","
                  "\"kind\":\"ConfigMap\"},\"matchConstraints\":{\"resourceRules\":[" FOR_WORKSPACES
                  "]},\"auditAnnotations\":[{\"key\":\"k\",\"valueExpression\":"
                  "\"string(params.metadata.name) + "
                  "string(object.metadata.annotations.text)\"}]}}");
        configure(it, "validatingadmissionpolicybindings",
                  "{\"metadata\":{\"name\":\"a\"},\"spec\":{\"policyName\":\"a\","
                  "\"validationActions\":[\"Deny\"],\"paramRef\":{\"namespace\":\"default\","
                  "\"selector\":{},\"parameterNotFoundAction\":\"Deny\"}}}");
        for (int i = 0; i < N_PARAMS; i++) {
                (void)snprintf(key, sizeof key, "/registry/configmaps/default/p%d", i);
                (void)snprintf(params, sizeof params,
                               "{\"kind\":\"ConfigMap\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"p%d\",\"namespace\":\"default\"}}",
                               i);
                faulty_api_fixture_put(it->f, key, params);
        }
        refresh(it);
        hf__strbuf_puts(&body, "{\"metadata\":{\"name\":\"w\",\"annotations\":{\"text\":\"");
        for (int i = 0; i < LONG_VALUE; i++)
                hf__strbuf_putc(&body, 'x');
        hf__strbuf_puts(&body, "\"}}}");
        atomic_store(&n_long_values, 0);
        assert_int_equal(create(it, "tenancy.holdfast.dev", "workspaces", "", body.data, NULL),
                         201);
        /* Twice, because the evaluation begins anew on the pool. */
        assert_in_range(atomic_load(&n_long_values), FIT, 2 * (FIT + 1));
        hf__strbuf_done(&body);
}

/* ---- the index of webhooks ---- */

static struct hfd_webhook_index *index_of(struct admission *it,
                                          const struct hfd_webhook_index *old) {
        struct hfd_webhook_index *index = NULL;

        assert_int_equal(faulty_api_fixture_request(it->f, HF_VERB_LIST, NULL, NULL, NULL), 0);
        assert_int_equal(hfd_webhook_index_new(it->f->cacher, "validatingwebhookconfigurations",
                                               NULL, old, &index),
                         0);
        return index;
}

#define CONFIGURATION(name)                                                                        \
        "{\"metadata\":{\"name\":\"" name "\"},\"webhooks\":[{\"name\":\"x.example.com\","         \
        "\"admissionReviewVersions\":[\"v1\"],\"sideEffects\":\"None\",\"clientConfig\":{"         \
        "\"url\":\"https://127.0.0.1:1/\"}},{\"name\":\"y.example.com\","                          \
        "\"admissionReviewVersions\":[\"v1\"],\"sideEffects\":\"None\",\"clientConfig\":{"         \
        "\"url\":\"https://127.0.0.1:1/\"},\"matchConditions\":[{\"name\":\"a\",\"expression\":"   \
        "\"true\"}]}]}"

static void test_webhooks_that_have_not_changed_are_shared(void **state) {
        struct admission *it = *state;

        configure(it, "validatingwebhookconfigurations", CONFIGURATION("m"));
        struct hfd_webhook_index *first = index_of(it, NULL);
        configure(it, "validatingwebhookconfigurations", CONFIGURATION("a"));
        struct hfd_webhook_index *second = index_of(it, first);
        assert_int_equal(first->n, 2);
        assert_int_equal(second->n, 4);
        assert_string_equal(second->items[0]->configuration, "a");
        assert_ptr_equal(second->items[2], first->items[0]);
        assert_ptr_equal(second->items[3], first->items[1]);
        hfd_webhook_index_unref(first);
        assert_string_equal(second->items[3]->name, "y.example.com");
        /* A changed configuration has new webhooks; their counters of calls continue. */
        faulty_api_fixture_put(it->f, "/registry/validatingwebhookconfigurations/m",
                               CONFIGURATION("m"));
        struct hfd_webhook_index *third = index_of(it, second);
        assert_int_equal(third->n, 4);
        assert_ptr_equal(third->items[0], second->items[0]);
        assert_ptr_not_equal(third->items[2], second->items[2]);
        assert_ptr_equal(third->items[2]->load, second->items[2]->load);
        hfd_webhook_index_unref(second);
        hfd_webhook_index_unref(third);
}

/* ---- the pool ---- */

#define N_THREADS 2 /* of the pool */

struct blocker {
        struct hfd_work_task task;
        atomic_bool *release;
};

static enum hfd_work_result block(struct hfd_work_task *task) {
        struct blocker *blocker = (struct blocker *)task;

        PATIENCE_AWAIT(atomic_load(blocker->release));
        return HFD_WORK_IDLE;
}

struct create {
        struct admission *it;
        const char *body;
        atomic_bool done;
        int code;
};

static void *run_create(void *ctx) {
        struct create *c = ctx;

        c->code = create(c->it, "tenancy.holdfast.dev", "workspaces", "", c->body, NULL);
        atomic_store(&c->done, true);
        return NULL;
}

static void check_pool(struct admission *it, const char *plural) {
        atomic_bool release = false;
        struct blocker blockers[N_THREADS];
        char *body = workspace("dear", 250), *cheap = workspace("cheap", 1);
        struct create dear = {.it = it, .body = body};
        pthread_t thread;

        configure(it, plural,
                  "{\"metadata\":{\"name\":\"a\"},\"webhooks\":[{\"name\":\"a.example.com\","
                  "\"admissionReviewVersions\":[\"v1\"],\"sideEffects\":\"None\","
                  "\"clientConfig\":{\"url\":\"https://127.0.0.1:1/\"},"
                  "\"rules\":[{\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],"
                  "\"operations\":[\"CREATE\"],\"resources\":[\"workspaces\"]}],"
                  "\"matchConditions\":[{\"name\":\"dear\",\"expression\":\""
                  "object.metadata.labels.all(a, object.metadata.labels.all(b, a != b || a == b))"
                  " && false\"}]}]}");
        refresh(it);
        for (int i = 0; i < N_THREADS; i++) {
                blockers[i] = (struct blocker){.task = {.step = block}, .release = &release};
                assert_true(hfd_work_submit(it->f->registry->work, &blockers[i].task));
        }
        assert_int_equal(pthread_create(&thread, NULL, run_create, &dear), 0);
        PATIENCE_AWAIT(atomic_load(&dear.done) ||
                       hfd_work_pending(it->f->registry->work) > N_THREADS);
        bool waited = !atomic_load(&dear.done);
        int code = create(it, "tenancy.holdfast.dev", "workspaces", "", cheap, NULL);
        atomic_store(&release, true);
        assert_int_equal(pthread_join(thread, NULL), 0);
        PATIENCE_AWAIT(hfd_work_pending(it->f->registry->work) == 0);
        assert_true(waited);
        assert_int_equal(code, 201); /* cheap conditions do not need the pool */
        assert_int_equal(dear.code, 201);
        free(body);
        free(cheap);
}

static void test_dear_conditions_of_mutating_webhooks_go_to_the_pool(void **state) {
        check_pool(*state, "mutatingwebhookconfigurations");
}

static void test_dear_conditions_of_validating_webhooks_go_to_the_pool(void **state) {
        check_pool(*state, "validatingwebhookconfigurations");
}

/* ---- the values of objects ---- */

/* How often a large object was converted for expressions, and how often by a thread that is not one
 * of the pool. */
static atomic_int n_conversions, n_inline;
static pthread_t client_thread;

/* How often the labels of a Namespace were converted, and whether conversions lack memory. */
static atomic_int n_namespaces;
static atomic_bool lacks_memory;

struct hf__cel_value __real_hfd_rule_value(struct hf__arena *arena,
                                           const struct hfd_declared *declared,
                                           const struct hf__json *json);
struct hf__cel_value __wrap_hfd_rule_value(struct hf__arena *arena,
                                           const struct hfd_declared *declared,
                                           const struct hf__json *json);
struct hf__cel_value __wrap_hfd_rule_value(struct hf__arena *arena,
                                           const struct hfd_declared *declared,
                                           const struct hf__json *json) {
        if (hf__json_path(json, "metadata.labels.l9999")) {
                atomic_fetch_add(&n_conversions, 1);
                atomic_fetch_add(&n_inline, pthread_equal(pthread_self(), client_thread) != 0);
        }
        atomic_fetch_add(&n_namespaces, hf__json_get(json, "of-namespace") != NULL);
        if (atomic_load(&lacks_memory))
                arena->failed = true;
        return __real_hfd_rule_value(arena, declared, json);
}

#define WORKSPACES                                                                                 \
        "{\"apiGroups\":[\"*\"],\"apiVersions\":[\"*\"],\"operations\":[\"CREATE\"],"              \
        "\"resources\":[\"workspaces\"]}"
#define CONDITIONS(value)                                                                          \
        "\"matchConditions\":[{\"name\":\"a\",\"expression\":\"object.metadata.name == '" value    \
        "'\"}]"
#define WEBHOOK(name)                                                                              \
        "{\"name\":\"" name ".example.com\",\"admissionReviewVersions\":[\"v1\"],"                 \
        "\"sideEffects\":\"None\",\"clientConfig\":{\"url\":\"https://127.0.0.1:1/\"},"            \
        "\"rules\":[" WORKSPACES "]," CONDITIONS("none") "}"
#define POLICY(name)                                                                               \
        "{\"metadata\":{\"name\":\"" name                                                          \
        "\"},\"spec\":{\"matchConstraints\":{\"resourceRules\":[" WORKSPACES                       \
        "]}," CONDITIONS("large") ",\"validations\":[{\"expression\":"                             \
                                  "\"object.metadata.name == "                                     \
                                  "'large'\"},{\"expression\":\"has(object.metadata)\"}]}}"
#define BINDING(name, policy)                                                                      \
        "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{\"policyName\":\"" policy                 \
        "\",\"validationActions\":[\"Deny\"]}}"

/* Each of the three plug-ins converts the object once, however many policies, bindings and webhooks
 * it has, and only on a thread of the pool, because the object is large. */
static void test_a_large_object_is_converted_once(void **state) {
        struct admission *it = *state;
        char *body = workspace("large", 10000);

        configure(it, "validatingadmissionpolicies", POLICY("a"));
        configure(it, "validatingadmissionpolicies", POLICY("b"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a1", "a"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a2", "a"));
        configure(it, "validatingadmissionpolicybindings", BINDING("b", "b"));
        configure(it, "mutatingwebhookconfigurations",
                  "{\"metadata\":{\"name\":\"m\"},\"webhooks\":[" WEBHOOK("a") "," WEBHOOK(
                          "b") "," WEBHOOK("c") "]}");
        configure(it, "validatingwebhookconfigurations",
                  "{\"metadata\":{\"name\":\"v\"},\"webhooks\":[" WEBHOOK("a") "," WEBHOOK(
                          "b") "," WEBHOOK("c") "]}");
        refresh(it);
        client_thread = pthread_self();
        atomic_store(&n_conversions, 0);
        atomic_store(&n_inline, 0);
        assert_int_equal(create(it, "tenancy.holdfast.dev", "workspaces", "", body, NULL), 201);
        assert_int_equal(atomic_load(&n_conversions), 3);
        assert_int_equal(atomic_load(&n_inline), 0);
        free(body);
}

/* ---- what no failurePolicy is for ---- */

#define MAPS                                                                                       \
        "{\"apiGroups\":[\"\"],\"apiVersions\":[\"v1\"],\"operations\":[\"CREATE\"],"              \
        "\"resources\":[\"configmaps\"]}"
#define FOR_MAPS          "\"matchConstraints\":{\"resourceRules\":[" MAPS "]}"
#define SPEC              "\"failurePolicy\":\"Ignore\"," FOR_MAPS
#define NAMED(name, spec) "{\"metadata\":{\"name\":\"" name "\"},\"spec\":{" spec "}}"

static void test_the_namespace_is_converted_once(void **state) {
        struct admission *it = *state;

        configure(it, "validatingadmissionpolicies",
                  NAMED("a", SPEC ",\"validations\":[{\"expression\":"
                                  "\"has(namespaceObject.metadata.name)\"}]"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a1", "a"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a2", "a"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a3", "a"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\",\"labels\":{\"of-namespace\":\"\"}}}");
        atomic_store(&n_namespaces, 0);
        assert_int_equal(create(it, "", "configmaps", "free", "{\"metadata\":{\"name\":\"a\"}}",
                                NULL),
                         201);
        assert_int_equal(atomic_load(&n_namespaces), 1);
}

/* A ConfigMap with a text of a million bytes. The caller frees it. */
static char *long_map(void) {
        const size_t n_long = 1000000;
        char *text = calloc(1, n_long + 100);
        int n;

        assert_non_null(text);
        n = sprintf(text, "{\"metadata\":{\"name\":\"a\"},\"data\":{\"k\":\"");
        memset(text + n, '7', n_long);
        strcpy(text + n + n_long, "\"}}");
        return text;
}

/* A policy or a webhook that is ignored when it fails, and whose expressions need more memory than
 * this server allows for a long text. Kubernetes evaluates them. */
static void check_limit(struct admission *it, const char *plural, const char *body,
                        const char *bindings, int code) {
        char *text = long_map();

        configure(it, plural, body);
        if (bindings)
                configure(it, bindings, BINDING("a", "a"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        assert_int_equal(create(it, "", "configmaps", "free", text, "memory limit exceeded"), code);
        free(text);
}

#define FIRST    "(object.data.k.split('') + ['x'])[0]"
#define DEAR(op) FIRST " " op " '7'"
#define IF_DEAR  "\"matchConditions\":[{\"name\":\"a\",\"expression\":\"" DEAR("==") "\"}]"

static void test_a_validation_is_not_escaped_by_a_limit(void **state) {
        check_limit(*state, "validatingadmissionpolicies",
                    NAMED("a", SPEC ",\"validations\":[{\"expression\":\"" DEAR("!=") "\"}]"),
                    "validatingadmissionpolicybindings", 422);
}

static void test_an_annotation_is_not_escaped_by_a_limit(void **state) {
        check_limit(*state, "validatingadmissionpolicies",
                    NAMED("a", SPEC ",\"auditAnnotations\":[{\"key\":\"k\",\"valueExpression\":"
                                    "\"" FIRST "\"}]"),
                    "validatingadmissionpolicybindings", 422);
}

static void test_match_conditions_are_not_escaped_by_a_limit(void **state) {
        check_limit(*state, "validatingadmissionpolicies",
                    NAMED("a", SPEC "," IF_DEAR ",\"validations\":[{\"expression\":\"false\"}]"),
                    "validatingadmissionpolicybindings", 422);
}

static void test_a_mutation_is_not_escaped_by_a_limit(void **state) {
        check_limit(*state, "mutatingadmissionpolicies",
                    NAMED("a", SPEC ",\"reinvocationPolicy\":\"Never\",\"mutations\":[{"
                                    "\"patchType\":\"ApplyConfiguration\",\"applyConfiguration\":{"
                                    "\"expression\":\"Object{data: {'l': " FIRST "}}\"}}]"),
                    "mutatingadmissionpolicybindings", 403);
}

/* The variable is evaluated when the value of the expression becomes JSON. */
static void test_a_mutation_with_all_variables_is_not_escaped_by_a_limit(void **state) {
        check_limit(*state, "mutatingadmissionpolicies",
                    NAMED("a",
                          SPEC ",\"reinvocationPolicy\":\"Never\",\"variables\":[{\"name\":\"v\","
                               "\"expression\":\"" FIRST "\"}],\"mutations\":[{"
                               "\"patchType\":\"ApplyConfiguration\",\"applyConfiguration\":{"
                               "\"expression\":\"Object{data: variables}\"}}]"),
                    "mutatingadmissionpolicybindings", 403);
}

static void test_a_webhook_is_not_escaped_by_a_limit(void **state) {
        check_limit(*state, "validatingwebhookconfigurations",
                    "{\"metadata\":{\"name\":\"v\"},\"webhooks\":[{\"name\":\"a.example.com\","
                    "\"failurePolicy\":\"Ignore\",\"admissionReviewVersions\":[\"v1\"],"
                    "\"sideEffects\":\"None\",\"clientConfig\":{\"url\":\"https://127.0.0.1:1/\"},"
                    "\"rules\":[" MAPS "]," IF_DEAR "}]}",
                    NULL, 403);
}

/* A webhook for ConfigMaps that is ignored when it fails. */
static void configure_ignored(struct admission *it, const char *plural) {
        configure(it, plural,
                  "{\"metadata\":{\"name\":\"v\"},\"webhooks\":[{\"name\":\"a.example.com\","
                  "\"failurePolicy\":\"Ignore\",\"admissionReviewVersions\":[\"v1\"],"
                  "\"sideEffects\":\"None\",\"clientConfig\":{\"url\":\"https://127.0.0.1:1/\"},"
                  "\"rules\":[" MAPS "]}]}");
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
}

static int create_map(struct admission *it, const char *message) {
        return create(it, "", "configmaps", "free", "{\"metadata\":{\"name\":\"a\"}}", message);
}

/* As many requests wait for the webhook as may. Kubernetes has no such limit, so a flood of
 * requests must not let one of them pass. */
static void check_busy(struct admission *it, int which, const char *plural) {
        configure_ignored(it, plural);
        struct hfd_webhook_index *index = hfd_webhooks_index(it->webhooks[which]);
        assert_int_equal(index->n, 1);
        atomic_store(&index->items[0]->load->n_calls, 1); /* max_calls */
        int code = create_map(it, "too many requests wait for the admission webhook "
                                  "\"a.example.com\"");
        atomic_store(&index->items[0]->load->n_calls, 0);
        hfd_webhook_index_unref(index);
        assert_int_equal(code, 429);
}

static void test_a_mutating_webhook_is_not_escaped_by_a_flood(void **state) {
        check_busy(*state, 0, "mutatingwebhookconfigurations");
}

static void test_a_validating_webhook_is_not_escaped_by_a_flood(void **state) {
        check_busy(*state, 1, "validatingwebhookconfigurations");
}

/* How each call of a webhook ends. */
static enum hfd_outbound_end call_end;

int __wrap_hfd_outbound_post_json(struct hfd_outbound *outbound,
                                  const struct hfd_outbound_request *request, uint64_t *ret_id);
int __wrap_hfd_outbound_post_json(struct hfd_outbound *outbound,
                                  const struct hfd_outbound_request *request, uint64_t *ret_id) {
        const struct hfd_outbound_result result = {.end = call_end, .text = "it has ended"};

        *ret_id = 1;
        request->done(request->ctx, &result);
        return 0;
}

/* What a mutating webhook sends may be as large as the object. */
static void check_response(struct admission *it, const char *plural) {
        configure_ignored(it, plural);
        call_end = HFD_OUTBOUND_TOO_LARGE;
        assert_int_equal(create_map(it, "failed calling webhook \"a.example.com\": failed to call "
                                        "webhook: it has ended"),
                         500);
        call_end = HFD_OUTBOUND_NO_MEMORY;
        assert_int_equal(create_map(it, "out of memory"), 500);
        call_end = HFD_OUTBOUND_UNREACHABLE;
        assert_int_equal(create_map(it, NULL), 201);
}

static void test_a_mutating_webhook_is_not_escaped_by_its_response(void **state) {
        check_response(*state, "mutatingwebhookconfigurations");
}

static void test_a_validating_webhook_is_not_escaped_by_its_response(void **state) {
        check_response(*state, "validatingwebhookconfigurations");
}

/* A binding that cannot deny does not deny because of a limit. */
static void test_a_limit_denies_only_if_the_policy_could(void **state) {
        struct admission *it = *state;

        configure(it, "validatingadmissionpolicybindings",
                  "{\"metadata\":{\"name\":\"b\"},\"spec\":{\"policyName\":\"a\","
                  "\"validationActions\":[\"Warn\"]}}");
        configure(it, "validatingadmissionpolicies",
                  NAMED("a", SPEC ",\"validations\":[{\"expression\":\"" DEAR("!=") "\"}]"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        char *text = long_map();
        assert_int_equal(create(it, "", "configmaps", "free", text, NULL), 201);
        free(text);
}

#define SEARCH "object.data.k.matches('8')"

/* A search on the pool ends with its client, so that it does not hold the thread of the long steps.
 * The client is gone already, but nobody has noticed until then. */
static void check_departure(struct admission *it, const char *plural, const char *body,
                            const char *bindings) {
        struct hf__departure departure = {0};
        char *text = long_map();

        configure(it, plural, body);
        if (bindings)
                configure(it, bindings, BINDING("a", "a"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        hf__departure_leave(&departure);
        assert_int_equal(create_for(&departure, it, "", "configmaps", "free", text, NULL), 504);
        assert_int_equal(create(it, "", "configmaps", "free", text, NULL), 201);
        hf__departure_done(&departure);
        free(text);
}

static void test_a_policy_ends_when_its_client_leaves(void **state) {
        check_departure(*state, "validatingadmissionpolicies",
                        NAMED("a", SPEC ",\"validations\":[{\"expression\":\"!" SEARCH "\"}]"),
                        "validatingadmissionpolicybindings");
}

static void test_conditions_of_webhooks_end_when_the_client_leaves(void **state) {
        check_departure(*state, "validatingwebhookconfigurations",
                        "{\"metadata\":{\"name\":\"v\"},\"webhooks\":[{\"name\":\"a.example.com\","
                        "\"admissionReviewVersions\":[\"v1\"],\"sideEffects\":\"None\","
                        "\"clientConfig\":{\"url\":\"https://127.0.0.1:1/\"},\"rules\":[" MAPS
                        "],\"matchConditions\":[{\"name\":\"a\",\"expression\":\"" SEARCH "\"}]}]}",
                        NULL);
}

/* Nobody knows what conditions say that lack memory, so nothing is skipped. */
static void check_shortage(struct admission *it, const char *plural, const char *body,
                           const char *bindings) {
        configure(it, plural, body);
        if (bindings)
                configure(it, bindings, BINDING("a", "a"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        atomic_store(&lacks_memory, true);
        int code = create(it, "", "configmaps", "free", "{\"metadata\":{\"name\":\"a\"}}",
                          "out of memory");
        atomic_store(&lacks_memory, false);
        assert_int_equal(code, 500);
}

/* Whether the options of a request find no memory. */
static atomic_bool lacks_options;

struct hf__json *__real_hfd_admit_options(const struct hfd_request *request,
                                          enum hfd_admission_operation operation,
                                          const struct hf__json *body);
struct hf__json *__wrap_hfd_admit_options(const struct hfd_request *request,
                                          enum hfd_admission_operation operation,
                                          const struct hf__json *body);
struct hf__json *__wrap_hfd_admit_options(const struct hfd_request *request,
                                          enum hfd_admission_operation operation,
                                          const struct hf__json *body) {
        return atomic_load(&lacks_options) ? NULL
                                           : __real_hfd_admit_options(request, operation, body);
}

/* A policy must not decide on options that are null only because memory has run out. */
static void test_policies_without_options_end_the_request(void **state) {
        struct admission *it = *state;

        configure(it, "validatingadmissionpolicies",
                  NAMED("a", SPEC ",\"validations\":[{\"expression\":\"true\"}]"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a", "a"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        atomic_store(&lacks_options, true);
        int code = create_map(it, "out of memory");
        atomic_store(&lacks_options, false);
        assert_int_equal(code, 500);
        assert_int_equal(create_map(it, NULL), 201);
}

/* Go's TrimSpace does not remove a NUL, and a text with a NUL cannot be shown. */
static void test_a_message_with_a_nul_is_not_shown(void **state) {
        struct admission *it = *state;

        configure(it, "validatingadmissionpolicies",
                  NAMED("a", SPEC ",\"validations\":[{\"expression\":\"false\",\"message\":"
                                  "\"its own message\",\"messageExpression\":"
                                  "\"'made' + string(b'\\\\x00')\"}]"));
        configure(it, "validatingadmissionpolicybindings", BINDING("a", "a"));
        refresh(it);
        faulty_api_fixture_put(it->f, "/registry/namespaces/free",
                               "{\"kind\":\"Namespace\",\"apiVersion\":\"v1\",\"metadata\":{"
                               "\"name\":\"free\"}}");
        assert_int_equal(create_map(it, "denied request: its own message"), 422);
}

#define IF_NAMED                                                                                   \
        "\"matchConditions\":[{\"name\":\"a\",\"expression\":\"has(object.metadata.name)\"}]"

static void test_conditions_of_policies_without_memory_end_the_request(void **state) {
        check_shortage(*state, "validatingadmissionpolicies",
                       NAMED("a", SPEC "," IF_NAMED ",\"validations\":[{\"expression\":\"true\"}]"),
                       "validatingadmissionpolicybindings");
}

static void test_conditions_of_mutations_without_memory_end_the_request(void **state) {
        check_shortage(*state, "mutatingadmissionpolicies",
                       NAMED("a", SPEC ",\"reinvocationPolicy\":\"Never\"," IF_NAMED
                                       ",\"mutations\":[{\"patchType\":\"ApplyConfiguration\","
                                       "\"applyConfiguration\":{\"expression\":\"Object{}\"}}]"),
                       "mutatingadmissionpolicybindings");
}

static void test_conditions_of_webhooks_without_memory_end_the_request(void **state) {
        check_shortage(*state, "validatingwebhookconfigurations",
                       "{\"metadata\":{\"name\":\"v\"},\"webhooks\":[{\"name\":\"a.example.com\","
                       "\"failurePolicy\":\"Ignore\",\"admissionReviewVersions\":[\"v1\"],"
                       "\"sideEffects\":\"None\",\"clientConfig\":{\"url\":"
                       "\"https://127.0.0.1:1/\"},\"rules\":[" MAPS "]," IF_NAMED "}]}",
                       NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void) {
        const struct CMUnitTest tests[] = {
                TEST(test_a_namespace_of_another_instance_is_known),
                TEST(test_a_plugin_without_configuration_is_asked_from_the_beginning),
                TEST(test_selectors_do_not_parse_the_namespace),
                TEST(test_the_labels_of_a_request_are_indexed_once),
                TEST(test_values_of_an_annotation_that_is_too_long_are_not_kept),
                TEST(test_webhooks_that_have_not_changed_are_shared),
                TEST(test_dear_conditions_of_mutating_webhooks_go_to_the_pool),
                TEST(test_dear_conditions_of_validating_webhooks_go_to_the_pool),
                TEST(test_a_large_object_is_converted_once),
                TEST(test_the_namespace_is_converted_once),
                TEST(test_a_validation_is_not_escaped_by_a_limit),
                TEST(test_an_annotation_is_not_escaped_by_a_limit),
                TEST(test_match_conditions_are_not_escaped_by_a_limit),
                TEST(test_a_mutation_is_not_escaped_by_a_limit),
                TEST(test_a_mutation_with_all_variables_is_not_escaped_by_a_limit),
                TEST(test_a_webhook_is_not_escaped_by_a_limit),
                TEST(test_a_mutating_webhook_is_not_escaped_by_a_flood),
                TEST(test_a_validating_webhook_is_not_escaped_by_a_flood),
                TEST(test_a_mutating_webhook_is_not_escaped_by_its_response),
                TEST(test_a_validating_webhook_is_not_escaped_by_its_response),
                TEST(test_a_limit_denies_only_if_the_policy_could),
                TEST(test_a_policy_ends_when_its_client_leaves),
                TEST(test_conditions_of_webhooks_end_when_the_client_leaves),
                TEST(test_conditions_of_policies_without_memory_end_the_request),
                TEST(test_conditions_of_mutations_without_memory_end_the_request),
                TEST(test_conditions_of_webhooks_without_memory_end_the_request),
                TEST(test_policies_without_options_end_the_request),
                TEST(test_a_message_with_a_nul_is_not_shown),
        };

        return cmocka_run_group_tests(tests, NULL, NULL);
}
