/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scale shows how many replicas an object has and should have, in one form for all kinds, so that
 * autoscalers need not know the kinds. The struct hfd_resource of a kind says where its objects
 * keep these numbers (the member scale).
 *
 * Invariant: a write of a Scale changes the number of replicas and nothing else. It gets the
 * object, makes the new Scale, and patches the object's number of replicas. If the object has
 * changed meanwhile, the write begins anew, a few times, unless the client has named a version. An
 * apply becomes an apply of an object that has, beside its type and metadata, at most this field.
 * If admission must be asked, a dry run of that apply comes first, so that a conflict with another
 * manager of the field is reported before admission is asked, as in Kubernetes.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/strbuf.h"
#include "server/registry/parts/part.h"
#include "server/registry/write/body.h"
#include "server/registry/write/patches/patch.h"
#include "server/resources/label_selector.h"
#include "server/resources/objects/object_key.h"

#define TEXT_MAX 100 /* bytes of a client's text that a message shows */

/* 0 if there is no number at the path, or if path is NULL. */
static int64_t number_at(const struct hf__json *object, const char *path) {
        int64_t number = 0;

        if (path)
                (void)hf__json_i64(object, path, &number);
        return number;
}

/* ---- an object as a Scale ---- */

static int set_selector(const struct hfd_scale_paths *paths, const struct hf__json *object,
                        struct hf__json *scale) {
        const struct hf__json *selector =
                paths->selector ? hf__json_path(object, paths->selector) : NULL;
        struct hf__strbuf text = {0};

        if (hf__json_is_string(selector))
                hf__strbuf_puts(&text, hf__json_text(selector));
        else if (paths->selector_is_labels)
                hfd_labels_print(selector, &text);
        else
                hfd_label_selector_print(selector, &text);
        int r = text.error != 0 ? -ENOMEM : 0;
        if (r == 0 && text.n > 0)
                r = hf__json_set_string(scale, "status.selector", text.data);
        hf__strbuf_done(&text);
        return r;
}

/* The Scale of an object. NULL = out of memory. */
static struct hf__json *make_scale(const struct hfd_scale_paths *paths,
                                   const struct hf__json *object) {
        static const char *const members[] = {"name", "namespace", "uid", "resourceVersion",
                                              "creationTimestamp"};
        struct hf__json *scale = hf__json_object();
        int r = hf__json_add_string(scale, "kind", "Scale");
        int64_t replicas = number_at(object, paths->replicas);

        if (r == 0)
                r = hf__json_add_string(scale, "apiVersion", "autoscaling/v1");
        for (size_t i = 0; i < sizeof members / sizeof members[0] && r == 0; i++) {
                char path[40];
                (void)snprintf(path, sizeof path, "metadata.%s", members[i]);
                const char *text = hf__json_string(object, path);
                if (text)
                        r = hf__json_set_string(scale, path, text);
        }
        if (r == 0)
                r = hf__json_set(scale, "spec", hf__json_object());
        if (r == 0 && replicas != 0)
                r = hf__json_set_i64(scale, "spec.replicas", replicas);
        if (r == 0)
                r = hf__json_set_i64(scale, "status.replicas",
                                     number_at(object, paths->current_replicas));
        if (r == 0)
                r = set_selector(paths, object, scale);
        if (r == 0)
                return scale;
        hf__json_free(scale);
        return NULL;
}

/* Whether a custom resource does not have the member for the number of replicas. */
static bool lacks_replicas(const struct hfd_part *part, const struct hf__json *object) {
        const struct hfd_resource *of = part->outer->part_of;
        const struct hf__json *replicas = hf__json_path(object, of->scale->replicas);

        return of->custom && (!replicas || hf__json_is_null(replicas));
}

static void refuse_without_replicas(struct hfd_part *part) {
        struct hfd_response response = {0};
        char message[320];

        (void)snprintf(message, sizeof message,
                       "Internal error occurred: the spec replicas field \".%.200s\" does not "
                       "exist",
                       part->outer->part_of->scale->replicas);
        hfd_response_status(&response, HF_E_INVALID, 500, "InternalError", message, NULL);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

/* Responds with the Scale of the object that the inner request has returned. */
static void show_got(struct hfd_part *part) {
        int code = part->got_code;
        struct hf__json *object = hfd_part_parse_got(part);

        if (!object) /* the part has ended */
                return;
        if (lacks_replicas(part, object)) {
                hf__json_free(object);
                refuse_without_replicas(part);
                return;
        }
        struct hf__json *scale = make_scale(part->outer->part_of->scale, object);
        hf__json_free(object);
        hfd_part_finish_json(part, code, scale);
}

static void on_object(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;

        part->is_committed = inner->verb != HFD_GET && response->status.error == 0;
        hfd_part_run_with(part, response, show_got);
}

/* ---- writes ---- */

static void get_object(struct hfd_part *part);

static void on_patched(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;
        const char *required = hf__json_string(part->body, "metadata.resourceVersion");

        /* A client that names a version wants to know that it is not the newest. */
        if ((!required || !*required) && hfd_part_may_retry(part, response))
                get_object(part);
        else
                on_object(inner, response);
}

static bool check_replicas(struct hfd_part *part, int64_t replicas) {
        struct hfd_causes causes; /* 15 KiB, of which hfd_causes_init touches little */
        struct hfd_response response = {0};
        char value[32];

        if (replicas >= 0)
                return true;
        hfd_causes_init(&causes);
        (void)snprintf(value, sizeof value, "%" PRId64, replicas);
        hfd_cause_invalid(&causes, "spec.replicas", value, "must be greater than or equal to 0");
        hfd_response_invalid(&response, part->outer->resource, part->outer->name, &causes);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
        return false;
}

/* Responds 409 for the resource. */
static void refuse_uid(struct hfd_part *part, const struct hfd_resource *resource,
                       const char *why) {
        struct hfd_response response = {0};

        hfd_response_conflict(&response, resource, part->outer->name, why);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
}

/* Whether the object has the uid that the body of an update names, if it names one. In Kubernetes
 * the store compares it before anything else happens, so the message is that of the store. False:
 * the part has ended. */
static bool check_precondition(struct hfd_part *part) {
        const struct hfd_request *outer = part->outer;
        const char *wanted = hf__json_string_or_empty(part->body, "metadata.uid"),
                   *found = hf__json_string_or_empty(part->old_scale, "metadata.uid");
        char path[HFD_PATH_MAX], key[HFD_KEY_MAX], why[HFD_KEY_MAX + 2 * TEXT_MAX + 200];

        if (!*wanted || strcmp(wanted, found) == 0)
                return true;
        hfd_object_path(outer->part_of, outer->ns, outer->name, path);
        if (hfd_object_key(part->registry->prefix, outer->part_of, path, key) != 0)
                key[0] = '\0';
        (void)snprintf(why, sizeof why,
                       "StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, "
                       "AdditionalErrorMsg: Precondition failed: UID in precondition: %.*s, UID in "
                       "object meta: %.*s",
                       key, TEXT_MAX, wanted, TEXT_MAX, found);
        refuse_uid(part, outer->part_of, why);
        return false;
}

/* As check_precondition, for the new Scale, which admission may have changed, or an applied one. */
static bool check_uid(struct hfd_part *part, const struct hf__json *scale) {
        const char *wanted = hf__json_string(scale, "metadata.uid"),
                   *found = hf__json_string_or_empty(part->old_scale, "metadata.uid");
        struct hfd_resource by_path = *part->outer->part_of;
        char plural[2 * HF_NAME_MAX], why[2 * TEXT_MAX + 100];

        if (!wanted || !*wanted || strcmp(wanted, found) == 0)
                return true;
        (void)snprintf(plural, sizeof plural, "%.253s/scale", by_path.plural);
        by_path.plural = plural;
        (void)snprintf(why, sizeof why,
                       "Precondition failed: UID in precondition: %.*s, UID in object meta: %.*s",
                       TEXT_MAX, wanted, TEXT_MAX, found);
        refuse_uid(part, &by_path, why);
        return false;
}

/* Patches the object's number of replicas to that of part->scale, if the object still has the
 * resourceVersion that part->scale names, or, if it names none, part->version. */
static void send_patch(struct hfd_part *part) {
        const struct hf__json *scale = part->scale;
        const char *version = part->version;
        const struct hfd_scale_paths *paths = part->outer->part_of->scale;
        const char *required = hf__json_string(scale, "metadata.resourceVersion"),
                   *uid = hf__json_string(scale, "metadata.uid");
        int64_t replicas = number_at(scale, "spec.replicas");

        if (!check_replicas(part, replicas) || !check_uid(part, scale))
                return;
        struct hf__json *patch = hf__json_object();
        int r = hf__json_set_i64(patch, paths->replicas, replicas);
        if (r == 0)
                r = hf__json_set_string(patch, "metadata.resourceVersion",
                                        required && *required ? required : version);
        if (r == 0 && uid && *uid)
                r = hf__json_set_string(patch, "metadata.uid", uid);
        part->inner.patch = HFD_PATCH_MERGE;
        part->inner.subresource = HFD_SUB_SCALE;
        if (r == 0)
                hfd_part_send(part, HFD_PATCH, patch, on_patched);
        else
                hfd_part_finish_no_memory(part);
        hf__json_free(patch);
}

/* Applies the client's patch to *scale. False: the part has ended. */
static bool patch_scale(struct hfd_part *part, struct hf__json **scale) {
        struct hfd_write reading = {.request = part->outer,
                                    .body = part->body,
                                    .strict_of_body = part->strict_of_body,
                                    .object = *scale};
        struct hfd_patch_outcome outcome = {0};
        struct hfd_response response = {0};

        int r = hfd_write_patch_object(&reading, &outcome);
        *scale = reading.object;
        if (r != 0)
                hfd_write_patch_refuse(r, &outcome, &response);
        else if (hfd_write_body_accept(&reading, *scale, &response))
                return true;
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
        return false;
}

/* ---- apply ---- */

/* Turns an applied Scale into a configuration that is applied to the object. NULL = out of memory.
 * The number of replicas is in it if the client, or a plug-in of admission, has set it; the version
 * and the uid, if the client requires them. */
static struct hf__json *make_config(const struct hfd_part *part) {
        static const char *const required[] = {"metadata.resourceVersion", "metadata.uid"};
        const struct hfd_resource *of = part->outer->part_of;
        struct hf__json *config = hf__json_object();
        char version[HFD_API_VERSION_MAX];
        int64_t replicas = number_at(part->scale, "spec.replicas");
        bool is_set = hf__json_path(part->body, "spec.replicas") != NULL ||
                      replicas != number_at(part->old_scale, "spec.replicas");

        hfd_resource_api_version(of, version);
        int r = hf__json_add_string(config, "apiVersion", version);
        if (r == 0)
                r = hf__json_add_string(config, "kind", of->kind);
        if (r == 0)
                r = hf__json_set_string(config, "metadata.name", part->outer->name);
        for (size_t i = 0; i < sizeof required / sizeof required[0] && r == 0; i++) {
                const char *text = hf__json_string_or_empty(part->body, required[i]);
                if (*text)
                        r = hf__json_set_string(config, required[i], text);
        }
        if (r == 0 && is_set)
                r = hf__json_set_i64(config, of->scale->replicas, replicas);
        if (r == 0)
                return config;
        hf__json_free(config);
        return NULL;
}

/* Applies to the newest version of the object, also if admission has seen an older one: the
 * managers that own the field decide about conflicts, not the version, unless the client names one.
 */
static void send_apply(struct hfd_part *part) {
        if (!check_replicas(part, number_at(part->scale, "spec.replicas")) ||
            !check_uid(part, part->body))
                return;
        struct hf__json *config = make_config(part);
        part->inner.subresource = HFD_SUB_SCALE;
        if (config)
                hfd_part_send(part, HFD_PATCH, config, on_object);
        else
                hfd_part_finish_no_memory(part);
        hf__json_free(config);
}

static void admit_apply(struct hfd_part *part) {
        hfd_part_admit(part, &part->scale, part->old_scale, send_apply);
}

static void on_tried(struct hfd_request *inner, const struct hfd_response *response) {
        struct hfd_part *part = (struct hfd_part *)inner;

        inner->options.dry_run = part->outer->options.dry_run;
        inner->subresource = HFD_SUB_NONE;
        if (response->status.error != 0)
                hfd_part_finish(part, response);
        else
                admit_apply(part);
}

/* Finds out whether the apply is possible, before admission is asked. A number of replicas that is
 * out of range is refused later. */
static void try_apply(struct hfd_part *part) {
        if (number_at(part->scale, "spec.replicas") < 0 ||
            !hfd_part_wants_admission(part, part->old_scale)) {
                admit_apply(part);
                return;
        }
        struct hf__json *config = make_config(part);
        part->inner.options.dry_run = true;
        part->inner.subresource = HFD_SUB_SCALE;
        if (config)
                hfd_part_send(part, HFD_PATCH, config, on_tried);
        else
                hfd_part_finish_no_memory(part);
        hf__json_free(config);
}

/* Sets in *scale the number of replicas that the client applies. False: the part has ended. */
static bool apply_scale(struct hfd_part *part, struct hf__json **scale) {
        int64_t replicas;

        if (!hf__json_i64(part->body, "spec.replicas", &replicas) ||
            hf__json_set_i64(*scale, "spec.replicas", replicas) == 0)
                return true;
        hfd_part_finish_no_memory(part);
        return false;
}

/* ---- the new Scale ---- */

/* For a custom resource that has no number of replicas: whether its patched or applied Scale has
 * one. Otherwise the write would set the number to 0, because an absent number reads as 0. False:
 * the part has ended. */
static bool has_replicas(struct hfd_part *part) {
        struct hfd_response response = {0};

        if (hf__json_path(part->scale, "spec.replicas"))
                return true;
        hfd_response_bad_request(&response, "the spec replicas field \".%.200s\" cannot be empty",
                                 part->outer->part_of->scale->replicas);
        hfd_part_finish(part, &response);
        hfd_response_done(&response);
        return false;
}

/* The current object has arrived: makes the new Scale (for an update: from the body), and continues
 * with it. */
static void change_got(struct hfd_part *part) {
        struct hf__json *object = hfd_part_parse_got(part);

        if (!object) /* the part has ended */
                return;
        bool is_update = part->outer->verb == HFD_UPDATE, lacks = lacks_replicas(part, object);
        const char *version = hf__json_string(object, "metadata.resourceVersion");
        (void)snprintf(part->version, sizeof part->version, "%s", version ? version : "");
        hf__json_free(part->old_scale);
        hf__json_free(part->scale);
        part->old_scale = make_scale(part->outer->part_of->scale, object);
        part->scale = hf__json_dup(is_update ? part->body : part->old_scale);
        hf__json_free(object);
        bool applies = !is_update && part->outer->patch == HFD_PATCH_APPLY, goes_on;
        if (!part->scale || !part->old_scale) {
                hfd_part_finish_no_memory(part);
                return;
        }
        if (is_update)
                goes_on = check_precondition(part);
        else
                goes_on = (applies ? apply_scale : patch_scale)(part, &part->scale) &&
                          (!lacks || has_replicas(part));
        if (goes_on && applies)
                try_apply(part);
        else if (goes_on)
                hfd_part_admit(part, &part->scale, part->old_scale, send_patch);
}

static void on_current(struct hfd_request *inner, const struct hfd_response *response) {
        hfd_part_run_with((struct hfd_part *)inner, response, change_got);
}

static void get_object(struct hfd_part *part) {
        part->inner.subresource = HFD_SUB_NONE;
        hfd_part_send(part, HFD_GET, NULL, on_current);
}

/* ---- all verbs ---- */

void hfd_scale_serve(struct hfd_part *part) {
        if (part->outer->verb == HFD_GET)
                hfd_part_send(part, HFD_GET, NULL, on_object);
        else
                get_object(part);
}
