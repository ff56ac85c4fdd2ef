/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The frames of a watch: a line of JSON for each event, or a message in protobuf after its length
 * (protobuf_response.h). Pure, except that the ages in a Table depend on the clock. Thread: any.
 *
 * A function that returns a frame returns a new reference; NULL = out of memory, or an object that
 * cannot be decoded or has no form in protobuf.
 */
#include "server/cacher/watch/watcher.h"
#include "server/registry/base/request.h"
#include "server/registry/registry.h"

/* The properties that determine the frames of one watch. */
struct hfd_watch_form {
        const struct hfd_resource *resource; /* the owner of the form holds a reference */
        enum hfd_format format;
        enum hfd_include include;                  /* in a Table */
        char table_version[HFD_TABLE_VERSION_MAX]; /* as in struct hfd_request */
        bool protobuf;
        bool marks_initial_end; /* the client wants a bookmark after the initial events */
};

/* The form that a request wants. Borrows the resource. */
void hfd_watch_form_of(const struct hfd_request *request, struct hfd_watch_form *ret_form);

/* The frame of one event. Most watches of plain objects that get an event at the same time share
 * its frame (see watch_frames.c). registry: has the clock. */
struct hf__buf *hfd_watch_frame(struct hfd_registry *registry, const struct hfd_watch_form *form,
                                const struct hfd_watch_item *item);
/* The bookmark after the initial events. */
struct hf__buf *hfd_watch_frame_initial_end(struct hfd_registry *registry,
                                            const struct hfd_watch_form *form, uint64_t revision);
/* A copy of frames, which are Tables, with the columns in the first one. */
struct hf__buf *hfd_watch_frame_with_columns(const struct hfd_watch_form *form,
                                             const struct hf__buf *frames);
/* The last frame of a watch that fails. status: a Status as JSON, borrowed. */
struct hf__buf *hfd_watch_frame_error(const struct hfd_watch_form *form,
                                      const struct hf__buf *status);
