/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a request's path and query ask for, in the words of the API: group, version, resource,
 * namespace, name, verb. Pure.
 *
 *      /api/v1/namespaces/NS/configmaps/NAME/SUB
 * /apis/GROUP/VERSION/namespaces/NS/RESOURCE/NAME/SUB /api/v1/namespaces/NAME is the cluster scoped
 * namespace itself (ns "" and name set), its `status` and `finalize` too
 *
 * Everything else, discovery (/api, /api/v1, /apis, /apis/GROUP, /apis/GROUP/VERSION) included, is
 * a non-resource path. Segments are percent-decoded. Refused: empty, "." and ".." segments, a '/',
 * NUL or control character that was encoded, bad percent signs, and anything longer than its limit.
 * One slash at the end is ignored.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

#define HFD_LABEL_MAX 63

struct hfd_request_path {
        bool is_resource;                 /* false: all strings are "" */
        char group[HF_NAME_MAX + 1];      /* "" = the core group */
        char version[HFD_LABEL_MAX + 1];  /* "v1" */
        char resource[HFD_LABEL_MAX + 1]; /* "configmaps" */
        char subresource[HF_NAME_MAX +
                         1];      /* "status"; what follows the name, slashes included; "" = none */
        char ns[HF_NAME_MAX + 1]; /* "" = cluster scope, or all namespaces */
        char name[HF_NAME_MAX + 1]; /* "" = the collection */
};

/* path: as sent, begins with '/', no query. 0, or HF_E_INVALID: answer 400, and *ret_path is that
 * of no resource. */
int hfd_request_path_parse(const char *path, struct hfd_request_path *ret_path);

/*
 * The API verb: "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection";
 * for a non-resource path the method in lower case ("get"). An unknown method is "" . Static
 * storage.
 */
const char *hfd_request_verb(const char *method, const struct hfd_request_path *path,
                             const char *query);

/*
 * The value of the nth (from 0) parameter called key in a query string, percent-decoded ('+' is a
 * space). A parameter without '=' has the value "". 0; HF_E_NOT_FOUND; HF_E_INVALID: badly encoded,
 * or longer than max_value - 1.
 */
int hfd_query_get(const char *query, const char *key, size_t nth, char *ret_value,
                  size_t max_value);
/* The field's reading of a boolean parameter: absent, "0" and "false" are false, all else is true
 * (also `?watch`). */
bool hfd_query_bool(const char *query, const char *key);

/* If fieldSelector names one object (metadata.name=x among its terms) copies x and returns true. */
bool hfd_query_single_name(const char *query, char ret_name[HF_NAME_MAX + 1]);
