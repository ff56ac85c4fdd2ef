/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the phases of an admission.
 *
 * Invariants: for one admission, the plug-ins run one at a time, in the order of the chain. After
 * the chain has called a plug-in or a->done, it does not touch the admission, as another thread may
 * own it by then. So the walk goes on in hfd_admission_next. If a plug-in calls that before it
 * returns, the walk recurses, at most once for each plug-in in each of the two rounds.
 */
#include "server/admission/admission.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"
#include "server/cacher/cacher.h"
#include "server/cacher/requests/store_request.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/objects/stored_object.h"
#include "server/resources/rows/resource_table.h"

void hfd_admission_chain_add(struct hfd_admission_chain *chain,
                             const struct hfd_admission_plugin *plugin) {
        assert(chain->n_plugins < HFD_ADMISSION_PLUGINS_MAX);
        assert(plugin->name && plugin->wants && (plugin->mutate || plugin->validate));
        chain->plugins[chain->n_plugins++] = *plugin;
}

bool hfd_admission_wanted(const struct hfd_admission_chain *chain,
                          const struct hfd_admission_attributes *of) {
        for (size_t i = 0; chain && i < chain->n_plugins; i++)
                if (chain->plugins[i].wants(chain->plugins[i].ctx, of))
                        return true;
        return false;
}

/* ---- the walk ---- */

/* Calls the first plug-in from a->at on that wants the request. After the last one the phase ends,
 * or the second round of mutate begins, if a plug-in has asked for it. */
static void walk_chain(struct hfd_admission *a) {
        for (; a->at < a->chain->n_plugins; a->at++) {
                const struct hfd_admission_plugin *plugin = &a->chain->plugins[a->at];
                void (*call)(void *ctx, struct hfd_admission *admission) =
                        a->validating ? plugin->validate : plugin->mutate;
                if (!call || !plugin->wants(plugin->ctx, &a->of))
                        continue;
                call(plugin->ctx, a);
                return;
        }
        if (!a->validating && a->must_reinvoke && !a->reinvoked) {
                a->reinvoked = true;
                a->at = 0;
                walk_chain(a);
                return;
        }
        a->done(a, NULL);
}

/*
 * ---- the namespace ----
 *
 * Another instance may just have created the namespace of a request, so that the cacher does not
 * have it yet. Then the store is asked, as by kube-apiserver. Otherwise a webhook or policy with a
 * namespaceSelector would refuse the request because the namespace seems to be missing.
 */

static void refuse_unknown(struct hfd_admission *a, int error, const struct hf_status *status) {
        struct hfd_response response = {0};

        /* Nothing was written yet, so the client may repeat the request. */
        if (error == HF_E_TIMEOUT)
                error = HF_E_UNAVAILABLE;
        hfd_response_store_error(&response, error, status);
        hfd_admission_refuse(a, &response);
}

static void on_namespace(void *ctx, const struct hfd_store_reply *reply) {
        struct hfd_admission *a = ctx;

        if (reply->error) {
                refuse_unknown(a, reply->error, &reply->status);
                return;
        }
        /* A value that cannot be read, also for lack of memory, counts as absent. */
        if (reply->n_kvs > 0)
                a->new_namespace =
                        hfd_stored_object_new(hfd_resource_namespaces(), a->of.ns, &reply->kvs[0]);
        a->of.new_namespace = a->new_namespace;
        walk_chain(a);
}

/* Whether the cacher lacks the namespace of the request. False for cluster scope, and for a request
 * whose object is the Namespace itself. */
static bool is_missing(const struct hfd_admission *a, struct hfd_cacher *cacher) {
        struct hfd_object *ns;
        bool synced, missing;

        if (!*a->of.ns || hfd_resource_same(a->of.resource, hfd_resource_namespaces()))
                return false;
        ns = hfd_cacher_newest(cacher, hfd_resource_namespaces(), a->of.ns, &synced);
        missing = !ns || !ns->bytes;
        hfd_object_unref(ns);
        return missing;
}

/*
 * True: the caller goes on. False: the walk begins later, on a thread of the store, or the
 * admission has been refused; the caller must not touch it. The store is asked at most once for
 * each admission.
 */
static bool knows_namespace(struct hfd_admission *a) {
        struct hfd_cacher *cacher = a->chain->cacher;
        char key[HFD_KEY_MAX];

        if (!cacher || a->asked_for_namespace || !is_missing(a, cacher)) {
                a->of.new_namespace = a->new_namespace;
                return true;
        }
        a->asked_for_namespace = true;
        int r = hfd_object_key(hfd_cacher_prefix(cacher), hfd_resource_namespaces(), a->of.ns, key);
        if (r == 0)
                r = hfd_store_request_get(cacher, key, false, a->of.deadline, on_namespace, a);
        if (r != 0) /* on_namespace is not called */
                refuse_unknown(a, r, NULL);
        return false;
}

static void begin_chain(const struct hfd_admission_chain *chain, struct hfd_admission *a,
                        bool validating) {
        assert(chain && a->done && a->settle && a->of.resource && a->of.kind);
        a->chain = chain;
        a->validating = validating;
        a->at = 0;
        if (knows_namespace(a))
                walk_chain(a);
}

void hfd_admission_mutate(const struct hfd_admission_chain *chain, struct hfd_admission *a) {
        assert(!a->reinvoked && !a->must_reinvoke && !a->mutated);
        begin_chain(chain, a, false);
}

void hfd_admission_validate(const struct hfd_admission_chain *chain, struct hfd_admission *a) {
        begin_chain(chain, a, true);
}

void hfd_admission_next(struct hfd_admission *a) {
        assert(a->at < a->chain->n_plugins);
        a->at++;
        walk_chain(a);
}

void hfd_admission_refuse(struct hfd_admission *a, struct hfd_response *response) {
        assert(response->code != 0);
        a->done(a, response);
        hfd_response_done(response);
}

void hfd_admission_done(struct hfd_admission *a) {
        for (size_t i = 0; i < HFD_ADMISSION_PLUGINS_MAX; i++)
                if (a->states[i].data)
                        a->states[i].free(a->states[i].data);
        memset(a->states, 0, sizeof a->states);
        a->options = hf__json_free(a->options);
        a->of.options = NULL;
        a->forms = hfd_forms_free(a->forms);
        a->object_forms = hfd_object_forms_free(a->object_forms);
        a->new_namespace = hfd_object_unref(a->new_namespace);
        a->of.new_namespace = NULL;
}

/* ---- for plug-ins ---- */

bool hfd_admission_settle(struct hfd_admission *a, struct hfd_response *response) {
        assert(!a->validating && a->object);
        a->mutated = true;
        return a->settle(a, response);
}

int hfd_admission_form(struct hfd_admission *a, const struct hfd_resource *from,
                       const struct hfd_resource *to, const struct hf__json *object,
                       struct hf__json **ret_object) {
        return hfd_forms_find(&a->forms, from, to, object, ret_object);
}

enum { FETCHING = 0, FETCHED = 1, FETCH_WAITS = 2 };

static void on_fetched(void *ctx) {
        struct hfd_admission *a = ctx;

        if (atomic_exchange(&a->fetch.step, FETCHED) == FETCH_WAITS)
                a->fetch.resume(a->fetch.ctx);
}

/* Each exchange releases and acquires memory (it is sequentially consistent), so whoever comes
 * second sees the result, and all else that the other thread has written. */
bool hfd_admission_fetch_form(struct hfd_admission *a, void (*resume)(void *ctx), void *ctx) {
        assert(hfd_admission_wants_form(a));
        a->fetch.resume = resume;
        a->fetch.ctx = ctx;
        atomic_store(&a->fetch.step, FETCHING);
        if (hfd_object_forms_is_wanted(a->object_forms))
                hfd_object_forms_fetch(a->object_forms, a->convert_objects, a->ctx, on_fetched, a);
        else
                hfd_forms_fetch(a->forms, a->convert, a->ctx, on_fetched, a);
        return atomic_exchange(&a->fetch.step, FETCH_WAITS) == FETCHED;
}

bool hfd_admission_wants_form(const struct hfd_admission *a) {
        return hfd_forms_is_wanted(a->forms) || hfd_object_forms_is_wanted(a->object_forms);
}

void hfd_admission_reinvoke(struct hfd_admission *a) {
        assert(!a->validating);
        a->must_reinvoke = true;
}

struct hfd_admission_state *hfd_admission_state(struct hfd_admission *a) {
        return &a->states[a->at];
}

const struct hf__json *hfd_admission_options(struct hfd_admission *a) {
        if (!a->of.options && a->make_options) {
                a->options = a->make_options(a);
                a->of.options = a->options;
        }
        return a->of.options;
}

const char *hfd_admission_operation_name(enum hfd_admission_operation operation) {
        switch (operation) {
        case HFD_ADMIT_CREATE: return "CREATE";
        case HFD_ADMIT_UPDATE: return "UPDATE";
        case HFD_ADMIT_DELETE: return "DELETE";
        case HFD_ADMIT_CONNECT: break;
        }
        return "CONNECT";
}

bool hfd_admission_is_configuration(const struct hfd_admission_attributes *of) {
        static const char *const kinds[] = {"ValidatingWebhookConfiguration",
                                            "MutatingWebhookConfiguration",
                                            "ValidatingAdmissionPolicy",
                                            "ValidatingAdmissionPolicyBinding",
                                            "MutatingAdmissionPolicy",
                                            "MutatingAdmissionPolicyBinding"};

        if (strcmp(of->kind->group, HFD_ADMISSION_GROUP) != 0)
                return false;
        for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
                if (strcmp(of->kind->kind, kinds[i]) == 0)
                        return true;
        return false;
}
