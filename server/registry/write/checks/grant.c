/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks the rights that some writes need in addition to their verb: to grant the rights in a role
 * or binding (server/authorization/escalation.h), and to create the object that an apply or an
 * update creates.
 *
 * Invariant: nobody grants a right that they do not have, unless they may use the verb escalate or
 * bind (escalation.h). Requests from inside the process have no requester and may do everything:
 * that is how the controllers keep the default and the aggregated roles.
 */
#include "server/registry/write/checks/grant.h"

#include <errno.h>

#include "base/strbuf.h"
#include "server/authorization/authorizer.h"
#include "server/authorization/escalation.h"
#include "server/registry/write/reply.h"

/* Bytes of the message of a 403 or 404. The reason in it has 1024 fewer, for the other words. */
#define MESSAGE_MAX ((size_t)32 << 10)

static void reply_forbidden(struct hfd_write *w, const char *why) {
        const struct hfd_resource *resource = w->request->resource;
        const struct hfd_details details = {.name = hfd_write_name(w),
                                            .group = resource->group,
                                            .kind = resource->plural};
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hfd_response response = {0};
        char qualified[HFD_QUALIFIED_MAX];

        hfd_resource_qualified(resource, qualified);
        hf__strbuf_printf(&message, "%s \"%s\" is forbidden: %s", qualified, hfd_write_name(w),
                          why);
        hfd_response_status(&response, HF_E_FORBIDDEN, 403, "Forbidden",
                            message.error == 0 ? message.data : "forbidden", &details);
        hf__strbuf_done(&message);
        hfd_write_reply(w, &response);
}

/* Sends 404 for the role that a binding refers to. role: its resource and name, for the message. */
static void reply_no_role(struct hfd_write *w, const char *role) {
        struct hf__strbuf message = {.max = MESSAGE_MAX};
        struct hfd_response response = {0};

        hf__strbuf_printf(&message, "%s not found", role);
        hfd_response_status(&response, HF_E_NOT_FOUND, 404, "NotFound",
                            message.error == 0 ? message.data : "not found", NULL);
        hf__strbuf_done(&message);
        hfd_write_reply(w, &response);
}

bool hfd_write_may_create(struct hfd_write *w) {
        const struct hfd_request *request = w->request;
        const struct hfd_attributes attributes = {.verb = "create",
                                                  .group = request->resource->group,
                                                  .resource = request->resource->plural,
                                                  .subresource = "",
                                                  .ns = request->ns,
                                                  .name = request->name,
                                                  .path = "",
                                                  .is_resource = true};
        struct hf__strbuf why = {.max = MESSAGE_MAX - 1024};

        if (!request->requester ||
            hfd_authorizer_allows(request->authorizer, &request->requester->subject, &attributes,
                                  NULL))
                return true;
        hf__strbuf_printf(&why,
                          "User \"%s\" cannot create resource \"%s\" in API group \"%s\" %s%s%s",
                          request->requester->subject.name, attributes.resource, attributes.group,
                          *request->ns ? "in the namespace \"" : "at the cluster scope",
                          request->ns, *request->ns ? "\"" : "");
        reply_forbidden(w, why.error == 0 ? why.data : "");
        hf__strbuf_done(&why);
        return false;
}

bool hfd_write_may_grant(struct hfd_write *w, const struct hf__json *old) {
        const struct hfd_request *request = w->request;

        if (!request->requester || !hfd_escalation_concerns(request->resource))
                return true;
        const struct hfd_escalation escalation = {.authorizer = request->authorizer,
                                                  .subject = &request->requester->subject,
                                                  .resource = request->resource,
                                                  .ns = request->ns,
                                                  .name = request->name,
                                                  .object = w->object,
                                                  .old = old};
        struct hf__strbuf why = {.max = MESSAGE_MAX - 1024};
        int r = hfd_escalation_check(&escalation, &why);
        if (r != 0 && r != -ENOMEM && old && !w->fresh)
                hfd_write_refetch(w);
        else if (r == HF_E_FORBIDDEN)
                reply_forbidden(w, why.error == 0 && why.data ? why.data : "");
        else if (r == HF_E_NOT_FOUND)
                reply_no_role(w, why.error == 0 && why.data ? why.data : "the role");
        else if (r != 0)
                hfd_write_reply_no_memory(w);
        hf__strbuf_done(&why);
        return r == 0;
}
