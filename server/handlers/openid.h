/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Documents with which others verify the tokens of service accounts: the document of OpenID Connect
 * discovery, and the public keys. Thread: any. Never blocks.
 */
#include "server/http/http.h"

struct hfd_service_accounts;

struct hfd_openid {
        struct hfd_service_accounts *accounts; /* borrowed */
        const char *endpoint; /* borrowed; the URL of this server, known before the first request */
};

/* Serves /.well-known/openid-configuration and /openid/v1/jwks; ctx is a struct hfd_openid. As in
 * kube-apiserver, it responds 404 if the issuer is not an https URL. It does the same for
 * other paths, and as long as the service accounts have no keys. Consumes the caller's reference to
 * the request. */
void hfd_openid_handle(void *ctx, struct hfd_http_request *request);
