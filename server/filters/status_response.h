/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The answers that filters and endpoints give themselves. hfd_http_request_reply_status is in
 * filters.h.
 */
#include <holdfast/error.h>

#include "server/auth/auth.h"
#include "server/http/http.h"

/* text/plain with the field's headers; retry_after_s 0 = no such header; close adds Connection:
 * close. */
void hfd_reply_text(struct hfd_http_request *request, int code, const char *text,
                    unsigned retry_after_s, bool close);
/* 403 in the field's words: who may not do what. */
void hfd_reply_forbidden(struct hfd_http_request *request, const struct hfd_user *user,
                         const struct hfd_attributes *attributes, const char *subresource);
