"""CustomResourceDefinitions: what one must be like, which names it gets, and the kinds that come of it.

- `rules`, `versions`, `structural` and `words` say what is wrong with a definition, from its name down to the last word
  of its schemas; `schema` is the schema of definitions themselves.
- `naming` gives names to definitions, and conditions.
- `families` makes kinds of them.

All of it is pure: what happens when a definition comes, changes or goes is the business of `writes.defining`.
"""

from ingot.embedded.server.kinds.definitions.families import family_of

__all__ = ["family_of"]
