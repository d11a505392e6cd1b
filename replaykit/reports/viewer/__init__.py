"""The viewer: one self-contained HTML page that shows episodes, served on loopback or opened from a file."""
