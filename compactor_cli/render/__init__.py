"""Summary to text in a template and back; transcripts to other formats, documents and pages."""
