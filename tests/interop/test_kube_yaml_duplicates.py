# SPDX-License-Identifier: Apache-2.0
"""Bodies in YAML under strict validation: which duplicate fields are refused. An apply need not be JSON."""
import pytest
from memory_server import MemoryServer

CM = "/api/v1/namespaces/default/configmaps"
APPLY, YAML = "application/apply-patch+yaml", "application/yaml"
TWICE = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: twice\ndata:\n  a: "1"\n  a: "2"\nkind: ConfigMap\n'
LINES = 'yaml: unmarshal errors:\n  line 7: key "a" already set in map\n  line 8: key "kind" already set in map'


@pytest.fixture(scope="module", name="api")
def _api():
    with MemoryServer() as server:
        yield server


def apply(api, name, body, validation):
    return api.ask("PATCH", f"{CM}/{name}?fieldManager=m&fieldValidation={validation}", body, content_type=APPLY)


def test_a_strict_apply_names_the_lines(api):
    answer = apply(api, "twice", TWICE, "Strict")
    assert (answer.code, answer.json["reason"], answer.json["message"]) == (
        400, "BadRequest", "error strict decoding YAML: error converting YAML to JSON: " + LINES)
    assert api.ask("GET", CM + "/twice").code == 404


def test_a_strict_apply_of_json_does_so_too(api):
    answer = apply(api, "twice", '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice","name":"twice"}}', "Strict")
    assert (answer.code, answer.json["message"]) == (400, "error strict decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:\n"
                                                          '  line 1: key "name" already set in map')


def test_an_apply_takes_the_last_value_unless_it_is_strict(api):
    for validation in "Ignore", "Warn":
        answer = apply(api, "lenient", TWICE.replace("name: twice", "name: lenient"), validation)
        assert answer.code in (200, 201) and answer.json["data"] == {"a": "2"}, answer.text


def test_a_strict_create_names_the_lines(api):
    answer = api.ask("POST", CM + "?fieldValidation=Strict", TWICE + "unknown: 1\n", content_type=YAML)
    assert (answer.code, answer.json["message"]) == (
        400, 'ConfigMap in version "v1" cannot be handled as a ConfigMap: strict decoding error: ' + LINES + ', unknown field "unknown"')


def test_an_apply_may_look_like_json(api):
    """In YAML, the last member or element of a flow collection may be followed by a comma."""
    answer = apply(api, "flow", '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "flow",}, "data": {"a": "1",},}', "Strict")
    assert answer.code == 201 and answer.json["data"] == {"a": "1"}, answer.text


def test_an_apply_that_is_neither_is_refused(api):
    answer = apply(api, "flow", '{"apiVersion": ]', "Strict")
    assert answer.code == 400, answer.text
