/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the phases of an admission.
 *
 * Invariants: for one admission, the plug-ins run one at a time, in the order of the chain. After
 * the chain has called a plug-in or done, it does not touch the admission, because another thread
 * may own it by then. So the walk goes on in hfd_admission_next, and its depth is at most that of
 * two rounds.
 */
#include "server/admission/admission.h"

#include <assert.h>
#include <string.h>

#include "base/json.h"

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

/* Calls the first plug-in from a->at on that wants the request; after the last one the phase ends,
 * or begins again. */
static void walk(struct hfd_admission *a) {
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
                walk(a);
                return;
        }
        a->done(a, NULL);
}

static void begin(const struct hfd_admission_chain *chain, struct hfd_admission *a,
                  bool validating) {
        assert(chain && a->done && a->settle && a->of.resource && a->of.kind);
        a->chain = chain;
        a->validating = validating;
        a->at = 0;
        walk(a);
}

void hfd_admission_mutate(const struct hfd_admission_chain *chain, struct hfd_admission *a) {
        assert(!a->reinvoked && !a->must_reinvoke && !a->mutated);
        begin(chain, a, false);
}

void hfd_admission_validate(const struct hfd_admission_chain *chain, struct hfd_admission *a) {
        begin(chain, a, true);
}

void hfd_admission_next(struct hfd_admission *a) {
        assert(a->at < a->chain->n_plugins);
        a->at++;
        walk(a);
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
}

/* ---- for plug-ins ---- */

bool hfd_admission_settle(struct hfd_admission *a, struct hfd_response *response) {
        assert(!a->validating && a->object);
        a->mutated = true;
        return a->settle(a, response);
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
