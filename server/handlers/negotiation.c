/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Content negotiation for resources. Every response to them is JSON. The client chooses between the
 * object itself, a Table and PartialObjectMetadata.
 *
 * Invariant: an element of Accept that is not supported is skipped and not refused, because clients
 * list plain JSON after the format that they prefer.
 */
#include "server/handlers/negotiation.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "server/filters/query.h"
#include "server/handlers/protobuf_fields.h"

#define ACCEPT_MAX 2048 /* bytes of the header, with the NUL; a longer one counts as absent */

/* ---- Accept ---- */

/* One element of Accept: `application/json;as=Table;v=v1;g=meta.k8s.io`. */
struct media_type {
        const char *type;
        char as[40], version[16], group[64];
};

static char *skip_spaces(char *text) { return text + strspn(text, " "); }

/* Parses the element in place. False: it is empty. */
static bool parse_media_type(char *element, struct media_type *ret_media) {
        char *save = NULL, *type = strtok_r(element, ";", &save);

        if (!type)
                return false;
        *ret_media = (struct media_type){.type = skip_spaces(type),
                                         .version = "v1",
                                         .group = "meta.k8s.io"};
        for (char *p = strtok_r(NULL, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
                p = skip_spaces(p);
                if (strncmp(p, "as=", 3) == 0)
                        (void)snprintf(ret_media->as, sizeof ret_media->as, "%s", p + 3);
                else if (strncmp(p, "v=", 2) == 0)
                        (void)snprintf(ret_media->version, sizeof ret_media->version, "%s", p + 2);
                else if (strncmp(p, "g=", 2) == 0)
                        (void)snprintf(ret_media->group, sizeof ret_media->group, "%s", p + 2);
        }
        return true;
}

static bool is_json_range(const char *type) {
        return strcmp(type, "application/json") == 0 || strcmp(type, "application/*") == 0 ||
               strcmp(type, "*/*") == 0;
}

/* Finds the format for the parameter `as`. A watch accepts both names: its events are single
 * objects, but earlier releases of this server required the name of the list. */
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

/* Sets the format of the request if the element is supported. False: it is not. */
static bool accept_element(struct hfd_request *request, char *element) {
        bool reads =
                request->verb == HFD_LIST || request->verb == HFD_WATCH || request->verb == HFD_GET;
        struct media_type media;

        if (!parse_media_type(element, &media) || !is_json_range(media.type))
                return false;
        if (!*media.as)
                return true;
        if (!reads || strcmp(media.group, "meta.k8s.io") != 0 ||
            (strcmp(media.version, "v1") != 0 && strcmp(media.version, "v1beta1") != 0) ||
            !find_format(media.as, request->verb, &request->format))
                return false;
        (void)snprintf(request->table_version, sizeof request->table_version, "%s", media.version);
        return true;
}

bool hfd_negotiate_format(struct hfd_request *request, const char *accept,
                          struct hfd_response *response) {
        char copy[ACCEPT_MAX], *save = NULL;

        assert(request->format == HFD_AS_JSON);
        if (!accept || !*accept || strlen(accept) >= sizeof copy)
                return true;
        memcpy(copy, accept, strlen(accept) + 1);
        for (char *e = strtok_r(copy, ",", &save); e; e = strtok_r(NULL, ",", &save))
                if (accept_element(request, e))
                        return true;
        hfd_response_status(response, HF_E_INVALID, 406, "NotAcceptable",
                            "only the following media types are accepted: application/json", NULL);
        return false;
}

/* ---- Content-Type ---- */

bool hfd_negotiate_body(const struct hfd_resource *resource, const char *content_type,
                        bool *ret_protobuf, struct hfd_response *response) {
        static const char json[] = "application/json",
                          protobuf[] = "application/vnd.kubernetes.protobuf";

        *ret_protobuf = false;
        if (!content_type || !*content_type ||
            strncasecmp(content_type, json, sizeof json - 1) == 0)
                return true;
        *ret_protobuf = strncasecmp(content_type, protobuf, sizeof protobuf - 1) == 0;
        if (*ret_protobuf && hfd_protobuf_fields(resource))
                return true;
        hfd_response_status(response, HF_E_INVALID, 415, "UnsupportedMediaType",
                            "the body of the request was in an unknown format - accepted media "
                            "types include: application/json, application/vnd.kubernetes.protobuf",
                            NULL);
        return false;
}

bool hfd_negotiate_patch(struct hfd_request *request, const char *content_type,
                         struct hfd_response *response) {
        static const struct {
                const char *type;
                enum hfd_patch patch;
        } types[] = {{"application/json-patch+json", HFD_PATCH_JSON},
                     {"application/merge-patch+json", HFD_PATCH_MERGE},
                     {"application/strategic-merge-patch+json", HFD_PATCH_STRATEGIC}};
        static const char without_strategic[] =
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json";
        static const char with_strategic[] =
                "the body of the request was in an unknown format - accepted media types include: "
                "application/json-patch+json, application/merge-patch+json, "
                "application/strategic-merge-patch+json";
        bool strategic = !request->resource->no_strategic_patch;

        assert(request->verb == HFD_PATCH);
        for (size_t i = 0; content_type && i < sizeof types / sizeof types[0]; i++) {
                size_t n = strlen(types[i].type);
                if (types[i].patch == HFD_PATCH_STRATEGIC && !strategic)
                        continue;
                /* The type may be followed by parameters: "; charset=utf-8". */
                if (strncasecmp(content_type, types[i].type, n) != 0 ||
                    (content_type[n] && !strchr("; ", content_type[n])))
                        continue;
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
