/* SPDX-License-Identifier: Apache-2.0 */
#include "server/status/status.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "leader/lease_record.h"
#include "server/controllers/identity.h"

#define NODE_NAMESPACE "kube-node-lease" /* heartbeats of nodes: nothing is led by them */

/* What servers say goes to a terminal: control characters do not, nor what could stand for them in
 * some encoding. */
static void tame(char *text) {
        for (; *text; text++)
                if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
                        *text = '?';
}

static void take_text(char *to, size_t size, const char *from) {
        (void)snprintf(to, size, "%s", from ? from : "");
        tame(to);
}

static const char *text_at(const struct hf__json *map, const char *key) {
        const struct hf__json *value = hf__json_get(map, key);
        return hf__json_is_string(value) ? hf__json_text(value) : NULL;
}

static void take_instance(struct hfd_status_model *picture, const struct hf__json *lease,
                          const struct hf__record *record) {
        const struct hf__json *annotations = hf__json_path(lease, "metadata.annotations");

        if (picture->n_instances == HFD_STATUS_MAX_INSTANCES) {
                picture->n_more_instances++;
                return;
        }
        struct hfd_status_instance *instance = &picture->instances[picture->n_instances++];
        take_text(instance->identity, sizeof instance->identity, record->holder);
        take_text(instance->name, sizeof instance->name,
                  text_at(annotations, "holdfast.dev/instance"));
        take_text(instance->host, sizeof instance->host, text_at(annotations, "holdfast.dev/host"));
        take_text(instance->endpoint, sizeof instance->endpoint,
                  text_at(annotations, "holdfast.dev/endpoint"));
        take_text(instance->state, sizeof instance->state, "unreachable");
        instance->renew_us = record->renew_us;
}

static void take_led(struct hfd_status_model *picture, const struct hf__json *lease,
                     const struct hf__record *record, const char *ns, const char *name) {
        const struct hf__json *annotations = hf__json_path(lease, "metadata.annotations");

        if (picture->n_leases == HFD_STATUS_MAX_LEASES) {
                picture->n_more_leases++;
                return;
        }
        struct hfd_status_lease *led = &picture->leases[picture->n_leases++];
        char label[sizeof led->label];
        (void)snprintf(label, sizeof label, "%.253s/%.253s", ns, name);
        take_text(led->label, sizeof led->label, label);
        take_text(led->holder, sizeof led->holder, record->holder);
        led->acquire_us = record->acquire_us;
        led->renew_us = record->renew_us;
        led->duration_s = record->duration_s;
        led->n_transitions = record->transitions;
        led->n_history = hf__lease_history_read(text_at(annotations, HF__LEASE_HISTORY_ANNOTATION),
                                                led->history);
        for (unsigned i = 0; i < led->n_history; i++) {
                struct hf__lease_history_entry *transition = &led->history[i];
                tame(transition->holder);
                tame(transition->previous);
                tame(transition->cause);
        }
}

static void take_lease(struct hfd_status_model *picture, const struct hf__json *lease) {
        const char *ns = hf__json_string(lease, "metadata.namespace"),
                   *name = hf__json_string(lease, "metadata.name");
        const char *label = text_at(hf__json_path(lease, "metadata.labels"), HFD_IDENTITY_LABEL);
        struct hf__record record;

        if (!ns || !name || hf__lease_read(lease, &record) != 0 || strcmp(ns, NODE_NAMESPACE) == 0)
                return;
        if (label && strcmp(label, HFD_IDENTITY_VALUE) == 0)
                take_instance(picture, lease, &record);
        else if (!label) /* else the identity of another kind of server */
                take_led(picture, lease, &record, ns, name);
}

static int by_name(const void *a, const void *b) {
        const struct hfd_status_instance *left = a, *right = b;
        int r = strcmp(left->name, right->name);
        return r != 0 ? r : strcmp(left->identity, right->identity);
}

static int by_label(const void *a, const void *b) {
        return strcmp(((const struct hfd_status_lease *)a)->label,
                      ((const struct hfd_status_lease *)b)->label);
}

/* An incarnation keeps what it answered. */
static void keep_answers(struct hfd_status_model *picture, const struct hfd_status_instance *old,
                         unsigned n_old) {
        for (unsigned i = 0; i < picture->n_instances; i++) {
                struct hfd_status_instance *instance = &picture->instances[i];
                for (unsigned k = 0; k < n_old; k++)
                        if (strcmp(instance->identity, old[k].identity) == 0 &&
                            strcmp(instance->endpoint, old[k].endpoint) == 0) {
                                memcpy(instance->state, old[k].state, sizeof instance->state);
                                memcpy(instance->lease, old[k].lease, sizeof instance->lease);
                                instance->term = old[k].term;
                                instance->n_unasked = old[k].n_unasked;
                        }
        }
}

int hfd_status_take_leases(struct hfd_status_model *picture, const char *list, size_t n) {
        struct hfd_status_instance old[HFD_STATUS_MAX_INSTANCES];
        unsigned n_old = picture->n_instances;
        struct hf__json *json = NULL;
        int r = hf__json_parse(list, n, &json, NULL);

        if (r != 0)
                return r;
        const struct hf__json *items = hf__json_get(json, "items");
        if (!hf__json_is_array(items)) {
                hf__json_free(json);
                return HF_E_INVALID;
        }
        memcpy(old, picture->instances, sizeof old);
        picture->trouble[0] = '\0';
        picture->n_instances = picture->n_leases = picture->n_more_instances =
                picture->n_more_leases = 0;
        memset(picture->instances, 0, sizeof picture->instances);
        memset(picture->leases, 0, sizeof picture->leases);
        take_text(picture->resource_version, sizeof picture->resource_version,
                  hf__json_string(json, "metadata.resourceVersion"));
        for (const struct hf__json *item = hf__json_first(items); item; item = hf__json_next(item))
                take_lease(picture, item);
        hf__json_free(json);
        keep_answers(picture, old, n_old);
        qsort(picture->instances, picture->n_instances, sizeof picture->instances[0], by_name);
        qsort(picture->leases, picture->n_leases, sizeof picture->leases[0], by_label);
        return 0;
}

void hfd_status_take_response(struct hfd_status_instance *instance, int code, const char *body,
                              size_t n) {
        struct hf__json *json = NULL;
        int64_t term = 0;

        instance->term = 0;
        instance->lease[0] = '\0';
        take_text(instance->state, sizeof instance->state,
                  code == 0                    ? "unreachable"
                  : code == 401 || code == 403 ? "denied"
                                               : "unknown");
        if (code != 200 || hf__json_parse(body, n, &json, NULL) != 0)
                return;
        const char *identity = hf__json_string(json, "identity"),
                   *state = hf__json_string(json, "state");
        if (!identity || !state) {
                hf__json_free(json);
                return;
        }
        if (strcmp(identity, instance->identity) != 0) {
                /* Its place was taken by another incarnation; the identity Lease has not been
                 * collected yet. */
                take_text(instance->state, sizeof instance->state, "gone");
        } else {
                take_text(instance->state, sizeof instance->state, state);
                take_text(instance->lease, sizeof instance->lease, hf__json_string(json, "lease"));
                instance->term = hf__json_i64(json, "term", &term) && term > 0 ? (uint64_t)term : 0;
        }
        hf__json_free(json);
}

uint64_t hfd_status_term(const struct hfd_status_model *picture,
                         const struct hfd_status_lease *lease) {
        for (unsigned i = 0; i < picture->n_instances; i++) {
                const struct hfd_status_instance *instance = &picture->instances[i];
                if (lease->holder[0] && strcmp(instance->identity, lease->holder) == 0 &&
                    strcmp(instance->lease, lease->label) == 0)
                        return instance->term;
        }
        return 0;
}
