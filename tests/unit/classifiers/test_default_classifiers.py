"""The default set (contract 3.4)."""

from __future__ import annotations

from requests_smithy_retry import RetryConfig, SmithyModelClassifier, default_classifiers
from requests_smithy_retry.classifiers.protocol import in_order

NAMES = [
    "HttpStatusCodeClassifier",
    "IdempotencyKeyClassifier",
    "UsedUpLimitClassifier",
    "AwsErrorCodeClassifier",
    "ServerVerdictClassifier",
    "SmithyModelClassifier",
    "ModeledAsRetryableClassifier",
    "TransientErrorClassifier",
]


def test_the_set_is_in_the_order_of_the_contract() -> None:
    """The defaults go from the widest net to the narrowest; a model's has its place among them."""
    assert [item.name for item in default_classifiers()] == [name for name in NAMES if "Smithy" not in name]
    full = in_order([SmithyModelClassifier([]), *default_classifiers()])
    assert [item.name for item in full] == NAMES


def test_the_set_is_made_as_the_config_wants_it() -> None:
    """The built-in classifiers have the config's statuses."""
    items = {item.name: item for item in default_classifiers(RetryConfig(retry_status_codes=[418]))}
    assert items["HttpStatusCodeClassifier"].codes == {418}
