"""The disk edge: cassettes (journal, reader, redaction, migrations) and atomic writes."""
