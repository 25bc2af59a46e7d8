"""The JSON Schemas of the models take every shipped file, and refuse what the models refuse."""

from pathlib import Path

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


def mistakes(model: type[BaseModel], content: object) -> list[str]:
    schema = model.model_json_schema(by_alias=True)
    text = jsonschema.Draft202012Validator(_any_of(schema))
    return [
        f"{list(error.absolute_path)}: {error.message[:200]}" for error in text.iter_errors(content)
    ]


def _any_of(schema: object) -> object:
    if isinstance(schema, dict):
        return {"anyOf" if key == "oneOf" else key: _any_of(of) for key, of in schema.items()}
    return [_any_of(of) for of in schema] if isinstance(schema, list) else schema


@pytest.mark.parametrize("model", FILES)
def test_shipped_files_are_valid(model: type[BaseModel]) -> None:
    files = [path for pattern in FILES[model] for path in ROOT.glob(pattern)]
    assert len(files) > 2
    for path in files:
        assert mistakes(model, load_yaml(path)) == [], path


def test_a_mistake_is_one(tmp_path: Path) -> None:
    content = load_yaml(ROOT / "config/sites/local.yaml")
    assert "'nods' was unexpected" in mistakes(Site, {**content, "nods": 3})[0]
