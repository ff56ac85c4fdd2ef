/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses the elements of the header Accept, and sorts them by the client's preference. Unknown
 * parameters are ignored.
 *
 * Invariant: the order of up to 12 elements is the one that kube-apiserver computes, with its
 * peculiarity: a wildcard moves after a type with a lower quality, if that type follows it
 * directly.
 */
#include "server/filters/media_type.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/resources/objects/protobuf_response.h"

static char *skip_spaces(char *text) { return text + strspn(text, " "); }

/* As in Go, a text that is not a number counts as 0. */
static double parse_quality(const char *text) {
        char *end;
        double quality = strtod(text, &end);

        return end == text || *end || isnan(quality) ? 0 : quality;
}

bool hfd_media_type_parse(char *element, struct hfd_media_type *ret_media) {
        char *save = NULL, *type = strtok_r(element, ";", &save);

        if (!type)
                return false;
        type = skip_spaces(type);
        type[strcspn(type, " ")] = '\0';
        *ret_media = (struct hfd_media_type){.type = type,
                                             .version = "v1",
                                             .group = "meta.k8s.io",
                                             .quality = 1};
        for (char *p = strtok_r(NULL, ";", &save); p; p = strtok_r(NULL, ";", &save)) {
                p = skip_spaces(p);
                p[strcspn(p, " ")] = '\0';
                if (strncmp(p, "as=", 3) == 0)
                        (void)snprintf(ret_media->as, sizeof ret_media->as, "%s", p + 3);
                else if (strncmp(p, "v=", 2) == 0)
                        (void)snprintf(ret_media->version, sizeof ret_media->version, "%s", p + 2);
                else if (strncmp(p, "g=", 2) == 0)
                        (void)snprintf(ret_media->group, sizeof ret_media->group, "%s", p + 2);
                else if (strncmp(p, "stream=", 7) == 0)
                        (void)snprintf(ret_media->stream, sizeof ret_media->stream, "%s", p + 7);
                else if (strncmp(p, "q=", 2) == 0)
                        ret_media->quality = parse_quality(p + 2);
        }
        return true;
}

/* subtype true: whether the part after the slash is `*`. False: whether the part before the slash
 * begins with `*`. A type without a slash is a wildcard in both ways if it begins with `*`. */
static bool is_wildcard(const struct hfd_media_type *media, bool subtype) {
        const char *slash = strchr(media->type, '/');

        if (subtype && slash)
                return strcmp(slash, "/*") == 0;
        return *media->type == '*';
}

/* Whether a is preferred to b, as kube-apiserver compares two neighbours. */
static bool is_before(const struct hfd_media_type *a, const struct hfd_media_type *b) {
        return a->quality > b->quality || (!is_wildcard(a, false) && is_wildcard(b, false)) ||
               (!is_wildcard(a, true) && is_wildcard(b, true));
}

size_t hfd_media_types_parse(char *accept, struct hfd_media_type types[HFD_ACCEPT_TYPES]) {
        char *save = NULL;
        size_t n = 0;

        for (char *e = strtok_r(accept, ",", &save); e && n < HFD_ACCEPT_TYPES;
             e = strtok_r(NULL, ",", &save))
                n += hfd_media_type_parse(e, &types[n]);
        /* An insertion sort, as Go's for few elements. is_before is not a consistent order, so the
         * result depends on the algorithm. */
        for (size_t i = 1; i < n; i++)
                for (size_t j = i; j > 0 && is_before(&types[j], &types[j - 1]); j--) {
                        struct hfd_media_type swapped = types[j];
                        types[j] = types[j - 1];
                        types[j - 1] = swapped;
                }
        return n;
}

bool hfd_media_type_is_json(const struct hfd_media_type *media) {
        return strcmp(media->type, "application/json") == 0 ||
               strcmp(media->type, "application/*") == 0 || strcmp(media->type, "*/*") == 0 ||
               strcmp(media->type, "*") == 0;
}

bool hfd_media_type_is_protobuf(const struct hfd_media_type *media) {
        return strcmp(media->type, HFD_PROTOBUF_TYPE) == 0;
}

bool hfd_media_type_status_is_protobuf(const char *accept) {
        struct hfd_media_type types[HFD_ACCEPT_TYPES];
        char copy[HFD_ACCEPT_MAX];

        if (!accept || strlen(accept) >= sizeof copy)
                return false;
        memcpy(copy, accept, strlen(accept) + 1);
        size_t n = hfd_media_types_parse(copy, types);
        for (size_t i = 0; i < n; i++) {
                /* As in kube-apiserver, an element that asks for another form, such as a Table, or
                 * for a stream other than a watch, does not count for a Status. */
                bool good = !*types[i].as &&
                            (!*types[i].stream || strcmp(types[i].stream, "watch") == 0);
                if (good && hfd_media_type_is_protobuf(&types[i]))
                        return true;
                if (good && hfd_media_type_is_json(&types[i]))
                        return false;
        }
        return false;
}
