"""Notice: what is written where records are left out without a summary: the template's frame, and nothing in it."""

from __future__ import annotations

from compactor_cli.digest.language import detect
from compactor_cli.model.summary import Answer, Request, Source, Summary
from compactor_cli.model.transcript import Role


class OmissionNotice:
    """A summariser that carries no information of the covered records but that they were there."""

    def summarise(self, request: Request) -> Answer:
        """A summary without sections, in the language of the conversation."""
        return Answer(summary=Summary(source=Source.NOTICE, sections=(), language=language_of(request)))


def language_of(request: Request) -> str:
    """The language that is asked for, else that of the user's words among the covered records."""
    if request.language != "auto":
        return request.language
    messages = request.transcript.messages
    return detect(messages[i].text for i in request.covered if messages[i].role is Role.USER)
