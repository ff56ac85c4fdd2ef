/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the params of an admission policy: the objects of its paramKind that the paramRef of a
 * binding selects, by name or by labels.
 *
 * Invariants: params have the version that the policy names. The objects are looked up for each
 * request, because they may change at any time. Nothing waits: if a conversion webhook must convert
 * the params, the search ends with -EAGAIN, and starts over when the webhook has responded.
 */
#include "server/admission/policy/policy_params.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <holdfast/error.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/policy/param_kind.h"
#include "server/cacher/cacher.h"
#include "server/cacher/watch/snapshot.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/forms/conversion.h"
#include "server/resources/label_selector.h"
#include "server/resources/objects/object.h"
#include "server/resources/objects/object_key.h"
#include "server/resources/validation/names.h"

/* What a search costs, in units of the allowance of the request (expression_work.h). The cost is
 * taken from the allowance, because many params, or large ones, keep the thread for milliseconds.
 */
#define COST_OF_MATCH  8 /* to match the labels of one object */
#define BYTES_PER_COST 4 /* a param costs 1 for each 4 bytes that are stored, for parsing */

/* Prints the kind as Go does, for messages. */
static void print_kind(struct hf__strbuf *out, const struct hfd_policy *policy) {
        hf__strbuf_printf(out, "%s%s, Kind=%s", strchr(policy->param_api_version, '/') ? "" : "/",
                          policy->param_api_version, policy->param_kind);
}

/* Returns HF_E_NOT_FOUND, after the caller has not found the kind. The kind is not looked up again:
 * a second look-up might find it, if it has been served since the first. */
static int fail_unserved(const struct hfd_policy *policy, struct hf__strbuf *reterr_message) {
        hf__strbuf_puts(reterr_message, "failed to find resource referenced by paramKind: '");
        print_kind(reterr_message, policy);
        hf__strbuf_putc(reterr_message, '\'');
        return HF_E_NOT_FOUND;
}

int hfd_policy_params_check(const struct hfd_policy *policy, struct hfd_cacher *cacher,
                            struct hf__strbuf *reterr_message) {
        const struct hfd_resource *row;

        assert(policy && cacher);
        if (!policy->param_kind)
                return 0;
        row = hfd_policy_params_kind(cacher, policy->param_api_version, policy->param_kind);
        if (!row)
                return fail_unserved(policy, reterr_message);
        hfd_resource_unref(row);
        return 0;
}

/* ---- objects ---- */

/* The search for the params of one binding. */
struct search {
        const struct hfd_resource *row;
        struct hfd_cacher *cacher;
        struct hfd_expression_allowance *allowance; /* NULL: there is no limit */
        const char *ns;                             /* "" for cluster-scoped objects */
        struct hf__strbuf *message;
        /* Owned references, HFD_POLICY_PARAMS_MAX at most. */
        struct hfd_object *found[HFD_POLICY_PARAMS_MAX];
        size_t n_found;
        bool needs_webhook; /* hfd_conversion_is_pending is true for a found object */
};

/* 0, or HF_E_TOO_LARGE: the allowance is spent. */
static int pay_cost(const struct search *search, uint64_t cost) {
        struct hfd_expression_allowance *allowance = search->allowance;

        if (!allowance)
                return 0;
        if (allowance->spent || cost > allowance->left) {
                allowance->spent = true;
                return HF_E_TOO_LARGE;
        }
        assert(allowance->left >= cost);
        allowance->left -= cost;
        return 0;
}

/* Notes an object that was found. 0, or an error of hfd_policy_params_find. */
static int add_object(struct search *search, struct hfd_object *object) {
        int r;

        assert(search->row && object->bytes);
        if (search->n_found == HFD_POLICY_PARAMS_MAX) {
                hf__strbuf_printf(search->message, "paramRef selects more than %d objects",
                                  HFD_POLICY_PARAMS_MAX);
                return HF_E_TOO_MANY;
        }
        r = pay_cost(search, hfd_object_size(object) / BYTES_PER_COST);
        if (r != 0)
                return r;
        search->needs_webhook |= hfd_conversion_is_pending(search->row, object);
        search->found[search->n_found++] = hfd_object_ref(object);
        return 0;
}

/* The cache is being filled again: a param that is not in it may be in the store, so the binding
 * fails. */
static int fail_unfilled(const struct search *search) {
        hf__strbuf_puts(search->message, "the params cannot be read at the moment");
        return HF_E_INVALID;
}

/* No object has a name or a namespace beyond these limits, and path has no room for one. */
static int find_by_name(struct search *search, const char *name) {
        char path[HFD_PATH_MAX];
        struct hfd_object *object;
        int r = 0;

        if (strlen(name) > HFD_DNS_SUBDOMAIN_MAX || strlen(search->ns) > HFD_DNS_LABEL_MAX)
                return 0;
        hfd_object_path(search->row, search->ns, name, path);
        object = hfd_cacher_get(search->cacher, search->row, path);
        if (object && object->bytes)
                r = add_object(search, object);
        else if (!object && !hfd_cacher_synced(search->cacher))
                r = fail_unfilled(search);
        hfd_object_unref(object);
        return r;
}

static int find_by_labels(struct search *search, const struct hf__json *selector) {
        struct hfd_object_iter iter;
        struct hfd_snapshot snapshot;
        struct hfd_object *object;
        struct hfd_scope scope;
        int r = 0;

        if (strlen(search->ns) > HFD_DNS_LABEL_MAX) /* as in find_by_name */
                return 0;
        r = hfd_snapshot_take_now(search->cacher, search->row, &snapshot);
        if (r != 0)
                return r == -EAGAIN ? fail_unfilled(search) : r;
        hfd_object_scope(search->row, search->ns, NULL, &scope);
        hfd_object_iter_init(&iter, &snapshot.objects, &scope, "");
        while (r == 0 && (object = hfd_object_iter_next(&iter))) {
                const struct hf__json *selectable = hfd_object_selectable(object);

                if (!selectable)
                        r = -ENOMEM;
                if (r == 0)
                        r = pay_cost(search, COST_OF_MATCH);
                if (r == 0 &&
                    hfd_label_selector_matches(selector, hf__json_get(selectable, "labels")))
                        r = add_object(search, object);
        }
        hfd_snapshot_done(&snapshot);
        return r;
}

/* The namespace in which params are looked for; "" for cluster-scoped params. NULL: paramRef and
 * the scope of the params or of the request contradict each other, and reterr_message says how. */
static const char *namespace_of(const struct hfd_policy_binding *binding,
                                const struct hfd_resource *row, const char *ns,
                                struct hf__strbuf *reterr_message) {
        const char *wanted = hf__json_string(binding->param_ref, "namespace");

        if (wanted && !wanted[0])
                wanted = NULL;
        if (!row->namespaced && wanted)
                hf__strbuf_puts(reterr_message, "paramRef.namespace must not be provided for a "
                                                "cluster-scoped `paramKind`");
        else if (!row->namespaced)
                return "";
        else if (wanted || ns[0])
                return wanted ? wanted : ns;
        else
                hf__strbuf_puts(reterr_message, "cannot use namespaced paramRef in policy binding "
                                                "that matches cluster-scoped resources");
        return NULL;
}

static int find_objects(struct search *search, const struct hfd_policy_binding *binding) {
        const char *name = hf__json_string(binding->param_ref, "name");
        int r;

        if (name && name[0])
                r = find_by_name(search, name);
        else
                r = find_by_labels(search, hf__json_get(binding->param_ref, "selector"));
        if (r != 0 || search->n_found > 0 ||
            !hf__json_has_text(binding->param_ref, "parameterNotFoundAction", "Deny"))
                return r;
        hf__strbuf_puts(search->message, "no params found for policy binding with `Deny` "
                                         "parameterNotFoundAction");
        return HF_E_INVALID;
}

/* ---- versions ---- */

/* Lets the conversion webhook of the kind convert the found objects, if need be. *ret_objects:
 * the objects, converted or not; borrowed. 0, or an error of hfd_policy_params_find. */
static int convert_objects(struct search *search, struct hfd_admission *a,
                           struct hfd_object *const **ret_objects) {
        const struct hfd_response *failure = NULL;

        *ret_objects = search->found;
        if (!search->needs_webhook)
                return 0;
        int r = hfd_object_forms_find(&a->object_forms, search->row, search->found, search->n_found,
                                      ret_objects, &failure);
        if (r > 0)
                hf__strbuf_printf(search->message, "failed to convert the params to %s/%s: %s",
                                  search->row->group, search->row->version,
                                  failure ? failure->status.message : "too many conversions");
        return r;
}

/* Parses the objects, in the version that the policy names. 0 or -ENOMEM. */
static int read_objects(const struct search *search, struct hfd_object *const *objects,
                        struct hfd_policy_params *params) {
        int r = 0;

        if (search->n_found == 0)
                return 0;
        params->items = calloc(search->n_found, sizeof *params->items);
        if (!params->items)
                return -ENOMEM;
        for (size_t i = 0; i < search->n_found && r == 0; i++) {
                params->items[i] = hfd_conversion_parse(search->row, objects[i]);
                params->n += params->items[i] != NULL;
                r = params->items[i] ? 0 : -ENOMEM;
        }
        return r;
}

int hfd_policy_params_find(const struct hfd_policy_case *c, const struct hfd_policy *policy,
                           const struct hfd_policy_binding *binding,
                           struct hfd_policy_params *params, struct hf__strbuf *reterr_message) {
        struct hfd_cacher *cacher = c->cacher;
        struct search search;
        struct hfd_object *const *objects;
        int r;

        *params = (struct hfd_policy_params){0};
        assert(c->a && c->cacher && policy && binding);
        if (!policy->param_kind || !binding->param_ref) {
                params->items = calloc(1, sizeof *params->items);
                params->n = params->items ? 1 : 0;
                return params->items ? 0 : -ENOMEM;
        }
        search.row = hfd_policy_params_kind(cacher, policy->param_api_version, policy->param_kind);
        if (!search.row)
                return fail_unserved(policy, reterr_message);
        search.cacher = cacher;
        search.allowance = c->allowance;
        search.message = reterr_message;
        search.n_found = 0;
        search.needs_webhook = false;
        search.ns = namespace_of(binding, search.row, c->a->of.ns, reterr_message);
        r = search.ns ? find_objects(&search, binding) : HF_E_INVALID;
        if (r == 0)
                r = convert_objects(&search, c->a, &objects);
        if (r == 0)
                r = read_objects(&search, objects, params);
        for (size_t i = 0; i < search.n_found; i++)
                hfd_object_unref(search.found[i]);
        hfd_resource_unref(search.row);
        return r;
}

void hfd_policy_params_done(struct hfd_policy_params *params) {
        assert(params->n == 0 || params->items);
        for (size_t i = 0; i < params->n; i++)
                hf__json_free(params->items[i]);
        free(params->items);
        *params = (struct hfd_policy_params){0};
}
