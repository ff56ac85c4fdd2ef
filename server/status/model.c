/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fills the model from the JSON that servers send.
 *
 * Invariants:
 * - Every text that comes from a server becomes printable when it is stored in the model
 *   (copy_printable, replace_unprintable), so that no later code can forget it. Any client that may
 *   write Leases chooses such texts, and could send escape sequences to the user's terminal.
 * - A list that cannot be parsed changes nothing. The live mode continues to show the previous
 *   contents.
 */
#include "server/status/model.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "leader/lease_record.h"
#include "server/controllers/instances/identity.h"
#include "server/controllers/kinds/kinds.h"

/* Bytes above 0x7e are replaced too, because some terminals interpret 0x80 to 0x9f as control
 * characters. */
static void replace_unprintable(char *text) {
        for (; *text; text++)
                if ((unsigned char)*text < 0x20 || (unsigned char)*text >= 0x7f)
                        *text = '?';
}

/* Truncates a text that is longer than the member. from may be NULL. */
static void copy_printable(char *to, size_t size, const char *from) {
        (void)snprintf(to, size, "%s", from ? from : "");
        replace_unprintable(to);
}

/* Reads one key of annotations or labels. hf__json_string would split it at its dots, as a path.
 * NULL: the member is missing or not a string. */
static const char *string_member(const struct hf__json *map, const char *key) {
        const struct hf__json *value = hf__json_get(map, key);
        return hf__json_is_string(value) ? hf__json_text(value) : NULL;
}

static void add_instance(struct hfd_status_model *model, const struct hf__json *lease,
                         const struct hf__record *record) {
        const struct hf__json *annotations = hf__json_path(lease, "metadata.annotations");

        if (model->n_instances == HFD_STATUS_MAX_INSTANCES) {
                model->n_omitted_instances++;
                return;
        }
        assert(model->n_instances < HFD_STATUS_MAX_INSTANCES);
        struct hfd_status_instance *instance = &model->instances[model->n_instances++];
        copy_printable(instance->identity, sizeof instance->identity, record->holder);
        copy_printable(instance->name, sizeof instance->name,
                       string_member(annotations, "holdfast.dev/instance"));
        copy_printable(instance->host, sizeof instance->host,
                       string_member(annotations, "holdfast.dev/host"));
        copy_printable(instance->endpoint, sizeof instance->endpoint,
                       string_member(annotations, "holdfast.dev/endpoint"));
        /* Until the first response. keep_responses restores the state of an instance that the model
         * already had. */
        copy_printable(instance->state, sizeof instance->state, "unreachable");
        instance->renew_us = record->renew_us;
}

static void add_election_lease(struct hfd_status_model *model, const struct hf__json *json,
                               const struct hf__record *record, const char *ns, const char *name) {
        const struct hf__json *annotations = hf__json_path(json, "metadata.annotations");

        if (model->n_leases == HFD_STATUS_MAX_LEASES) {
                model->n_omitted_leases++;
                return;
        }
        assert(model->n_leases < HFD_STATUS_MAX_LEASES);
        struct hfd_status_lease *lease = &model->leases[model->n_leases++];
        char label[sizeof lease->label];
        (void)snprintf(label, sizeof label, "%.253s/%.253s", ns, name);
        copy_printable(lease->label, sizeof lease->label, label);
        copy_printable(lease->holder, sizeof lease->holder, record->holder);
        lease->acquire_us = record->acquire_us;
        lease->renew_us = record->renew_us;
        lease->duration_s = record->duration_s;
        lease->n_transitions = record->transitions;
        lease->n_history =
                hf__lease_history_read(string_member(annotations, HF__LEASE_HISTORY_ANNOTATION),
                                       lease->history);
        for (unsigned i = 0; i < lease->n_history; i++) {
                replace_unprintable(lease->history[i].holder);
                replace_unprintable(lease->history[i].previous);
                replace_unprintable(lease->history[i].cause);
        }
}

static void add_lease(struct hfd_status_model *model, const struct hf__json *lease) {
        const char *ns = hf__json_string(lease, "metadata.namespace"),
                   *name = hf__json_string(lease, "metadata.name");
        const char *label =
                string_member(hf__json_path(lease, "metadata.labels"), HFD_IDENTITY_LABEL);
        struct hf__record record;

        if (!ns || !name || hf__lease_read(lease, &record) != 0 ||
            strcmp(ns, HFD_STATUS_NODE_NAMESPACE) == 0)
                return;
        /* kube-apiserver gives its identity Leases the same label with another value. They are
         * neither instances of holdfastd nor Leases of an election. Nor is a Lease with this label
         * in another namespace an instance: a user who may write it could invent instances, and
         * choose where this program connects to. */
        if (label && strcmp(label, HFD_IDENTITY_VALUE) == 0 &&
            strcmp(ns, HFD_SYSTEM_NAMESPACE) == 0)
                add_instance(model, lease, &record);
        else if (!label)
                add_election_lease(model, lease, &record, ns, name);
}

/* Adds the Leases of HFD_SYSTEM_NAMESPACE; if of_system is false, those of all other namespaces. */
static void add_leases(struct hfd_status_model *model, const struct hf__json *items,
                       bool of_system) {
        for (const struct hf__json *m = hf__json_first(items); m; m = hf__json_next(m))
                if (hf__json_has_text(m, "metadata.namespace", HFD_SYSTEM_NAMESPACE) == of_system)
                        add_lease(model, m);
}

static int compare_instances(const void *a, const void *b) {
        const struct hfd_status_instance *left = a, *right = b;
        int order = strcmp(left->name, right->name);
        return order != 0 ? order : strcmp(left->identity, right->identity);
}

static int compare_leases(const void *a, const void *b) {
        return strcmp(((const struct hfd_status_lease *)a)->label,
                      ((const struct hfd_status_lease *)b)->label);
}

/* Copies the responses of instances that are in the old and in the new list. Each process has its
 * own identity, so the old response still describes the same process. A restarted instance has a
 * new identity and begins as unreachable. */
static void keep_responses(struct hfd_status_model *model, const struct hfd_status_instance *old,
                           unsigned n_old) {
        for (unsigned i = 0; i < model->n_instances; i++) {
                struct hfd_status_instance *instance = &model->instances[i];
                for (unsigned k = 0; k < n_old; k++)
                        if (strcmp(instance->identity, old[k].identity) == 0 &&
                            strcmp(instance->endpoint, old[k].endpoint) == 0) {
                                memcpy(instance->state, old[k].state, sizeof instance->state);
                                memcpy(instance->lease, old[k].lease, sizeof instance->lease);
                                instance->term = old[k].term;
                                instance->n_skipped = old[k].n_skipped;
                        }
        }
}

int hfd_status_model_set_leases(struct hfd_status_model *model, const char *list, size_t n) {
        struct hfd_status_instance old[HFD_STATUS_MAX_INSTANCES]; /* for keep_responses */
        unsigned n_old = model->n_instances;
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = NULL;

        assert(n_old <= HFD_STATUS_MAX_INSTANCES);
        int r = hf__json_parse(list, n, &json, NULL);
        if (r != 0)
                return r;
        const struct hf__json *items = hf__json_get(json, "items");
        if (!hf__json_is_array(items))
                return HF_E_INVALID;
        memcpy(old, model->instances, sizeof old);
        model->read_error[0] = '\0';
        model->n_instances = 0;
        model->n_leases = 0;
        model->n_omitted_instances = 0;
        model->n_omitted_leases = 0;
        memset(model->instances, 0, sizeof model->instances);
        memset(model->leases, 0, sizeof model->leases);
        copy_printable(model->resource_version, sizeof model->resource_version,
                       hf__json_string(json, "metadata.resourceVersion"));
        /* The model has limited space. The Leases of HFD_SYSTEM_NAMESPACE come first, because
         * holdfastd's own are there, unless its flags name another namespace. */
        add_leases(model, items, true);
        add_leases(model, items, false);
        keep_responses(model, old, n_old);
        qsort(model->instances, model->n_instances, sizeof model->instances[0], compare_instances);
        qsort(model->leases, model->n_leases, sizeof model->leases[0], compare_leases);
        return 0;
}

void hfd_status_model_set_read_error(struct hfd_status_model *model, const char *message) {
        copy_printable(model->read_error, sizeof model->read_error, message);
}

/* The state of an instance whose response has no usable body. code 0 = no response. */
static const char *state_of_code(int code) {
        if (code == 0)
                return "unreachable";
        if (code == HFD_STATUS_OTHER_CA)
                return HFD_STATUS_OTHER_CA_STATE;
        return code == 401 || code == 403 ? "denied" : "unknown";
}

void hfd_status_model_set_response(struct hfd_status_instance *instance, int code, const char *body,
                                   size_t n) {
        HF__CLEANUP(hf__json_cleanup) struct hf__json *json = NULL;
        int64_t term = 0;

        instance->term = 0;
        instance->lease[0] = '\0';
        /* The state unless the body is valid. */
        copy_printable(instance->state, sizeof instance->state, state_of_code(code));
        if (code != 200 || hf__json_parse(body, n, &json, NULL) != 0)
                return;
        const char *identity = hf__json_string(json, "identity"),
                   *state = hf__json_string(json, "state");
        if (!identity || !state)
                return;
        if (strcmp(identity, instance->identity) != 0) {
                /* Another process serves at this endpoint now. Usually the instance of this
                 * identity Lease has ended, and the leader has not deleted the Lease yet. */
                copy_printable(instance->state, sizeof instance->state, "gone");
        } else {
                copy_printable(instance->state, sizeof instance->state, state);
                copy_printable(instance->lease, sizeof instance->lease,
                               hf__json_string(json, "lease"));
                if (hf__json_i64(json, "term", &term) && term > 0)
                        instance->term = (uint64_t)term;
        }
}

/* A Lease does not contain its term, so the holder's own response is the only source. */
uint64_t hfd_status_model_term(const struct hfd_status_model *model,
                               const struct hfd_status_lease *lease) {
        assert(model->n_instances <= HFD_STATUS_MAX_INSTANCES);
        for (unsigned i = 0; i < model->n_instances; i++) {
                const struct hfd_status_instance *instance = &model->instances[i];
                if (lease->holder[0] && strcmp(instance->identity, lease->holder) == 0 &&
                    strcmp(instance->lease, lease->label) == 0)
                        return instance->term;
        }
        return 0;
}

bool hfd_status_model_is_silent(const struct hfd_status_lease *lease, int64_t now_us) {
        return lease->holder[0] && lease->renew_us > 0 && lease->duration_s > 0 &&
               (now_us - lease->renew_us) / 1000000 > lease->duration_s;
}
