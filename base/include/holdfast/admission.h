/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Admission plug-ins for holdfastd, in C: they change or refuse the objects that clients write,
 * inside the server and without a webhook. A plug-in is a shared object, which the flag
 * --admission-plugin=FILE (an absolute path) loads:
 *
 *      cc -shared -fPIC plugin.c $(pkg-config --cflags libholdfast) -o plugin.so
 *      holdfastd --admission-plugin=/usr/lib/holdfast/plugin.so
 *
 * The plug-in exports one function with the name HF_ADMISSION_OPEN and the type
 * hf_admission_open_fn. The server calls this function once, at its start, and uses the result
 * until the process ends. The plug-in needs no function of libholdfast.
 *
 * Each write that the plug-in wants goes through mutate, then through the server's validation, then
 * through validate; after a conflict with another write, once more. mutate is called a second time
 * if a policy or a webhook has changed the object. Plug-ins come before policies and webhooks, in
 * the order of the flags, and are asked from the first request on. Only the elector's and the
 * bootstrap's own writes are exempt.
 *
 * Thread: any, several at a time. The functions must return soon: they run on threads that serve
 * other requests, so they compute, and neither wait nor do I/O. A plug-in can read the memory of
 * the server and end its process, like the server's own code. The file and its directories must not
 * be writable by other users.
 */
#include <stdbool.h>
#include <stddef.h>

#include <holdfast/api.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One write. Everything is borrowed for the call. No text is NULL, unless its comment says so. A
 * plug-in reads no member beyond `size`. */
struct hf_admission_request {
        size_t size;           /* sizeof(struct hf_admission_request) of the server */
        const char *operation; /* "CREATE", "UPDATE" or "DELETE" */
        const char *group;     /* "" = the core group */
        const char *version;   /* the version of the object */
        const char *resource;  /* the plural: "configmaps" */
        /* The kind of the object: "ConfigMap"; a subresource may have its own, "Scale". */
        const char *kind;
        const char *subresource; /* "" = the object itself */
        const char *ns;          /* "" = cluster scope; of a Namespace: its own name */
        const char *name;        /* "" = not known yet, or a delete of a collection */
        const char *user;        /* the name of the user; "system:apiserver" = the server itself */
        const char *const *groups; /* of the user */
        size_t n_groups;
        bool dry_run; /* nothing will be stored */
        /* JSON, NUL-terminated. object is NULL in a delete, old_object in a create. */
        const char *object, *old_object;
        size_t n_object, n_old_object; /* bytes */
};

/* The decision of a plug-in. The server zeroes it, which allows the request and changes nothing. */
struct hf_admission_response {
        size_t size; /* sizeof(struct hf_admission_response) of the server */
        bool refused;
        int code;          /* HTTP status of a refusal, 400 to 599; any other number = 403 */
        char message[512]; /* the reason of a refusal; NUL-terminated */
        /* A warning for the client, sent whether the request is allowed or refused; "" = none. */
        char warning[256];
        /*
         * Set by mutate: the whole changed object as JSON, which the server frees with free(). NULL
         * = unchanged, and the only value that a delete accepts. A text that is not a JSON object
         * in UTF-8 with unique keys makes the request fail with 500. A plug-in cannot change kind,
         * apiVersion, uid and the other fields that the server sets.
         */
        char *object;
        size_t n_object; /* bytes */
};

/* A plug-in. Each function may be NULL, but not both mutate and validate. ctx is passed to all of
 * them. */
struct hf_admission {
        size_t size;      /* sizeof(struct hf_admission) */
        const char *name; /* for messages: `admission plug-in "x" denied the request: ...` */
        void *ctx;
        /* Whether the plug-in wants such writes; NULL = all. Must be cheap, because the server
         * calls it for every write. */
        bool (*wants)(void *ctx, const char *group, const char *resource, const char *subresource,
                      const char *operation);
        void (*mutate)(void *ctx, const struct hf_admission_request *request,
                       struct hf_admission_response *response);
        void (*validate)(void *ctx, const struct hf_admission_request *request,
                         struct hf_admission_response *response);
};

#define HF_ADMISSION_OPEN "hf_admission_open"
/* Returns the plug-in, which lives until the process ends. NULL: it cannot work, and has said why
 * on stderr; the server does not start. */
typedef const struct hf_admission *(*hf_admission_open_fn)(void);

#ifdef __cplusplus
}
#endif
