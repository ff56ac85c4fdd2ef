/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The initial events of a watch: the objects that exist when it begins. The head of watch_initial.c
 * describes how they are sent. The stream owns them. Nothing blocks.
 */
#include "server/handlers/rest/watch_stream.h"
#include "server/registry/base/request.h"

/* Prepares the initial events, if there are any. The watcher has not been started, and is borrowed.
 * Thread: the one that begins the watch, before the task is submitted. 0 or -ENOMEM. */
int hfd_watch_initial_take(struct hfd_watch_stream *stream, const struct hfd_request *request,
                           struct hfd_watcher *watcher);
/* A step of the stream's task, on a thread of the pool: sends some of the initial events. After the
 * last one it starts the watcher. If one cannot be sent, it cancels the watcher. */
enum hfd_work_result hfd_watch_initial_send(struct hfd_watch_stream *stream);
/* Frees what is left of the initial events. Only a step of the task calls it, or the end of the
 * stream. Accepts a stream without initial events. */
void hfd_watch_initial_done(struct hfd_watch_stream *stream);
