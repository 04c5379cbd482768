"""Which of several sources a value comes from (contract 10.2, 10.3): the one place that reads the environment.

Per option: code, then ``SMITHY_RETRY_*``, then ``AWS_*``, then the AWS profile, then the default. Only
``SMITHY_RETRY_ENABLED=false`` beats code.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import TypeVar

from .config import RetryConfig
from .environment import ENABLED, from_environment, is_switched_off, source_of, warn_of_typos
from .options import OPTIONS

C = TypeVar("C", bound=RetryConfig)


def resolve(config: C, environ: Mapping[str, str] | None = None, names: Iterable[str] = OPTIONS) -> C:
    """A config with what the environment says filled in, where nobody set anything yet.

    :param config: what code says. With ``trust_env=False`` it is returned as it is.
    :param environ: the environment variables; None: those of the process, now.
    :param names: the options to fill in.
    :raises RetryConfigError: for a bad variable, or AWS settings that cannot be read.
    """
    if not config.trust_env:
        return config
    environ = os.environ if environ is None else environ
    warn_of_typos(environ)
    if is_switched_off(environ):
        return config.replace_from({"enabled": source_of(ENABLED)}, enabled=False)
    values, sources = from_environment(environ, names)
    by_code = config.is_given("aws_config")
    aws_config = config.aws_config if by_code else values.get("aws_config", config.aws_config)
    if aws_config is not False:
        from .aws_settings import from_aws_settings  # few ask for it, and it brings a parser of files

        asked_by = config.source("aws_config") if by_code else sources["aws_config"]
        settled = {*values, *filter(config.is_given, names)}
        aws_values, aws_sources = from_aws_settings(environ, aws_config, source=asked_by, settled=settled)
        values = {**aws_values, **values}
        sources = {**aws_sources, **sources}
    wanted = [name for name in names if name in values and not config.is_given(name)]
    return config.replace_from({name: sources[name] for name in wanted}, **{name: values[name] for name in wanted})
