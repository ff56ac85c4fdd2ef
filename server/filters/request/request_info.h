/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * RequestInfo: the group, version, resource, namespace, name and verb of a request, as in
 * kube-apiserver. It is parsed once, when the head of the request has arrived. Filters and handlers
 * use the result. Pure.
 *
 *      /api/VERSION/RESOURCE/NAME/SUB         cluster scope, or all namespaces
 *      /api/VERSION/namespaces/NS/RESOURCE/NAME/SUB
 *      /apis/GROUP/VERSION/...                the same below a group
 *      /api/v1/namespaces/NAME                the Namespace object: its name is in `name`, and ns
 *                                             is "" (kube-apiserver has it in both; the filter of
 *                                             authorization adds it). The subresources are
 *                                             `status` and `finalize`
 *
 * SUB may be missing, or NAME and SUB. Every other path, discovery included (/api, /api/v1, /apis,
 * /apis/GROUP, /apis/GROUP/VERSION), is a non-resource path. Segments are percent-decoded. A path
 * is invalid if a segment is empty, "." or "..", contains an encoded '/', NUL or control character,
 * contains a malformed percent sign, is not UTF-8, or is too long. One slash at the end is ignored.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/fence.h> /* HF_NAME_MAX */

#define HFD_LABEL_MAX 63 /* bytes of a DNS label, which versions and resources are */

struct hfd_request_path {
        bool is_resource;                 /* false: all strings are "" */
        char group[HF_NAME_MAX + 1];      /* "" = the core group */
        char version[HFD_LABEL_MAX + 1];  /* "v1" */
        char resource[HFD_LABEL_MAX + 1]; /* "configmaps" */
        /* "status"; all that follows the name, with slashes; "" = none */
        char subresource[HF_NAME_MAX + 1];
        char ns[HF_NAME_MAX + 1];   /* "" = cluster scope, or all namespaces */
        char name[HF_NAME_MAX + 1]; /* "" = the collection */
};

/* path: as sent, begins with '/', no query. 0, or HF_E_INVALID: respond with 400; *ret_path is a
 * non-resource path. */
int hfd_request_path_parse(const char *path, struct hfd_request_path *ret_path);

/*
 * The API verb: "get", "list", "watch", "create", "update", "patch", "delete", "deletecollection";
 * for a non-resource path the method in lower case ("get"). "": an unknown method, or OPTIONS for a
 * resource. Static storage.
 */
const char *hfd_request_verb(const char *method, const struct hfd_request_path *path,
                             const char *query);

/* Immutable after init. */
struct hfd_request_info {
        const char *verb; /* as returned by hfd_request_verb */
        bool valid_path;  /* false: respond with 400 */
        bool is_resource;
        bool watch;    /* long-running: not counted as in flight; a shutdown ends it separately */
        bool mutating; /* the verb may change something, or is "" */
        /* as in hfd_request_path; owned by the creator */
        const char *group, *version, *resource, *subresource, *ns, *name;
};

/* The bytes that the strings of the path take, with their NULs. */
size_t hfd_request_info_text_size(const struct hfd_request_path *path);
/* Fills *info in. Its strings are copied to text, which has hfd_request_info_text_size(path) bytes
 * and must outlive it. valid: the path could be parsed. */
void hfd_request_info_init(struct hfd_request_info *info, const char *method,
                           const struct hfd_request_path *path, bool valid, const char *query,
                           char *text);
