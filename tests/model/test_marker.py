from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from compactor_cli.model.marker import Marker, find_marker, without_marker

HASH = st.text("0123456789abcdef", min_size=16, max_size=16)
NUMBER = st.integers(0, 10**9)


@given(
    st.builds(
        Marker,
        transcript=HASH,
        first=NUMBER,
        last=NUMBER,
        records=NUMBER,
        tokens=NUMBER,
        end=HASH | st.just(""),
        state=HASH | st.just(""),
    )
)
def test_a_marker_is_read_back_from_its_text(marker: Marker) -> None:
    text = f"A preface.\nIn two lines.\n{marker}\n\n## Task\n- go on"
    assert find_marker(text) == marker
    assert without_marker(text) == "## Task\n- go on"


def test_a_marker_inside_a_line_or_deep_in_a_text_is_a_quotation() -> None:
    marker = Marker(transcript="0" * 16, first=1, last=2, records=3, tokens=4, end="1" * 16)
    assert find_marker(f"he pasted {marker} here") is None
    assert find_marker("x\n" * 1_500 + str(marker)) is None
    assert without_marker("no marker here") == "no marker here"
