"""What the loopback server answers with: texts that pass for a summary, and texts that do not."""

from __future__ import annotations

import re
from collections import Counter
from functools import lru_cache

ATOM = re.compile(r"[\w.-]*/[\w./-]+|\b\w+\.(?:py|js|ts|md|toml|json|txt|go|rs|c|h)\b|\b\w*[_\d]\w*\b|#\d+")
HEADING = re.compile(r"^#{1,3} \S.*$|^\*\*\S[^*\n]*\*\*:?$|^<[a-z_]+>$", re.MULTILINE)
CHARS_PER_TOKEN = 3.5

CHAT = "Sure! I would be happy to help you with that. What would you like me to look at first? Just let me know!"
REFUSAL = "I'm sorry, but I can't help with that."
INVENTED = tuple(
    f"- Edited src/{name}_{n}/{name}_handler_{n}.py ({n}{n}{n}{n} lines) for ticket #9{n}{n}7 with --{name}-mode-{n}"
    for n, name in enumerate("quokka wombat numbat bilby dunnart potoroo bettong quoll".split(), start=3)
)


@lru_cache(maxsize=512)
def summary(system: str, prompt: str, max_tokens: int, headings: tuple[str, ...] = ()) -> str:
    """A summary that says, under the headings the prompt asks for, its lines with the most repeated facts."""
    names = headings or _headings(system) or _headings(prompt) or ("## Summary",)
    lines = _salient(prompt, int(max_tokens * 0.5 * CHARS_PER_TOKEN) - sum(map(len, names)))
    share = -(-len(lines) // len(names))
    parts = []
    for number, name in enumerate(names):
        mine = lines[number * share : (number + 1) * share] or ["- none"]
        parts.append("\n".join((name, *mine, *((name.replace("<", "</"),) if name.startswith("<") else ()))))
    return "\n\n".join(parts)


def _headings(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(match[0] for match in HEADING.finditer(text)))[:20]


def _salient(prompt: str, chars: int) -> list[str]:
    """Lines that hold the most frequent atoms which no line before them holds, in their order in the prompt."""
    lines = [line.strip() for line in dict.fromkeys(prompt.splitlines()) if 8 < len(line) < 400]
    lines = [line for line in lines if not line.startswith(("#", "<"))]
    held = [frozenset(ATOM.findall(line)) for line in lines]
    often = Counter(atom for atoms in held for atom in atoms if len(atom) > 3)
    chosen: set[int] = set()
    said: set[str] = set()
    left = chars
    for atom, _ in often.most_common(400):
        if atom in said:
            continue
        best = max((n for n, atoms in enumerate(held) if atom in atoms), key=lambda n: len(held[n] - said))
        if best not in chosen and len(lines[best]) + 3 < left:
            chosen.add(best)
            said |= held[best]
            left -= len(lines[best]) + 3
    return [lines[n] if lines[n].startswith("- ") else f"- {lines[n]}" for n in sorted(chosen)]
