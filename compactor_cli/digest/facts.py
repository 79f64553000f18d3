"""Facts: what a text tells that can be needed again, so that the same thing is not paid for twice.

As the measures count them: atoms, phrases (three words in a row) and pairs (an atom and a word on one line); and
terms, the words that chats are about.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from compactor_cli.digest import words
from compactor_cli.digest.atoms import atom_texts

# Pairs are counted on lines up to this long; in a longer one, sharing the line says little.
MOST_PAIR_CHARS = 240

Phrase = tuple[str, str, str]
Pair = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Atoms, phrases, pairs and terms of texts."""

    atoms: frozenset[str] = frozenset()
    phrases: frozenset[Phrase] = frozenset()
    pairs: frozenset[Pair] = frozenset()
    terms: frozenset[str] = frozenset()

    def __or__(self, other: Facts) -> Facts:
        return Facts(
            atoms=self.atoms | other.atoms,
            phrases=self.phrases | other.phrases,
            pairs=self.pairs | other.pairs,
            terms=self.terms | other.terms,
        )


def facts_of(texts: Iterable[str]) -> Facts:
    """The facts of texts of any length, read line by line."""
    atoms: set[str] = set()
    phrases: set[Phrase] = set()
    pairs: set[Pair] = set()
    said: set[str] = set()
    for text in texts:
        for line in text.split("\n"):
            found, read = atom_texts(line), words.words(line)
            atoms |= found
            phrases.update(zip(read, read[1:], read[2:], strict=False))
            said.update(read if line.isascii() else words.raw_terms(line))
            if found and len(line) <= MOST_PAIR_CHARS:
                near = set(filter(words.is_near, read))
                pairs.update((atom, word) for atom in found for word in near)
    terms = frozenset(filter(words.is_term, said))
    return Facts(atoms=frozenset(atoms), phrases=frozenset(phrases), pairs=frozenset(pairs), terms=terms)
