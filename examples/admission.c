/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An admission plug-in for holdfastd: a ConfigMap needs the label "owner", and gets the annotation
 * "example.com/seen".
 *
 *      cc -shared -fPIC -o admission.so admission.c \
 *              $(pkg-config --cflags libholdfast libcjson) -lcjson
 *      holdfastd --admission-plugin=$PWD/admission.so
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cJSON.h>

#include <holdfast/admission.h>

static bool wants(void *ctx, const char *group, const char *resource, const char *subresource,
                  const char *operation) {
        (void)ctx;
        return *group == '\0' && strcmp(resource, "configmaps") == 0 && *subresource == '\0' &&
               strcmp(operation, "DELETE") != 0;
}

/* Adds the annotation. If memory runs out, the object stays as it is. */
static void mutate(void *ctx, const struct hf_admission_request *request,
                   struct hf_admission_response *response) {
        cJSON *object = cJSON_ParseWithLength(request->object, request->n_object);
        cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        cJSON *annotations = cJSON_GetObjectItemCaseSensitive(metadata, "annotations");

        (void)ctx;
        if (metadata && !annotations)
                annotations = cJSON_AddObjectToObject(metadata, "annotations");
        if (annotations && !cJSON_HasObjectItem(annotations, "example.com/seen") &&
            cJSON_AddStringToObject(annotations, "example.com/seen", request->user)) {
                response->object = cJSON_PrintUnformatted(object);
                response->n_object = response->object ? strlen(response->object) : 0;
        }
        cJSON_Delete(object);
}

static void validate(void *ctx, const struct hf_admission_request *request,
                     struct hf_admission_response *response) {
        cJSON *object = cJSON_ParseWithLength(request->object, request->n_object);
        const cJSON *metadata = cJSON_GetObjectItemCaseSensitive(object, "metadata");
        const cJSON *labels = cJSON_GetObjectItemCaseSensitive(metadata, "labels");
        const cJSON *owner = cJSON_GetObjectItemCaseSensitive(labels, "owner");

        (void)ctx;
        if (!cJSON_IsString(owner)) {
                response->refused = true;
                (void)snprintf(response->message, sizeof response->message,
                               "the label \"owner\" is missing");
        } else if (strcmp(cJSON_GetStringValue(owner), "nobody") == 0) {
                (void)snprintf(response->warning, sizeof response->warning, "nobody owns %.200s",
                               request->name);
        }
        cJSON_Delete(object);
}

static const struct hf_admission plugin = {.size = sizeof plugin,
                                           .name = "owner",
                                           .wants = wants,
                                           .mutate = mutate,
                                           .validate = validate};

const struct hf_admission *hf_admission_open(void);
const struct hf_admission *hf_admission_open(void) { return &plugin; }
