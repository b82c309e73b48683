"""Writes: creating, changing, applying, patching, deleting, and collecting what nobody owns any more.

`writing` is the one way in. `checks` says whether a write fits, `metadata` is the server's own part of an object,
`managing` records who owns which field by the rules in `apply`; `patches` and `strategic` are pure functions over
documents. `admission` and `webhooks` ask those who have a say, `defining` follows definitions of kinds, `ending` is how
long an object has to end, `deleting` what a deletion leaves of it, and `garbage` follows owners and empties namespaces.
`chores` is how `defining` and `garbage`, which work by themselves, go on whatever happens.
"""
