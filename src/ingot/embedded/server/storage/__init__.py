"""Storage: all objects in memory (`store`), on one SQLite file (`database`). Nothing here knows what an object means."""
