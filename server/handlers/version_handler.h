/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * GET /version: Kubernetes' version.Info. Clients read major and minor from it to find out which
 * release of the Kubernetes API the server implements; gitVersion also contains Holdfast's version.
 * The release is the one whose behaviours are served.
 * Thread: any.
 */
#include "server/http/http.h"

/* HFD_VERSION comes from the build: meson.build defines it. */
#ifndef HFD_VERSION
#define HFD_VERSION "unknown" /* when this header is compiled alone */
#endif
#define HFD_KUBE_MAJOR            "1"
#define HFD_KUBE_MINOR            "36"
#define HFD_KUBE_COMPATIBLE_MINOR "35" /* the oldest that other servers of a cluster may have */
#define HFD_GIT_VERSION           "v" HFD_KUBE_MAJOR "." HFD_KUBE_MINOR ".0+holdfast-" HFD_VERSION

/* A handler of http.h, for /version and /version/. ctx is not used. */
void hfd_version_handle(void *ctx, struct hfd_http_request *request);
