"""Reports for people and for other tools: terminal, JUnit, HTML, Markdown."""
