/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A watch over HTTP: a response that goes on, with one JSON object per line for each event. */
#include "server/handlers/rest.h"

/* Takes rest. */
void hfd_rest_watch(struct hfd_rest_request *rest);
