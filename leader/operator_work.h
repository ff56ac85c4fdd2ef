/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* An operator and the object that it works on. Owner: operator.c. Thread: a work belongs to its
 * worker; an operator does not change between its start and its stop, so any thread may read it. */
#include <holdfast/informer.h>
#include <holdfast/operator.h>

struct hf_operator {
        const struct hf_host *host;
        struct hf_operator_config config;
        struct hf_operator_owned owned[HF_OPERATOR_OWNED_MAX];
        struct hf_informer *objects;
        struct hf_informer *informers[HF_OPERATOR_OWNED_MAX]; /* of the owned collections */
        struct hf_electors *electors;
};

struct hf_operator_work {
        const struct hf_operator *op;
        struct hf_term *term;
        struct hf_recorder *recorder;
        char ns[HF_NAME_MAX + 1];
        char name[HF_NAME_MAX + 1];
        char *object; /* JSON of n bytes with a NUL; owned */
        size_t n;
        struct hf_status status; /* of the last request */
};

/* Adds or removes the finalizer. Blocks. 0, or an error of hf_finalizer_set or hf_client_do. */
int hf__operator_put_finalizer(struct hf_operator_work *work, bool present);
