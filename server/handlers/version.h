/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What we are, and which release of the Kubernetes API we speak. */
#define HFD_VERSION          "0.1.0"
#define HFD_KUBERNETES_MAJOR "1"
#define HFD_KUBERNETES_MINOR "32"
#define HFD_GIT_VERSION      "v" HFD_KUBERNETES_MAJOR "." HFD_KUBERNETES_MINOR ".0+holdfast-" HFD_VERSION
