/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ends a watch when its user loses the right to it, when the sender loses the right to impersonate
 * this user, or when the sender's token is not valid any more. (The sender is the user, unless the
 * request impersonates.) The watch ends cleanly; the client watches again, and gets a 403 or 401. A
 * watch has a guard only if one of these rights can be lost, or if the token can become invalid.
 *
 * The stream owns its guard. Threads: the one that begins the watch calls track, and the one that
 * drops the stream's last use calls untrack. In between the authorizer or the thread of the service
 * accounts may end the watch at any time. Nothing blocks.
 */
#include "server/handlers/rest/watch_stream.h"

/*
 * Tracks the rights, and what the token depends on. From now on the stream's watcher may be
 * canceled. False: since the request was authorized, a right was lost or the token has become
 * invalid, or memory ran out. hfd_watch_guard_untrack must follow in any case.
 */
bool hfd_watch_guard_track(struct hfd_watch_stream *stream, const struct hfd_rest_request *rest);
/* Ends the tracking. Until then the stream must hold its request. Does nothing without a guard, and
 * nothing the second time. */
void hfd_watch_guard_untrack(struct hfd_watch_stream *stream);
/* Frees the guard. Accepts NULL. */
void hfd_watch_guard_free(struct hfd_watch_guard *guard);
