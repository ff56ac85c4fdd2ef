/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The life of a watch's stream: how it is made, what the watcher calls, its task, and its end.
 * Thread: any, unless a function says otherwise.
 */
#include "server/handlers/rest/watch_stream.h"
#include "server/registry/base/request.h"

/* Makes the stream of a request, with one user, and attaches it to the HTTP request. rest keeps its
 * own reference to the HTTP request. NULL = out of memory. Thread: worker. */
struct hfd_watch_stream *hfd_watch_stream_new(const struct hfd_rest_request *rest);
/* Gives up one use of the stream (n_users). May free the stream. */
void hfd_watch_stream_drop(struct hfd_watch_stream *stream);

/* The functions that the watcher calls. */
extern const struct hfd_watch_sink hfd_watch_stream_sink;
/* Prepares the queue of objects that a webhook converts, if they need one. 0 or -ENOMEM. */
int hfd_watch_stream_prepare_conversion(struct hfd_watch_stream *stream,
                                        const struct hfd_request *request);
