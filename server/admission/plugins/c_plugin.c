/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server's side of <holdfast/admission.h>: loads plug-ins from shared objects, and asks them as
 * plug-ins of the chain.
 *
 * Invariants: a mistake of a plug-in must not make a refusal look like a success, or store an
 * object that no client can read. So the code and the object that a plug-in returns are checked,
 * and its texts get a NUL at their ends. A shared object is never unloaded: it may have threads and
 * exit handlers, which the server cannot end. Nor is its file closed, because dlopen tells shared
 * objects apart by a name that has the number of the descriptor in it.
 */
#include "server/admission/plugins/c_plugin.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <holdfast/admission.h>

#include "base/json.h"
#include "base/sized_struct.h"
#include "base/strbuf.h"
#include "base/utf8.h"
#include "server/auth/trusted_path.h"
#include "server/auth/user.h"

#define SYSTEM_USER "system:apiserver" /* the user of the server's own requests */

struct hfd_c_plugin {
        /* A copy; name and ctx are those of the shared object, which is never unloaded. */
        struct hf_admission of;
};

/* ---- loading ---- */

/* `validate` is the last member of the first release. */
static const struct hf__sized sized_plugin = HF__SIZED(struct hf_admission, validate);

/* Copies what the plug-in has returned. It may have been built for an older or a newer server
 * (<holdfast/api.h>). */
static int copy_plugin(const struct hf_admission *from, const char *path, struct hf_admission *to,
                       struct hf_status *reterr_status) {
        struct hf_status why;

        if (!from)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "the admission plug-in %s has failed to start: see stderr", path);
        if (hf__sized_copy(&sized_plugin, to, from, &why) != 0)
                return hf_fail(reterr_status, HF_E_INVALID, "%s is not an admission plug-in: %s",
                               path, why.message);
        if (!to->name || (!to->mutate && !to->validate))
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is not an admission plug-in: name, or mutate and validate are "
                               "missing",
                               path);
        return 0;
}

static int open_file(const char *path, int *ret_fd, struct hf_status *reterr_status) {
        if (*path != '/')
                return hf_fail(reterr_status, HF_E_INVALID, "%s is not an absolute path", path);
        return hfd_trusted_open(path, HFD_TRUSTED_FILE, ret_fd, reterr_status);
}

int hfd_c_plugin_check(const char *path, struct hf_status *reterr_status) {
        int fd = -1, r = open_file(path, &fd, reterr_status);

        if (fd >= 0)
                (void)close(fd);
        return r;
}

int hfd_c_plugin_load(const char *path, struct hfd_c_plugin **ret_plugin,
                      struct hf_status *reterr_status) {
        hf_admission_open_fn open_plugin;
        struct hf_admission of;
        char by_fd[40];
        int fd, r = open_file(path, &fd, reterr_status);

        if (r != 0)
                return r;
        /* Loads the very file that was checked, even if the path names another file by now. dlopen
         * returns the shared object that it has already loaded by the same name. So the descriptor
         * stays open while the process lives, and no other file gets its number. */
        (void)snprintf(by_fd, sizeof by_fd, "/proc/self/fd/%d", fd);
        /* RTLD_NOW: a function that is missing makes the start fail, and not a later request.
         * RTLD_LOCAL: two plug-ins may have functions of the same name. */
        void *library = dlopen(by_fd, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library) {
                const char *reason = dlerror();
                (void)close(fd);
                return hf_fail(reterr_status, HF_E_INVALID, "cannot load %s: %s", path,
                               reason ? reason : "unknown error");
        }
        /* C has no cast from an object pointer to a function pointer. POSIX allows this form. */
        *(void **)&open_plugin = dlsym(library, HF_ADMISSION_OPEN);
        if (!open_plugin)
                return hf_fail(reterr_status, HF_E_INVALID,
                               "%s is not an admission plug-in: it has no "
                               "function " HF_ADMISSION_OPEN,
                               path);
        r = copy_plugin(open_plugin(), path, &of, reterr_status);
        if (r != 0)
                return r;
        struct hfd_c_plugin *plugin = malloc(sizeof *plugin);
        if (!plugin)
                return hf_fail(reterr_status, -ENOMEM, "%s", hf_strerror(-ENOMEM));
        plugin->of = of;
        *ret_plugin = plugin;
        return 0;
}

struct hfd_c_plugin *hfd_c_plugin_free(struct hfd_c_plugin *plugin) {
        free(plugin);
        return NULL;
}

/* ---- requests ---- */

static bool wants_request(void *ctx, const struct hfd_admission_attributes *of) {
        const struct hf_admission *plugin = &((struct hfd_c_plugin *)ctx)->of;

        return !plugin->wants ||
               plugin->wants(plugin->ctx, of->resource->group, of->resource->plural,
                             of->subresource, hfd_admission_operation_name(of->operation));
}

/* A code that is not one of an error becomes 403, with which the built-in plug-ins of
 * kube-apiserver refuse. */
static void refuse_request(struct hfd_admission *a, const char *name,
                           const struct hf_admission_response *reply) {
        int code = reply->code < 400 || reply->code > 599 ? 403 : reply->code;
        struct hfd_response response = {0};
        char message[800];

        (void)snprintf(message, sizeof message,
                       "admission plug-in \"%.200s\" denied the request%s%s", name,
                       reply->message[0] ? ": " : "", reply->message);
        hfd_response_status(&response, code == 403 ? HF_E_FORBIDDEN : HF_E_INVALID, code,
                            code == 403 ? "Forbidden" : "", message, NULL);
        hfd_admission_refuse(a, &response);
}

/* Replaces the object by the changed one. A delete has no object to replace, so the plug-in that
 * returns one has a mistake. False: response is the error. */
static bool take_object(struct hfd_admission *a, const char *name,
                        const struct hf_admission_response *reply, struct hfd_response *response) {
        struct hf__json *object = NULL;
        char message[300];
        int r = HF_E_INVALID;

        if (a->object && hf__utf8_valid(reply->object, reply->n_object))
                r = hf__json_parse(reply->object, reply->n_object, &object, NULL);
        if (r == 0 && (!hf__json_is_object(object) || hf__json_check_unique(object, NULL) != 0))
                r = HF_E_INVALID;
        if (r == 0) {
                hf__json_free(a->object);
                a->object = object;
                return hfd_admission_settle(a, response);
        }
        hf__json_free(object);
        if (r == -ENOMEM) {
                hfd_response_no_memory(response);
                return false;
        }
        (void)snprintf(message, sizeof message,
                       "Internal error occurred: the admission plug-in \"%.200s\" has not made "
                       "an object",
                       name);
        hfd_response_status(response, HF_E_INVALID, 500, "InternalError", message, NULL);
        return false;
}

/* Carries out the decision of a plug-in, and frees the object in it. */
static void act_on_response(struct hfd_admission *a, const char *name,
                            struct hf_admission_response *reply) {
        struct hfd_response response = {0};

        reply->message[sizeof reply->message - 1] = '\0';
        reply->warning[sizeof reply->warning - 1] = '\0';
        hfd_admission_warn(a->notes, reply->warning);
        bool good = reply->refused || a->validating || !reply->object ||
                    take_object(a, name, reply, &response);
        free(reply->object);
        if (!good)
                hfd_admission_refuse(a, &response);
        else if (reply->refused)
                refuse_request(a, name, reply);
        else
                hfd_admission_next(a);
}

/*
 * Calls one function of the plug-in, and acts on its response. Objects are passed as JSON text,
 * which costs a print and a parse for each call. In return a plug-in does not depend on the structs
 * of the server, and works with later versions of it.
 */
static void ask_plugin(struct hfd_c_plugin *plugin, struct hfd_admission *a,
                       void (*function)(void *ctx, const struct hf_admission_request *request,
                                        struct hf_admission_response *reply)) {
        static const char *const masters[] = {"system:masters"};
        const struct hfd_admission_attributes *of = &a->of;
        const struct hf__json *old = of->old;
        struct hf__strbuf object = {0}, old_object = {0};
        struct hf_admission_response reply = {.size = sizeof reply};
        struct hfd_response response = {0};

        hf__json_print(a->object, &object);
        hf__json_print(old, &old_object);
        if (object.error != 0 || old_object.error != 0) {
                hf__strbuf_done(&object);
                hf__strbuf_done(&old_object);
                hfd_response_no_memory(&response);
                hfd_admission_refuse(a, &response);
                return;
        }
        const struct hf_admission_request request =
                {.size = sizeof request,
                 .operation = hfd_admission_operation_name(of->operation),
                 .group = of->resource->group,
                 .version = of->resource->version,
                 .resource = of->resource->plural,
                 .kind = of->kind->kind,
                 .subresource = of->subresource,
                 .ns = of->ns,
                 .name = of->name,
                 .user = of->user ? of->user->subject.name : SYSTEM_USER,
                 .groups = of->user ? of->user->subject.groups : masters,
                 .n_groups = of->user ? of->user->subject.n_groups : 1,
                 .dry_run = of->dry_run,
                 .object = a->object ? object.data : NULL,
                 .old_object = old ? old_object.data : NULL,
                 .n_object = object.n,
                 .n_old_object = old_object.n};
        function(plugin->of.ctx, &request, &reply);
        hf__strbuf_done(&object);
        hf__strbuf_done(&old_object);
        act_on_response(a, plugin->of.name, &reply);
}

static void mutate_object(void *ctx, struct hfd_admission *a) {
        struct hfd_c_plugin *plugin = ctx;

        ask_plugin(plugin, a, plugin->of.mutate);
}

static void validate_object(void *ctx, struct hfd_admission *a) {
        struct hfd_c_plugin *plugin = ctx;

        ask_plugin(plugin, a, plugin->of.validate);
}

struct hfd_admission_plugin hfd_c_plugin_of_chain(struct hfd_c_plugin *plugin) {
        assert(plugin->of.mutate || plugin->of.validate);
        return (struct hfd_admission_plugin){.name = plugin->of.name,
                                             .ctx = plugin,
                                             .wants = wants_request,
                                             .mutate = plugin->of.mutate ? mutate_object : NULL,
                                             .validate =
                                                     plugin->of.validate ? validate_object : NULL};
}
