/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* The elements of the header Accept, with the parameters that Kubernetes' clients send. Pure.
 * Thread: any. */
#include <stdbool.h>
#include <stddef.h>

#define HFD_ACCEPT_MAX   2048 /* bytes of the header, with the NUL; a longer one counts as absent */
#define HFD_ACCEPT_TYPES 32   /* elements that are read; further ones are ignored */

/* One element of Accept: `application/json;as=Table;v=v1;g=meta.k8s.io`. Without the parameters:
 * as "", version "v1", group "meta.k8s.io", stream "", quality 1. */
struct hfd_media_type {
        const char *type;
        char as[40], version[16], group[64], stream[16];
        double quality;
};

/* Parses one element in place; type points into it. False: it has nothing but semicolons. The type
 * of an element of spaces is "". */
bool hfd_media_type_parse(char *element, struct hfd_media_type *ret_media);
/*
 * Parses the header in place; the types point into it. They are in the order in which the client
 * prefers them: by quality, and wildcards after types. Returns how many there are.
 */
size_t hfd_media_types_parse(char *accept, struct hfd_media_type types[HFD_ACCEPT_TYPES]);
/* Whether the type covers application/json. */
bool hfd_media_type_is_json(const struct hfd_media_type *media);
/* Whether the type is Kubernetes' protobuf. A wildcard is not, because it selects JSON. */
bool hfd_media_type_is_protobuf(const struct hfd_media_type *media);
/* Whether a Status is sent as protobuf; otherwise it is sent as JSON. accept: the header; NULL =
 * absent. */
bool hfd_media_type_status_is_protobuf(const char *accept);
