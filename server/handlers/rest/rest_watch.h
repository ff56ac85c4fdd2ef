/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A watch over HTTP: a response that stays open and has one frame for each event, a line of JSON or
 * a protobuf message
 * (https://kubernetes.io/docs/reference/using-api/api-concepts/#efficient-detection-of-changes).
 */
#include "server/handlers/rest/rest_request.h"

/*
 * Starts the watch. Takes ownership of rest, whose verb is HFD_WATCH. Thread: the worker of its
 * connection. Never blocks.
 */
void hfd_rest_watch(struct hfd_rest_request *rest);
