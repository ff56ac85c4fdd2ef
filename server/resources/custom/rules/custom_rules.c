/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes the rules of a custom resource's schema (x-kubernetes-validations): a tree of nodes, with a
 * node for each part of the schema that has rules in it or below it.
 *
 * Invariants: each walk visits a part of the schema once. A declaration (what expressions see of a
 * part: declared.h) is made at the outermost part that has a rule and that expressions can see, for
 * all parts below it. So the work is in proportion to the schema. The recursion follows the schema,
 * whose depth the parser of JSON limits, and its frames are small.
 */
#include "server/resources/custom/rules/custom_rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "server/resources/causes.h"
#include "server/resources/custom/rules/rule_budget.h"
#include "server/resources/custom/rules/rule_issues.h"
#include "server/resources/custom/rules/rule_library.h"
#include "server/resources/custom/rules/rule_node.h"
#include "server/resources/custom/rules/rule_schema.h"
#include "server/resources/custom/rules/rule_texts.h"
#include "server/resources/custom/rules/values/declared.h"
#include "server/resources/custom/schema/compile/effort.h"
#include "server/resources/custom/schema/structure/structure.h"

#define RULES "x-kubernetes-validations"

/* The walk through one schema. */
struct walker {
        struct hfd_custom_rules *rules; /* what is made; its arena owns all nodes */
        struct hfd_declaring declaring;
        struct hfd_rule_issues issues;
        struct hfd_structure members;     /* finds the declared properties */
        struct hfd_schema_effort *effort; /* of the definition; NULL: there is no limit */
        bool failed;                      /* out of memory */
};

/* A part of the schema. */
struct part {
        const struct hf__json *props;  /* the schema that declares the part */
        const struct hf__json *checks; /* the schema with the checks: props, or one of its allOf */
        /* NULL: no rule stands at the part or above, or expressions cannot see it. */
        const struct hfd_declared *declared;
        enum hfd_declare_as as;
        struct hfd_rule_place place;
};

static struct hfd_rule_node *walk_schema(struct walker *w, struct part *part);

/* Whether the structure of the schema has a rule anywhere. Most schemas have no rule at all, and
 * then nothing is made. Rules below allOf and the like do not count: a new definition has none
 * there (walk_all_of), and those of a stored definition are passed over if the schema has no
 * others. */
static bool has_rules(const struct hf__json *props) {
        if (hf__json_first(hf__json_get(props, RULES)))
                return true;
        for (const struct hf__json *c = hfd_rule_schema_first(props); c;
             c = hfd_rule_schema_next(props, c))
                if (has_rules(c))
                        return true;
        return false;
}

/* Zeroed memory in the arena. NULL = out of memory, which w->failed says too. */
static void *allocate_memory(struct walker *w, size_t n) {
        void *block = hf__arena_alloc(&w->rules->arena, n);

        if (!block)
                w->failed = true;
        else
                memset(block, 0, n);
        return block;
}

static const char *copy_text(struct walker *w, const char *text) {
        const char *copied =
                hf__arena_text(&w->rules->arena, text ? text : "", text ? strlen(text) : 0);

        if (!copied)
                w->failed = true;
        return copied;
}

/* ---- the rules of one part ---- */

/* Whether no further rule may be compiled. */
static bool is_spent(const struct walker *w) {
        return w->effort && hfd_schema_effort_problem(w->effort);
}

/* Compiles a rule into the next place of node->rules, and reports its mistakes. */
static void add_rule(struct walker *w, const struct part *part, struct hfd_rule_node *node,
                     const struct hfd_rule_scope *scope, const struct hf__json *json) {
        struct hfd_rule *rule = &node->rules[node->n_rules];
        struct hfd_rule_findings findings = {.cost = 0};

        if (hfd_rule_init(rule, &w->rules->arena, scope, &w->members, part->props, json,
                          &findings) != 0)
                w->failed = true;
        if (w->effort)
                w->effort->work += findings.work;
        rule->next = w->rules->all;
        w->rules->all = rule;
        if (!w->failed)
                hfd_rule_issues_add(&w->issues, &part->place, node->n_rules, rule, json, &findings,
                                    node->declared->min_size);
        node->n_rules++;
        hf__strbuf_done(&findings.error);
        hf__strbuf_done(&findings.message_error);
}

static void add_rules(struct walker *w, const struct part *part, struct hfd_rule_node *node) {
        const struct hf__json *list = hf__json_get(part->checks, RULES);
        struct hfd_rule_scope *scope;

        if (!hf__json_first(list) || w->failed || is_spent(w))
                return;
        if (!part->declared) {
                hfd_rule_issues_undeclared(&w->issues, &part->place);
                return;
        }
        node->declared = part->declared;
        node->rules = allocate_memory(w, hf__json_count(list) * sizeof *node->rules);
        scope = allocate_memory(w, sizeof *scope);
        if (w->failed)
                return;
        if (hfd_rule_scope_init(scope, &w->rules->arena, w->rules->library, part->declared) != 0)
                w->failed = true;
        for (const struct hf__json *rule = hf__json_first(list); rule && !w->failed && !is_spent(w);
             rule = hf__json_next(rule))
                add_rule(w, part, node, scope, rule);
        if (is_spent(w) && !w->failed)
                hfd_rule_issues_spent(&w->issues, hfd_schema_effort_problem(w->effort));
}

/* ---- the parts below ---- */

/* The declaration of a part below a declared part: of the property `name` of an object, or of the
 * elements of a list or map. NULL: there is none. */
static const struct hfd_declared *declared_below(const struct part *parent, const char *name) {
        const struct hfd_declared_field *field;

        if (!parent->declared)
                return NULL;
        if (parent->declared->kind != HFD_DECLARED_OBJECT)
                return parent->declared->element;
        field = name ? hfd_declared_field(parent->declared, name) : NULL;
        return field ? field->declared : NULL;
}

/* Walks into a part below: a property (name), or the values or items (name NULL). checks and props:
 * as in struct part. */
static struct hfd_rule_node *walk_part(struct walker *w, const struct part *parent,
                                       const struct hf__json *checks, const struct hf__json *props,
                                       const char *name) {
        struct hf__strbuf *path = &w->issues.path;
        size_t n = path->n;
        struct part part = {.props = props, .checks = checks, .place = parent->place};
        struct hfd_rule_node *node;

        part.as = hf__json_bool(props, "x-kubernetes-embedded-resource", false)
                          ? HFD_DECLARE_EMBEDDED
                          : HFD_DECLARE_PART;
        part.declared = declared_below(parent, name);
        /* The declarations above leave the part out, so its rules are not evaluated. The walk only
         * goes on if their mistakes must be reported. */
        if (parent->declared && !part.declared && !w->issues.causes)
                return NULL;
        hfd_rule_place_enter(&part.place, parent->props, path->n, name != NULL);
        hfd_rule_path_enter(path, parent->checks, checks);
        node = walk_schema(w, &part);
        hfd_rule_path_cut(path, n);
        return node;
}

static int compare_nodes(const void *a, const void *b) {
        const struct hfd_rule_node *const *one = a;
        const struct hfd_rule_node *const *other = b;

        return strcmp((*one)->name, (*other)->name);
}

/* Puts the list of n children into an array that is sorted by name. */
static void sort_properties(struct walker *w, struct hfd_rule_node *node,
                            struct hfd_rule_node *first, size_t n) {
        node->properties = allocate_memory(w, n * sizeof(struct hfd_rule_node *));
        if (!node->properties)
                return;
        for (; first; first = first->next)
                node->properties[node->n_properties++] = first;
        if (n > 0)
                qsort((void *)node->properties, n, sizeof(struct hfd_rule_node *), compare_nodes);
}

static void walk_properties(struct walker *w, const struct part *part, struct hfd_rule_node *node) {
        const struct hf__json *declared = hf__json_get(part->props, "properties");
        const struct hf__json *properties = hf__json_get(part->checks, "properties");
        struct hfd_rule_node *first = NULL;
        size_t n = 0;

        for (const struct hf__json *p = hf__json_first(properties); p && !w->failed;
             p = hf__json_next(p)) {
                const struct hf__json *props =
                        properties == declared
                                ? p
                                : hfd_structure_member(&w->members, declared, hf__json_key(p));
                struct hfd_rule_node *child =
                        props ? walk_part(w, part, p, props, hf__json_key(p)) : NULL;

                if (!child)
                        continue;
                child->name = copy_text(w, hf__json_key(p));
                child->next = first;
                first = child;
                n++;
        }
        if (!w->failed && n > 0)
                sort_properties(w, node, first, n);
}

/* Kubernetes compiles the rules of allOf for objects, but does not report their mistakes. Only a
 * stored definition can have such rules: in a new one they are forbidden (invariants.c). */
static void walk_all_of(struct walker *w, const struct part *part, struct hfd_rule_node *node) {
        const struct hf__json *all_of = hf__json_get(part->checks, "allOf");
        struct hfd_causes *causes = w->issues.causes;

        if (!hf__json_first(all_of) || w->failed)
                return;
        node->all_of = allocate_memory(w, hf__json_count(all_of) * sizeof(struct hfd_rule_node *));
        w->issues.causes = NULL;
        for (const struct hf__json *m = hf__json_first(all_of); m && !w->failed;
             m = hf__json_next(m)) {
                struct part same = *part;
                struct hfd_rule_node *child;

                same.checks = m;
                child = walk_schema(w, &same);
                if (child)
                        node->all_of[node->n_all_of++] = child;
        }
        w->issues.causes = causes;
}

/* The keys by which elements of a list of type map are found in the old list (oldSelf). */
static void set_keys(struct walker *w, const struct part *part, struct hfd_rule_node *node) {
        const struct hf__json *keys = hf__json_get(part->props, "x-kubernetes-list-map-keys");

        if (!hf__json_has_text(part->props, "x-kubernetes-list-type", "map"))
                return;
        node->keys = allocate_memory(w, hf__json_count(keys) * sizeof *node->keys);
        for (const struct hf__json *k = hf__json_first(keys); k && !w->failed; k = hf__json_next(k))
                node->keys[node->n_keys++] = copy_text(w, hf__json_text(k));
}

/* A copy of the node in the arena. NULL: there are no rules, or out of memory. */
static struct hfd_rule_node *keep_node(struct walker *w, const struct hfd_rule_node *node) {
        struct hfd_rule_node *kept;

        if (w->failed || (node->n_rules == 0 && node->n_properties == 0 && node->n_all_of == 0 &&
                          !node->values && !node->items))
                return NULL;
        kept = allocate_memory(w, sizeof *kept);
        if (kept)
                *kept = *node;
        return kept;
}

/* The node of a part. NULL: there are no rules, or out of memory. The rules of the part itself come
 * after those of the parts below, because Kubernetes reports mistakes in this order. */
static struct hfd_rule_node *walk_schema(struct walker *w, struct part *part) {
        const struct hf__json *values = hf__json_get(part->checks, "additionalProperties");
        const struct hf__json *items = hf__json_get(part->checks, "items");
        struct hfd_rule_node node = {.n_rules = 0};
        struct hfd_rule_node *kept;

        if (!part->declared && hf__json_first(hf__json_get(part->checks, RULES)))
                part->declared = hfd_declare(&w->declaring, part->props, part->as);
        if (hf__json_is_object(values) && hf__json_get(part->props, "additionalProperties"))
                node.values = walk_part(w, part, values,
                                        hf__json_get(part->props, "additionalProperties"), NULL);
        walk_properties(w, part, &node);
        if (hf__json_is_object(items) && hf__json_get(part->props, "items"))
                node.items = walk_part(w, part, items, hf__json_get(part->props, "items"), NULL);
        add_rules(w, part, &node);
        walk_all_of(w, part, &node);
        kept = keep_node(w, &node);
        if (!kept)
                return NULL;
        kept->type = copy_text(w, hf__json_string(part->props, "type"));
        if (kept->items)
                set_keys(w, part, kept);
        return w->failed ? NULL : kept;
}

/* ---- the whole ---- */

static int make_rules(struct hfd_custom_rules *rules, const struct hf__json *props,
                      const char *path, struct hfd_schema_effort *effort,
                      struct hfd_causes *causes) {
        struct walker w = {.rules = rules,
                           .declaring = {.arena = &rules->arena},
                           .issues = {.causes = causes},
                           .effort = effort};
        struct part root = {.props = props, .checks = props, .as = HFD_DECLARE_RESOURCE};
        size_t n_causes = causes ? causes->n : 0;

        root.place = (struct hfd_rule_place){.bounded = true, .times = 1};
        hf__strbuf_puts(&w.issues.path, path ? path : "");
        hfd_structure_init(&w.members, causes);
        if (causes)
                hfd_rule_texts_check(&w.members, props, &w.issues.path, causes);
        /* Mistakes in expressions are reported only if the texts of all rules are right. */
        if (causes && causes->n > n_causes)
                w.issues.causes = NULL;
        rules->root = walk_schema(&w, &root);
        hfd_structure_done(&w.members);
        if (w.issues.causes)
                hfd_rule_budget_check(&w.issues.budget, path, causes);
        if (w.issues.path.error != 0 || rules->arena.failed)
                w.failed = true;
        hf__strbuf_done(&w.issues.path);
        return w.failed ? -ENOMEM : 0;
}

int hfd_custom_rules_new(const struct hf__json *props, const char *path,
                         struct hfd_schema_effort *effort, struct hfd_causes *causes,
                         struct hfd_custom_rules **ret) {
        struct hfd_custom_rules *rules;
        int r;

        *ret = NULL;
        if (!has_rules(props))
                return 0;
        rules = calloc(1, sizeof *rules);
        if (!rules)
                return -ENOMEM;
        hf__arena_init(&rules->arena);
        r = hfd_rule_library_ref(&rules->library);
        if (r == 0)
                r = make_rules(rules, props, path, effort, causes);
        /* Rules are not returned if only some of them were compiled: the others would be passed
         * over for every object. */
        if (r != 0 || !rules->root || (effort && hfd_schema_effort_problem(effort)))
                rules = hfd_custom_rules_free(rules);
        *ret = rules;
        return r;
}

struct hfd_custom_rules *hfd_custom_rules_free(struct hfd_custom_rules *rules) {
        if (!rules)
                return NULL;
        for (struct hfd_rule *rule = rules->all; rule; rule = rule->next)
                hfd_rule_done(rule);
        if (rules->library)
                hfd_rule_library_unref();
        hf__arena_deinit(&rules->arena);
        free(rules);
        return NULL;
}
