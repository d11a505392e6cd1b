"""Certification: checks that can fail, run over loopback against labelled controls, with evidence to recompute them."""
