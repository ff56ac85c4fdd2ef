/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The command line of kube-apiserver. Programs that start a kube-apiserver for tests, such as
 * controller-runtime's envtest, can start holdfastd in its place: under the name kube-apiserver it
 * takes their flags. Thread: main, at start.
 */
#include <stdbool.h>

#include "server/config/config.h"

/* Whether the program was started under the name kube-apiserver. argv0 may be NULL. */
bool hfd_is_kube_apiserver(const char *argv0);
/*
 * Parses the command line of kube-apiserver:
 *
 *  - Some flags that holdfastd does not have are left out, and named in ret_config->ignored_flags:
 *    those that restrict no client, and a few that programs for tests pass although they do
 *    (kube_apiserver.c names them). Any other flag that holdfastd does not have is refused as
 *    unknown. --runtime-config is also left out and named, although holdfastd has that flag: only
 *    api/workloads=false in it has an effect.
 *  - Pods, services, Deployments and so on are served as data, because programs that start a
 *    kube-apiserver expect them, unless --runtime-config contains api/workloads=false.
 *  - Programs that start test control planes pass --disable-admission-plugins=ServiceAccount. Then
 *    new pods get no service account. Unless --controllers is given, the controllers
 *    namespace-lifecycle, garbage-collector, default-service-account and root-ca-publisher do not
 *    run, because they do what a kube-controller-manager would do.
 *  - If --data-dir is not given, --cert-dir is also the data directory.
 *  - <cert-dir>/apiserver.crt and .key are the serving certificate and its key, if they exist and
 *    --tls-cert-file is not given.
 *
 * Otherwise like hfd_flags_parse.
 */
int hfd_kube_apiserver_parse(int argc, char *const argv[], struct hfd_config *ret_config,
                             struct hf_status *reterr_status);
