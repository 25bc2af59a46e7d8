"""The JSON Schemas of the models take every shipped file, and refuse what the models refuse."""

import json

import jsonschema
import pytest
from pydantic import BaseModel

from scalesweep.config.benchmark import Benchmark
from scalesweep.config.campaign_keys import CampaignKeys
from scalesweep.config.site import Site
from scalesweep.config.yaml_loader import load_yaml
from tests.conftest import ROOT

FILES: dict[type[BaseModel], list[str]] = {
    CampaignKeys: [
        "config/campaigns/**/*.yaml",
        "config/config.yaml",
        "resources/study/config/*.yaml",
    ],
    Site: ["config/sites/*.yaml", "resources/study/config/sites/*.yaml"],
    Benchmark: ["workflow/benchmarks/*/benchmark.yaml", "resources/**/benchmark.yaml"],
}


@pytest.mark.parametrize("model", FILES)
def test_shipped_files_are_valid_and_a_mistake_is_one(model: type[BaseModel]) -> None:
    text = json.dumps(model.model_json_schema(by_alias=True)).replace('"oneOf"', '"anyOf"')
    schema = jsonschema.Draft202012Validator(json.loads(text))
    files = [path for pattern in FILES[model] for path in ROOT.glob(pattern)]
    assert len(files) > 2
    for path in files:
        assert [error.message for error in schema.iter_errors(load_yaml(path))] == [], path
    (mistake,) = schema.iter_errors({**load_yaml(files[0]), "nods": 3})
    assert "'nods' was unexpected" in mistake.message
