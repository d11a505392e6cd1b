"""Interchange: other tools' files as plain values and back. Nothing here runs an episode or knows a cassette's file."""
