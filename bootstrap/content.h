/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Contents of objects: what of an object is somebody's statement and not the server's bookkeeping,
 * its hash, and the bodies that are sent. Pure.
 *
 * An object that bootstrap writes carries the annotation HF__STAMP with the hash of the manifest's
 * content. Nothing is decided by it but one thing: after a crash between a write and its record the
 * next leader knows the write as its own.
 */
#include "bootstrap/ledger.h"

struct hf__step;

#define HF__STAMP "holdfast.dev/bootstrap"

/* Takes out what the server keeps for itself (uid, resourceVersion, times, managedFields, status
 * ...) and the stamp. */
void hf__content_strip(struct hf__json *object);
/* Of any JSON: the same whatever the order of keys. 0 or -ENOMEM. */
int hf__content_hash(const struct hf__json *json, hf__hash ret_hash);

struct hf__content_seen {
        hf__hash stamp;   /* "" = it has none */
        hf__hash present; /* of the content, without finalizers and ownerReferences, which are
                             controllers' */
};
/* What an object of the server says about itself. 0, -ENOMEM, HF_E_INVALID. */
int hf__content_see(const char *object, size_t n, struct hf__content_seen *ret_seen);

/* The body of the step's create: its content with the stamp. */
int hf__content_print_new(const struct hf__step *step, struct hf__strbuf *out);
/* The body of an update that puts the step's content in the place of what `present` has: its
 * identity, finalizers, owners, status stay. */
int hf__content_print_replacement(const struct hf__step *step, const char *present, size_t n,
                                  struct hf__strbuf *out);
