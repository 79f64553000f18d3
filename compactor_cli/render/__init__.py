"""Summary to text and back (`template.py`); transcripts to other formats (`convert.py`) and to pages (`page.py`)."""
