/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks that the writer of a policy may get all objects of its paramKind, and that the writer of a
 * binding may read the objects of its paramRef.
 *
 * Invariants: without this check, expressions would show the contents of such objects to a writer
 * who may not read them. The rules are those of kube-apiserver. So an update of a policy that keeps
 * its paramKind is not checked, whatever else it changes; a binding is checked at every write. The
 * texts are those of kube-apiserver, too, which prints a user as Go prints a pointer to a struct.
 */
#include "server/registry/write/checks/param_access.h"

#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/admission/admission.h"
#include "server/admission/policy/param_kind.h"
#include "server/auth/user_extra.h"
#include "server/authorization/authorizer.h"
#include "server/registry/write/reply.h"
#include "server/resources/custom/custom_kind.h"
#include "server/resources/rows/resource_table.h"

/* Bytes: room for a user, with 2 KiB of groups and 1 KiB of extra values, and the words around it.
 * A longer reason is left out. */
#define MESSAGE_MAX ((size_t)4 << 10)

/* The kind of the written object, as far as this file needs it. */
enum written { OTHER, POLICY, BINDING };

static enum written written_kind(const struct hfd_resource *resource) {
        const char *end = strstr(resource->kind, "AdmissionPolicy");

        if (strcmp(resource->group, HFD_ADMISSION_GROUP) != 0 || !end)
                return OTHER;
        return strcmp(end, "AdmissionPolicy") == 0 ? POLICY : BINDING;
}

/* ---- the user ---- */

static void put_user(struct hf__strbuf *out, const struct hfd_requester *user) {
        hf__strbuf_printf(out, "&{%s %s [", user->subject.name, user->uid ? user->uid : "");
        for (size_t i = 0; i < user->subject.n_groups; i++)
                hf__strbuf_printf(out, "%s%s", i > 0 ? " " : "", user->subject.groups[i]);
        hf__strbuf_puts(out, "] ");
        hfd_user_put_extra(out, user, HFD_EXTRA_GO);
        hf__strbuf_putc(out, '}');
}

/* ---- rights ---- */

/* The kind of the params, as far as the server knows it. */
struct params {
        const char *api_version, *kind; /* NULL = unknown; borrowed */
        char group[HF_NAME_MAX + 1];    /* "*" = unknown */
        const char *resource;           /* "*" = unknown; borrowed */
        const struct hfd_resource *row; /* owned reference; NULL = unknown */
        bool is_malformed; /* the apiVersion has more than one slash, or too long a group */
};

static void find_params(const struct hfd_write *w, const struct hf__json *param_kind,
                        struct params *params) {
        *params = (struct params){.group = "*", .resource = "*"};
        params->api_version = hf__json_string(param_kind, "apiVersion");
        params->kind = hf__json_string(param_kind, "kind");
        if (!params->api_version || !params->kind)
                return;
        const char *slash = strchr(params->api_version, '/');
        size_t n = slash ? (size_t)(slash - params->api_version) : 0;
        params->is_malformed = (slash && strchr(slash + 1, '/')) || n >= sizeof params->group;
        if (params->is_malformed)
                return;
        memcpy(params->group, params->api_version, n);
        params->group[n] = '\0';
        params->row =
                hfd_policy_params_kind(w->registry->cacher, params->api_version, params->kind);
        if (params->row)
                params->resource = params->row->plural;
}

static bool may_read(const struct hfd_write *w, const struct params *params, const char *verb,
                     const char *ns, const char *name) {
        const struct hfd_attributes attributes = {.verb = verb,
                                                  .group = params->group,
                                                  .resource = params->resource,
                                                  .subresource = "",
                                                  .ns = ns,
                                                  .name = name,
                                                  .path = "",
                                                  .is_resource = true};

        return hfd_authorizer_allows(w->request->authorizer, &w->request->requester->subject,
                                     &attributes, NULL);
}

/*
 * Responds 422. If old may not be the newest version of the object, starts another attempt with the
 * newest version instead: the newest policy may have the paramKind of the request already, or a
 * patch of the newest binding may lead to other params.
 */
static void refuse_params(struct hfd_write *w, const struct hf__json *old, const char *field,
                          struct hf__strbuf *why) {
        struct hfd_response response = {0};
        struct hfd_causes causes;

        if (old && !w->fresh) {
                hfd_write_refetch(w);
                return;
        }
        hfd_causes_init(&causes);
        hfd_cause_forbidden(&causes, field, why->error == 0 && why->data ? why->data : "");
        hfd_response_invalid(&response, w->request->resource, hfd_write_name(w), &causes);
        hfd_write_reply(w, &response);
}

/* ---- policies ---- */

static bool check_policy(struct hfd_write *w, const struct hf__json *old) {
        const struct hf__json *kind = hf__json_path(w->object, "spec.paramKind"),
                              *old_kind = hf__json_path(old, "spec.paramKind");
        struct hf__strbuf why = {.max = MESSAGE_MAX};
        struct params params;

        bool unchanged = false;
        if (old_kind && hf__json_are_equal(kind, old_kind, &unchanged) != 0) {
                hfd_write_reply_no_memory(w);
                return false;
        }
        if (!hf__json_is_object(kind) || unchanged)
                return true;
        find_params(w, kind, &params);
        bool may = may_read(w, &params, "get", "*", "*");
        hfd_resource_unref(params.row);
        if (may)
                return true;
        hf__strbuf_puts(&why, "user ");
        put_user(&why, w->request->requester);
        hf__strbuf_printf(&why,
                          " must have \"get\" permission on all objects of the referenced "
                          "paramKind "
                          "(kind=%s, apiVersion=%s)",
                          params.kind ? params.kind : "",
                          params.api_version ? params.api_version : "");
        refuse_params(w, old, "spec.paramKind", &why);
        hf__strbuf_done(&why);
        return false;
}

/* ---- bindings ---- */

/* The policy of the binding, parsed. NULL: the cacher does not have it, it cannot be read, or
 * memory ran out. */
static struct hf__json *policy_of(const struct hfd_write *w, const char *name) {
        bool is_mutating = strncmp(w->request->resource->kind, "Mutating", 8) == 0, synced;
        const struct hfd_resource *row =
                hfd_resource_find(HFD_ADMISSION_GROUP, "v1",
                                  is_mutating ? "mutatingadmissionpolicies"
                                              : "validatingadmissionpolicies");
        struct hfd_object *object =
                row && name && strlen(name) <= HF_NAME_MAX
                        ? hfd_cacher_newest(w->registry->cacher, row, name, &synced)
                        : NULL;
        struct hf__json *policy = object && object->bytes ? hfd_object_parse(object) : NULL;

        hfd_object_unref(object);
        return policy;
}

static void put_refusal(struct hf__strbuf *why, const struct hfd_write *w,
                        const struct hf__json *policy, const struct params *params,
                        const char *verb) {
        const char *name = hf__json_string(w->object, "spec.policyName");
        bool is_mutating = strncmp(w->request->resource->kind, "Mutating", 8) == 0,
             is_known = policy && (!params->kind || params->row);

        if (!policy)
                hf__strbuf_printf(why, "unable to get policy %s", name ? name : "");
        else if (!is_known)
                hf__strbuf_printf(why, "unable to %s paramKind &ParamKind{APIVersion:%s,Kind:%s,}",
                                  params->is_malformed ? "parse" : "resolve", params->api_version,
                                  params->kind);
        if (!is_known) {
                hf__strbuf_puts(why, " to determine minimum required permissions and user ");
                put_user(why, w->request->requester);
                hf__strbuf_printf(why,
                                  " does not have \"%s\" permission for all groups, versions and "
                                  "resources",
                                  verb);
                return;
        }
        /* Kubernetes' message for a MutatingAdmissionPolicyBinding has user and verb in each
         * other's place. */
        hf__strbuf_puts(why, "user ");
        if (is_mutating)
                hf__strbuf_puts(why, verb);
        else
                put_user(why, w->request->requester);
        hf__strbuf_puts(why, " does not have \"");
        if (is_mutating)
                put_user(why, w->request->requester);
        else
                hf__strbuf_puts(why, verb);
        hf__strbuf_puts(why, "\" permission on the object referenced by paramRef");
}

static bool check_binding(struct hfd_write *w, const struct hf__json *old) {
        const struct hf__json *ref = hf__json_path(w->object, "spec.paramRef");
        const char *name = hf__json_string(ref, "name"), *ns = hf__json_string(ref, "namespace");
        const char *verb = name && *name ? "get" : "list";
        struct hf__strbuf why = {.max = MESSAGE_MAX};
        struct params params;

        if (!hf__json_is_object(ref))
                return true;
        struct hf__json *policy = policy_of(w, hf__json_string(w->object, "spec.policyName"));
        find_params(w, hf__json_path(policy, "spec.paramKind"), &params);
        bool may = may_read(w, &params, verb, ns ? ns : "", name ? name : "");
        if (!may) {
                put_refusal(&why, w, policy, &params, verb);
                refuse_params(w, old, "spec.paramRef", &why);
        }
        hf__strbuf_done(&why);
        hfd_resource_unref(params.row);
        hf__json_free(policy);
        return may;
}

bool hfd_write_may_read_params(struct hfd_write *w, const struct hf__json *old) {
        enum written kind = written_kind(w->request->resource);

        if (!w->request->requester || kind == OTHER || w->request->subresource != HFD_SUB_NONE)
                return true;
        return kind == POLICY ? check_policy(w, old) : check_binding(w, old);
}
