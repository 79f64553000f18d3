"""The digest: a summary written without a model, every statement of it found in the transcript."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compactor_cli.digest import state
from compactor_cli.digest.atoms import atom_texts
from compactor_cli.digest.events import EventKind
from compactor_cli.digest.facts import Facts, facts_of
from compactor_cli.digest.keylines import Choice, Chooser, KeyLine
from compactor_cli.digest.layout import history
from compactor_cli.digest.loss import loss
from compactor_cli.digest.material import Material, gather
from compactor_cli.digest.memory import Memory, of_files
from compactor_cli.digest.places import Told
from compactor_cli.digest.previous import previous_items
from compactor_cli.digest.quote import Meter
from compactor_cli.digest.sections import Reserved, reserved
from compactor_cli.digest.tool_use import is_tool_item
from compactor_cli.digest.turns import remembered_lines
from compactor_cli.model.summariser import Answer, Request
from compactor_cli.model.summary import Item, Section, SectionItems, Source, Summary

# Where the summary is over its budget and no key line is left, these give way, in this order.
_GIVING_WAY = (
    Section.PREVIOUS,
    Section.COMMANDS,
    Section.DECISIONS,
    Section.ERRORS,
    Section.HISTORY,
    Section.FILES,
    Section.QUESTIONS,
    Section.USER,
    Section.PLAN,
    Section.TASK,
)
_HEADER_TOKENS = 8
# Estimates of the whole by its parts differ by some percent: what is asked for is set right by what came of it,
# until so much is filled.
_FILLED = 0.975
_AIMED = 0.99
_MOST_CHOICES = 4
_MOST_ROUNDS = 12
_LEAST_KEY_TOKENS = 24


class Digest:
    """The default summariser. Same request, same answer; time linear in the covered text."""

    def summarise(self, request: Request) -> Answer:
        """The summary of ``request.covered``: within its budget, and within 5 % of it where there is enough to say.

        It ends where nothing new is left to tell, however large the budget. A budget that cannot even hold the
        template's frame gives a summary without sections.
        """
        material = gather(request)
        writer = _Writer(request=request, material=material, meter=Meter(count=request.count))
        summary, choice = writer.write()
        lost, retention = loss(material, request.render(summary))
        summary = replace(summary, lost=lost, retention=retention)
        extra = _memory(material, summary).to_json()
        return Answer(summary=summary, state=state.serialise(material.scores, choice.candidates, extra))


def _memory(material: Material, summary: Summary) -> Memory:
    """What the next digest is to know of this one's records: all that is small, not only what was shown."""
    shown = {part.section: part.items for part in summary.sections}
    return Memory(
        users=tuple(message.text for message in material.said),
        files=of_files(material.files),
        todos=tuple((todo.state.value, todo.text) for todo in material.plan.todos),
        plan=material.plan.text,
        commands=tuple(
            item.text
            for item in reversed(shown.get(Section.COMMANDS, ()))
            if not is_tool_item(item.text, material.words)
        ),
        errors=tuple(item.text for item in reversed(shown.get(Section.ERRORS, ()))),
        decisions=tuple(decision.text for decision in material.decisions),
        skills=tuple(name for name, _ in material.attached.skills),
        running=tuple((work.id, work.about) for work in material.attached.running),
        turns=remembered_lines(material.turns, material.words),
    )


@dataclass(slots=True, kw_only=True)
class _Writer:
    request: Request
    material: Material
    meter: Meter

    def write(self) -> tuple[Summary, Choice]:
        """The summary, and the choice of key lines in it."""
        budget = self.request.budget_tokens
        asked = self.request
        parts = reserved(self.material, budget - self._tokens({}), self.meter, asked.restore_files, asked.kept_by)
        sections = self._sections(parts, ())
        left = budget - self._tokens(sections)
        choice = Choice(lines=(), candidates=())
        if left >= _LEAST_KEY_TOKENS:
            choice, lines = self._key_lines(parts, sections, left)
            sections = self._sections(parts, lines)
        return self._summary(self._fitted(sections)), choice

    def _summary(self, sections: Mapping[Section, Sequence[Item]]) -> Summary:
        return Summary(
            source=Source.DIGEST,
            sections=tuple(
                SectionItems(section=section, items=tuple(sections[section]))
                for section in Section
                if sections.get(section)
            ),
            language=self.material.language,
            state_used=self.material.state_used,
        )

    def _tokens(self, sections: Mapping[Section, Sequence[Item]]) -> int:
        return self.request.count(self.request.render(self._summary(sections)))

    def _sections(self, parts: Reserved, lines: Sequence[KeyLine]) -> dict[Section, Sequence[Item]]:
        material = self.material
        new = [line for line in lines if line.kind is not EventKind.SUMMARY and line.event >= 0]
        old = [line for line in lines if line.kind is EventKind.SUMMARY or line.event < 0]
        return {
            **parts.items,
            Section.HISTORY: history(parts.turns, new, material.words, parts.names),
            Section.PREVIOUS: previous_items(old, parts.items.get(Section.PREVIOUS, ()), material, parts.names),
        }

    def _key_lines(
        self, parts: Reserved, sections: Mapping[Section, Sequence[Item]], left: int
    ) -> tuple[Choice, list[KeyLine]]:
        """Key lines that fill what is left: asked for by estimate, then by what the estimate was off."""
        chooser = self._chooser(left, self._covered(sections), parts.names)
        told = Told("\n".join(item.text for items in sections.values() for item in items))
        fixed = self.request.budget_tokens - left
        asked = left
        best = choice = self._chosen(chooser, asked, told)
        most = 0
        for _ in range(_MOST_CHOICES):
            used = self._tokens(self._sections(parts, choice.lines)) - fixed
            if most < used <= left:
                best, most = choice, used
            if not choice.lines or left * _FILLED <= used <= left:
                break
            asked = int(min(asked * 3, asked * left * _AIMED / max(1, used)))
            choice = self._chosen(chooser, asked, told)
        return best, self._trimmed(parts, best.lines)

    def _chooser(self, tokens: int, covered: Facts, names: Mapping[str, str]) -> Chooser:
        return Chooser(
            self.material.events,
            self.material.scores,
            budget_tokens=tokens,
            count=self.meter.text,
            covered=covered,
            old_candidates=self.material.candidates,
            header_tokens=_HEADER_TOKENS,
            names=names,
        )

    def _chosen(self, chooser: Chooser, tokens: int, told: Told) -> Choice:
        """The key lines for so many tokens, without those that a section quotes already."""
        choice = chooser.choose(tokens)
        return replace(choice, lines=tuple(line for line in choice.lines if line.text not in told))

    def _covered(self, sections: Mapping[Section, Sequence[Item]]) -> Facts:
        """What the reserved sections say already, and the atoms that the kept records show."""
        told = facts_of(item.text for items in sections.values() for item in items)
        seen: set[str] = set()
        for event in self.material.kept:
            seen |= atom_texts(event.text)
        return replace(told, atoms=told.atoms | seen)

    def _trimmed(self, parts: Reserved, lines: Sequence[KeyLine]) -> list[KeyLine]:
        """The lines without the least valuable ones, so that the whole fits its budget."""
        kept = list(lines)
        order = sorted(range(len(kept)), key=lambda number: (self._worth(kept[number]), -number), reverse=True)
        for _ in range(_MOST_ROUNDS):
            over = self._tokens(self._sections(parts, [lines[i] for i in sorted(order)])) - self.request.budget_tokens
            if over <= 0 or not order:
                break
            while over > 0 and order:
                over -= self.meter.text(lines[order.pop()].text) + 2
        return [lines[number] for number in sorted(order)]

    def _worth(self, line: KeyLine) -> float:
        total = sum(map(self.material.scores.of, sorted(atom_texts(line.text))))
        return total / (self.meter.text(line.text) + _HEADER_TOKENS / 2)

    def _fitted(self, sections: Mapping[Section, Sequence[Item]]) -> dict[Section, Sequence[Item]]:
        """The sections without the last items of those that give way first, so that the whole fits."""
        fitted = {section: list(items) for section, items in sections.items()}
        while (over := self._tokens(fitted) - self.request.budget_tokens) > 0:
            section = next((section for section in _GIVING_WAY if fitted.get(section)), None)
            if section is None:
                return {}
            while over > 0 and fitted[section]:
                over -= self.meter.item(fitted[section].pop())
        return dict(fitted)
