"""An open home: its store, its sites, and its planes with their operations and revisions."""
