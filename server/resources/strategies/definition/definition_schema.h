/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The schema of a JSON schema: what `openAPIV3Schema` may contain. It contains itself, so it is
 * apart from the schema of CustomResourceDefinitions. Immutable.
 */
#include "server/schema/schema.h"

#define HFD_API_EXTENSIONS "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."

extern const struct hfd_schema hfd_json_schema_props;
