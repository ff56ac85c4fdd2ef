/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content negotiation for resources. The client chooses between JSON and protobuf, and between the
 * object itself, a Table (which has no protobuf form) and PartialObjectMetadata.
 *
 * Invariant: an element of Accept that is not supported is skipped and not refused, because clients
 * list plain JSON after the format that they prefer.
 */
#include "server/handlers/negotiation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/filters/media_type.h"
#include "server/filters/request/query.h"
#include "server/handlers/protobuf_body.h"
#include "server/resources/objects/protobuf_response.h"

/* ---- Accept ---- */

/* Finds the format for the parameter `as`. A watch accepts both names: its events are single
 * objects, but clients that were written for earlier releases of this server name the list. */
static bool find_format(const char *as, enum hfd_verb verb, enum hfd_format *ret_format) {
        bool one = verb != HFD_LIST && strcmp(as, "PartialObjectMetadata") == 0,
             many = verb != HFD_GET && strcmp(as, "PartialObjectMetadataList") == 0;

        if (strcmp(as, "Table") == 0)
                *ret_format = HFD_AS_TABLE;
        else if (one || many)
                *ret_format = HFD_AS_PARTIAL;
        else
                return false;
        return true;
}

/* Whether the response can be protobuf. The metadata of every kind can. */
static bool has_protobuf(const struct hfd_request *request, enum hfd_format format) {
        if (format == HFD_AS_JSON)
                return hfd_protobuf_has_form(request->resource);
        return format == HFD_AS_PARTIAL;
}

/* Sets the format of the request if the element is supported. False: it is not. */
static bool accept_type(struct hfd_request *request, const struct hfd_media_type *media) {
        bool reads =
                request->verb == HFD_LIST || request->verb == HFD_WATCH || request->verb == HFD_GET;
        bool protobuf = hfd_media_type_is_protobuf(media);
        enum hfd_format format = HFD_AS_JSON;

        if ((!protobuf && !hfd_media_type_is_json(media)) ||
            (*media->stream && strcmp(media->stream, "watch") != 0))
                return false;
        if (*media->as &&
            (!reads || strcmp(media->group, "meta.k8s.io") != 0 ||
             (strcmp(media->version, "v1") != 0 && strcmp(media->version, "v1beta1") != 0) ||
             !find_format(media->as, request->verb, &format)))
                return false;
        if (protobuf && !has_protobuf(request, format))
                return false;
        request->format = format;
        request->protobuf = protobuf;
        if (*media->as)
                (void)snprintf(request->table_version, sizeof request->table_version, "%s",
                               media->version);
        return true;
}

/* Makes response a 406 that names the supported media types. As in Kubernetes, those of a watch
 * have a parameter. */
static void refuse_format(const struct hfd_request *request, struct hfd_response *response) {
        const char *stream = request->verb == HFD_WATCH ? ";stream=watch" : "";
        bool protobuf = hfd_protobuf_has_form(request->resource);
        char message[200];

        (void)snprintf(message, sizeof message,
                       "only the following media types are accepted: application/json%s%s%s",
                       stream, protobuf ? ", " HFD_PROTOBUF_TYPE : "", protobuf ? stream : "");
        hfd_response_status(response, HF_E_INVALID, 406, "NotAcceptable", message, NULL);
}

bool hfd_negotiate_format(struct hfd_request *request, const char *accept,
                          struct hfd_response *response) {
        struct hfd_media_type types[HFD_ACCEPT_TYPES];
        char copy[HFD_ACCEPT_MAX];

        assert(request->format == HFD_AS_JSON && !request->protobuf);
        if (!accept || !*accept || strcmp(accept, "application/json") == 0 ||
            strlen(accept) >= sizeof copy)
                return true;
        memcpy(copy, accept, strlen(accept) + 1);
        size_t n = hfd_media_types_parse(copy, types);
        for (size_t i = 0; i < n; i++)
                if (accept_type(request, &types[i]))
                        return true;
        refuse_format(request, response);
        return false;
}

/* ---- Content-Type ---- */

/* Whether content_type is this type, perhaps with parameters: "; charset=utf-8". */
static bool is_content_type(const char *content_type, const char *type) {
        size_t n = strlen(type);

        return strncasecmp(content_type, type, n) == 0 &&
               (!content_type[n] || strchr("; ", content_type[n]));
}

bool hfd_negotiate_body(const struct hfd_resource *resource, const char *content_type,
                        enum hfd_body_format *ret_format, struct hfd_response *response) {
        static const char *const types[] = {[HFD_BODY_JSON] = "application/json",
                                            [HFD_BODY_YAML] = "application/yaml",
                                            [HFD_BODY_PROTOBUF] = HFD_PROTOBUF_TYPE};
        /* Protobuf is the last type. It is left out if the resource has no form in it. */
        _Static_assert(HFD_BODY_PROTOBUF + 1 == sizeof types / sizeof types[0], "it is the last");
        size_t n = sizeof types / sizeof types[0] - !hfd_protobuf_has_form(resource);
        char message[200];

        *ret_format = HFD_BODY_JSON;
        if (!content_type || !*content_type)
                return true;
        for (size_t i = 0; i < n; i++)
                if (is_content_type(content_type, types[i])) {
                        *ret_format = (enum hfd_body_format)i;
                        return true;
                }
        (void)snprintf(message, sizeof message,
                       "the body of the request was in an unknown format - accepted media types "
                       "include: application/json, application/yaml%s%s",
                       n == 3 ? ", " : "", n == 3 ? types[HFD_BODY_PROTOBUF] : "");
        hfd_response_status(response, HF_E_INVALID, 415, "UnsupportedMediaType", message, NULL);
        return false;
}

bool hfd_negotiate_patch(struct hfd_request *request, const char *content_type,
                         struct hfd_response *response) {
        static const struct {
                const char *type;
                enum hfd_patch patch;
        } types[] = {{"application/json-patch+json", HFD_PATCH_JSON},
                     {"application/merge-patch+json", HFD_PATCH_MERGE},
                     {"application/strategic-merge-patch+json", HFD_PATCH_STRATEGIC},
                     {"application/apply-patch+yaml", HFD_PATCH_APPLY}};
        static const char without_strategic[] =
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/apply-patch+yaml";
        static const char with_strategic[] =
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/strategic-merge-patch+json, application/apply-patch+yaml";
        bool strategic = !request->resource->no_strategic_patch;

        assert(request->verb == HFD_PATCH);
        for (size_t i = 0; content_type && i < sizeof types / sizeof types[0]; i++)
                if ((types[i].patch != HFD_PATCH_STRATEGIC || strategic) &&
                    is_content_type(content_type, types[i].type)) {
                        request->patch = types[i].patch;
                        return true;
                }
        hfd_response_status(response, HF_E_INVALID, 415, "UnsupportedMediaType",
                            strategic ? with_strategic : without_strategic, NULL);
        return false;
}

/* ---- pretty ---- */

bool hfd_negotiate_pretty(const char *query, const char *agent) {
        static const char *const interactive_agents[] = {"curl", "Wget", "Mozilla/5.0"};
        char value[8];

        if (hfd_query_get(query, "pretty", value, sizeof value) == 0)
                return hfd_query_bool(query, "pretty");
        for (size_t i = 0; agent && i < sizeof interactive_agents / sizeof interactive_agents[0];
             i++)
                if (strncmp(agent, interactive_agents[i], strlen(interactive_agents[i])) == 0)
                        return true;
        return false;
}
