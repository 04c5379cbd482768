"""The default set (contract 3.4)."""

from __future__ import annotations

from requests_smithy_retry import RetryConfig, SmithyModel, default_classifiers
from requests_smithy_retry.classifiers.protocol import in_order

MODEL = SmithyModel.from_dict({"smithy": "2.0", "shapes": {}}).for_endpoint("https://api.example.com")
NAMES = [
    "HttpStatusCodeClassifier",
    "IdempotencyKeyClassifier",
    "AwsErrorCodeClassifier",
    "SmithyModelClassifier",
    "ModeledAsRetryableClassifier",
    "TransientErrorClassifier",
]


def test_the_set_is_in_the_order_of_the_contract() -> None:
    """The defaults go from the widest net to the narrowest; the model is there only if one was given."""
    assert [item.name for item in default_classifiers()] == [name for name in NAMES if "Smithy" not in name]
    full = default_classifiers(RetryConfig(models=[MODEL]))
    assert [item.name for item in full] == NAMES
    assert in_order(reversed(full)) == full


def test_the_set_is_made_as_the_config_wants_it() -> None:
    """The built-in classifiers have the config's statuses, parser and models."""

    def parse(response: object) -> None:
        return None

    items = {item.name: item for item in default_classifiers(RetryConfig(retry_status_codes=[418], error_parser=parse))}
    assert items["HttpStatusCodeClassifier"].codes == {418}
    assert items["ModeledAsRetryableClassifier"].error_parser is parse
