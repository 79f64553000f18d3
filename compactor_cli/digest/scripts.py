"""Scripts that the session wrote and ran: what they did to which files, and which of them were only tries."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from compactor_cli.digest.commands import failed_with_code
from compactor_cli.digest.edits import added_names, python_changes, written_lines
from compactor_cli.digest.events import Event, EventKind, FileAction, ToolKind, command_of, results_of
from compactor_cli.digest.files import Content, FileOperation, replay_text
from compactor_cli.digest.shell import scripts_run, written_paths
from compactor_cli.model.value import dataclass


def with_scripts(
    operations: Sequence[FileOperation], events: Sequence[Event], directory: str = ""
) -> tuple[FileOperation, ...]:
    """All operations with those of the scripts that the session wrote and ran.

    A script that only tries something is marked: one that the session wrote where it works and ran from there, that the
    user never named, while it changed files that were there.
    """
    results, by_event = results_of(events), dict[int, list[FileOperation]]()
    for one in operations:
        by_event.setdefault(one.event, []).append(one)
    reader = _Scripts(above=f"{directory}/" if directory else "\n")
    found: list[FileOperation] = []
    for number, event in enumerate(events):
        own, result = by_event.get(number, []), results.get(number)
        for one in own:
            reader.note(one)
        done = [*reader.ran(event, number)] if event.kind is EventKind.CALL and event.tool is ToolKind.COMMAND else []
        if done and result and not (result.is_refusal or failed_with_code(result)):
            # Of a command line that holds the script it is only known which file that writes.
            written = {one.path for one in done}
            own = [one for one in own if one.action is not FileAction.EDIT or one.path not in written] + done
        found += own
    users_words = "\n".join(event.text for event in events if event.kind is EventKind.USER)
    tries = {path for path in reader.run & reader.created.keys() if posixpath.basename(path) not in users_words}
    is_amid_others = any(one.action is FileAction.EDIT and one.path not in reader.created for one in found)
    return tuple(replace(one, is_try=True) if is_amid_others and one.path in tries else one for one in found)


@dataclass(slots=True, kw_only=True)
class _Scripts:
    above: str  # the directory that paths are without
    created: dict[str, Content] = field(default_factory=dict)
    run: set[str] = field(default_factory=set)  # scripts that a command ran in their folder

    def ran(self, event: Event, number: int) -> Iterator[FileOperation]:
        """What the scripts that a command runs write."""
        for whole_path, name, place in scripts_run(command_of(event.arguments)):
            path = whole_path.removeprefix(self.above)
            if "/" not in name.removeprefix("./"):
                self.run.add(path)
            script = self.created.get(path, Content()).text or ""
            paths = written_paths(script) if path.endswith(".py") else []
            changes = python_changes(script) if len(paths) == 1 else ()
            for written in paths:
                whole = posixpath.normpath(posixpath.join(place, written)).removeprefix(self.above)
                yield FileOperation(
                    action=FileAction.EDIT,
                    path=whole,
                    event=number,
                    record=event.record,
                    added=tuple(added_names(changes, whole)),
                    lines=written_lines(changes, script),
                    replaced=changes,
                )

    def note(self, one: FileOperation) -> None:
        """Keeps what a file holds that the session created: it may be run."""
        if one.action is FileAction.CREATE and not one.is_rewrite:
            self.created[one.path] = Content()
        if one.path in self.created:
            replay_text(self.created[one.path], one)
