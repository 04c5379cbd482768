"""What is known of one operation's request (contract 4): the copy that is sent, its key, what models say of it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from .bodies import Body
from .idempotency import has_key, key_for
from .model_facts import ModelFacts, facts_of
from .resend import ResendFacts

if TYPE_CHECKING:
    from requests import PreparedRequest

    from .config import RetryConfig
    from .operation_options import OperationOptions


class RequestFacts:
    """One request and how it may be sent.

    :param request: the caller's; it is not changed.
    :param config: the adapter's policy.
    :param options: of this operation.
    """

    def __init__(self, request: PreparedRequest, config: RetryConfig, options: OperationOptions) -> None:
        self.request = request
        self.config = config
        self.options = options
        self.body: Body = Body(request)
        self.to_send: PreparedRequest = self._to_send()
        self._model_facts: ModelFacts | None = None

    def _to_send(self) -> PreparedRequest:
        """The request for every attempt: the caller's own, or a copy with a watched body, or with a minted key.

        A key stays off the caller's request, from which requests makes redirect hops and auth re-sends: those are
        other operations.
        """
        request = self.body.request_to_send(self.request)
        header, option = self.config.idempotency_header, self.options.idempotency_key
        key = key_for(self.request, header, self.config.idempotency_key if option is None else option)
        if key is not None:
            request = request.copy() if request is self.request else request
            request.headers[header] = key
        return request

    def resend(self, *, unwritten: bool) -> ResendFacts:
        """What decides whether it may be sent again, after a failure. A body that can be is made ready for it.

        :param unwritten: no byte of it was written.
        """
        method = str(self.request.method).upper()
        allowed = self.config.allowed_methods
        vouched = self.options.idempotent
        if vouched is None and self.model_facts.resendable:
            vouched = True
        return ResendFacts(
            method=method,
            idempotent=allowed is None or method in allowed,
            keyed=has_key(self.to_send.headers, self.config.idempotency_header),
            vouched=vouched,
            unwritten=unwritten,
            strict=self.config.strict_methods,
            replayable=self.body.rewind(unwritten=unwritten),
        )

    @property
    def model_facts(self) -> ModelFacts:
        """What the models say; asked once, and not before there is something to decide."""
        if self._model_facts is None:
            self._model_facts = facts_of(self.config.models, self.request)
        return self._model_facts

    @property
    def full_options(self) -> OperationOptions:
        """The operation's options; that it is a long poll is the model's to say where the caller does not."""
        if self.options.long_poll is None and self.model_facts.long_poll:
            return dataclasses.replace(self.options, long_poll=True)
        return self.options
