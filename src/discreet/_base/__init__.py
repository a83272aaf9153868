"""Shared foundations of all rooms: directed rounding, compiled code, files, text for people. Nothing here is public.

Other rooms import from its modules by name; each has its own docstring. Errors are public and have a module of their own, `discreet.errors`.
"""
