/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The rules for the openAPIV3Schema of a CustomResourceDefinition: it must be a structural schema.
 * Other files check the contents of x-kubernetes-validations (custom/rules/), that the root is not
 * nullable, and which keywords the root may have if there is the subresource status
 * (strategies/definition/definition_props.c). Pure. Thread: any. Blocks: no.
 */
struct hf__json;
struct hfd_causes;
struct hfd_schema_effort;

/*
 * Adds a cause for each rule that props break. path: where props are, such as
 * "spec.versions[0].schema.openAPIV3Schema". props NULL: no schema, no causes. effort: of the
 * definition; what the schema takes is added, and a cause if that is too much (compile/effort.h).
 */
void hfd_structural_validate(const struct hf__json *props, const char *path,
                             struct hfd_schema_effort *effort, struct hfd_causes *causes);
