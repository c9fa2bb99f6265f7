"""Margins: what turns each column into a normal one."""
