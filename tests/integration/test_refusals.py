# SPDX-License-Identifier: Apache-2.0
"""Many definitions and policies, good and bad. Each is accepted or refused, with the message that kube-apiserver 1.36.3 gave for the
same object (refusals.json; docs/compatibility.md says how it was made)."""
import json
import pathlib

ROWS = json.loads(pathlib.Path(__file__).with_suffix("").with_name("refusals.json").read_text())
PATHS = {"CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
         "ValidatingAdmissionPolicy": "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"}


def test_definitions_and_policies_are_refused_in_the_same_words(cluster):
    server = cluster.instance("server").wait_ready()
    wrong = []
    for row in ROWS:
        code, text = server.request("POST", PATHS[row["object"]["kind"]] + "?dryRun=All", row["object"])
        message = None if code < 300 else json.loads(text)["message"]
        if (code, message) != (row["code"], row["message"]):
            wrong.append((row["object"]["metadata"]["name"], code, message, row["message"]))
    assert len(ROWS) > 140 and not wrong, wrong
