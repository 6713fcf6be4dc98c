"""The command line. Nothing imports it; heavy modules are imported inside the commands."""
