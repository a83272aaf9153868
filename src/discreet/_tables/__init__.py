"""Tables of records: read, checked and written, and their columns as the outcomes of a public domain.

Nothing here draws. What comes from outside is checked before it is read; what leaves appears whole or not at all.
"""
