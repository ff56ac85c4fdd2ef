/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The plug-ins of policies: they keep the index of policies, and evaluate it for each request that
 * a policy may apply to, at once or in a turn on the pool.
 *
 * Invariants: an attempt has no effect on the admission until it is complete, so it can start over:
 * on the pool, or when the conversion webhook of a kind has converted an object to the version that
 * a policy's rules name, or params to the version that its paramKind names. If the conversion is
 * known already, the attempt starts over in a loop: a recursion would be as deep as policies need
 * different conversions. After the plug-in has let the admission go on or has refused it, it does
 * not touch the admission any more.
 */
#include "server/admission/policy/policy_plugin.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/thread.h"
#include "server/admission/policy/mutating_policies.h"
#include "server/admission/policy/policy_case.h"
#include "server/admission/policy/policy_index.h"
#include "server/admission/policy/validating_policies.h"
#include "server/admission/turn.h"
#include "server/auth/user.h"
#include "server/pool/work_pool.h"

struct hfd_policy_plugin {
        const struct hf_host *host;
        struct hfd_cacher *cacher;
        struct hfd_work_pool *pool;
        bool mutating;
        atomic_bool has_hooks; /* some policy has a binding; otherwise requests take no lock */
        pthread_mutex_t mu;
        /* Owned reference, guarded by mu. NULL: not known yet, and no request is wanted. */
        struct hfd_policy_index *index;
};

/* A reference to the index; NULL: there is none. The lock is held only to take the reference, so a
 * request that is evaluated does not keep refresh_index waiting. */
static struct hfd_policy_index *get_index(struct hfd_policy_plugin *plugin) {
        struct hfd_policy_index *index = NULL;

        pthread_mutex_lock(&plugin->mu);
        if (plugin->index)
                index = hfd_policy_index_ref(plugin->index);
        pthread_mutex_unlock(&plugin->mu);
        return index;
}

/*
 * The kinds that no policy applies to, as in Kubernetes. Policies themselves: so no policy can
 * prevent its own removal. Reviews: a policy for all kinds that refuses them, or fails, would take
 * authentication and authorization from everybody who asks this server.
 */
static bool is_exempt(const struct hfd_admission_attributes *of) {
        static const struct {
                const char *group, *plural;
        } exempt[] = {{HFD_ADMISSION_GROUP, "validatingadmissionpolicies"},
                      {HFD_ADMISSION_GROUP, "validatingadmissionpolicybindings"},
                      {HFD_ADMISSION_GROUP, "mutatingadmissionpolicies"},
                      {HFD_ADMISSION_GROUP, "mutatingadmissionpolicybindings"},
                      {"authentication.k8s.io", "selfsubjectreviews"},
                      {"authentication.k8s.io", "tokenreviews"},
                      {"authorization.k8s.io", "localsubjectaccessreviews"},
                      {"authorization.k8s.io", "selfsubjectaccessreviews"},
                      {"authorization.k8s.io", "selfsubjectrulesreviews"},
                      {"authorization.k8s.io", "subjectaccessreviews"}};

        for (size_t i = 0; i < sizeof exempt / sizeof exempt[0]; i++)
                if (strcmp(of->resource->plural, exempt[i].plural) == 0 &&
                    strcmp(of->resource->group, exempt[i].group) == 0)
                        return true;
        return false;
}

static bool wants_request(void *ctx, const struct hfd_admission_attributes *of) {
        struct hfd_policy_plugin *plugin = ctx;
        struct hfd_policy_index *index;
        bool wanted;

        if (!atomic_load(&plugin->has_hooks) || is_exempt(of))
                return false;
        index = get_index(plugin);
        wanted = index && hfd_policy_index_wants(index, of);
        hfd_policy_index_unref(index);
        return wanted;
}

/* ---- one request ---- */

/* A request that is evaluated again. */
struct turn {
        struct hfd_work_task task; /* on the pool; first member: run_turn casts it back */
        struct hfd_policy_plugin *plugin;
        struct hfd_policy_index *index; /* owned reference */
        struct hfd_admission *a;
};

enum attempt {
        COMPLETE,
        /* The attempt had no effect, and must start over: */
        NEEDS_TURN, /* on the pool: the allowance is spent */
        NEEDS_FORM  /* when an object has been converted */
};

/* Evaluates the policies. task: the turn on the pool; NULL: this is another thread, and the attempt
 * has what is left of the allowance. */
static enum attempt try_policies(struct hfd_policy_plugin *plugin,
                                 const struct hfd_policy_index *index, struct hfd_admission *a,
                                 const struct hfd_work_task *task,
                                 struct hfd_expression_allowance *allowance,
                                 struct hfd_response *response) {
        struct hfd_admission_notes notes = {0};
        struct hfd_policy_case c;
        enum attempt result = COMPLETE;
        int r;

        hfd_policy_case_init(&c, a, plugin->cacher, task ? NULL : allowance);
        c.host = plugin->host;
        c.pool = plugin->pool;
        c.task = task;
        if (plugin->mutating)
                r = hfd_policies_mutate(&c, index, response);
        else
                r = hfd_policies_validate(&c, index, &notes, response);
        if (hfd_admission_wants_form(a))
                result = NEEDS_FORM;
        else if (allowance->spent)
                result = NEEDS_TURN;
        if (result == COMPLETE && a->notes)
                hfd_admission_notes_merge(a->notes, &notes);
        if (result == COMPLETE && r != 0 && response->code == 0)
                hfd_admission_turn_refuse(r, response);
        hfd_admission_notes_done(&notes);
        hfd_policy_case_done(&c);
        if (result != COMPLETE) {
                hfd_response_done(response);
                *response = (struct hfd_response){0};
        }
        return result;
}

/* Lets the admission go on, or refuses it. The admission is not touched afterwards. */
static void end_admission(struct hfd_admission *a, struct hfd_response *response) {
        assert(response->code == 0 || response->code >= 400);
        if (response->code != 0)
                hfd_admission_refuse(a, response);
        else
                hfd_admission_next(a);
}

static void evaluate_policies(struct hfd_policy_plugin *plugin, struct hfd_policy_index *index,
                              struct hfd_admission *a, const struct hfd_work_task *task);

static enum hfd_work_result run_turn(struct hfd_work_task *task) {
        struct turn *turn = (struct turn *)task;
        struct hfd_response response = {0};

        if (hfd_work_is_cancelled(turn->plugin->pool, task)) {
                hfd_policy_index_unref(turn->index);
                hfd_admission_turn_refuse(HF_E_UNAVAILABLE, &response);
                hfd_admission_refuse(turn->a, &response);
        } else {
                evaluate_policies(turn->plugin, turn->index, turn->a, task);
        }
        free(turn);
        return HFD_WORK_DONE;
}

/* The conversion webhook has responded. Any thread may call this, also one that serves other
 * requests, so the next attempt has an allowance again. */
static void resume_request(void *ctx) {
        struct turn turn = *(struct turn *)ctx;

        free(ctx);
        evaluate_policies(turn.plugin, turn.index, turn.a, NULL);
}

/* Starts over later, as the attempt needs it, or refuses the request; consumes the reference to the
 * index in both cases. True: neither, and the caller starts over now. long_step: a turn
 * evaluates all policies, and ends early only with its request. */
static bool restart_request(struct hfd_policy_plugin *plugin, struct hfd_policy_index *index,
                            struct hfd_admission *a, enum attempt needs) {
        const char *user = a->of.user ? a->of.user->subject.name : NULL;
        struct turn *turn = malloc(sizeof *turn);
        struct hfd_response response = {0};

        assert(index && needs != COMPLETE);
        if (turn) {
                *turn = (struct turn){.task = {.step = run_turn,
                                               .owner = hfd_work_owner(user),
                                               .long_step = true},
                                      .plugin = plugin,
                                      .index = index,
                                      .a = a};
                if (needs == NEEDS_FORM) {
                        if (!hfd_admission_fetch_form(a, resume_request, turn))
                                return false;
                        free(turn);
                        return true;
                }
                if (hfd_work_submit(plugin->pool, &turn->task))
                        return false;
                hfd_response_store_error(&response, HF_E_UNAVAILABLE, NULL);
        } else {
                hfd_response_no_memory(&response);
        }
        free(turn);
        hfd_policy_index_unref(index);
        hfd_admission_refuse(a, &response);
        return false;
}

/* Evaluates the policies, now or later, and consumes the reference to the index. */
static void evaluate_policies(struct hfd_policy_plugin *plugin, struct hfd_policy_index *index,
                              struct hfd_admission *a, const struct hfd_work_task *task) {
        struct hfd_expression_allowance allowance = {.left = HFD_ADMISSION_INLINE_COST};
        struct hfd_response response = {0};
        enum attempt result;

        /* All attempts in this loop share the allowance, because this thread does them in a row. */
        while ((result = try_policies(plugin, index, a, task, &allowance, &response)) != COMPLETE)
                if (!restart_request(plugin, index, a, result))
                        return;
        hfd_policy_index_unref(index);
        end_admission(a, &response);
}

static void ask_policies(void *ctx, struct hfd_admission *a) {
        struct hfd_policy_index *index = get_index(ctx);

        if (index)
                evaluate_policies(ctx, index, a, NULL);
        else
                hfd_admission_next(a);
}

/* ---- the configuration ---- */

static int refresh_index(void *ctx) {
        struct hfd_policy_plugin *plugin = ctx;
        struct hfd_policy_index *old = get_index(plugin);
        struct hfd_policy_index *index = NULL;
        int r = hfd_policy_index_new(plugin->cacher, plugin->mutating, old, &index);

        hfd_policy_index_unref(old);
        if (r != 0)
                return r;
        pthread_mutex_lock(&plugin->mu);
        assert(index);
        old = plugin->index;
        plugin->index = index;
        atomic_store(&plugin->has_hooks, index->n_hooks > 0);
        pthread_mutex_unlock(&plugin->mu);
        hfd_policy_index_unref(old);
        return 0;
}

int hfd_policy_plugin_new(const struct hf_host *host, struct hfd_cacher *cacher,
                          struct hfd_work_pool *pool, bool mutating,
                          struct hfd_policy_plugin **ret_plugin) {
        struct hfd_policy_plugin *plugin = calloc(1, sizeof *plugin);
        int r;

        if (!plugin)
                return -ENOMEM;
        plugin->host = host;
        plugin->cacher = cacher;
        plugin->pool = pool;
        plugin->mutating = mutating;
        r = hf__mutex_init(&plugin->mu);
        if (r != 0) {
                free(plugin);
                return r;
        }
        *ret_plugin = plugin;
        return 0;
}

struct hfd_policy_plugin *hfd_policy_plugin_free(struct hfd_policy_plugin *plugin) {
        if (!plugin)
                return NULL;
        hfd_policy_index_unref(plugin->index);
        pthread_mutex_destroy(&plugin->mu);
        free(plugin);
        return NULL;
}

struct hfd_admission_plugin hfd_policy_plugin_of_chain(struct hfd_policy_plugin *plugin) {
        return (struct hfd_admission_plugin){.name = plugin->mutating ? "MutatingAdmissionPolicy"
                                                                      : "ValidatingAdmissionPolicy",
                                             .ctx = plugin,
                                             .wants = wants_request,
                                             .mutate = plugin->mutating ? ask_policies : NULL,
                                             .validate = plugin->mutating ? NULL : ask_policies,
                                             .refresh = refresh_index};
}
