/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The garbage collector without its informers, its term and its loop. There are two kinds, of which
 * one is custom: an owner of the first kind has one dependent of the second, which is to stay. The
 * test itself replaces the functions that read and write objects, and those that run the loop.
 *
 * The functions of the term, the kinds and the informers are replaced (--wrap): tests/meson.build
 * lists them. Asserts instead of handling errors. Thread: that of the test.
 */
#include "server/controllers/context/controller_context.h"

struct hf__json;

#define GC_OWNER                                                                                   \
        "{\"metadata\":{\"uid\":\"o\",\"resourceVersion\":\"7\",\"deletionTimestamp\":\"t\","      \
        "\"finalizers\":[\"orphan\"]}}"
#define GC_DEPENDENT                                                                               \
        "{\"metadata\":{\"uid\":\"d\",\"resourceVersion\":\"5\",\"ownerReferences\":[{\"uid\":"    \
        "\"o\"}]}}"

/* The custom kind has an informer of which only the address counts. */
extern struct hfd_kind gc_configmaps, gc_custom;
/* The set with the two kinds, in this order, which the collector gets. */
extern struct hfd_kind_set *gc_set;

/* The value of the text. The caller frees it. */
struct hf__json *gc_parsed(const char *text);
/* Makes the set. */
void gc_make_set(void);
void gc_free_set(void);
